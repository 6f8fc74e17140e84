// A group actor asks its owner to compute contributions again, and the owner answers. These
// messages stay on the host.
#pragma once

#include "actors/averaging/round.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace shoal::actors {

/// A contribution to compute again: the gradient at the state of the round, of these samples.
struct recomputation {
  group_id group;
  std::uint64_t epoch = 0;
  state_id state;
  std::uint32_t target = 0;         ///< member
  std::uint64_t weight = 0;         ///< samples in it
  std::vector<sample_range> blocks; ///< in the order in which the gradients were added
};

/// To the owner: the computation that a validator, or a juror, owes. The owner does it instead of
/// its next batch.
struct audit_duty {
  std::shared_ptr<const recomputation> what;
};

/// From the owner: the contribution before the codec. Empty `values`: the owner could not compute
/// it (the state or the samples are gone).
struct audit_done {
  group_id group;
  std::uint32_t target = 0;
  bool computed = false;
  payload values;
};

/// To the owner: a member of the round did not do what it owes, as this host sees it. A crash or a
/// cut looks the same, so this is no proof. The owner counts it against the member.
struct duty_missed {
  group_id group;
  std::uint32_t member = 0;
  key256 key; ///< the member's
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::audit_duty)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::audit_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::duty_missed)
