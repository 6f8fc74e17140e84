// Messages of experts. Trainers send rows to the servers that hold the experts, and share their
// trunks. Servers send copies of experts to each other. Rows are [rows, width], row-major, in
// the form of actors/inference/activations.hpp without a codec.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <vector>

namespace shoal::actors {

/// Rows through an expert. `gradient` is that of the loss with respect to the output. With a
/// gradient the server makes a step, and the answer is the gradient with respect to `x`. A repeated
/// request with the same number makes no second step.
struct expert_pass {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t request = 0;
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> place;
  std::uint32_t rows = 0;
  std::uint64_t version = 0; ///< with a gradient: the version of the forward pass's answer
  payload x;
  payload gradient; ///< empty for a forward pass
  SHOAL_MESSAGE(expert_pass, x.reply_to, x.request, x.layer, x.place, x.rows, x.version, x.x,
                x.gradient)
};

/// The answer to an expert_pass. `version`: the steps that the expert had made.
struct expert_answer {
  std::uint64_t request = 0;
  std::uint64_t version = 0;
  payload values;
  SHOAL_MESSAGE(expert_answer, x.request, x.version, x.values)
};

/// The request is refused. The field `why` is an `expert_refusal`.
struct expert_refused {
  std::uint64_t request = 0;
  std::uint8_t why = 0;
  SHOAL_MESSAGE(expert_refused, x.request, x.why)
};

/// A trainer asks the holder of an expert for a copy, because it puts the whole model together. The
/// answer is an expert_copy, or an expert_refused.
struct expert_wanted {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t request = 0;
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> place;
  SHOAL_MESSAGE(expert_wanted, x.reply_to, x.request, x.layer, x.place)
};

/// A copy of an expert of the sender, with which the receiver revives the expert if the sender
/// dies.
struct expert_copy {
  caf::actor owner; ///< on the sender's host
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> place;
  std::uint64_t steps = 0;
  payload values; ///< parameters, then the state of the optimizer
  SHOAL_MESSAGE(expert_copy, x.owner, x.layer, x.place, x.steps, x.values)
};

/// The parameters of the sender's trunk: its ends and gates.
struct trunk_share {
  std::uint64_t steps = 0;
  payload values;
  SHOAL_MESSAGE(trunk_share, x.steps, x.values)
};

/// A trainer that begins late asks another one for its trunk. The answer is a trunk_share.
struct trunk_wanted {
  caf::actor reply_to; ///< on the sender's host
  SHOAL_MESSAGE(trunk_wanted, x.reply_to)
};

using expert_messages = message_list<row<expert_pass, traffic::data, scope::remote>,
                                     row<expert_answer, traffic::data, scope::remote>,
                                     row<expert_refused, traffic::control, scope::remote>,
                                     row<expert_wanted, traffic::control, scope::remote>,
                                     row<expert_copy, traffic::state, scope::remote>,
                                     row<trunk_share, traffic::averaging, scope::remote>,
                                     row<trunk_wanted, traffic::control, scope::remote>>;

} // namespace shoal::actors
