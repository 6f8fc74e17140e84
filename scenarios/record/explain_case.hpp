// Tells a case of a run as a story: who signed what, who saw it, who banned the member, and what it
// led to. Reads cases.jsonl.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/case_book.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct case_explanation {
  std::uint64_t number = 0;
  case_file what;
  std::vector<std::string> statements; ///< one sentence for each signed statement of the proof
  /// Whether the signatures of the proof are genuine, in words; empty without a proof.
  std::string checked;
};

/// Explains case `number`, counted from 1. Errors: the run has no such case. The message lists the
/// cases of the run.
result<case_explanation> explain_case(const std::filesystem::path& run, std::uint64_t number);
std::string to_text(const case_explanation& what);
std::string to_json(const case_explanation& what);

} // namespace shoal::scenarios
