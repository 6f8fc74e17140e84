// SHOAL_CHECK: programmer errors stop the program with file, line and reason, in every build.
// It must never be reachable from a file or from another peer's message (those get a result<T>).
#pragma once

namespace shoal {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);

} // namespace shoal

#define SHOAL_CHECK(condition, why)                                                                \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::shoal::check_failed(__FILE__, __LINE__, #condition, why);                                  \
  } while (false)
