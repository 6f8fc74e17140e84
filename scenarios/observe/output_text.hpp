// Small texts that the observers share.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::actors {
enum class peer_phase : std::uint8_t;
} // namespace shoal::actors

namespace shoal::scenarios {

/// `text` as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

/// The limit of a transfer (netem::rate_limit by its name) in words; for a link, the link's name.
std::string limit_in_words(std::string_view why);

std::string_view phase_name(actors::peer_phase phase);

/// Ranges as text: '0..7, 12, 32..63'. Lists the first eight ranges and the number of the others.
std::string ranges_text(std::span<const actors::sample_range> ranges);
std::string range_text(std::uint64_t begin, std::uint64_t end);

/// A size with its unit: '12.3 MiB'.
std::string bytes_text(std::uint64_t bytes);

/// A duration for people: '5.6 s', '3 min 12 s', '6 h 00 min'; '?' for a value that is no number.
std::string seconds_text(double seconds);

/// A virtual time to the nanosecond: '12.345678901 s'.
std::string time_text(duration time);

} // namespace shoal::scenarios
