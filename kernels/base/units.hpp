// Quantities with units as people write them in scenarios: '100Mbit', '80ms', '512KiB', '2h',
// '10%'. A space before the unit is allowed. Units are case-sensitive. The parsers refuse ambiguous
// spellings and give the reason (is 'mbps' megabits or megabytes?).
#pragma once

#include "kernels/base/result.hpp"

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

using duration = std::chrono::nanoseconds;

/// A link or disk rate in bits per second.
struct data_rate {
  double bits_per_second = 0;
  double bytes_per_second() const noexcept { return bits_per_second / 8; }
  auto operator<=>(const data_rate&) const = default;
};

/// An amount of data in bytes.
struct data_size {
  std::uint64_t bytes = 0;
  auto operator<=>(const data_size&) const = default;
};

/// ns, us, ms, s, min (or m), h, d. '0' needs no unit. Exact: no floating point is involved.
/// Errors: anything else, negative values, fractions of a nanosecond, more than 292 years.
result<duration> parse_duration(std::string_view text);

/// bit, kbit, Mbit, Gbit, Tbit (optionally followed by '/s') or B/s, kB/s, KiB/s, MB/s, MiB/s,
/// GB/s, GiB/s, TB/s, TiB/s. '0' needs no unit, neither as a rate nor as a size.
/// Errors: 'mbps', 'Mbps', 'kbps' and the like are refused as ambiguous; negative values.
result<data_rate> parse_rate(std::string_view text);

/// B, kB, KiB, MB, MiB, GB, GiB, TB, TiB. Errors: bits, negative values, a fraction of a byte.
result<data_size> parse_size(std::string_view text);

/// '10%' or a plain number ('0.1', '1e-4'). Returns the fraction, which may exceed 1.
/// Errors: anything else, negative values.
result<double> parse_fraction(std::string_view text);

/// The shortest text that parses back to the same value and does not begin with '0.' (100ms, not
/// 0.1s). Durations minimise the digits (10min, not 600s). On ties the larger unit wins. Rates are
/// in bits unless KiB/s and the like are shorter. A negative or infinite value gets a text too,
/// which does not parse.
std::string to_string(duration value);
std::string to_string(data_rate value);
std::string to_string(data_size value);

constexpr double to_seconds(duration value) noexcept {
  return std::chrono::duration<double>(value).count();
}

/// Rounds to the nearest nanosecond. Requires: finite, |seconds| < 9e9.
duration from_seconds(double seconds);

} // namespace shoal
