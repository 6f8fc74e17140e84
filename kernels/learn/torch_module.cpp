// All of Shoal that calls libtorch: a module of its own, which `transformer` loads when the first one is made.
#include "kernels/learn/transformer_math.hpp"

#include "kernels/learn/torch_pch.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

namespace shoal::learn {

using at::Tensor;

namespace {

void use_one_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Absent when another BLAS is installed; those that Debian offers besides OpenBLAS are
    // single-threaded.
    if (auto* set =
            reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
      set(1);
  });
  static thread_local bool done = false;
  if (done)
    return;
  at::set_num_threads(1);
  done = true;
}

/// What every forward pass shares: rotary angles and the causal mask.
struct tables {
  Tensor cosine, sine; // [context, head_dim]
  Tensor mask;         // [context, context], -inf above the diagonal
};

constexpr double norm_epsilon = 1e-5;
constexpr double rotary_base = 10000.0;

Tensor view_of(std::span<const float> values, const kernels::tensor_slot& slot) {
  // libtorch has no constant tensors; nothing here writes to parameters.
  auto* data = const_cast<float*>(values.data()) + slot.offset;
  return at::from_blob(data, slot.shape, at::kFloat);
}

Tensor widen(std::span<const std::uint8_t> tokens, std::int64_t rows, std::int64_t columns) {
  auto* data = const_cast<std::uint8_t*>(tokens.data());
  return at::from_blob(data, {rows, columns}, at::kByte).to(at::kLong);
}

Tensor norm(const Tensor& x, const Tensor& gain) {
  return at::layer_norm(x, {x.size(-1)}, gain, {}, norm_epsilon);
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

/// The parts of a forward pass over [samples, time] of bytes; x is [samples * time, dim] throughout.
struct forward_pass {
  const kernels::transformer_config& config;
  std::int64_t n, t; // samples, time
  const Tensor &cosine, &sine, &mask;

  Tensor embed(const Tensor& embedding, const Tensor& inputs) const {
    return at::embedding(embedding, inputs.reshape({-1}));
  }

  /// `q`: the layer's tensors, in the order of the layout.
  Tensor layer(Tensor x, const Tensor* q) const {
    const auto d = config.dim, h = config.heads, w = d / h;
    auto qkv = at::linear(norm(x, q[0]), q[1])
                   .view({n, t, 3, h, w})
                   .permute({2, 0, 3, 1, 4}); // [3, n, h, t, w]
    auto qk = rotate(qkv.narrow(0, 0, 2), cosine, sine).reshape({2, n * h, t, w});
    auto v = qkv.select(0, 2).reshape({n * h, t, w});
    auto scores = at::baddbmm(mask, qk.select(0, 0), qk.select(0, 1).transpose(1, 2), 1.0,
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

const Tensor* layer_tensors(const std::vector<Tensor>& p, std::int64_t i) {
  return p.data() + 1 + tensors_of_layer * static_cast<std::size_t>(i);
}

/// inputs [samples, time] of bytes -> logits [samples * time, vocabulary].
Tensor forward(const kernels::transformer_config& config, const std::vector<Tensor>& p, const Tensor& inputs,
               const Tensor& cosine, const Tensor& sine, const Tensor& mask) {
  const forward_pass pass{config, inputs.size(0), inputs.size(1), cosine, sine, mask};
  auto x = pass.embed(p[0], inputs);
  for (std::int64_t i = 0; i < config.layers; ++i)
    x = pass.layer(x, layer_tensors(p, i));
  return pass.predict(x, p.back(), p[0]);
}

/// The loss of a chunk as `loss_of` sees it in the logits, and the gradients of all leaves, layer by layer: forward without a graph,
/// keeping each layer's input; then back, with a graph of one layer at a time.
template <class Loss>
std::pair<Tensor, std::vector<Tensor>> gradients_by_layer(const forward_pass& pass, const std::vector<Tensor>& leaves,
                                                          const Tensor& inputs, Loss loss_of) {
  const auto layers = pass.config.layers;
  std::vector<Tensor> entered; // x before each layer, and after the last
  {
    at::NoGradGuard without_graph;
    entered.push_back(pass.embed(leaves[0], inputs));
    for (std::int64_t i = 0; i < layers; ++i)
      entered.push_back(pass.layer(entered.back(), layer_tensors(leaves, i)));
  }
  std::vector<Tensor> gradients(leaves.size());
  Tensor loss, upstream;
  {
    const auto x = entered.back().set_requires_grad(true);
    loss = loss_of(pass.predict(x, leaves.back(), leaves[0]));
    auto found = torch::autograd::grad({loss}, {x, leaves.back(), leaves[0]});
    loss = loss.detach();
    upstream = found[0];
    gradients.back() = found[1];
    gradients[0] = found[2];
  }
  for (auto i = layers - 1; i >= 0; --i) {
    entered.pop_back(); // what came out of this layer
    const auto x = entered.back().set_requires_grad(true);
    std::vector<Tensor> wanted{x};
    wanted.insert(wanted.end(), layer_tensors(leaves, i), layer_tensors(leaves, i) + tensors_of_layer);
    auto found = torch::autograd::grad({pass.layer(x, layer_tensors(leaves, i))}, wanted, {upstream});
    upstream = found[0];
    std::move(found.begin() + 1, found.end(), gradients.begin() + 1 + static_cast<std::ptrdiff_t>(tensors_of_layer) * i);
  }
  // The embedding is the output matrix, too.
  gradients[0] = gradients[0] + torch::autograd::grad({pass.embed(leaves[0], inputs)}, {leaves[0]}, {upstream})[0];
  return {loss, std::move(gradients)};
}

class torch_math final : public transformer_math {
 public:
  explicit torch_math(const transformer_shape& shape)
      : config_(shape.config), checkpoint_(shape.checkpoint), layout_(shape.layout) {
    use_one_thread();
    tables_ = tables_of(config_);
  }

  double accumulate_gradient(std::span<const float> parameters,
                                          std::span<const std::uint8_t> tokens, std::size_t samples,
                                          std::span<float> gradient_sum) const override {
    use_one_thread();
    at::AutoGradMode with_gradient(true);
    std::vector<Tensor> leaves;
    for (const auto& slot : layout_)
      leaves.push_back(view_of(parameters, slot).set_requires_grad(true));
    double total = 0;
    for (std::size_t first = 0; first < samples; first += transformer_chunk) {
      const auto count = static_cast<std::int64_t>(std::min(transformer_chunk, samples - first));
      const auto wide = widen(tokens.subspan(first * sample_bytes()), count, config_.context + 1);
      const auto inputs = wide.narrow(1, 0, config_.context);
      const auto targets = wide.narrow(1, 1, config_.context).reshape({-1});
      const auto loss_of = [&](const Tensor& logits) {
        return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum) *
               (1.0 / static_cast<double>(config_.context));
      };
      Tensor loss;
      std::vector<Tensor> gradients;
      if (checkpoint_) {
        const forward_pass pass{config_, count, config_.context, tables_.cosine, tables_.sine, tables_.mask};
        std::tie(loss, gradients) = gradients_by_layer(pass, leaves, inputs, loss_of);
      } else {
        loss = loss_of(forward(config_, leaves, inputs, tables_.cosine, tables_.sine, tables_.mask));
        gradients = torch::autograd::grad({loss}, leaves);
      }
      for (std::size_t i = 0; i < layout_.size(); ++i)
        view_of(gradient_sum, layout_[i]).add_(gradients[i]);
      total += loss.item<double>();
    }
    return total;
  }

  double mean_loss(std::span<const float> parameters,
                                std::span<const std::uint8_t> tokens, std::size_t samples) const override {
    if (samples == 0)
      return 0;
    use_one_thread();
    at::NoGradGuard without_gradient;
    std::vector<Tensor> views;
    for (const auto& slot : layout_)
      views.push_back(view_of(parameters, slot));
    double total = 0;
    for (std::size_t first = 0; first < samples; first += transformer_chunk) {
      const auto count = static_cast<std::int64_t>(std::min(transformer_chunk, samples - first));
      const auto wide = widen(tokens.subspan(first * sample_bytes()), count, config_.context + 1);
      const auto logits = forward(config_, views, wide.narrow(1, 0, config_.context), tables_.cosine,
                                  tables_.sine, tables_.mask);
      const auto targets = wide.narrow(1, 1, config_.context).reshape({-1});
      total += at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum).item<double>();
    }
    return total / static_cast<double>(config_.context) / static_cast<double>(samples);
  }

  std::vector<float> next_logits(std::span<const float> parameters,
                                              std::span<const std::uint8_t> prompt) const override {
    use_one_thread();
    at::NoGradGuard without_gradient;
    std::vector<Tensor> views;
    for (const auto& slot : layout_)
      views.push_back(view_of(parameters, slot));
    const auto seen = prompt.last(std::min(prompt.size(), static_cast<std::size_t>(config_.context)));
    const auto t = static_cast<std::int64_t>(seen.size());
    const auto logits =
        forward(config_, views, widen(seen, 1, t), tables_.cosine.narrow(0, 0, t),
                tables_.sine.narrow(0, 0, t), tables_.mask.narrow(0, 0, t).narrow(1, 0, t));
    const auto last = logits.select(0, t - 1).contiguous();
    return {last.data_ptr<float>(), last.data_ptr<float>() + last.numel()};
  }

 private:
  std::size_t sample_bytes() const { return static_cast<std::size_t>(config_.context) + 1; }

  kernels::transformer_config config_;
  bool checkpoint_;
  std::vector<kernels::tensor_slot> layout_;
  tables tables_;
};

} // namespace

} // namespace shoal::learn

extern "C" {

shoal::learn::transformer_math* shoal_make_transformer_math(const shoal::learn::transformer_shape& shape) {
  return new shoal::learn::torch_math(shape);
}

void shoal_use_one_thread() { shoal::learn::use_one_thread(); }
}
