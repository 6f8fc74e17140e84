// The options of an aggregator. A definition lists its options, and scenarios read, check and print
// them from that list. All members of a group need the same options.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::actors {

enum class option_form : std::uint8_t { number, count, flag };

/// One option of an aggregator: a number, a count, or a flag (0 or 1).
struct aggregator_option {
  std::string name;    ///< the key in scenarios
  std::string meaning; ///< one line for the reference page
  option_form form = option_form::number;
  double standard = 0; ///< the value where a scenario says nothing
  std::optional<double> above{}, at_least{}, at_most{};
};

/// Values of options by name. An option without a value has its standard value.
using option_values = std::map<std::string, double>;

/// An aggregator's knowledge of its round.
struct aggregation_setting {
  const std::vector<aggregator_option>* known = nullptr; ///< options of the definition
  option_values chosen{};
  std::uint64_t round_values = 0; ///< values of the vector that the round averages
  std::uint64_t chunk_values = 0; ///< values of a chunk; the last of a part may be shorter
  /// The seed of permutations. All members of a round have the same.
  std::uint64_t seed = 0;

  /// Requires: the definition has an option of this name.
  double number(const std::string& name) const;
  std::uint64_t count(const std::string& name) const {
    return static_cast<std::uint64_t>(number(name));
  }
  bool flag(const std::string& name) const { return number(name) != 0; }
};

} // namespace shoal::actors
