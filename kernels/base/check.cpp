#include "kernels/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace shoal {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, condition, why);
  std::fflush(stderr);
  std::abort();
}

} // namespace shoal
