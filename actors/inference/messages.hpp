// Messages of an inference swarm: clients send activations to the servers that hold the layers of a
// model, and get the layers' outputs. Activations are [samples, time, width], row-major, in the
// form of activations.hpp with the `codec` of the request.
#pragma once

#include "actors/ids.hpp"
#include "actors/message_list.hpp"
#include "actors/payload_inspect.hpp"
#include "kernels/base/payload.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::actors {

/// The next server of a chain, which gets the output of a step at once.
struct push_hop {
  caf::actor server;
  std::uint64_t session = 0;
  std::uint64_t token = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  SHOAL_MESSAGE(push_hop, x.server, x.session, x.token, x.first, x.last)
};

/// The tokens [from, from + time) of a session through the layers [first, last). A step with `from`
/// 0 opens the session. It reserves cache for `most` tokens of `samples` sequences. A server that
/// has more than `from` tokens of the session forgets those after it.
struct inference_step {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t session = 0;
  std::uint64_t token = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t samples = 0;
  std::uint32_t most = 0;
  std::uint32_t from = 0;
  std::uint32_t time = 0;
  std::uint8_t codec = 0;
  /// Before the tokens, sequence i becomes a copy of sequence order[i]. Empty: all stay.
  std::vector<std::uint32_t> order;
  payload activations;
  /// Before layer i, prompts[i] is added to the first `prompt_length` of the tokens.
  std::uint32_t prompt_length = 0;
  payload prompts{};     ///< floats [last - first, prompt_length, width]
  std::string adapter{}; ///< name of a LoRA that the server has; empty: none
  /// The server sends its output to the first of these, too, as a step with the rest of them.
  std::vector<push_hop> push{};
  /// 1: the step comes from another server. It goes on with a session that the client has opened.
  std::uint8_t pushed = 0;
  SHOAL_MESSAGE(inference_step, x.reply_to, x.session, x.token, x.first, x.last, x.samples, x.most,
                x.from, x.time, x.codec, x.order, x.activations, x.prompt_length, x.prompts,
                x.adapter, x.push, x.pushed)
};

/// The output of step `token`.
struct inference_output {
  std::uint64_t session = 0;
  std::uint64_t token = 0;
  payload activations;
  SHOAL_MESSAGE(inference_output, x.session, x.token, x.activations)
};

/// Step `token` is refused. The field `why` is a `refusal` (session_table.hpp).
struct inference_refused {
  std::uint64_t session = 0;
  std::uint64_t token = 0;
  std::uint8_t why = 0;
  SHOAL_MESSAGE(inference_refused, x.session, x.token, x.why)
};

/// The sender needs the session no more.
struct session_closed {
  std::uint64_t session = 0;
  SHOAL_MESSAGE(session_closed, x.session)
};

/// One pass through the layers [first, last) without state. With a `gradient`, of the loss with
/// respect to the output, the answer is the gradient with respect to `activations`. Before its
/// layer i the server adds prompts[i] to the first `prompt_length` tokens of each sequence.
struct pass_request {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t token = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t samples = 0;
  std::uint32_t time = 0;
  std::uint8_t codec = 0;
  payload activations;
  payload gradient; ///< empty for a forward pass
  std::uint32_t prompt_length = 0;
  payload prompts{};     ///< floats [last - first, prompt_length, width]
  std::string adapter{}; ///< name of a LoRA that the server has ; empty: none
  SHOAL_MESSAGE(pass_request, x.reply_to, x.token, x.first, x.last, x.samples, x.time, x.codec,
                x.activations, x.gradient, x.prompt_length, x.prompts, x.adapter)
};

/// The output of pass `token`, or the gradient with respect to its input. `prompts`: after a
/// backward pass, the gradient with respect to the prompts, summed over the sequences.
struct pass_output {
  std::uint64_t token = 0;
  payload activations;
  payload prompts;
  SHOAL_MESSAGE(pass_output, x.token, x.activations, x.prompts)
};

/// Asks another server of the model to stay with its layers for a while. The sender is about to
/// leave the layers [first, last) (layer_move.hpp).
struct stay_request {
  caf::actor reply_to; ///< on the sender's host
  std::uint64_t round = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  SHOAL_MESSAGE(stay_request, x.reply_to, x.round, x.first, x.last)
};

/// The sender holds the layers [first, last), and stays with them if `stays` is 1.
struct stay_answer {
  std::uint64_t round = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint8_t stays = 0;
  SHOAL_MESSAGE(stay_answer, x.round, x.first, x.last, x.stays)
};

/// Asks a pass_client of this host for the output of the layers [first, last). It answers
/// `layers_done`, and keeps what the backward pass needs. Activations and prompts are floats.
struct layers_forward {
  caf::actor reply_to;
  std::uint64_t token = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t samples = 0;
  std::uint32_t time = 0;
  payload activations;
  std::uint32_t prompt_length = 0;
  payload prompts{};
  std::string adapter{};
  SHOAL_MESSAGE(layers_forward, x.reply_to, x.token, x.first, x.last, x.samples, x.time,
                x.activations, x.prompt_length, x.prompts, x.adapter)
};

/// The gradient of the loss with respect to the output of the forward pass `token`. The answer is
/// `layers_done`. An empty gradient only forgets the pass.
struct layers_backward {
  std::uint64_t token = 0;
  payload gradient;
  SHOAL_MESSAGE(layers_backward, x.token, x.gradient)
};

/// The result of a pass through the swarm. `why` is empty, or says why there is none.
struct layers_done {
  std::uint64_t token = 0;
  payload activations;
  payload prompts; ///< the gradient of the prompts, after a backward pass
  std::string why;
  SHOAL_MESSAGE(layers_done, x.token, x.activations, x.prompts, x.why)
};

/// Asks a client of this host for `count` tokens after `prompt`. It answers `generated`.
struct generate_request {
  caf::actor reply_to;
  std::uint64_t token = 0;
  std::vector<std::int64_t> prompt;
  std::uint32_t count = 0;
  SHOAL_MESSAGE(generate_request, x.reply_to, x.token, x.prompt, x.count)
};

/// The tokens that a client has generated, without the prompt. `why` is empty, or says why there
/// are none. `disputed`: the last check of the servers found no two that agree, so that the last
/// tokens may be wrong.
struct generated {
  std::uint64_t token = 0;
  std::vector<std::int64_t> tokens;
  std::string why;
  bool disputed = false;
  SHOAL_MESSAGE(generated, x.token, x.tokens, x.why, x.disputed)
};

using inference_messages = message_list<row<inference_step, traffic::data, scope::remote>,
                                        row<inference_output, traffic::data, scope::remote>,
                                        row<inference_refused, traffic::control, scope::remote>,
                                        row<session_closed, traffic::control, scope::remote>,
                                        row<pass_request, traffic::data, scope::remote>,
                                        row<pass_output, traffic::data, scope::remote>,
                                        row<stay_request, traffic::control, scope::remote>,
                                        row<stay_answer, traffic::control, scope::remote>,
                                        row<layers_forward, traffic::control, scope::local>,
                                        row<layers_backward, traffic::control, scope::local>,
                                        row<layers_done, traffic::control, scope::local>,
                                        row<generate_request, traffic::control, scope::local>,
                                        row<generated, traffic::control, scope::local>>;

} // namespace shoal::actors
