// `shoal new`: writes a commented scenario file from a few settings, which it can ask for.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace shoal::scenarios {

enum class churn_level { none, some, heavy };

struct new_scenario {
  std::string name;        ///< value of the key `name`; name_error() must accept the name
  std::uint64_t peers = 8; ///< [1, 1000000]
  const workload_definition* workload = nullptr; ///< null: the default workload
  churn_level churn = churn_level::none;
  std::uint64_t minutes = 10; ///< virtual minutes, [1, 1000000]
};

/// Settings from the command line. Unset fields are asked for, or take the defaults above.
struct new_scenario_wishes {
  std::optional<std::uint64_t> peers, minutes;
  std::optional<const workload_definition*> workload;
  std::optional<churn_level> churn;
};

inline constexpr std::uint64_t most_new_peers = 1'000'000, most_new_minutes = 1'000'000;

/// Parse the names of workloads and churn levels. Errors: an unknown name; the message lists the
/// valid names.
result<const workload_definition*> parse_workload(const std::string& word);
result<churn_level> parse_churn(const std::string& word);
/// Parses a whole number from 1 to `most`. Errors: any other text.
result<std::uint64_t> parse_count(const std::string& text, std::uint64_t most);

/// Writes the scenario file. `shoal check` accepts its text without a warning.
std::string to_yaml(const new_scenario& what);

/// Fills unset fields with the defaults and asks nothing.
new_scenario with_defaults(const std::string& name, const new_scenario_wishes& wishes);
/// Asks for unset fields on `out` and reads lines from `in`. An empty line takes the default. An
/// invalid answer repeats the question. Errors: `in` ends.
result<new_scenario> ask(const std::string& name, const new_scenario_wishes& wishes,
                         std::istream& in, std::ostream& out);

/// Returns why `name` is not a valid scenario name, or nothing if it is valid. Valid characters are
/// letters, digits, '_' and '-', and '.' inside the name.
std::optional<std::string> name_error(const std::string& name);

} // namespace shoal::scenarios
