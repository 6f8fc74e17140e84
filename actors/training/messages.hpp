// Messages of state sharing: a peer downloads an object from donors in chunks. An object is a
// state, named by its id, or a step, named by step_object() of the state before it.
#pragma once

#include "actors/averaging/certified_round.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/data/messages.hpp"
#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "actors/trust/chain.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::actors {

/// Asks for `object`, or, if that is zero, for the state that the receiver shares. A donor that
/// offers the object keeps it for the asker while chunk requests or state_hold arrive. `reserve`:
/// the asker wants no chunks yet.
struct state_request {
  id128 object;
  std::uint8_t reserve = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_request, x.object, x.reserve, x.reply_to)
};

/// A part of an averaged gradient, or a stretch of one: values [begin, end), and the members in it.
struct step_part {
  std::uint32_t part = 0;
  std::uint64_t begin = 0, end = 0;
  std::vector<std::uint32_t> senders; ///< ascending indices in the roster

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, step_part& x) {
    return f(x.part, x.begin, x.end, x.senders);
  }
};

/// A donor's object of `size` bytes: parameters, then optimizer state; for a step, the averaged
/// gradient. `hashes` has the first 16 bytes of BLAKE2b-256 of each chunk. For a step, `state`,
/// `epoch` and `samples` are those after it. `commits` are commits of earlier rounds that the shard
/// has not answered yet. The asker adopts them with the state. Otherwise, if all members of a round
/// are lost, its samples would be leased again although the state contains them.
struct state_offer {
  id128 object;
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t step = 0;
  std::uint64_t size = 0;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t samples = 0; ///< samples in all steps that led to this state
  std::uint64_t chunk_bytes = 0;
  payload hashes;
  std::vector<commit> commits;
  std::vector<step_part>
      parts; ///< a step's parts; they and the values prove the certificate's version
  SHOAL_MESSAGE(state_offer, x.object, x.epoch, x.state, x.step, x.size, x.parameter_bytes,
                x.samples, x.chunk_bytes, x.hashes, x.commits, x.parts)
};

/// Answers a request instead of an offer, or a reserving asker instead of a chunk. `why` is a
/// reason: out_of_sync if the donor has no such object, busy if it serves its maximum of downloads.
struct state_refused {
  std::uint8_t why = 0;
  SHOAL_MESSAGE(state_refused, x.why)
};

/// Asks the donor to keep the object, because the download continues. `done`: the sender needs no
/// more chunks. The donor sends no answer.
struct state_hold {
  id128 object;
  std::uint8_t done = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_hold, x.object, x.done, x.reply_to)
};

struct state_chunk_request {
  id128 object;
  std::uint64_t offset = 0;
  std::uint32_t count = 0;
  caf::actor reply_to;
  SHOAL_MESSAGE(state_chunk_request, x.object, x.offset, x.count, x.reply_to)
};

/// A chunk. An empty payload says that the donor does not hold the object any more.
struct state_chunk {
  id128 object;
  std::uint64_t offset = 0;
  payload data;
  SHOAL_MESSAGE(state_chunk, x.object, x.offset, x.data)
};

/// Asks for the steps of the receiver's chain after the newest state of `locator` that is on it
/// (actors/trust/chain.hpp).
struct chain_request {
  std::vector<chain_point> locator;
  caf::actor reply_to;
  SHOAL_MESSAGE(chain_request, x.locator, x.reply_to)
};

/// A page of a chain: steps in order, from `common` on. `more`: there are further steps, which the
/// asker asks for by their predecessor. `lacks`: no state of the locator is on the chain.
/// `admitted` has the certificates of voters, as far as the sender has them.
struct chain_answer {
  chain_point common;
  std::uint8_t lacks = 0;
  std::uint8_t more = 0;
  std::vector<certified_round> steps;
  std::vector<member_certificate> admitted;
  SHOAL_MESSAGE(chain_answer, x.common, x.lacks, x.more, x.steps, x.admitted)
};

using state_messages = message_list<row<state_request, traffic::control, scope::remote>,
                                    row<state_offer, traffic::state, scope::remote>,
                                    row<state_refused, traffic::control, scope::remote>,
                                    row<state_hold, traffic::control, scope::remote>,
                                    row<state_chunk_request, traffic::control, scope::remote>,
                                    row<state_chunk, traffic::state, scope::remote>,
                                    row<chain_request, traffic::control, scope::remote>,
                                    row<chain_answer, traffic::control, scope::remote>>;

} // namespace shoal::actors
