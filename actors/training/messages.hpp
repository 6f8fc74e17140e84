// Messages of state sharing: a peer downloads an object from donors in chunks. An object is a
// state, named by its id, or a step, named by step_object() of the state before it.
#pragma once

#include "actors/data/messages.hpp"
#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
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
  SHOAL_MESSAGE(state_offer, x.object, x.epoch, x.state, x.step, x.size, x.parameter_bytes,
                x.samples, x.chunk_bytes, x.hashes, x.commits)
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

using state_messages = message_list<row<state_request, traffic::control, scope::remote>,
                                    row<state_offer, traffic::state, scope::remote>,
                                    row<state_refused, traffic::control, scope::remote>,
                                    row<state_hold, traffic::control, scope::remote>,
                                    row<state_chunk_request, traffic::control, scope::remote>,
                                    row<state_chunk, traffic::state, scope::remote>>;

} // namespace shoal::actors
