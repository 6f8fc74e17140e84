// Messages of the averaging methods without matchmaking and votes: actors/averaging/averager.hpp.
#pragma once

#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>

namespace shoal::actors {

/// `sender`'s values of the receiver's part, in round `round` of a group that both were given.
struct whole_part {
  std::uint64_t round = 0;
  std::uint32_t sender = 0;
  payload values; ///< floats
  SHOAL_MESSAGE(whole_part, x.round, x.sender, x.values)
};

/// The mean of `sender`'s part.
struct whole_mean {
  std::uint64_t round = 0;
  std::uint32_t sender = 0;
  payload values; ///< floats
  SHOAL_MESSAGE(whole_mean, x.round, x.sender, x.values)
};

/// Offers that sender and receiver both go over to the mean of their values.
struct gossip_offer {
  std::uint64_t token = 0;
  payload values; ///< floats
  SHOAL_MESSAGE(gossip_offer, x.token, x.values)
};

/// The asked peer has moved by `half` towards the asker, which has to move as far towards it.
/// `half` is empty if the asked peer waits for an answer itself.
struct gossip_answer {
  std::uint64_t token = 0;
  payload half; ///< floats
  SHOAL_MESSAGE(gossip_answer, x.token, x.half)
};

/// A share of the sender's sums: values times weight, then the weight, as doubles.
struct push_share {
  std::uint64_t token = 0;
  payload sums;
  SHOAL_MESSAGE(push_share, x.token, x.sums)
};

struct push_received {
  std::uint64_t token = 0;
  SHOAL_MESSAGE(push_received, x.token)
};

using averager_messages = message_list<row<whole_part, traffic::averaging, scope::remote>,
                                       row<whole_mean, traffic::averaging, scope::remote>,
                                       row<gossip_offer, traffic::averaging, scope::remote>,
                                       row<gossip_answer, traffic::averaging, scope::remote>,
                                       row<push_share, traffic::averaging, scope::remote>,
                                       row<push_received, traffic::control, scope::remote>>;

} // namespace shoal::actors
