# What `cmake --install` installs: programs (pif_program does that), manual pages, and for users of the library the
# headers, libpif.so, and static libraries of client and libtool with all they need, as find_package(pif) and for
# pkg-config: pif (libpif.so), pif-static and pif-tool.
include(CMakePackageConfigHelpers)

# Bottom up. kv, server and lfs are for their daemons only.
set(PIF_INSTALLED_LIBRARIES base machine parity pattern proto wire net component access cluster client tool)

# The generated headers, which net's include. Generated code includes its neighbours by bare name.
target_include_directories(pif_proto PUBLIC
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pif/proto>)
install(DIRECTORY ${CMAKE_BINARY_DIR}/proto/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")

foreach(library ${PIF_INSTALLED_LIBRARIES})
  set(headers FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  if(library STREQUAL proto)
    set(headers)
  endif()
  install(TARGETS pif_${library} EXPORT pifTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development ${headers})
endforeach()

target_include_directories(pif_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS pif_shared EXPORT pifTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development)

set(PIF_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/pif)
install(EXPORT pifTargets NAMESPACE pif:: DESTINATION ${PIF_CMAKE_FOLDER} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/pifConfig.cmake.in ${CMAKE_BINARY_DIR}/pifConfig.cmake
  INSTALL_DESTINATION ${PIF_CMAKE_FOLDER} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/pifConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/pifConfig.cmake ${CMAKE_BINARY_DIR}/pifConfigVersion.cmake
  DESTINATION ${PIF_CMAKE_FOLDER} COMPONENT development)

# Static libraries: whoever links them needs everything named here. Users come before what they use.
set(PIF_PC_LIBRARIES)
foreach(library ${PIF_INSTALLED_LIBRARIES})
  if(NOT library STREQUAL tool)
    string(PREPEND PIF_PC_LIBRARIES "-lpif_${library} ")
  endif()
endforeach()
file(RELATIVE_PATH PIF_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(package pif pif-static pif-tool)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

file(GLOB PIF_MAN_PAGES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${PIF_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
file(GLOB PIF_LIBRARY_PAGES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.7)
install(FILES ${PIF_LIBRARY_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB PIF_DOCUMENTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${PIF_DOCUMENTS} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
file(GLOB PIF_EXAMPLES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c ${CMAKE_SOURCE_DIR}/examples/*.cc)
install(FILES ${PIF_EXAMPLES} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)
