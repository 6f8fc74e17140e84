// Loads scenario files: checks them, fills in all defaults and reports all errors.
#pragma once

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct load_result {
  std::optional<scenario> value;  ///< if and only if there are no errors
  std::vector<diagnostic> errors; ///< sorted by position; errors in --set arguments come last
  std::vector<diagnostic> warnings;
};

/// Loads a scenario. `sets` are the arguments of --set, 'a.b=c', applied in order before all
/// checks.
load_result load(const std::string& path, std::span<const std::string> sets = {});

/// Loads a scenario from memory. Diagnostics and the scenario's default name use `file_name`. Data
/// paths are relative to its folder.
load_result load_text(std::string_view text, const std::string& file_name,
                      std::span<const std::string> sets = {});

/// Writes every option as YAML. load_text() reads an equal scenario back.
std::string to_yaml(const scenario& what);

/// Returns the text of docs/scenario.md.
std::string reference_markdown();

} // namespace shoal::scenarios
