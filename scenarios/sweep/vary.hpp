// What a sweep varies, as `--vary` and `--seeds` of 'shoal sweep' say it:
//   averaging.group_size=4,8,16                        these
//   peers.home.up=5Mbit..50Mbit:5                      five at equal distances, both ends included
//   training.optimizer.learning_rate=1e-4..1e-1:7log   seven at equal ratios
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// A sweep of more is refused.
constexpr std::size_t most_cells = 100'000;

struct varied {
  std::string path;                ///< as --set names it
  std::vector<std::string> values; ///< as --set takes them; no value twice
  bool operator==(const varied&) const = default;
};

/// Commas in brackets and quotes are part of a value.
/// Errors: no path, no values, a value twice, a range that is empty or runs backwards, whose ends
/// are not of one kind, or that has fewer than two values.
result<varied> parse_varied(std::string_view text);

/// '20' is 1 to 20; '3,7,11' these; '5..9' both included. Errors: none, one twice, no whole number.
result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);

/// A value on a scale (seconds, bits per second, bytes, or the number itself); nothing if it is
/// none.
std::optional<double> magnitude_of(std::string_view value);

} // namespace shoal::scenarios
