# cmake -D BUILD=... -D OUTSIDE=... -D WORK=... -D CXX=... -D CC=... -D SANITIZE=... -D LIBDIR=... -P check.cmake
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
foreach(program pif pif-server pif-lfs pif-exec pif-copy)
  if(NOT EXISTS ${PREFIX}/bin/${program})
    message(FATAL_ERROR "bin/${program} is not installed")
  endif()
endforeach()
run("the installed pif" ${PREFIX}/bin/pif --version)

# As the README says: find_package(pif), then pif::client or pif::tool.
run("configuring against the installed package" ${CMAKE_COMMAND} -S ${OUTSIDE} -B ${WORK}/outside -G Ninja
  -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${FLAGS})
run("building against the installed package" ${CMAKE_COMMAND} --build ${WORK}/outside)
run("the program with find_package" ${WORK}/outside/with_package)
expect("the program with find_package" "^record 9 is on LFS 3\nno file system: not-found")
run("the tool with find_package" ${WORK}/outside/with_tool)

# A C program with pkg-config, no CMake.
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/${LIBDIR}/pkgconfig)
run("pkg-config" pkg-config --cflags --libs pif)
separate_arguments(pc UNIX_COMMAND "${OUT}")
run("compiling with pkg-config" ${CC} -std=c11 -Wall -Werror ${FLAGS} ${OUTSIDE}/with_pkg_config.c -o ${WORK}/with_pkg_config ${pc})
run("the program with pkg-config" ${WORK}/with_pkg_config)
expect("the program with pkg-config" "^no file system: ")

file(REMOVE_RECURSE ${WORK})
