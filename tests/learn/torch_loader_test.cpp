// kernels/learn/torch_loader: which kernels OpenBLAS takes for this processor.
#include "kernels/learn/torch_loader.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>

using namespace shoal::learn;

#if defined(__x86_64__)
TEST_CASE("OpenBLAS does not take its oldest kernels on a processor with AVX2") {
  REQUIRE(load_torch().ok());
  void* loaded = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return; // another BLAS is installed
  const auto chosen = reinterpret_cast<const char* (*)()>(dlsym(loaded, "openblas_get_corename"));
  REQUIRE(static_cast<bool>(chosen));
  const std::string name = chosen();
  MESSAGE(name);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) CHECK(name != "Prescott");
  dlclose(loaded);
}
#endif
