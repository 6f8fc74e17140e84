// kernels/learn/torch_loader: which loops OpenBLAS takes.
#include "kernels/learn/torch_loader.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace shoal::learn;

#if defined(__x86_64__)
TEST_CASE("OpenBLAS takes one kind of loops on every processor with AVX2") {
  const bool chosen_by_user = std::getenv("OPENBLAS_CORETYPE") != nullptr;
  REQUIRE(load_torch().ok());
  void* loaded = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return; // another BLAS is installed
  const auto name = reinterpret_cast<const char* (*)()>(dlsym(loaded, "openblas_get_corename"));
  REQUIRE(static_cast<bool>(name));
  if (!chosen_by_user && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    CHECK(std::string(name()) == "Haswell");
  dlclose(loaded);
}
#endif
