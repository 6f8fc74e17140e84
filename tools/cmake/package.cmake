# The Debian package of the program: `cmake --build DIR --target package`, or `cpack --config DIR/CPackConfig.cmake` where
# the program is built already. It has the component `program` and depends on the libraries that its files ask for.

# The program itself says what shells and man(1) need.
install(CODE [[
  # A variable with the name of the component would take its place in the comparisons of this script.
  set(shoal_root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(shoal_program "$<TARGET_FILE:shoal>")
  execute_process(COMMAND "${shoal_program}" man --all "${shoal_root}/share/man/man1" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  foreach(place IN ITEMS bash:bash-completion/completions/shoal zsh:zsh/vendor-completions/_shoal fish:fish/vendor_completions.d/shoal.fish)
    string(REGEX REPLACE ":.*" "" shell "${place}")
    string(REGEX REPLACE "^[a-z]*:" "${shoal_root}/share/" file "${place}")
    execute_process(COMMAND "${shoal_program}" completion ${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE "${file}" "${script}")
  endforeach()
]] COMPONENT program)
install(FILES "${PROJECT_SOURCE_DIR}/scenarios/quickstart.yaml" DESTINATION share/doc/shoal/examples COMPONENT program)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/shoal RENAME copyright COMPONENT program)

# A unit for any node: shoal@SWARM.service reads /etc/shoal/SWARM. `shoal promote` writes one for each node of a scenario.
file(READ "${PROJECT_SOURCE_DIR}/scenarios/promote/node.service" unit)
string(REPLACE "[Service]\n" "[Service]\n# SHOAL_OPTIONS: --name, --listen, --join and so on\nEnvironmentFile=/etc/shoal/%i/options\n" unit "${unit}")
foreach(pair IN ITEMS "NODE=%H" "NAME=%i" "PROGRAM=/usr/bin/shoal" "KEYS=--keys /etc/shoal/%i/keys" "OPTIONS=$$SHOAL_OPTIONS" "STOP=60s" "MEMORY=80%")
  string(REGEX MATCH "^[A-Z]+" word "${pair}")
  string(REGEX REPLACE "^[A-Z]+=" "" value "${pair}")
  string(REPLACE "@${word}@" "${value}" unit "${unit}")
endforeach()
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/package/shoal@.service" CONTENT "${unit}")
file(WRITE "${CMAKE_BINARY_DIR}/package/shoal.conf" "u shoal - \"Shoal nodes\" /var/lib/shoal /usr/sbin/nologin\n")
install(FILES "${CMAKE_BINARY_DIR}/package/shoal@.service" DESTINATION lib/systemd/system COMPONENT program)
install(FILES "${CMAKE_BINARY_DIR}/package/shoal.conf" DESTINATION lib/sysusers.d COMPONENT program)
file(WRITE "${CMAKE_BINARY_DIR}/package/postinst" "#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers shoal.conf; fi
")
file(CHMOD "${CMAKE_BINARY_DIR}/package/postinst" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shoal)
set(CPACK_PACKAGE_CONTACT "The Shoal authors <shoal@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
if(TARGET shoal_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME shoal)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}
 Peers with unequal devices and lines find each other, form groups, and average.
 The same protocols run in a deterministic simulation and on real hosts.")
# The module is for the interpreter of one version.
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-shoal)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION} (Python module)
 Scenarios are dictionaries, and results are arrays of NumPy.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
if(Python3_VERSION_MAJOR)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "shoal (= ${PROJECT_VERSION}), python3-numpy, python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next})")
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA "${CMAKE_BINARY_DIR}/package/postinst")
include(CPack)
