// All of Shoal's code that calls libtorch. It is a module of its own, which torch_loader loads when
// the first transformer is made. Each operator has its own header: ATen/ATen.h, which brings all of
// them, takes longer to compile than this whole file.
#define AT_PER_OPERATOR_HEADERS
#include "kernels/learn/transformer_math.hpp"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <utility>

namespace shoal::learn {

using at::Tensor;

namespace {

void use_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    // The function is absent when another BLAS is installed. The others in Debian are
    // single-threaded.
    if (auto* set =
            reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
      set(1);
  });
  static thread_local bool done = false;
  if (done) return;
  at::set_num_threads(1);
  done = true;
}

/// The tables that all forward passes share: rotary angles and the causal mask.
struct tables {
  Tensor cosine, sine; // [context, head_dim]
  Tensor mask;         // [context, context], -inf above the diagonal

  /// The same for sequences of `time` tokens.
  tables upto(std::int64_t time) const {
    if (time == cosine.size(0)) return *this;
    return {cosine.narrow(0, 0, time), sine.narrow(0, 0, time),
            mask.narrow(0, 0, time).narrow(1, 0, time)};
  }
};

constexpr double transformer_norm_epsilon = 1e-5;
constexpr double rotary_base = 10000.0;

Tensor tensor_over(std::span<const float> values, const kernels::tensor_slot& slot) {
  // libtorch has no constant tensors. This module never writes to parameters.
  auto* data = const_cast<float*>(values.data()) + slot.offset;
  return at::from_blob(data, slot.shape, at::kFloat);
}

/// The same, with the slot's place counted from the first tensor in `values`.
Tensor tensor_over(std::span<const float> values, const kernels::tensor_slot& slot,
                   std::size_t first) {
  auto* data = const_cast<float*>(values.data()) + (slot.offset - first);
  return at::from_blob(data, slot.shape, at::kFloat);
}

Tensor tensor_over(std::span<const token_id> tokens, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(const_cast<token_id*>(tokens.data()), {rows, columns}, at::kLong);
}

Tensor tensor_over(std::span<const float> values, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(const_cast<float*>(values.data()), {rows, columns}, at::kFloat);
}

Tensor norm(const Tensor& x, const Tensor& gain) {
  return at::layer_norm(x, {x.size(-1)}, gain, {}, transformer_norm_epsilon);
}

/// Rotates the pairs (x[i], x[i + head_dim / 2]) of [..., time, head_dim] by time * base^(-2i /
/// head_dim).
Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const auto half = x.size(-1) / 2;
  auto turned = at::cat({x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return at::addcmul(x * cosine, turned, sine);
}

tables tables_of(const kernels::transformer_config& config) {
  const auto t = config.context;
  const auto width = config.dim / config.heads;
  tables built;
  built.cosine = at::empty({t, width}, at::kFloat);
  built.sine = at::empty({t, width}, at::kFloat);
  auto* cosine = built.cosine.data_ptr<float>();
  auto* sine = built.sine.data_ptr<float>();
  for (std::int64_t i = 0; i < t; ++i)
    for (std::int64_t j = 0; j < width / 2; ++j) {
      const double angle =
          static_cast<double>(i) *
          std::pow(rotary_base, -2.0 * static_cast<double>(j) / static_cast<double>(width));
      cosine[i * width + j] = cosine[i * width + j + width / 2] =
          static_cast<float>(std::cos(angle));
      sine[i * width + j] = static_cast<float>(-std::sin(angle));
      sine[i * width + j + width / 2] = static_cast<float>(std::sin(angle));
    }
  built.mask = at::full({t, t}, -INFINITY, at::kFloat).triu_(1);
  return built;
}

constexpr std::size_t tensors_of_layer = 6;

/// The parts of a forward pass over tokens [samples, time]. x is [samples * time, dim] throughout.
struct forward_pass {
  const kernels::transformer_config& config;
  std::int64_t n, t; // samples, time
  tables of_time;    // the tables for t tokens

  Tensor embed(const Tensor& embedding, const Tensor& inputs) const {
    return at::embedding(embedding, inputs.reshape({-1}));
  }

  /// `q`: the layer's tensors, in the order of the layout.
  Tensor layer(Tensor x, const Tensor* q) const {
    const auto d = config.dim, h = config.heads, w = d / h;
    auto qkv = at::linear(norm(x, q[0]), q[1])
                   .view({n, t, 3, h, w})
                   .permute({2, 0, 3, 1, 4}); // [3, n, h, t, w]
    auto qk = rotate(qkv.narrow(0, 0, 2), of_time.cosine, of_time.sine).reshape({2, n * h, t, w});
    auto v = qkv.select(0, 2).reshape({n * h, t, w});
    auto scores = at::baddbmm(of_time.mask, qk.select(0, 0), qk.select(0, 1).transpose(1, 2), 1.0,
                              1.0 / std::sqrt(static_cast<double>(w)));
    auto mixed =
        at::bmm(at::softmax(scores, -1), v).view({n, h, t, w}).transpose(1, 2).reshape({n * t, d});
    x = at::addmm(x, mixed, q[2].t());
    return at::addmm(x, at::gelu(at::linear(norm(x, q[3]), q[4])), q[5].t());
  }

  /// Logits [samples * time, vocabulary].
  Tensor predict(const Tensor& x, const Tensor& gain, const Tensor& embedding) const {
    return at::linear(norm(x, gain), embedding);
  }
};

/// A pass through layers, and back. In between it keeps the graph of all layers. With `again` it
/// keeps only each layer's input, and the way back computes each layer again. The results are the
/// same, to the last bit.
class block_pass {
public:
  /// `leaves`: the layers' tensors, in the order of the layout.
  block_pass(const forward_pass& pass, std::span<const Tensor> leaves, bool again)
      : pass_(pass), leaves_(leaves), again_(again) {}

  /// The output of the last layer, without a graph.
  Tensor forward(Tensor x) {
    entered_.push_back(x.detach().set_requires_grad(true));
    if (!again_) {
      out_ = entered_.back();
      for (std::size_t i = 0; i < layers(); ++i) out_ = pass_.layer(out_, layer(i).data());
      return out_.detach();
    }
    at::NoGradGuard without_graph;
    for (std::size_t i = 0; i < layers(); ++i) {
      x = pass_.layer(x, layer(i).data());
      if (i + 1 < layers()) entered_.push_back(x);
    }
    return x;
  }

  /// Returns the gradient of the input, and writes the leaves' gradients to `into`. `upstream`: the
  /// gradient of the output. Requires: forward was called, once.
  Tensor backward(Tensor upstream, std::span<Tensor> into) {
    if (!again_) return gradients(std::exchange(out_, {}), leaves_, std::move(upstream), into);
    for (auto i = layers(); i-- > 0;) {
      entered_.back().set_requires_grad(true);
      upstream =
          gradients(pass_.layer(entered_.back(), layer(i).data()), layer(i), std::move(upstream),
                    into.subspan(tensors_of_layer * i, tensors_of_layer));
      entered_.pop_back();
    }
    return upstream;
  }

private:
  std::size_t layers() const { return leaves_.size() / tensors_of_layer; }
  std::span<const Tensor> layer(std::size_t i) const {
    return leaves_.subspan(tensors_of_layer * i, tensors_of_layer);
  }

  Tensor gradients(Tensor out, std::span<const Tensor> leaves, Tensor upstream,
                   std::span<Tensor> into) const {
    std::vector<Tensor> wanted{entered_.back()};
    wanted.insert(wanted.end(), leaves.begin(), leaves.end());
    auto found = torch::autograd::grad({std::move(out)}, wanted, {std::move(upstream)});
    std::move(found.begin() + 1, found.end(), into.begin());
    return std::move(found.front());
  }

  const forward_pass& pass_;
  std::span<const Tensor> leaves_;
  bool again_;
  std::vector<Tensor>
      entered_; // the input of each layer; only of the first where the graph has the others
  Tensor out_;  // the output, with its graph
};

/// The sum over the samples of their mean losses. `targets` [samples * time].
Tensor loss_of(const forward_pass& pass, const Tensor& logits, const Tensor& targets) {
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum) *
         (1.0 / static_cast<double>(pass.t));
}

/// A loss, and its gradients.
struct head_pass {
  double loss = 0;
  Tensor x, gain, embedding;
};

head_pass back_from_loss(const forward_pass& pass, Tensor x, const Tensor& gain,
                         const Tensor& embedding, const Tensor& targets) {
  x.set_requires_grad(true);
  const auto loss = loss_of(pass, pass.predict(x, gain, embedding), targets);
  auto found = torch::autograd::grad({loss}, {x, gain, embedding});
  return {loss.item<double>(), std::move(found[0]), std::move(found[1]), std::move(found[2])};
}

/// The gradient of the embedding in its use as input of the first layer.
Tensor back_from_input(const forward_pass& pass, const Tensor& inputs, const Tensor& upstream) {
  return at::embedding_dense_backward(upstream, inputs.reshape({-1}), pass.config.vocabulary, -1,
                                      false);
}

class torch_math final : public transformer_math {
public:
  explicit torch_math(const transformer_shape& shape)
      : config_(shape.config), checkpoint_(shape.checkpoint), layout_(shape.layout) {
    use_one_thread();
    tables_ = tables_of(config_);
  }

  double accumulate_gradient(std::span<const float> parameters, std::span<const token_id> tokens,
                             std::size_t samples, std::span<float> gradient_sum) const override {
    use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto leaves = leaves_of(parameters, 0, layout_.size());
    const auto count = static_cast<std::int64_t>(samples);
    const auto all = tensor_over(tokens, count, config_.context + 1);
    const auto inputs = all.narrow(1, 0, config_.context);
    const auto targets = all.narrow(1, 1, config_.context).reshape({-1});
    const auto pass = pass_of(count, config_.context);
    std::vector<Tensor> gradients(leaves.size());
    double loss = 0;
    {
      block_pass block(pass, std::span(leaves).subspan(1, leaves.size() - 2), checkpoint_);
      auto head = back_from_loss(pass, block.forward(embed(pass, leaves[0], inputs)), leaves.back(),
                                 leaves[0], targets);
      loss = head.loss;
      gradients.back() = std::move(head.gain);
      gradients[0] = std::move(head.embedding);
      const auto upstream =
          block.backward(std::move(head.x), std::span(gradients).subspan(1, leaves.size() - 2));
      // The embedding is also the output matrix.
      gradients[0] = gradients[0] + back_from_input(pass, inputs, upstream);
    }
    for (std::size_t i = 0; i < layout_.size(); ++i)
      tensor_over(gradient_sum, layout_[i]).add_(gradients[i]);
    return loss;
  }

  double sum_of_losses(std::span<const float> parameters, std::span<const token_id> tokens,
                       std::size_t samples) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto count = static_cast<std::int64_t>(samples);
    const auto all = tensor_over(tokens, count, config_.context + 1);
    const auto logits = whole(parameters, all.narrow(1, 0, config_.context));
    return at::cross_entropy_loss(logits, all.narrow(1, 1, config_.context).reshape({-1}), {},
                                  at::Reduction::Sum)
        .item<double>();
  }

  std::vector<float> next_logits(std::span<const float> parameters,
                                 std::span<const token_id> prompt) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto t = static_cast<std::int64_t>(prompt.size());
    const auto last = whole(parameters, tensor_over(prompt, 1, t)).select(0, t - 1).contiguous();
    return {last.data_ptr<float>(), last.data_ptr<float>() + last.numel()};
  }

  void embed(std::span<const float> parameters, std::span<const token_id> tokens,
             std::span<float> out) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto count = static_cast<std::int64_t>(tokens.size());
    tensor_over(out, count, config_.dim)
        .copy_(at::embedding(tensor_over(parameters, layout_[0]),
                             tensor_over(tokens, count, 1).reshape({-1})));
  }

  void embed_backward(std::span<const token_id> tokens, std::span<const float> gradient_out,
                      std::span<float> gradient_sum) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto count = static_cast<std::int64_t>(tokens.size());
    const auto pass = pass_of(1, 1);
    tensor_over(gradient_sum, layout_[0])
        .add_(back_from_input(pass, tensor_over(tokens, count, 1),
                              tensor_over(gradient_out, count, config_.dim)));
  }

  void forward(layer_range block, std::span<const float> parameters, pass_shape shape,
               std::span<const float> in, std::span<float> out) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(shape.samples, shape.time);
    const auto leaves = leaves_of(parameters, first_tensor(block.first), first_tensor(block.last));
    auto x = activations(in, shape);
    for (std::size_t i = 0; i < leaves.size(); i += tensors_of_layer)
      x = pass.layer(x, leaves.data() + i);
    activations(out, shape).copy_(x);
  }

  void backward(layer_range block, std::span<const float> parameters, pass_shape shape,
                std::span<const float> in, std::span<const float> gradient_out,
                std::span<float> gradient_in, std::span<float> gradient_sum) const override {
    use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto pass = pass_of(shape.samples, shape.time);
    const auto begin = first_tensor(block.first), end = first_tensor(block.last);
    const auto leaves = leaves_of(parameters, begin, end);
    std::vector<Tensor> gradients(leaves.size());
    block_pass there(pass, leaves, checkpoint_);
    there.forward(activations(in, shape));
    activations(gradient_in, shape)
        .copy_(there.backward(activations(gradient_out, shape), gradients));
    for (std::size_t i = begin; i < end; ++i)
      tensor_over(gradient_sum, layout_[i], layout_[begin].offset).add_(gradients[i - begin]);
  }

  double loss(std::span<const float> parameters, pass_shape shape, std::span<const float> in,
              std::span<const token_id> targets) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(shape.samples, shape.time);
    const auto logits = pass.predict(activations(in, shape), head_gain(parameters),
                                     tensor_over(parameters, layout_[0]));
    return loss_of(pass, logits, tensor_over(targets, shape.samples, shape.time).reshape({-1}))
        .item<double>();
  }

  double loss_backward(std::span<const float> parameters, pass_shape shape,
                       std::span<const float> in, std::span<const token_id> targets,
                       std::span<float> gradient_in, std::span<float> gradient_sum) const override {
    use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto head = back_from_loss(pass_of(shape.samples, shape.time), activations(in, shape),
                                     head_gain(parameters).set_requires_grad(true),
                                     tensor_over(parameters, layout_[0]).set_requires_grad(true),
                                     tensor_over(targets, shape.samples, shape.time).reshape({-1}));
    activations(gradient_in, shape).copy_(head.x);
    tensor_over(gradient_sum, layout_[0]).add_(head.embedding);
    head_gain(gradient_sum).add_(head.gain);
    return head.loss;
  }

  void logits(std::span<const float> parameters, pass_shape shape, std::span<const float> in,
              std::span<float> out) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    const auto last = activations(in, shape)
                          .view({shape.samples, shape.time, config_.dim})
                          .select(1, shape.time - 1);
    tensor_over(out, shape.samples, config_.vocabulary)
        .copy_(pass_of(shape.samples, 1)
                   .predict(last, head_gain(parameters), tensor_over(parameters, layout_[0])));
  }

private:
  forward_pass pass_of(std::int64_t samples, std::int64_t time) const {
    return {config_, samples, time, tables_.upto(time)};
  }

  /// The layer's first tensor in the layout. The embedding stands before all layers.
  static std::size_t first_tensor(std::int64_t layer) {
    return 1 + tensors_of_layer * static_cast<std::size_t>(layer);
  }

  /// The tensors [begin, end) of the layout, as leaves for which gradients are computed. The first
  /// one lies at the beginning of `parameters`.
  std::vector<Tensor> leaves_of(std::span<const float> parameters, std::size_t begin,
                                std::size_t end) const {
    std::vector<Tensor> out;
    for (auto i = begin; i < end; ++i)
      out.push_back(tensor_over(parameters, layout_[i], layout_[begin].offset)
                        .set_requires_grad(at::GradMode::is_enabled()));
    return out;
  }

  static Tensor embed(const forward_pass& pass, const Tensor& embedding, const Tensor& inputs) {
    at::NoGradGuard without_graph;
    return pass.embed(embedding, inputs);
  }

  /// inputs [samples, time] of tokens -> logits [samples * time, vocabulary].
  Tensor whole(std::span<const float> parameters, const Tensor& inputs) const {
    const auto pass = pass_of(inputs.size(0), inputs.size(1));
    const auto leaves = leaves_of(parameters, 0, layout_.size());
    auto x = pass.embed(leaves[0], inputs);
    for (std::int64_t i = 0; i < config_.layers; ++i)
      x = pass.layer(x, leaves.data() + first_tensor(i));
    return pass.predict(x, leaves.back(), leaves[0]);
  }

  Tensor activations(std::span<const float> values, pass_shape shape) const {
    return tensor_over(values, shape.samples * shape.time, config_.dim);
  }

  /// The head's parameters are the embedding and, after it, the gain of the last norm.
  Tensor head_gain(std::span<const float> parameters) const {
    return at::from_blob(const_cast<float*>(parameters.data()) + config_.vocabulary * config_.dim,
                         layout_.back().shape, at::kFloat);
  }

  kernels::transformer_config config_;
  bool checkpoint_;
  std::vector<kernels::tensor_slot> layout_;
  tables tables_;
};

} // namespace

} // namespace shoal::learn

extern "C" {

shoal::learn::transformer_math*
shoal_make_transformer_math(const shoal::learn::transformer_shape& shape) {
  return new shoal::learn::torch_math(shape);
}

void shoal_use_one_thread() {
  shoal::learn::use_one_thread();
}
}
