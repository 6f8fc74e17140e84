#include "scenarios/plan/host_memory.hpp"

#include "kernels/layout.hpp"
#include "kernels/learn/dalle_layout.hpp"
#include "kernels/learn/transformer_math.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/methods/pipeline.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/workloads/dalle.hpp"
#include "scenarios/workloads/transformer.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

using kernels::memory_choices;

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

std::string optimizer_name(const kernels::optimizer_config& from) {
  switch (from.kind) {
  case kernels::optimizer_kind::sgd:
    return from.momentum > 0 ? "sgd-momentum" : "sgd";
  case kernels::optimizer_kind::adamw8:
  case kernels::optimizer_kind::lamb8:
    return "adam-8bit";
  case kernels::optimizer_kind::adamw:
  case kernels::optimizer_kind::lamb:
    break;
  }
  return "adam";
}

/// Takes the sizes of the model. Returns the samples that it computes at a time.
std::int64_t take_transformer(const transformer_options& work, memory_choices& out) {
  constexpr std::int64_t inner = 4;
  const auto width = number(work.dim);
  out.shape = {"",
               number(work.layers),
               number(work.heads),
               width,
               inner * width,
               number(work.context),
               kernels::transformer_config{}.vocabulary};
  out.checkpointing = work.checkpoint;
  return static_cast<std::int64_t>(learn::transformer_chunk);
}

std::int64_t take_dalle(const learn::dalle_config& config, memory_choices& out) {
  constexpr std::int64_t inner = 4;
  out.shape = {"",
               config.layers,
               config.heads,
               config.dim,
               inner * config.dim,
               config.positions(),
               config.text_tokens(),
               config.text_length,
               config.codes};
  out.sharing = config.groups < config.layers ? config.groups : 0;
  return learn::dalle_chunk;
}

struct whole_model {
  std::uint64_t peer = 0; ///< bytes of a peer that holds it
  std::uint64_t pass = 0; ///< the part for the values inside a pass
};

whole_model memory_of_whole(const scenario& what) {
  whole_model out;
  const auto choices = memory_choices_of(what);
  if (choices && *choices) {
    const auto& list =
        (*choices)->shape.codes > 0 ? kernels::dalle_memory() : kernels::shoal_memory();
    const auto figures = kernels::estimate_memory(list, **choices);
    out.peer = static_cast<std::uint64_t>(kernels::figure(figures, "gpu") +
                                          kernels::figure(figures, "ram"));
    out.pass = static_cast<std::uint64_t>(kernels::figure(figures, "backward_pass"));
    return out;
  }
  const std::uint64_t values = kernels::end_of(what.workload.definition().tensors(what.workload));
  const auto optimizer = optimizer_of(what.training.optimizer);
  const auto state = optimizer ? kernels::state_bytes(*optimizer, values) : 0;
  // The terms of kernels::shoal_memory() without a pass. These are weights, the sums of a batch and
  // of its jobs, two means, and the next state. Seven states and eight gradients serve joiners.
  out.peer = (4 + 4 + 8 + 8) * values + state + 8 * (4 * values + state) + 8 * 4 * values;
  return out;
}

} // namespace

result<std::optional<memory_choices>> memory_choices_of(const scenario& what) {
  memory_choices out;
  const auto& options = what.workload.options;
  std::int64_t at_once = 0;
  if (what.program.definition().on_runner()) {
    if (options.holds<transformer_options>() && options.as<transformer_options>().bottlenecks > 0) {
      // The stages of a pipeline have figures of their own (memory_of_pipeline).
      if (traits_of(what).has_stages) return std::optional<memory_choices>{};
      return failure{"workload.bottlenecks: the estimate knows no bottlenecks outside a pipeline"};
    }
    if (options.holds<transformer_options>())
      at_once = take_transformer(options.as<transformer_options>(), out);
    if (options.holds<dalle_options>()) {
      const auto& work = options.as<dalle_options>();
      if (!work.reversible)
        return failure{"workload.reversible is false, and the estimate knows only reversible "
                       "layers"};
      at_once = take_dalle(model_of(work), out);
    }
  }
  if (at_once == 0) return std::optional<memory_choices>{};
  out.shape.name = what.name;
  out.optimizer = optimizer_name(what.training.optimizer);
  out.precision = "f32";
  out.swarm = true;
  out.batch = std::min(number(what.training.micro_batch), at_once);
  return std::optional(std::move(out));
}

std::vector<memory_need> memory_needs_of(const scenario& what) {
  const auto whole = memory_of_whole(what);
  const bool has_stages = traits_of(what).has_stages;
  const auto pipeline = memory_of_pipeline(what);
  std::uint64_t trainers = 0;
  for (const auto& group : what.peers)
    trainers += group.role.definition().has_model ? group.count : 0;
  std::vector<memory_need> out;
  for (const auto& group : what.peers) {
    const auto& role = group.role.definition();
    if (!role.trains) continue;
    memory_need one{group.name, "the whole model", whole.peer, 0};
    if (const auto device = what.devices.find(group.device); device != what.devices.end())
      one.has = device->second.memory.bytes;
    if (has_stages && role.has_model) {
      const auto batch = traits_of(what).target_batch.value_or(0);
      one.what = "its part of a batch between the stages";
      one.bytes = pipeline.trainer_per_sample * batch / std::max<std::uint64_t>(trainers, 1);
    } else if (has_stages) {
      one.bytes = 0;
      for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
        const auto bytes = pipeline.stages[s].total() + whole.pass / pipeline.stages.size();
        if (bytes <= one.bytes) continue;
        one.bytes = bytes;
        one.what = fmt::format("stage {}", s);
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

} // namespace shoal::scenarios
