// Finds the first event at which two event logs diverge. Lines are compared byte by byte, in order,
// in constant memory. A log that ends before the other diverges at its end.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// Number of events shown before the divergence and from it on.
constexpr std::size_t context_events = 3;

struct divergence {
  std::uint64_t common = 0;        ///< number of events that both logs begin with
  std::vector<std::string> before; ///< the last of the common events, as lines of the log
  std::vector<std::string> a, b;   ///< the next events of each log; empty: the log ends here
};

/// The first divergence; empty if both logs are equal. With `coarse`, the comparison skips
/// delivered messages, timers and downs, so that a log of `all` events can be compared with one of
/// `rounds`. Errors: a log cannot be read.
result<std::optional<divergence>> diff_histories(const std::filesystem::path& a,
                                                 const std::filesystem::path& b, bool coarse);

/// A line of the log in words, without its time: 'home-3 was killed', 'home-3/2 got part_chunk (40
/// B) from home-4/0'.
std::string event_words(std::string_view line);
/// The time of a line: '12.345678901 s'; empty if the line has none.
std::string event_time(std::string_view line);

/// The event that one log has and the other lacks: the earlier one of the two next events. If both
/// have the same time, it is the start or end of a host. Requires: at least one log goes on.
struct first_event {
  bool in_b = false;
  std::string line;
};
first_event first_effect(const divergence& at);

/// The host that starts or is killed in `line`, without its incarnation; empty for other lines.
std::string host_changed(std::string_view line);

} // namespace shoal::scenarios
