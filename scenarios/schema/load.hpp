// A scenario file, checked and with every default filled in, or everything that is wrong with it.
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
  std::vector<diagnostic> errors; ///< in the order of their positions, those of --set last
  std::vector<diagnostic> warnings;
};

/// `sets`: the arguments of --set, 'a.b=c', applied in order before anything is checked.
load_result load(const std::string& path, std::span<const std::string> sets = {});

/// `file_name` is used in diagnostics, for the default name, and for its folder, to which data
/// paths are relative.
load_result load_text(std::string_view text, const std::string& file_name,
                      std::span<const std::string> sets = {});

/// Every option, written so that load_text() gives an equal scenario.
std::string to_yaml(const scenario& what);

/// The text of docs/scenario.md.
std::string reference_markdown();

} // namespace shoal::scenarios
