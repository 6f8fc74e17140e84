// Messages of a training pipeline: trainers send micro-batches hop by hop to the peers of the
// stages (stage_model.hpp), and say which gradients count.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>

namespace shoal::actors {

/// One hop of a micro-batch, forward or backward, at the parameters of `epoch`. Hop 0 and the last
/// one read `samples`. The others read `input`, activations [count, time, width] in the form of
/// actors/inference/activations.hpp. `gradient` is that with respect to the hop's output, in the
/// same form. A backward task of the last hop has none.
struct stage_task {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t number = 0;
  std::uint32_t hop = 0;
  std::uint8_t backward = 0;
  std::uint64_t epoch = 0;
  std::uint64_t count = 0; ///< samples
  std::uint32_t time = 0;  ///< tokens of a sample
  std::uint8_t codec = 0;
  payload samples, input, gradient;
  SHOAL_MESSAGE(stage_task, x.reply_to, x.number, x.hop, x.backward, x.epoch, x.count, x.time,
                x.codec, x.samples, x.input, x.gradient)
};

/// The output of a forward task, or the gradient with respect to the input of a backward task.
struct stage_output {
  std::uint64_t number = 0;
  std::uint32_t hop = 0;
  std::uint8_t backward = 0;
  std::uint64_t epoch = 0;
  payload values;
  std::int64_t loss_nanos = 0;   ///< the sum of the samples' losses, in 1e-9; only of the last hop
  std::uint64_t computed_ns = 0; ///< how long the device worked
  SHOAL_MESSAGE(stage_output, x.number, x.hop, x.backward, x.epoch, x.values, x.loss_nanos,
                x.computed_ns)
};

/// The task is refused. The field `why` is a `task_refusal`.
struct stage_refused {
  std::uint64_t number = 0;
  std::uint32_t hop = 0;
  std::uint8_t backward = 0;
  std::uint64_t epoch = 0;
  std::uint8_t why = 0;
  SHOAL_MESSAGE(stage_refused, x.number, x.hop, x.backward, x.epoch, x.why)
};

enum class task_refusal : std::uint8_t {
  epoch,     ///< the peer has other parameters
  stage,     ///< the peer has another stage
  values,    ///< the message holds no such activations
  too_many,  ///< the queue is full
  not_ready, ///< the peer has no parameters yet
};

/// The gradient that the receiver has computed for this hop counts.
struct stage_count {
  caf::actor reply_to;
  std::uint64_t number = 0;
  std::uint32_t hop = 0;
  std::uint64_t epoch = 0;
  SHOAL_MESSAGE(stage_count, x.reply_to, x.number, x.hop, x.epoch)
};

/// `counted` 0: the sender has no such gradient any more.
struct stage_counted {
  std::uint64_t number = 0;
  std::uint32_t hop = 0;
  std::uint64_t epoch = 0;
  std::uint8_t counted = 0;
  SHOAL_MESSAGE(stage_counted, x.number, x.hop, x.epoch, x.counted)
};

/// The sender's record in the DHT (trainer_record), as far as the receiver's stage is concerned. A
/// trainer sends it to the peers of the stages when it closes its part of a batch. If a stage loses
/// gradients after that, the trainer opens its part again for the peers of that stage. So those
/// peers need not read the DHT all the time.
struct trainer_progress {
  std::uint64_t closed = 0, samples = 0, version = 0;
  SHOAL_MESSAGE(trainer_progress, x.closed, x.samples, x.version)
};

/// Asks a peer of a stage for that stage's state.
struct stage_state_request {
  caf::actor reply_to;
  std::uint32_t stage = 0;
  SHOAL_MESSAGE(stage_state_request, x.reply_to, x.stage)
};

/// The sender's state. An empty one says that the sender has none.
struct stage_state {
  std::uint32_t stage = 0;
  std::uint64_t epoch = 0, step = 0, samples = 0;
  state_id id;
  payload parameters, optimizer;
  SHOAL_MESSAGE(stage_state, x.stage, x.epoch, x.step, x.samples, x.id, x.parameters, x.optimizer)
};

/// Asks a peer of the sender's stage to read the loads, because it may be the one that has to move.
struct stage_move_hint {
  std::uint32_t stage = 0;
  SHOAL_MESSAGE(stage_move_hint, x.stage)
};

using pipeline_messages = message_list<row<stage_task, traffic::data, scope::remote>,
                                       row<stage_output, traffic::data, scope::remote>,
                                       row<stage_refused, traffic::control, scope::remote>,
                                       row<stage_count, traffic::control, scope::remote>,
                                       row<stage_counted, traffic::control, scope::remote>,
                                       row<trainer_progress, traffic::control, scope::remote>,
                                       row<stage_move_hint, traffic::control, scope::remote>,
                                       row<stage_state_request, traffic::control, scope::remote>,
                                       row<stage_state, traffic::state, scope::remote>>;

} // namespace shoal::actors
