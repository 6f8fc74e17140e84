// Skipping a test visibly. The line it prints makes ctest report the case as skipped, and
// `./shoal test` repeats the reason at its end.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

/// Ends the running test case as skipped. `why` is a string literal that says what is missing.
#define SHOAL_SKIP(why)                                                                            \
  do {                                                                                             \
    std::puts("\nSKIPPED: " why);                                                                  \
    return;                                                                                        \
  } while (false)

/// Skips the running test case unless the nightly tests were asked for (`./shoal test --nightly`).
#define SHOAL_NIGHTLY()                                                                            \
  do {                                                                                             \
    if (std::getenv("SHOAL_NIGHTLY") == nullptr)                                                   \
      SHOAL_SKIP("nightly; ./shoal test --nightly runs it");                                       \
  } while (false)

/// How many seeds or moments a test tries: `by_day` usually, `by_night` with `./shoal test
/// --nightly`.
inline std::size_t tries(std::size_t by_day, std::size_t by_night) {
  return std::getenv("SHOAL_NIGHTLY") == nullptr ? by_day : by_night;
}
