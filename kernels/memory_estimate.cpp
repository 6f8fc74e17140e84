#include "kernels/memory_estimate.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::kernels {

namespace {

using enum memory_unit;

template <class T>
const T* find(const std::vector<T>& in, std::string_view name) {
  const auto found =
      std::find_if(in.begin(), in.end(), [&](const T& one) { return one.name == name; });
  return found == in.end() ? nullptr : &*found;
}

} // namespace

const std::vector<memory_shape>& memory_models() {
  static const std::vector<memory_shape> models{
      // name, layers, heads, dim, hidden, context, vocabulary
      {"bert-base", 12, 12, 768, 3072, 512, 30522},
      {"bert-large", 24, 16, 1024, 4096, 512, 30522},
      {"t5-3b", 48, 32, 1024, 16384, 512, 32128},
      {"t5-11b", 48, 128, 1024, 65536, 512, 32128},
      {"gpt2-s", 12, 12, 768, 3072, 1024, 50257},
      {"gpt2-m", 24, 16, 1024, 4096, 1024, 50257},
      {"gpt2-l", 36, 20, 1280, 5120, 1024, 50257},
      {"gpt2-xl", 48, 25, 1600, 6400, 1024, 50257},
      {"gpt3-s", 12, 12, 768, 3072, 2048, 50257},
      {"gpt3-m", 24, 16, 1024, 4096, 2048, 50257},
      {"gpt3-l", 24, 16, 1536, 6144, 2048, 50257},
      {"gpt3-xl", 24, 32, 2560, 10240, 2048, 50257},
      {"gpt3-3b", 32, 32, 2560, 10240, 2048, 50257},
      {"gpt3-7b", 32, 32, 4096, 16384, 2048, 50257},
      {"gpt3-13b", 40, 40, 5120, 20480, 2048, 50257},
      {"gpt3-175b", 96, 96, 12288, 49152, 2048, 50257},
      {"gpt-j-6b", 28, 16, 4096, 16384, 2048, 50400},
      {"dalle-12b", 64, 62, 3968, 15872, 1280, 24576},
  };
  return models;
}

const std::vector<memory_optimizer>& memory_optimizers() {
  static const std::vector<memory_optimizer> optimizers{
      {"adam", 8}, {"adam-8bit", 2, true}, {"adam-16bit", 4}, {"adafactor", 4},
      {"sgd", 0},  {"sgd-momentum", 4},
  };
  return optimizers;
}

const std::vector<memory_precision>& memory_precisions() {
  static const std::vector<memory_precision> precisions{
      // name, the seeds' weights, weights, master, gradient, activations
      {"f32", 4, 4, 0, 4, 4},
      {"mixed", 6, 2, 4, 2, 2},
      {"f16", 2, 2, 0, 2, 2},
  };
  return precisions;
}

result<void> validate(const memory_choices& choices) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const auto& shape = choices.shape;
  struct bound {
    const char* name;
    std::int64_t value, least, most;
  };
  for (const bound& b :
       {bound{"layers", shape.layers, 1, most}, bound{"heads", shape.heads, 1, most},
        bound{"dim", shape.dim, 1, most}, bound{"hidden", shape.hidden, 1, most},
        bound{"context", shape.context, 1, most}, bound{"vocabulary", shape.vocabulary, 1, most},
        bound{"caption", shape.caption, 0, most}, bound{"codes", shape.codes, 0, most},
        bound{"batch", choices.batch, 1, most}, bound{"sharing", choices.sharing, 0, shape.layers},
        bound{"gpus", choices.gpus, 1, most}, bound{"zero", choices.zero, 0, 3}})
    if (b.value < b.least || b.value > b.most)
      return failure{std::string(b.name) + " is " + std::to_string(b.value) + "; it must be from " +
                     std::to_string(b.least) + " to " + std::to_string(b.most)};
  if (find(memory_optimizers(), choices.optimizer) == nullptr)
    return failure{"there is no optimizer '" + choices.optimizer + "'"};
  if (find(memory_precisions(), choices.precision) == nullptr)
    return failure{"there is no precision '" + choices.precision + "'"};
  return {};
}

std::string_view to_string(memory_unit unit) noexcept {
  switch (unit) {
  case count:
    return "count";
  case bytes:
    return "bytes";
  case seconds:
    break;
  }
  return "seconds";
}

const std::vector<memory_definition>& seeds_memory() {
  static const std::string sent = "if(Z, optimizer_bytes, 0) + if(Z - 1, gradient_bytes, 0) + "
                                  "if(Z - 2, seeds_weight_bytes, 0)";
  static const std::vector<memory_definition> figures{
      {"layer_parameters", count, "2*d*h + 4*d*d + d",
       "one layer: two matrices, four of attention, one norm"},
      {"parameters", count, "if(G, G, L)*layer_parameters + V*d + d",
       "all layers, the embedding and its norm"},
      {"layer_activations", count,
       "if(C, n*s*d, 3*n*(2*s*h + 2*s*d) + 5*n*(8*s*d + 3*s*s) + n*s*d)",
       "values that a layer keeps; with checkpointing only its input"},
      {"all_activations", count, "L*layer_activations + n*s*(3*d + 2*V)",
       "all layers, the embedding, logits and softmax"},
      {"weights", bytes, "seeds_weight_bytes*parameters / if(Z - 2, N, 1)",
       "with the master copy if there is one"},
      {"activations", bytes, "activation_bytes*all_activations", ""},
      {"optimizer", bytes, "optimizer_bytes*parameters / if(Z, N, 1)", "its state"},
      {"gradients", bytes, "gradient_bytes*parameters / if(Z - 1, N, 1)", "of the weights"},
      {"gpu", bytes, "weights + activations + if(F, 0, optimizer + gradients)", "GPU memory"},
      {"ram", bytes, "if(F, optimizer + gradients, 0)", "main memory, for offloaded state"},
      {"transfer", seconds,
       "if(F, ram/if(N - 2, 6, 12), (" + sent + ")*parameters/25) / 1073741824",
       "for each step, over PCIe at 12 GiB/s, 6 if more than two GPUs share it; ZeRO's at 25"},
  };
  return figures;
}

namespace {

/// The figures of a list, and then those that hold for every model that Shoal trains.
std::vector<memory_definition> with_training(std::vector<memory_definition> figures) {
  const std::vector<memory_definition> rest{
      {"weights", bytes, "weight_bytes*parameters", "the weights that the model computes with"},
      {"master_weights", bytes, "if(F, max(master_bytes, weight_bytes), master_bytes)*parameters",
       "the weights that the optimizer steps, if these are a copy"},
      {"optimizer", bytes,
       "if(blockwise, 4*ceil((parameters + 4*ceil(parameters/4096))/2), "
       "optimizer_bytes*parameters)",
       "state of the optimizer; in 8 bits with a scale for each 4096 values"},
      {"gradient_sum", bytes, "4*parameters", "sum over all samples of a batch, float32"},
      {"job_sum", bytes, "S*8*parameters", "swarm: sum over all jobs of a peer, float64"},
      {"round", bytes, "S*2*4*parameters", "swarm: the peer's mean and the group's mean"},
      {"state", bytes, "4*parameters + optimizer", "the state that peers download, float32"},
      {"next_state", bytes, "S*state", "swarm: the next state, while the old one is still there"},
      {"served", bytes, "S*(7*state + 8*4*parameters)",
       "swarm: the last 8 steps, for joiners: their gradients, and 7 states besides the last"},
      {"gpu", bytes,
       "weights + backward_pass + if(F, 0, master_weights + optimizer + gradient_sum)",
       "GPU memory; where the processor computes, RAM has the sum of both"},
      {"ram", bytes,
       "if(F, master_weights + optimizer + gradient_sum, 0) + job_sum + round + next_state + "
       "served",
       "main memory"},
  };
  figures.insert(figures.end(), rest.begin(), rest.end());
  return figures;
}

} // namespace

const std::vector<memory_definition>& shoal_memory() {
  static const std::string after_attention = "(1 + C)*tokens*d + tokens*h + d*h";
  static const std::string at_scores =
      "2*scores - 2*tokens*h - 2*tokens*d + 3*C*tokens*d + 2*d*h + d*d";
  static const auto figures = with_training({
      {"layer_parameters", count, "4*d*d + 2*d*h + 2*d",
       "one layer: four matrices of attention, two of the other half, two norms"},
      {"parameters", count, "if(G, G, L)*layer_parameters + V*d + d",
       "all layers, the embedding, which is also the output matrix, and the last norm"},
      {"tokens", count, "n*s", "at once"},
      {"scores", count, "n*a*s*s",
       "scores of attention: each token with each token, for each head"},
      {"layer_kept", count, "8*tokens*d + 2*tokens*h + scores + 4*tokens",
       "values that a layer's backward pass needs"},
      {"layer_waits", count, "if(C, tokens*d, layer_kept)",
       "the values that a waiting layer keeps; with checkpointing only its input"},
      {"layer_forward", count, "4*tokens*d + scores",
       "further values of the forward pass of a layer"},
      {"layer_backward", count, "max(" + after_attention + ", " + at_scores + ")",
       "further values of its backward pass, in the half after attention or at the scores, with "
       "the gradients of its parameters"},
      {"at_head", count, "L*layer_waits + 2*tokens*d + 3*tokens*V",
       "values when the loss is taken: all layers, logits, their softmax and its gradient"},
      {"at_last_layer", count,
       "(L - 1)*layer_waits + layer_kept + max(layer_forward + C*tokens*d, layer_backward) + V*d",
       "values when the backward pass begins"},
      {"at_first_layer", count,
       "layer_kept + max(C*(layer_forward + tokens*d), layer_backward) + parameters - "
       "layer_parameters",
       "values when the pass is at the last of the layers, with most gradients"},
      {"at_end", count, "parameters + max(2*V*d, 7*tokens*d) + 3*C*tokens*d",
       "values when the pass ends, with all gradients"},
      {"backward_pass", bytes,
       "activation_bytes*max(at_head, at_last_layer, at_first_layer, at_end)",
       "activations and gradients of n samples at their peak"},
  });
  return figures;
}

const std::vector<memory_definition>& dalle_memory() {
  static const auto figures = with_training({
      {"layer_parameters", count, "16*d*d + 10*d",
       "one set of weights: the four matrices of attention, and those of the gated other half"},
      {"embedding", count, "(V + K)*d", "the embedding, which is also the output matrix"},
      {"parameters", count,
       "if(G, if(L - G, G + 1, L), L)*layer_parameters + 6*L*d + embedding + 2*d + V + K",
       "all sets of weights, the norms and scales of each layer, the embedding, and the output"},
      {"tokens", count, "n*s", "tokens and codes at once"},
      {"scores", count, "n*a*s*s",
       "scores of attention: each position with each position, for each head"},
      {"masks", count, "3*n*s*s", "the positions that each position sees, for each kind of layer"},
      {"at_head", count,
       "max(3*n*K*(s - t) + n*t*V, 3*n*t*V + embedding, 3*embedding) + 7*tokens*d",
       "values when the loss is taken: its gradient in the codes, in the tokens or in the "
       "embedding"},
      {"at_attention", count, "3*scores + 14*tokens*d + 4*d*d",
       "values when the pass is at the scores of a layer; other layers keep nothing"},
      {"at_feed_forward", count, "max(31*tokens*d + 4*d*d, 16.5*tokens*d + 12*d*d)",
       "values when the pass is in the other half of a layer"},
      {"backward_pass", bytes,
       "activation_bytes*(masks + max(at_head, at_attention, at_feed_forward))",
       "activations and gradients of n samples at their peak"},
  });
  return figures;
}

formula_values memory_inputs(const memory_choices& choices) {
  SHOAL_CHECK(validate(choices).ok(), "choices are validated where they are read");
  const auto& shape = choices.shape;
  const auto& optimizer = *find(memory_optimizers(), choices.optimizer);
  const auto& precision = *find(memory_precisions(), choices.precision);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  formula_values out{{"n", number(choices.batch)},
                     {"s", number(shape.context)},
                     {"d", number(shape.dim)},
                     {"L", number(shape.layers)},
                     {"a", number(shape.heads)},
                     {"h", number(shape.hidden)},
                     {"V", number(shape.vocabulary)},
                     {"G", number(choices.sharing)},
                     {"N", number(choices.gpus)},
                     {"Z", number(choices.zero)},
                     {"C", choices.checkpointing ? 1.0 : 0.0},
                     {"F", choices.offload ? 1.0 : 0.0},
                     {"S", choices.swarm ? 1.0 : 0.0},
                     {"optimizer_bytes", optimizer.optimizer_bytes},
                     {"blockwise", optimizer.blockwise ? 1.0 : 0.0},
                     {"seeds_weight_bytes", precision.seeds_weight_bytes},
                     {"weight_bytes", precision.weight_bytes},
                     {"master_bytes", precision.master_bytes},
                     {"gradient_bytes", precision.gradient_bytes},
                     {"activation_bytes", precision.activation_bytes}};
  if (shape.codes > 0) {
    out["t"] = number(shape.caption);
    out["K"] = number(shape.codes);
  }
  return out;
}

std::vector<memory_figure> estimate_memory(const std::vector<memory_definition>& list,
                                           const memory_choices& choices) {
  auto values = memory_inputs(choices);
  std::vector<memory_figure> figures;
  for (const auto& one : list) {
    const auto value = evaluate(one.formula, values);
    SHOAL_CHECK(value.ok(), "formulas name what stands before them");
    values.insert_or_assign(one.name, *value);
    figures.push_back({&one, *value});
  }
  return figures;
}

double figure(const std::vector<memory_figure>& figures, std::string_view name) {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const auto& one) { return one.of->name == name; });
  SHOAL_CHECK(found != figures.end(), "a figure of the list");
  return found->value;
}

} // namespace shoal::kernels
