# Every library that Shoal uses, as one imported target each. The targets:
#   shoal::caf shoal::torch shoal::openblas shoal::sodium shoal::glpk shoal::zstd shoal::brotli shoal::zlib shoal::png shoal::icu shoal::sentencepiece shoal::openssl shoal::microhttpd shoal::jemalloc
#   yaml-cpp fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json CLI11::CLI11 Eigen3::Eigen
#   prometheus-cpp::core prometheus-cpp::pull; in the tests also doctest::doctest and benchmark::benchmark
# The Debian packages that provide them are listed in tools/bootstrap/.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(Eigen3 CONFIG REQUIRED)
find_package(zstd CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)

# Defines shoal::NAME for a library whose package has no CMake files.
function(shoal_import name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER" "LIBRARIES;LINK")
  find_path(SHOAL_${name}_INCLUDE_DIR "${arg_HEADER}" REQUIRED)
  add_library(shoal::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(shoal::${name} INTERFACE "${SHOAL_${name}_INCLUDE_DIR}")
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(SHOAL_${library}_LIBRARY ${library} REQUIRED)
    target_link_libraries(shoal::${name} INTERFACE "${SHOAL_${library}_LIBRARY}")
  endforeach()
  target_link_libraries(shoal::${name} INTERFACE ${arg_LINK})
endfunction()

# Debian's CAF 0.17 ships no CMake files. Shoal uses only the core, and has its own transport between hosts.
shoal_import(caf HEADER caf/all.hpp LIBRARIES caf_core LINK Threads::Threads)
shoal_import(sodium HEADER sodium.h LIBRARIES sodium)
shoal_import(glpk HEADER glpk.h LIBRARIES glpk)
shoal_import(microhttpd HEADER microhttpd.h LIBRARIES microhttpd)
shoal_import(openssl HEADER openssl/ssl.h LIBRARIES ssl crypto)
# No code calls jemalloc by name, so a linker may take it for superfluous. (Sanitizers bring an allocator of their own.)
shoal_import(jemalloc HEADER jemalloc/jemalloc.h)
find_library(SHOAL_jemalloc_LIBRARY jemalloc REQUIRED)
target_link_options(shoal::jemalloc INTERFACE -Wl,--no-as-needed "${SHOAL_jemalloc_LIBRARY}" -Wl,--as-needed)
shoal_import(zlib HEADER zlib.h LIBRARIES z)
shoal_import(brotli HEADER brotli/decode.h LIBRARIES brotlidec brotlienc)
shoal_import(png HEADER png.h LIBRARIES png)
shoal_import(icu HEADER unicode/normalizer2.h LIBRARIES icuuc)
shoal_import(sentencepiece HEADER sentencepiece_processor.h LIBRARIES sentencepiece)

add_library(shoal::zstd INTERFACE IMPORTED GLOBAL)
target_link_libraries(shoal::zstd INTERFACE zstd::libzstd_shared)

# libtorch asks for `libblas.so.3`, which is whatever Debian's alternatives point at. Linking the
# pthread OpenBLAS first, by its own path, decides which one is loaded. Reference BLAS is 6x slower, and
# the bits depend on the library. Only the run-time package is needed, not its -dev.
if(SHOAL_WITH_LEARN)
  set(openblas_dir "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread")
  set(openblas_libraries "")
  foreach(library openblas.so.0 blas.so.3 lapack.so.3)
    find_library(SHOAL_lib${library} NAMES lib${library} PATHS "${openblas_dir}" NO_DEFAULT_PATH REQUIRED)
    string(APPEND openblas_libraries ",${SHOAL_lib${library}}")
  endforeach()
  # This is one item, because CMake may reorder several.
  add_library(shoal::openblas INTERFACE IMPORTED GLOBAL)
  target_link_libraries(shoal::openblas INTERFACE
    "-Wl,--push-state,--no-as-needed${openblas_libraries},--pop-state,-rpath,${openblas_dir}")

  find_package(Torch REQUIRED)
  add_library(shoal::torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(shoal::torch INTERFACE shoal::openblas torch)
endif()

# The Python module is for Debian's interpreter, whatever other `python3` comes first on the path. The tests build the
# module where its headers are. A sanitized module would need a sanitized interpreter.
set(SHOAL_BUILD_PYTHON OFF)
if((SHOAL_PYTHON OR SHOAL_BUILD_TESTS) AND NOT SHOAL_SANITIZE)
  set(Python3_EXECUTABLE /usr/bin/python3)
  set(required "")
  if(SHOAL_PYTHON)
    set(required REQUIRED)
  endif()
  find_package(Python3 ${required} COMPONENTS Interpreter Development.Module)
  find_path(SHOAL_pybind11_INCLUDE_DIR pybind11/pybind11.h ${required})
  if(Python3_Development.Module_FOUND AND SHOAL_pybind11_INCLUDE_DIR)
    set(SHOAL_BUILD_PYTHON ON)
  endif()
endif()

if(SHOAL_BUILD_TESTS)
  find_package(doctest CONFIG REQUIRED)
  find_package(benchmark CONFIG REQUIRED)
endif()
