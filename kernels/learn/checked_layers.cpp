#include "kernels/learn/checked_layers.hpp"

namespace shoal::learn {

namespace {

/// The largest number of samples in a pass. Sizes of activations stay far below 2^63.
constexpr std::int64_t most_samples = std::int64_t{1} << 24;

} // namespace

argument_check checked_layers::check_shape(pass_shape shape) const {
  return argument_check()
      .range("samples", shape.samples, most_samples)
      .range("time", shape.time, context());
}

argument_check checked_layers::check_input(std::span<const float> parameters, pass_shape shape,
                                           std::span<const token_id> tokens) const {
  auto check = check_shape(shape);
  if (check.ok())
    check.size("embedding", parameters.size(), kernels::end_of(embedding_tensors()))
        .size("list of tokens", tokens.size(), shape.tokens())
        .tokens(tokens, vocabulary());
  return check;
}

argument_check checked_layers::check_block(layer_range block, std::span<const float> parameters,
                                           pass_shape shape, std::span<const float> in) const {
  auto check = check_shape(shape).layers(block, layers());
  if (check.ok())
    check
        .size("vector of the block's parameters", parameters.size(),
              kernels::end_of(*block_tensors(block)))
        .size("vector of activations", in.size(), activations(shape));
  return check;
}

argument_check checked_layers::check_head(std::span<const float> parameters, pass_shape shape,
                                          std::span<const float> in) const {
  auto check = check_shape(shape);
  if (check.ok())
    check
        .size("vector of the head's parameters", parameters.size(), kernels::end_of(head_tensors()))
        .size("vector of activations", in.size(), activations(shape));
  return check;
}

argument_check checked_layers::check_loss(std::span<const float> parameters, pass_shape shape,
                                          std::span<const float> in,
                                          std::span<const token_id> targets) const {
  auto check = check_head(parameters, shape, in);
  if (check.ok()) check.size("list of targets", targets.size(), shape.tokens());
  if (check.ok()) check_targets(targets, shape, check);
  return check;
}

result<std::vector<float>> checked_layers::embed(std::span<const float> parameters,
                                                 pass_shape shape,
                                                 std::span<const token_id> tokens) const {
  if (const auto check = check_input(parameters, shape, tokens); !check.ok()) return check.why();
  return guarded([&] {
    std::vector<float> out(activations(shape));
    compute_embed(parameters, shape, tokens, out);
    return out;
  });
}

result<void> checked_layers::embed_backward(std::span<const float> parameters, pass_shape shape,
                                            std::span<const token_id> tokens,
                                            std::span<const float> gradient_out,
                                            std::span<float> gradient_sum) const {
  auto check = check_input(parameters, shape, tokens);
  if (check.ok())
    check.size("gradient of the activations", gradient_out.size(), activations(shape))
        .size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  const auto done = guarded([&] {
    compute_embed_backward(parameters, shape, tokens, gradient_out, gradient_sum);
    return true;
  });
  return done.ok() ? result<void>{} : failure{done.error()};
}

result<std::vector<float>> checked_layers::forward(layer_range block,
                                                   std::span<const float> parameters,
                                                   pass_shape shape,
                                                   std::span<const float> in) const {
  if (const auto check = check_block(block, parameters, shape, in); !check.ok()) return check.why();
  return guarded([&] {
    std::vector<float> out(in.size());
    compute_forward(block, parameters, shape, in, out);
    return out;
  });
}

result<std::vector<float>> checked_layers::backward(layer_range block,
                                                    std::span<const float> parameters,
                                                    pass_shape shape, std::span<const float> in,
                                                    std::span<const float> gradient_out,
                                                    std::span<float> gradient_sum) const {
  auto check = check_block(block, parameters, shape, in);
  check.size("gradient of the activations", gradient_out.size(), in.size())
      .size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  return guarded([&] {
    std::vector<float> gradient_in(in.size());
    compute_backward(block, parameters, shape, in, gradient_out, gradient_in, gradient_sum);
    return gradient_in;
  });
}

result<double> checked_layers::loss(std::span<const float> parameters, pass_shape shape,
                                    std::span<const float> in,
                                    std::span<const token_id> targets) const {
  const auto check = check_loss(parameters, shape, in, targets);
  if (!check.ok()) return check.why();
  return guarded([&] { return compute_loss(parameters, shape, in, targets); });
}

result<head_gradient> checked_layers::loss_backward(std::span<const float> parameters,
                                                    pass_shape shape, std::span<const float> in,
                                                    std::span<const token_id> targets,
                                                    std::span<float> gradient_sum) const {
  auto check = check_loss(parameters, shape, in, targets);
  check.size("sum", gradient_sum.size(), parameters.size());
  if (!check.ok()) return check.why();
  return guarded([&] {
    head_gradient out{0, std::vector<float>(in.size())};
    out.loss = compute_loss_backward(parameters, shape, in, targets, out.gradient_in, gradient_sum);
    return out;
  });
}

} // namespace shoal::learn
