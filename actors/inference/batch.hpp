// The work of an inference server: steps of sessions and passes without state, and their
// computation by batches. No actor and no clock, so a compute thread may run it.
#pragma once

#include "actors/inference/messages.hpp"
#include "actors/inference/route.hpp"
#include "actors/inference/session_table.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/learn/served_block.hpp"

#include <caf/actor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shoal::actors {

/// Layers of a model as a server holds them, one block for each layer.
struct served_layers {
  layer_span layers;
  std::vector<std::shared_ptr<const learn::served_block>> blocks;

  bool cover(layer_span what) const noexcept {
    return layers.first <= what.first && what.first < what.last && what.last <= layers.last;
  }
  const learn::served_block& of(std::uint32_t layer) const { return *blocks[layer - layers.first]; }
};

/// The speed of a server in virtual time.
///   time of a batch = batch + sum over its layers of (layer_batch + tokens * layer + pairs *
///     context)
/// `pairs` sums, over the tokens, how many tokens each one attends to. A backward pass counts
/// three times, because it computes the forward pass again.
struct server_speed {
  duration batch{};
  duration layer_batch{};
  duration layer = std::chrono::milliseconds(1);
  duration context{};
};

/// A step or a pass that waits.
struct inference_job {
  session_table::key key;
  member_id whose;
  caf::actor reply_to;
  std::uint64_t token = 0;
  layer_span layers;
  std::size_t samples = 0, most = 0, from = 0, time = 0;
  kernels::codec codec = kernels::codec::none;
  /// The server's layers, with the adapter that the request names.
  std::shared_ptr<const served_layers> model{};
  std::vector<float> values{}, gradient{};
  /// Prompts [layers, prompt_length, width]: in a step, those of its own tokens. A backward pass
  /// replaces them by their gradient.
  std::vector<float> prompts{};
  std::size_t prompt_length = 0;
  std::vector<std::int64_t> order{};
  std::vector<push_hop> push{}; ///< the output goes on to these
  bool is_pass = false;
  std::vector<std::shared_ptr<learn::kv_cache>> caches{};
  bool failed = false;
};

/// The jobs that a compute thread works on.
struct inference_batch {
  std::vector<inference_job> jobs;
};

/// Replaces the values of each job by the output of its layers, or by the gradient with respect to
/// its input. A job whose values overflow has failed, and the others have not.
void compute(inference_batch& what);

duration time_of(const inference_batch& what, const server_speed& speed);

} // namespace shoal::actors
