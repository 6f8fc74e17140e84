// Reads the arguments --vary and --seeds of 'shoal sweep':
//   averaging.group_size=4,8,16                        the listed values
//   peers.home.up=5Mbit..50Mbit:5                      five equally spaced values, with both ends
//   training.optimizer.learning_rate=1e-4..1e-1:7log   seven values with equal ratios
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A sweep with more cells is refused.
constexpr std::size_t most_cells = 100'000;

struct varied {
  std::string path;                ///< path of the option, as in --set
  std::vector<std::string> values; ///< values in the form of --set, no value twice
  bool operator==(const varied&) const = default;
};

/// Reads one argument of --vary. Commas in brackets and quotes are part of a value.
/// Errors: no path, no values, or a value twice. Errors of a range: empty, running backwards, ends
/// of different kinds, fewer than two values.
result<varied> parse_varied(std::string_view text);

/// Reads --seeds: '20' means 1 to 20, '3,7,11' lists the seeds, '5..9' includes both ends.
/// Errors: no seed, a seed twice, a word that is no whole number.
result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);

/// Returns a value in base units (seconds, bits per second, bytes, or the plain number), or nothing
/// when the text is no quantity.
std::optional<double> magnitude_of(std::string_view value);

} // namespace shoal::scenarios
