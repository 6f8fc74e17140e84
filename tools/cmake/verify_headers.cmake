# Headers that compile alone. The target all_verify_interface_header_sets compiles each header of each folder
# as a file of its own, with only its library's public dependencies. The target is no part of the default build;
# the nightly tests run it.

# A library gets this at its creation, so the line stands before the folders are added.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# Adds the headers under FOLDER that the target did not declare in its own file set. Folders that have a library
# of their own are left out.
#   shoal_verify_headers(TARGET FOLDER ...)
function(shoal_verify_headers)
  set(folders ${ARGN})
  while(folders)
    list(POP_FRONT folders target folder)
    if(NOT TARGET ${target})
      continue()
    endif()
    file(GLOB_RECURSE headers "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
    if(folder STREQUAL "kernels")
      list(FILTER headers EXCLUDE REGEX "/kernels/(base|learn)/")
    endif()
    get_target_property(declared ${target} HEADER_SET)
    if(declared)
      list(REMOVE_ITEM headers ${declared})
    endif()
    if(headers)
      target_sources(${target} INTERFACE FILE_SET undeclared TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
    endif()
  endwhile()
endfunction()
