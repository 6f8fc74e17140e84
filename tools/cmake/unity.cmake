# Unity builds: one run of the compiler takes several sources of a library, and so reads their common headers and instantiates their common
# templates once. A build from nothing is quicker. A build after a change compiles the sources beside the changed one, too.

option(SHOAL_UNITY "Compile several sources of a library at once: a shorter build, and a longer one after a change" OFF)
# Checkers that read compile_commands.json need this option: a source of a unity build has no entry there.
option(SHOAL_SOURCES_APART "Compile each source alone, also those of the commands" OFF)

# tools/tidy/check_unity reads this list in every build: a library and a source in each line.
set(SHOAL_UNITY_SOURCES "${CMAKE_BINARY_DIR}/unity_sources.txt")
file(WRITE "${SHOAL_UNITY_SOURCES}" "")

# shoal_unity(TARGET ...): the sources of each target are compiled together. CMake leaves out those that have options of their own.
function(shoal_unity)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(settled ${target} UNITY_BUILD)
    if(SHOAL_UNITY AND NOT SHOAL_SOURCES_APART AND NOT settled)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    endif()
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${folder}")
      get_source_file_property(options "${source}" TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
      get_source_file_property(definitions "${source}" TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
      get_source_file_property(apart "${source}" TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
      if(source MATCHES "\\.cpp$" AND NOT options AND NOT definitions AND NOT apart)
        file(APPEND "${SHOAL_UNITY_SOURCES}" "${target} ${source}\n")
      endif()
    endforeach()
  endforeach()
endfunction()
