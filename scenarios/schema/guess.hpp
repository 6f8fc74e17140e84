// Suggestions for an unknown name, as the notes of a problem.
#pragma once

#include "scenarios/schema/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Suggests the name closest to `word`, or lists all names if there are few.
inline std::vector<std::string> guess(const std::string& word, std::span<const std::string> all) {
  if (auto notes = meant_notes(word, all); !notes.empty()) return notes;
  std::vector<std::string> known;
  for (const std::string& name : all) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.size() == 12) return {};
    known.push_back(name);
  }
  if (known.empty()) return {};
  return {fmt::format("known: {}", fmt::join(known, ", "))};
}

} // namespace shoal::scenarios
