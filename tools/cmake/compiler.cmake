# The language, the flags and the compiler cache: the same for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# No debug information: it doubles build time and disk. No -march=native and no -ffast-math: two
# machines must compute the same bits. -O1 in Debug, because sanitized -O0 is too slow for the tests.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
# Like Debug, for programs that run long: clang inlines nothing at -O1.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")

# A fused multiply-add rounds once where two operations round twice.
add_compile_options(-Wall -Wextra -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees accesses outside of bounds in the standard library's own copies.
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# shoal_strict_warnings(TARGET ...): further warnings, for libraries whose code has none of them. clang's
# -Wconversion also warns of signs.
function(shoal_strict_warnings)
  foreach(target IN LISTS ARGN)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TARGET ${target})
      target_compile_options(${target} PRIVATE -Wshadow -Wconversion)
    endif()
  endforeach()
endfunction()
if(SHOAL_WERROR)
  # A field that is left out has its default. With sanitizers GCC takes CAF's initialized pointers in messages
  # for uninitialized ones.
  add_compile_options(-Werror -Wno-error=missing-field-initializers -Wno-error=maybe-uninitialized)
endif()

set(SHOAL_SANITIZE "" CACHE STRING "Value for -fsanitize=, or empty")
if(SHOAL_SANITIZE)
  add_compile_options(-fsanitize=${SHOAL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHOAL_SANITIZE})
endif()

# The libraries are parts of the Python module, too, which is loaded at any address. Without the second option GCC
# would not inline a function that another module might replace.
set(SHOAL_LIBRARY_OPTIONS -fPIC -fno-semantic-interposition)

add_compile_definitions(SHOAL_WITH_LEARN=$<BOOL:${SHOAL_WITH_LEARN}>)
include_directories("${PROJECT_SOURCE_DIR}")

# The base directory lets a second clone reuse the results of the first one. ccache requires the sloppiness
# for precompiled headers.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()
