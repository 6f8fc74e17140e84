// A text for small models.
#pragma once

#include "kernels/base/rng.hpp"
#include "tests/e2e/support/program.hpp"

#include <string>

namespace shoal::e2e {

/// Sentences of a few words, in a drawn order.
inline std::string sentences() {
  constexpr const char* words[] = {"the ", "shoal ", "swims ", "through ", "a ", "cold ", "sea. "};
  auto random = stream(5, "text");
  std::string out;
  for (int i = 0; i < 4000; ++i) out += words[random.below(7)];
  return out;
}

/// Writes them to a file of the folder, and returns its path.
inline std::string write_text(const scratch_folder& folder) {
  const auto path = folder / "text.txt";
  spill(path, sentences());
  return path.string();
}

} // namespace shoal::e2e
