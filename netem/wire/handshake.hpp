// The rules by which a host takes or refuses a link: which frames may come before the link is up,
// and what the other side's hello must say.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/refusal.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace shoal::netem::wire {

/// The answer to a hello; `why` is none if the link is fine.
struct verdict {
  refusal why = refusal::none;
  std::string text;
};

/// The meaning of a frame to its receiver.
enum class frame_step {
  drop,    ///< the link is closed or refused
  refused, ///< the other side refuses the link
  hello,
  wrong, ///< no host sends this before its hello
  handle ///< the link is up
};

struct link_phase {
  bool up = false;
  bool over = false;       ///< closed, or refused by this host
  bool hello_came = false; ///< on the pipe of the frame, of a link that the other side dialled
};

inline constexpr std::size_t longest_hello = 4096; // bytes

/// Complexity: constant. Requires: `phase` was read under the station's lock, as a link's pipes
/// move before it is up.
frame_step step_of(const link_phase& phase, frame_kind kind, std::size_t bytes);

/// The identity of this host, and its demands.
struct handshake_rules {
  std::string name;
  std::uint32_t incarnation = 0;
  bool keys = false; ///< both sides show certificates
  duration most_clock_difference{};
  std::array<std::uint8_t, 32> scenario{}; ///< the hash of the text
  std::string scenario_text;
};

/// The identity of the other side according to others.
struct attested_name {
  std::string certificate_name; ///< with keys
  bool relayed =
      false; ///< a relay stands between, and knows the other side instead of a certificate
  bool relay_agrees = false; ///< the relay knows it by the name in the hello
};

/// Checks a hello by itself. Bans and known hosts of the same name are checked elsewhere
/// (host_state.hpp).
verdict check_hello(const handshake_rules& rules, const hello& theirs,
                    const attested_name& attested, std::int64_t utc_ns);

} // namespace shoal::netem::wire
