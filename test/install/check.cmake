# cmake -D BUILD=... -D OUTSIDE=... (and so on: CMakeLists.txt) -P check.cmake
set(PREFIX ${WORK}/prefix)
set(FLAGS)
if(SANITIZE)
  set(FLAGS -fsanitize=${SANITIZE})
endif()

# run(WHAT COMMAND ...): output is in OUT.
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE error)
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE ${WORK})
    message(FATAL_ERROR "${what} failed (${result}):\n${ARGN}\n${out}\n${error}")
  endif()
  set(OUT "${out}" PARENT_SCOPE)
endfunction()

function(expect what text)
  if(NOT OUT MATCHES "${text}")
    message(FATAL_ERROR "${what}: expected \"${text}\", got \"${OUT}\"")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run("installing" ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
foreach(program pif pif-server pif-lfs pif-exec pif-copy pif-count pif-sort pif-transpose pif-calibrate pif-chmod)
  if(NOT EXISTS ${PREFIX}/bin/${program})
    message(FATAL_ERROR "bin/${program} is not installed")
  endif()
endforeach()
foreach(completion bash-completion/completions/pif zsh/site-functions/_pif fish/vendor_completions.d/pif.fish)
  if(NOT EXISTS ${PREFIX}/share/${completion})
    message(FATAL_ERROR "share/${completion} is not installed")
  endif()
endforeach()
run("the installed pif" ${PREFIX}/bin/pif --version)

# The examples that are built below are the installed ones.
foreach(document README.md docs/WRITING-TOOLS.md docs/LIBRARY.md)
  if(NOT EXISTS ${PREFIX}/share/doc/pif/${document})
    message(FATAL_ERROR "share/doc/pif/${document} is not installed")
  endif()
endforeach()
set(EXAMPLES ${PREFIX}/share/doc/pif/examples)

# As the README and docs/WRITING-TOOLS.md say: find_package(pif), then pif::client or pif::tool. Every example is
# built so.
run("configuring against the installed package" ${CMAKE_COMMAND} -S ${OUTSIDE} -B ${WORK}/outside -G Ninja
  -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} -D CMAKE_CXX_FLAGS=${FLAGS}
  -D CMAKE_C_FLAGS=${FLAGS} -D PIF_EXAMPLES=${EXAMPLES} -D PIF_INCLUDE=${PREFIX}/include)
run("building against the installed package" ${CMAKE_COMMAND} --build ${WORK}/outside -j2)
run("the program with find_package" ${WORK}/outside/with_package)
expect("the program with find_package" "^record 9 is on LFS 3\nno file system: not-found")

# With pkg-config, no CMake: a C and a C++ program with libpif.so, C with the static libraries, a tool.
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${PREFIX}/${LIBDIR})
function(compile program package compiler)
  run("pkg-config ${package}" pkg-config --cflags --libs ${package})
  separate_arguments(pc UNIX_COMMAND "${OUT}")
  run("compiling ${program}" ${compiler} ${ARGN} -Wall -Werror ${FLAGS} ${pc} -o ${WORK}/outside/${program})
endfunction()
compile(in_c_by_pkg_config pif ${CC} -std=c11 ${OUTSIDE}/in_c.c)
compile(in_c_static pif-static ${CC} -std=c11 ${OUTSIDE}/in_c.c)
compile(in_cpp_by_pkg_config pif ${CXX} -std=c++20 ${OUTSIDE}/with_package.cc)
compile(tool_by_pkg_config pif-tool ${CXX} -std=c++20 ${EXAMPLES}/noop.cc)
run("the C++ program with libpif.so" ${WORK}/outside/in_cpp_by_pkg_config)
expect("the C++ program with libpif.so" "^record 9 is on LFS 3\nno file system: not-found")
run("what the C++ program needs" readelf -d ${WORK}/outside/in_cpp_by_pkg_config)
expect("what the C++ program needs" "libpif.so.0.1")
if(OUT MATCHES "protobuf|zmq")
  message(FATAL_ERROR "a program with libpif.so is linked to more than that: ${OUT}")
endif()
run("a tool by pkg-config" ${WORK}/outside/tool_by_pkg_config --help)
run("the C program with libpif.so, without a file system" ${WORK}/outside/in_c_by_pkg_config /nonexistent)
expect("the C program with libpif.so, without a file system" "^no file system: ")
run("the C program with static libraries, without a file system" ${WORK}/outside/in_c_static /nonexistent)
expect("the C program with static libraries, without a file system" "^no file system: ")
if(NOT SANITIZE)
  run("what libpif.so exports" ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/exports.py ${PREFIX}/${LIBDIR}/libpif.so
    ${PREFIX}/include)
endif()

# All of them on a file system of the installed programs.
run("running what was built" ${CMAKE_COMMAND} -E env PIF_BIN=${PREFIX}/bin
  ${PYTHON} ${RUN_EXAMPLES} ${WORK}/outside ${EXAMPLES})

# What `pif tool new` makes is a tool that passes its test.
set(ENV{PATH} ${PREFIX}/bin:$ENV{PATH})
foreach(name quiet talking)
  set(kind)
  if(name STREQUAL "talking")
    set(kind --talking)
  endif()
  execute_process(COMMAND pif tool new -q ${kind} ${name} WORKING_DIRECTORY ${WORK} COMMAND_ERROR_IS_FATAL ANY)
  run("configuring ${name}" ${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/${name}/build -G Ninja
    -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX} -D "CMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Werror")
  run("building ${name}" ${CMAKE_COMMAND} --build ${WORK}/${name}/build)
  run("testing ${name}" ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/${name}/build --output-on-failure)
endforeach()

file(REMOVE_RECURSE ${WORK})
