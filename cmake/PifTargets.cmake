# How this project makes its libraries, programs and tests.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq>=4.3)
find_path(CPPZMQ_INCLUDE zmq.hpp HINTS ${ZMQ_INCLUDE_DIRS} REQUIRED)  # Debian: cppzmq-dev; headers only
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(LMDB REQUIRED IMPORTED_TARGET lmdb)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)  # CRC-64
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)  # vector kernels
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)

add_library(pif_flags INTERFACE)
target_compile_options(pif_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>
  # Assertions name their file from the root of the project on.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  # GCC 12 warns about its own std::string in optimised code (bug 105651).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(PIF_SANITIZE)
  # C++ only: the one C program is static, which a sanitizer's runtime cannot be.
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PIF_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  if(PIF_FUZZ)
    # Every check of UBSan is a comparison: to report all their operands to libFuzzer takes a third of the time.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-coverage=trace-cmp>")
  endif()
  add_link_options("$<$<LINK_LANGUAGE:CXX>:-fsanitize=${PIF_SANITIZE}>")
endif()
if(PIF_COVERAGE)
  # Atomic, because some programs have threads; C++ only, because pif-exec is static and confines itself.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--coverage;-fprofile-abs-path;-fprofile-update=atomic>")
  add_link_options("$<$<LINK_LANGUAGE:CXX>:--coverage>")
  # These handle errors as values and catch nothing: without exceptions no branch is counted that only one could take.
  # Static locals are made by one thread: without the lock that the compiler puts around them.
  set(PIF_COUNTED base parity lfs server)
  set(PIF_COUNTED_OPTIONS -fno-exceptions -fno-threadsafe-statics -DSPDLOG_NO_EXCEPTIONS)
endif()

# pif_library(NAME [SOURCES ...] [PUBLIC ...] [PRIVATE ...]): the library of one folder. Its public headers are the
# files under include/; every one must compile alone (target all_verify_interface_header_sets).
function(pif_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.h)
  add_library(pif_${name} STATIC ${ARG_SOURCES})
  add_library(pif::${name} ALIAS pif_${name})
  target_sources(pif_${name} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  target_include_directories(pif_${name} PRIVATE src)
  if(name IN_LIST PIF_COUNTED)
    target_compile_options(pif_${name} PRIVATE ${PIF_COUNTED_OPTIONS})
  endif()
  target_link_libraries(pif_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:pif_flags>)
  target_compile_features(pif_${name} PUBLIC cxx_std_20)  # users' compilers too
  set_target_properties(pif_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
endfunction()

# pif_precompile(TARGET HEADER...): what most sources of the target include is read once. Measured: more than a third
# of the time of a build goes into reading the standard library, protobuf, CLI11 and Catch2.
function(pif_precompile target)
  if(NOT PIF_FUZZ AND NOT PIF_COVERAGE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
set(PIF_STANDARD_HEADERS <algorithm> <chrono> <cstdint> <cstring> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <vector>)
set(PIF_DAEMON_HEADERS ${PIF_STANDARD_HEADERS} <fmt/format.h> <spdlog/spdlog.h> <pif/proto/messages.pb.h>)
set(PIF_CLIENT_HEADERS ${PIF_STANDARD_HEADERS} <fmt/format.h> <pif/proto/messages.pb.h>)
set(PIF_TOOL_HEADERS ${PIF_STANDARD_HEADERS} <filesystem> <fmt/format.h> <CLI/CLI.hpp> <nlohmann/json.hpp>)

# For what is compiled for a short build, not for speed. GCC 12 warns about its own strings and optionals there (bug
# 105651).
set(PIF_QUICK_OPTIONS $<$<CONFIG:Release>:-O1>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)

# Everything that a file system runs on, and all tools. scripts/demo builds it, and tests see that it is enough.
add_custom_target(programs)

# pif_program(NAME [SOURCES ...] [LINK ...]): an executable in build/<preset>/bin, installed unless it is an example.
# Part of `programs`, but for examples and the benchmark.
function(pif_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} pif_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT name MATCHES "^example-")
    install(TARGETS ${name} RUNTIME)
  endif()
  if(NOT name MATCHES "^(example-.*|pif-bench)$")
    add_dependencies(programs ${name})
  endif()
endfunction()
