// The rules by which a host accepts or refuses a link. They say which frames may arrive before the
// link is up, and what a hello must contain.
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
  list,    ///< the revocation list that explains a refusal
  hello,
  wrong, ///< no host sends this before its hello
  handle ///< the link is up
};

struct link_phase {
  bool up = false;
  bool closed = false; ///< ended, or refused by this host
  /// for a link that the other side dialled: the hello came on this frame's pipe
  bool hello_came = false;
  bool dialled = false;   ///< by this host
  bool list_came = false; ///< on the frame's pipe, before the link was up
};

inline constexpr std::size_t longest_hello = 4096; // bytes

/// Requires: the caller read `phase` under the local host's lock, since a link's pipes may move to
/// another link before it is up.
/// Complexity: constant.
frame_step step_of(const link_phase& phase, frame_kind kind, std::size_t bytes);

/// The identity of this host, and its demands.
struct handshake_rules {
  std::string name;
  std::uint32_t incarnation = 0;
  bool keys = false; ///< both sides show certificates
  duration most_clock_difference{};
  std::array<std::uint8_t, 32> scenario{}; ///< the hash of scenario_text
  std::string scenario_text;
};

/// The other side's identity as its certificate states it, and the relay if there is one.
struct attested_name {
  std::string certificate_name; ///< empty without keys
  bool relayed = false;         ///< the link goes over a relay
  bool relay_agrees = false;    ///< the relay knows the other side by the node id of its hello
};

/// Checks a hello on its own. host_state::check_name() checks bans and duplicate names.
verdict check_hello(const handshake_rules& rules, const hello& theirs,
                    const attested_name& attested, std::int64_t utc_ns);

} // namespace shoal::netem::wire
