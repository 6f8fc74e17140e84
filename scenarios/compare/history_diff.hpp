// The first event at which two event logs diverge. Lines are compared byte by byte, in order, in
// constant memory; a log that ends before the other diverges at its end.
#pragma once

#include "kernels/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

/// Events shown before and from the divergence on.
constexpr std::size_t context_events = 3;

struct divergence {
  std::uint64_t common = 0;        ///< events that both logs begin with
  std::vector<std::string> before; ///< the last of these, as lines of the log
  std::vector<std::string> a, b;   ///< what follows on each side; empty: the log ends here
};

/// Nothing if both logs say the same. With `coarse`, delivered messages, timers and downs are
/// passed over, so that a log of `all` events can be compared with one of `rounds`.
/// Errors: a log cannot be read.
result<std::optional<divergence>> diff_histories(const std::filesystem::path& a,
                                                 const std::filesystem::path& b, bool coarse);

/// A line of the log in words: 'home-3 was killed', 'home-3/2 got part_chunk (40 B) from home-4/0'.
/// Without its time.
std::string event_words(std::string_view line);
/// '12.345678901 s'; empty if the line has none.
std::string event_time(std::string_view line);

/// Which side has the event that the other lacks: the earlier one of the two; of two at the same
/// time the start or end of a host. Requires: not both sides ended.
struct first_event {
  bool in_b = false;
  std::string line;
};
first_event first_effect(const divergence& at);

/// The host that `line` says was started or killed, without its incarnation; else empty.
std::string host_changed(std::string_view line);

} // namespace shoal::scenarios
