#include "kernels/learn/whole_pass.hpp"

#include <utility>

namespace shoal::learn {

namespace {

using slots = std::vector<kernels::tensor_slot>;

/// The pieces' tensors and parameters, and the activations that enter the layers and the head.
struct passed {
  layer_range layers;
  slots embedding_tensors, block_tensors, head_tensors;
  std::vector<float> embedding, block, head;
  std::vector<float> in, out;
};

result<passed> pass_layers(const layered_model& model, const slots& layout,
                           std::span<const float> parameters, pass_shape shape,
                           std::span<const token_id> inputs) {
  passed to;
  to.layers = {0, model.layers()};
  auto tensors = model.block_tensors(to.layers);
  if (!tensors) return failure{tensors.error()};
  to.block_tensors = std::move(*tensors);
  to.embedding_tensors = model.embedding_tensors();
  to.head_tensors = model.head_tensors();
  for (const auto& [piece, into] : {std::pair{&to.embedding_tensors, &to.embedding},
                                    {&to.block_tensors, &to.block},
                                    {&to.head_tensors, &to.head}}) {
    auto part = gather(layout, parameters, *piece);
    if (!part) return failure{part.error()};
    *into = std::move(*part);
  }
  auto in = model.embed(to.embedding, shape, inputs);
  if (!in) return failure{in.error()};
  to.in = std::move(*in);
  auto out = model.forward(to.layers, to.block, shape, to.in);
  if (!out) return failure{out.error()};
  to.out = std::move(*out);
  return to;
}

} // namespace

result<double> whole_pass(const layered_model& model, const slots& layout,
                          std::span<const float> parameters, pass_shape shape,
                          std::span<const token_id> inputs, std::span<const token_id> targets,
                          std::span<float> gradient_sum) {
  const auto there = pass_layers(model, layout, parameters, shape, inputs);
  if (!there) return failure{there.error()};
  if (gradient_sum.empty()) return model.loss(there->head, shape, there->out, targets);
  std::vector<float> embedding(there->embedding.size()), block(there->block.size()),
      head(there->head.size());
  const auto top = model.loss_backward(there->head, shape, there->out, targets, head);
  if (!top) return failure{top.error()};
  const auto bottom =
      model.backward(there->layers, there->block, shape, there->in, top->gradient_in, block);
  if (!bottom) return failure{bottom.error()};
  if (auto done = model.embed_backward(there->embedding, shape, inputs, *bottom, embedding); !done)
    return failure{done.error()};
  for (const auto& [piece, gradient] : {std::pair{&there->embedding_tensors, &embedding},
                                        {&there->block_tensors, &block},
                                        {&there->head_tensors, &head}})
    if (auto done = scatter_add(*piece, *gradient, layout, gradient_sum); !done)
      return failure{done.error()};
  return top->loss;
}

result<std::vector<float>> whole_logits(const layered_model& model, const slots& layout,
                                        std::span<const float> parameters, pass_shape shape,
                                        std::span<const token_id> inputs) {
  const auto there = pass_layers(model, layout, parameters, shape, inputs);
  if (!there) return failure{there.error()};
  return model.logits(there->head, shape, there->out);
}

} // namespace shoal::learn
