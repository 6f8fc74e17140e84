# The files of `cmake --install DIR --prefix PREFIX`, and the package that `find_package(shoal)` finds there:
#   bin/shoal                   the program
#   include/shoal/              headers: this folder is the include directory, so '#include "actors/host.hpp"' works there as it does here
#   lib/                        static libraries, and lib/cmake/shoal, the package
#   lib/shoal/                  the module that calls libtorch, where the program looks for it
#   share/shoal/                the page of runs and that of chats, where the program looks for it
#   share/                      completions of shells, manual pages, and scenarios to begin with
# The component `program` is what a user of the program needs, and the content of the Debian package.
# Each library shoal_NAME is the target shoal::NAME, in the package and in this build.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(shoal_headers "${CMAKE_INSTALL_INCLUDEDIR}/shoal")
set(shoal_package "${CMAKE_INSTALL_LIBDIR}/cmake/shoal")

# shoal_export(TARGET ...): makes static libraries part of the package. A target that this build lacks is left out.
function(shoal_export)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    string(REGEX REPLACE "^shoal_" "" name "${target}")
    add_library(shoal::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${shoal_headers}>")
    # CMake refuses to export a target whose sets of headers are not all installed.
    set(headers "")
    get_target_property(sets ${target} INTERFACE_HEADER_SETS)
    foreach(set IN LISTS sets)
      if(set)
        list(APPEND headers FILE_SET ${set} DESTINATION "${shoal_headers}")
      endif()
    endforeach()
    install(TARGETS ${target} EXPORT shoal ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${headers})
  endforeach()
endfunction()

shoal_export(shoal_base shoal_kernels shoal_text shoal_formats shoal_tokenizer shoal_checkpoint shoal_decoder shoal_pictures shoal_learn shoal_flows shoal_churn shoal_certificates shoal_netem
  shoal_wire shoal_actors shoal_schema shoal_observe shoal_record shoal_export shoal_compare shoal_page shoal_churn_engine shoal_world shoal_completions shoal_scenarios shoal_chaos shoal_plan shoal_promote
  shoal_sweep shoal_console shoal_tools)

# Every user of a library links shoal_base. Its users round as Shoal does, so that two machines compute the same bits.
target_compile_options(shoal_base INTERFACE "$<INSTALL_INTERFACE:-ffp-contract=off>")
if(SHOAL_SANITIZE)
  target_compile_options(shoal_base INTERFACE "$<INSTALL_INTERFACE:-fsanitize=${SHOAL_SANITIZE}>")
  target_link_options(shoal_base INTERFACE "$<INSTALL_INTERFACE:-fsanitize=${SHOAL_SANITIZE}>")
endif()

install(TARGETS shoal RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
# These stand where the program looks for them: relative to its own folder, whatever the system's library folder is.
if(TARGET shoal_torch)
  install(TARGETS shoal_torch LIBRARY DESTINATION lib/shoal COMPONENT program)
endif()
install(TARGETS shoal_sentencepiece LIBRARY DESTINATION lib/shoal COMPONENT program)
install(FILES "${CMAKE_BINARY_DIR}/web/page.html" "${CMAKE_BINARY_DIR}/web/chat.html" DESTINATION share/shoal COMPONENT program OPTIONAL)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/shoalConfig.cmake.in" "${CMAKE_BINARY_DIR}/package/shoalConfig.cmake"
  INSTALL_DESTINATION "${shoal_package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/package/shoalConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(EXPORT shoal NAMESPACE shoal:: FILE shoalTargets.cmake DESTINATION "${shoal_package}")
install(FILES "${CMAKE_BINARY_DIR}/package/shoalConfig.cmake" "${CMAKE_BINARY_DIR}/package/shoalConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake" DESTINATION "${shoal_package}")
