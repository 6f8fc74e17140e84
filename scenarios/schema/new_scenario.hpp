// A first scenario of one's own: a commented file from a few numbers, which may be asked for.
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
  std::string name;        ///< for the key `name`; harmless characters only, see name_error
  std::uint64_t peers = 8; ///< [1, 1000000]
  const workload_definition* workload = nullptr; ///< null: the default one
  churn_level churn = churn_level::none;
  std::uint64_t minutes = 10; ///< virtual, [1, 1000000]
};

/// What was given on the command line; the rest is asked for or taken from the defaults above.
struct new_scenario_wishes {
  std::optional<std::uint64_t> peers, minutes;
  std::optional<const workload_definition*> workload;
  std::optional<churn_level> churn;
};

inline constexpr std::uint64_t most_new_peers = 1'000'000, most_new_minutes = 1'000'000;

/// 'transformer' and so on, 'none' and so on. Errors: another word; says which there are.
result<const workload_definition*> parse_workload(const std::string& word);
result<churn_level> parse_churn(const std::string& word);
/// Errors: no whole number from 1 to `most`.
result<std::uint64_t> parse_count(const std::string& text, std::uint64_t most);

/// The file's text. Passes `shoal check` without a warning.
std::string to_yaml(const new_scenario& what);

/// Nothing missing is asked for.
new_scenario with_defaults(const std::string& name, const new_scenario_wishes& wishes);
/// Asks on `out`, reads lines from `in`; an empty line takes the default, a wrong answer is asked
/// for again. Errors: `in` ends.
result<new_scenario> ask(const std::string& name, const new_scenario_wishes& wishes,
                         std::istream& in, std::ostream& out);

/// Why `name` cannot be a scenario's name; nothing if it can: letters, digits, '_', '-', and '.'
/// inside.
std::optional<std::string> name_error(const std::string& name);

} // namespace shoal::scenarios
