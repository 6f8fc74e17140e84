// The code of ALBERT that calls libtorch, a part of the module of torch_module.cpp. Each layer has
// a graph of its own, with or without checkpointing, so that both give the same bits.
#define AT_PER_OPERATOR_HEADERS
#include "kernels/learn/albert_math.hpp"
#include "kernels/learn/torch_view.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace shoal::learn {

using at::Tensor;

namespace {

constexpr double albert_norm_epsilon = 1e-12;
constexpr double head_norm_epsilon = 1e-5; // the published run had this value
constexpr double absent_score = -10000;    // softmax makes it an exact 0 in float

Tensor norm(const Tensor& x, const Tensor* gain_and_bias, double epsilon = albert_norm_epsilon) {
  return at::layer_norm(x, {x.size(-1)}, gain_and_bias[0], gain_and_bias[1], epsilon);
}

Tensor linear(const Tensor& x, const Tensor* weight_and_bias) {
  return at::linear(x, weight_and_bias[0], weight_and_bias[1]);
}

/// Adds what autograd found. Tensors without a part in the loss have no gradient.
void add_into(std::vector<Tensor>& sum, std::span<Tensor> found) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) sum[i] = sum[i].defined() ? sum[i] + found[i] : found[i];
}

using tensors = std::vector<Tensor>;

/// The gradients of `input` and `leaves`: `input` first. `input` may be undefined.
tensors gradients(const Tensor& out, const Tensor& input, const tensors& leaves,
                  const Tensor& upstream) {
  tensors wanted;
  if (input.defined()) wanted.push_back(input);
  wanted.insert(wanted.end(), leaves.begin(), leaves.end());
  return torch::autograd::grad({out}, wanted, upstream.defined() ? tensors{upstream} : tensors{},
                               c10::nullopt, false, true);
}

/// One pass. x is [samples * time, hidden] throughout.
struct albert_pass {
  const albert_config& config;
  std::int64_t n, t; // samples, time

  /// `q`: the tensors of the embedding, in the order of the layout.
  Tensor embed(const albert_input& input, const Tensor* q) const {
    auto x = at::embedding(q[0], view_of(input.tokens), albert_padding) +
             at::embedding(q[2], view_of(input.segments));
    x = (x.view({n, t, config.embedding}) + q[1].narrow(0, 0, t)).view({n * t, config.embedding});
    return linear(norm(x, q + 3), q + 5);
  }

  /// The numbers that are added to the scores of a token: [samples * heads, 1, time].
  Tensor absent(const Tensor& present) const {
    return ((1.0 - present.view({n, 1, 1, t})) * absent_score)
        .expand({n, config.heads, 1, t})
        .reshape({n * config.heads, 1, t});
  }

  /// `q`: the tensors of the layer, in the order of the layout.
  Tensor layer(const Tensor& x, const Tensor* q, const Tensor& absent) const {
    const auto d = config.hidden, h = config.heads, w = d / h;
    const auto by_heads = [&](const Tensor* map) {
      return linear(x, map).view({n, t, h, w}).transpose(1, 2).reshape({n * h, t, w});
    };
    const auto query = by_heads(q + 2), key = by_heads(q + 4), value = by_heads(q + 6);
    const auto scores = at::baddbmm(absent, query, key.transpose(1, 2), 1.0,
                                    1.0 / std::sqrt(static_cast<double>(w)));
    const auto mixed = at::bmm(at::softmax(scores, -1), value)
                           .view({n, h, t, w})
                           .transpose(1, 2)
                           .reshape({n * t, d});
    const auto middle = norm(x + linear(mixed, q + 8), q + 10);
    return norm(linear(at::gelu(linear(middle, q + 12), "tanh"), q + 14) + middle, q);
  }
};

struct predicted {
  Tensor labels, classes; // undefined where there are none
};

class torch_albert final : public albert_math {
public:
  explicit torch_albert(const albert_shape& shape) : shape_(shape) { shoal_use_one_thread(); }

  albert_losses accumulate_gradient(std::span<const float> parameters, const albert_input& input,
                                    const albert_targets& targets,
                                    std::span<float> gradient_sum) const override {
    shoal_use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto pass = pass_of(input.shape);
    const auto first = leaves_of(parameters, 0, layer_begin),
               shared = leaves_of(parameters, layer_begin, head_begin),
               last = head_leaves(parameters, parameters);
    const auto absent = pass.absent(view_of(input.present, {pass.n, pass.t}));
    const auto embedded = pass.embed(input, first.data());
    layers_pass layers(pass, shared, absent, shape_.checkpoint);
    const auto x = layers.forward(embedded.detach(), config().layers).set_requires_grad(true);
    auto [losses, total] =
        loss_of(pass, x, view_of(input.present, {pass.n * pass.t}), last, targets);
    auto of_head = gradients(total, x, last, {});
    tensors of_layer(shared.size());
    const auto upstream = layers.backward(of_head.front(), of_layer);
    auto of_embedding = gradients(embedded, {}, first, upstream);
    auto sums = std::span(of_head).subspan(1);
    if (shares_words()) {
      add_at(gradient_sum, 0, sums.first(1));
      sums = sums.subspan(1);
    }
    add_at(gradient_sum, head_begin, sums);
    add_at(gradient_sum, layer_begin, of_layer);
    add_at(gradient_sum, 0, of_embedding);
    return losses;
  }

  albert_losses losses(std::span<const float> parameters, const albert_input& input,
                       const albert_targets& targets) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(input.shape);
    return loss_of(pass, encoded(pass, parameters, input),
                   view_of(input.present, {pass.n * pass.t}), head_leaves(parameters, parameters),
                   targets)
        .first;
  }

  albert_scores scores(std::span<const float> parameters, const albert_input& input,
                       const albert_targets& targets) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(input.shape);
    const auto found =
        predict(pass, encoded(pass, parameters, input), view_of(input.present, {pass.n * pass.t}),
                head_leaves(parameters, parameters), targets, true);
    const auto copy = [](const Tensor& from, std::vector<float>& to) {
      if (!from.defined()) return;
      const auto dense = from.contiguous();
      to.assign(dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel());
    };
    albert_scores out;
    copy(found.labels, out.labels);
    copy(found.classes, out.classes);
    return out;
  }

  void embed(std::span<const float> parameters, const albert_input& input,
             std::span<float> out) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(input.shape);
    const auto leaves = leaves_of(parameters, 0, layer_begin);
    auto to = activations(out, input.shape);
    to.narrow(1, 0, config().hidden).copy_(pass.embed(input, leaves.data()));
    to.select(1, config().hidden).copy_(view_of(input.present, {pass.n * pass.t}));
  }

  void embed_backward(std::span<const float> parameters, const albert_input& input,
                      std::span<const float> gradient_out,
                      std::span<float> gradient_sum) const override {
    shoal_use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto leaves = leaves_of(parameters, 0, layer_begin);
    auto found = gradients(pass_of(input.shape).embed(input, leaves.data()), {}, leaves,
                           values_of(activations(gradient_out, input.shape)));
    add_at(gradient_sum, 0, found);
  }

  void forward(std::int64_t layers, std::span<const float> parameters, pass_shape shape,
               std::span<const float> in, std::span<float> out) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const auto pass = pass_of(shape);
    const auto leaves = leaves_of(parameters, layer_begin, head_begin, true);
    const auto from = activations(in, shape);
    auto to = activations(out, shape);
    layers_pass there(pass, leaves, pass.absent(present_of(from)), true);
    to.narrow(1, 0, config().hidden).copy_(there.forward(values_of(from), layers));
    to.select(1, config().hidden).copy_(present_of(from));
  }

  void backward(std::int64_t layers, std::span<const float> parameters, pass_shape shape,
                std::span<const float> in, std::span<const float> gradient_out,
                std::span<float> gradient_in, std::span<float> gradient_sum) const override {
    shoal_use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto pass = pass_of(shape);
    const auto leaves = leaves_of(parameters, layer_begin, head_begin, true);
    const auto from = activations(in, shape);
    layers_pass there(pass, leaves, pass.absent(present_of(from)), shape_.checkpoint);
    there.forward(values_of(from), layers);
    tensors found(leaves.size());
    auto to = activations(gradient_in, shape);
    to.narrow(1, 0, config().hidden)
        .copy_(there.backward(values_of(activations(gradient_out, shape)), found));
    to.select(1, config().hidden).zero_();
    add_at(gradient_sum, layer_begin, found, shape_.layout[layer_begin].offset);
  }

  albert_losses loss(std::span<const float> parameters, pass_shape shape, std::span<const float> in,
                     const albert_targets& targets) const override {
    shoal_use_one_thread();
    at::NoGradGuard without_gradient;
    const auto words = word_values();
    const auto from = activations(in, shape);
    return loss_of(pass_of(shape), values_of(from), present_of(from),
                   head_leaves(parameters, parameters.subspan(words), true), targets)
        .first;
  }

  albert_losses loss_backward(std::span<const float> parameters, pass_shape shape,
                              std::span<const float> in, const albert_targets& targets,
                              std::span<float> gradient_in,
                              std::span<float> gradient_sum) const override {
    shoal_use_one_thread();
    at::AutoGradMode with_gradient(true);
    const auto words = word_values();
    const auto leaves = head_leaves(parameters, parameters.subspan(words), true);
    const auto from = activations(in, shape);
    const auto x = values_of(from).set_requires_grad(true);
    auto [losses, total] = loss_of(pass_of(shape), x, present_of(from), leaves, targets);
    auto found = gradients(total, x, leaves, {});
    auto to = activations(gradient_in, shape);
    to.zero_();
    if (found.front().defined()) to.narrow(1, 0, config().hidden).copy_(found.front());
    auto sums = std::span(found).subspan(1);
    if (shares_words()) {
      add_at(gradient_sum, 0, sums.first(1));
      sums = sums.subspan(1);
    }
    add_at(gradient_sum.subspan(words), head_begin, sums, shape_.layout[head_begin].offset);
    return losses;
  }

private:
  static constexpr std::size_t layer_begin = albert_embedding_tensors;
  static constexpr std::size_t head_begin = layer_begin + albert_layer_tensors;

  /// A pass through the layers and back. It keeps the graph of each layer, or only its input.
  class layers_pass {
  public:
    layers_pass(const albert_pass& pass, const tensors& leaves, Tensor absent, bool again)
        : pass_(pass), leaves_(leaves), absent_(std::move(absent)), again_(again) {}

    Tensor forward(Tensor x, std::int64_t layers) {
      const bool keeps = at::GradMode::is_enabled();
      at::AutoGradMode graphs(keeps && !again_);
      for (std::int64_t i = 0; i < layers; ++i) {
        if (keeps) entered_.push_back(x.detach().set_requires_grad(!again_));
        auto out = pass_.layer(keeps ? entered_.back() : x, leaves_.data(), absent_);
        x = out.detach();
        if (keeps && !again_) left_.push_back(std::move(out));
      }
      return x;
    }

    /// Returns the gradient of the input, and writes those of the leaves to `into`.
    Tensor backward(Tensor upstream, tensors& into) {
      while (!entered_.empty()) {
        auto input = std::move(entered_.back());
        entered_.pop_back();
        input.set_requires_grad(true);
        Tensor out;
        if (again_)
          out = pass_.layer(input, leaves_.data(), absent_);
        else {
          out = std::move(left_.back());
          left_.pop_back();
        }
        auto found = gradients(out, input, leaves_, upstream);
        upstream = std::move(found.front());
        add_into(into, std::span(found).subspan(1));
      }
      return upstream;
    }

  private:
    const albert_pass& pass_;
    const tensors& leaves_;
    Tensor absent_;
    bool again_;
    tensors entered_, left_; // the inputs of the layers, and their outputs with their graphs
  };

  const albert_config& config() const { return shape_.config; }
  bool shares_words() const { return config().head == albert_head::pretraining; }
  std::size_t word_values() const {
    return shares_words() ? static_cast<std::size_t>(config().vocabulary * config().embedding) : 0;
  }
  albert_pass pass_of(pass_shape shape) const { return {shape_.config, shape.samples, shape.time}; }

  /// The tensors [begin, end) in the vector of the whole model, or of the `piece` of these tensors.
  tensors leaves_of(std::span<const float> values, std::size_t begin, std::size_t end,
                    bool piece = false) const {
    const auto base = piece ? shape_.layout[begin].offset : 0;
    tensors out;
    for (auto i = begin; i < end; ++i) {
      const auto& slot = shape_.layout[i];
      out.push_back(view_of(values.subspan(slot.offset - base), slot.shape)
                        .set_requires_grad(at::GradMode::is_enabled()));
    }
    return out;
  }

  /// The word embeddings, where the head uses them, and then the tensors of the head.
  tensors head_leaves(std::span<const float> words, std::span<const float> rest,
                      bool piece = false) const {
    tensors out;
    const auto add = [&](std::span<const float> values, const kernels::tensor_slot& slot,
                         std::size_t offset) {
      out.push_back(view_of(values.subspan(offset), slot.shape)
                        .set_requires_grad(at::GradMode::is_enabled()));
    };
    if (shares_words()) add(words, shape_.layout.front(), 0);
    const auto base = piece ? shape_.layout[head_begin].offset : 0;
    for (auto i = head_begin; i < shape_.layout.size(); ++i)
      add(rest, shape_.layout[i], shape_.layout[i].offset - base);
    return out;
  }

  void add_at(std::span<float> sum, std::size_t begin, std::span<Tensor> found,
              std::size_t base = 0) const {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].defined()) {
        const auto& slot = shape_.layout[begin + i];
        view_of(sum.subspan(slot.offset - base), slot.shape).add_(found[i]);
      }
  }

  Tensor activations(std::span<const float> values, pass_shape shape) const {
    return view_of(values, {shape.samples * shape.time, config().hidden + 1});
  }
  Tensor values_of(const Tensor& activations) const {
    return activations.narrow(1, 0, config().hidden).contiguous();
  }
  /// 1 or 0, also after a lossy codec.
  Tensor present_of(const Tensor& activations) const {
    return activations.select(1, config().hidden).gt(0).to(at::kFloat);
  }

  Tensor encoded(const albert_pass& pass, std::span<const float> parameters,
                 const albert_input& input) const {
    const auto shared = leaves_of(parameters, layer_begin, head_begin);
    layers_pass layers(pass, shared, pass.absent(view_of(input.present, {pass.n, pass.t})), true);
    return layers.forward(pass.embed(input, leaves_of(parameters, 0, layer_begin).data()),
                          config().layers);
  }

  /// `present` [samples * time]: 1 for tokens, 0 for padding. `q`: head_leaves(). `all`: classes
  /// are wanted although the targets name none.
  predicted predict(const albert_pass& pass, const Tensor& x, const Tensor& present,
                    const tensors& q, const albert_targets& targets, bool all) const {
    predicted out;
    const auto dropped = [&](Tensor of) {
      return targets.dropout.empty() ? of : of * view_of(targets.dropout, {of.size(0), of.size(1)});
    };
    const auto chosen = [&](const Tensor& of) {
      return at::index_select(of, 0, view_of(targets.places));
    };
    const auto pooled = [&](const Tensor* map) {
      return at::tanh(linear(x.view({pass.n, pass.t, config().hidden}).select(1, 0), map));
    };
    const auto mean = [&] {
      const auto weights = present.view({pass.n, pass.t, 1});
      return (x.view({pass.n, pass.t, config().hidden}) * weights).sum(1) / weights.sum(1);
    };
    const bool classes = all || !targets.classes.empty();
    switch (config().head) {
    case albert_head::pretraining:
      if (!targets.places.empty())
        out.labels = at::linear(
            norm(at::gelu(linear(chosen(x), &q[6]), "tanh"), &q[4], head_norm_epsilon), q[0], q[3]);
      if (classes) out.classes = linear(dropped(pooled(&q[1])), &q[8]);
      break;
    case albert_head::tokens:
      if (!targets.places.empty()) out.labels = linear(chosen(dropped(x)), q.data());
      break;
    case albert_head::sequence:
      if (classes) out.classes = linear(dropped(pooled(q.data())), &q[2]);
      break;
    case albert_head::mean:
      if (classes) out.classes = linear(dropped(mean()), q.data());
      break;
    }
    return out;
  }

  /// The sums, and the loss with its graph.
  std::pair<albert_losses, Tensor> loss_of(const albert_pass& pass, const Tensor& x,
                                           const Tensor& present, const tensors& q,
                                           const albert_targets& targets) const {
    const auto found = predict(pass, x, present, q, targets, false);
    albert_losses out;
    Tensor total;
    const auto add = [&](const Tensor& part, double& into) {
      into = part.item<double>();
      total = total.defined() ? total + part : part;
    };
    if (found.labels.defined())
      add((at::cross_entropy_loss(found.labels, view_of(targets.labels), {}, at::Reduction::None) *
           view_of(targets.weights, {static_cast<std::int64_t>(targets.weights.size())}))
              .sum(),
          out.labels);
    if (found.classes.defined())
      add(at::cross_entropy_loss(found.classes, view_of(targets.classes), {}, at::Reduction::Sum),
          out.classes);
    if (!total.defined()) total = (x * 0.0).sum(); // samples without a label
    return {out, total};
  }

  albert_shape shape_;
};

} // namespace

} // namespace shoal::learn

extern "C" shoal::learn::albert_math*
shoal_make_albert_math(const shoal::learn::albert_shape& shape) {
  return new shoal::learn::torch_albert(shape);
}
