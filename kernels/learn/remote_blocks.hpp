// Remote layers as a differentiable function of libtorch, and LoRA on the activations between them.
// A program that includes this header links libtorch itself.
//   auto h = remote_blocks(layers, {0, 12}, embedded);
//   h = adapter(h);
//   loss(remote_blocks(layers, {12, 24}, h)).backward();
// The remote weights stay as they are. Gradients reach the input, the prompts and the adapters.
// Source: Borzunov et al., arXiv:2209.01188, section 2.2; LoRA: Hu et al., arXiv:2106.09685.
#pragma once

#include "kernels/learn/remote_layers.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shoal::learn {

namespace remote_detail {

inline std::span<const float> floats_of(const at::Tensor& from) {
  if (!from.defined()) return {};
  return {from.data_ptr<float>(), static_cast<std::size_t>(from.numel())};
}

inline at::Tensor tensor_of(const std::vector<float>& from, at::IntArrayRef shape) {
  auto out = at::empty(shape, at::kFloat);
  std::copy(from.begin(), from.end(), out.data_ptr<float>());
  return out;
}

template <class T>
T value_or_throw(result<T> what) {
  if (!what) throw std::runtime_error("remote layers: " + what.error());
  return std::move(*what);
}

/// The backward pass of one forward pass.
class node : public torch::autograd::Node {
public:
  node(std::shared_ptr<remote_layers> at, std::uint64_t pass) : at_(std::move(at)), pass_(pass) {}
  ~node() override {
    if (at_) at_->forget(pass_);
  }
  node(const node&) = delete;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& slopes) override {
    if (!at_)
      throw std::runtime_error(
          "remote layers: the pass has gone back already, and servers keep nothing of it: run "
          "forward again");
    torch::autograd::variable_list out(2);
    if (!slopes[0].defined()) return out;
    const auto slope = slopes[0].detach().to(at::kCPU, at::kFloat).contiguous();
    const auto at = std::exchange(at_, nullptr);
    const auto made = value_or_throw(at->backward(pass_, floats_of(slope)));
    out[0] = tensor_of(made.activations, input);
    if (!prompts.empty()) out[1] = tensor_of(made.prompts, prompts);
    return out;
  }
  std::string name() const override { return "remote_blocks"; }

  std::vector<std::int64_t> input, prompts; ///< shapes

private:
  std::shared_ptr<remote_layers> at_;
  std::uint64_t pass_;
};

} // namespace remote_detail

/// The output of `layers` for x [samples, time, width], float32 on the CPU. `prompts` [layers,
/// length, width], if defined, are added to the first tokens before each layer. Throws
/// std::runtime_error if the pass fails. The backward pass can run once.
inline at::Tensor remote_blocks(const std::shared_ptr<remote_layers>& at, layer_range layers,
                                const at::Tensor& x, const at::Tensor& prompts = {}) {
  if (x.dim() != 3 || x.size(2) != static_cast<std::int64_t>(at->width()) ||
      x.scalar_type() != at::kFloat)
    throw std::runtime_error("remote layers: the input must be float32 [samples, time, " +
                             std::to_string(at->width()) + "]");
  const auto in = x.detach().contiguous();
  const auto added = prompts.defined() ? prompts.detach().contiguous() : prompts;
  auto made = remote_detail::value_or_throw(at->forward(layers, {x.size(0), x.size(1)},
                                                        remote_detail::floats_of(in),
                                                        remote_detail::floats_of(added)));
  auto out = remote_detail::tensor_of(made.values, x.sizes());
  if (!torch::autograd::compute_requires_grad(x, prompts)) {
    at->forget(made.pass);
    return out;
  }
  auto back = std::shared_ptr<remote_detail::node>(new remote_detail::node(at, made.pass),
                                                   torch::autograd::deleteNode);
  back->set_next_edges(torch::autograd::collect_next_edges(x, prompts));
  back->input = x.sizes().vec();
  if (prompts.defined()) back->prompts = prompts.sizes().vec();
  torch::autograd::set_history(out, back);
  return out;
}

/// LoRA on the activations between two spans of layers: h + alpha / rank * (h A^T) B^T, with A
/// [rank, width] and B [width, rank]. It needs nothing of the servers.
struct lora_between {
  /// A is normal with deviation 1 / rank, from libtorch's generator, and B is zero: the adapter
  /// changes nothing at first.
  lora_between(std::int64_t width, std::int64_t rank, double alpha)
      : a(at::randn({rank, width}).div_(static_cast<double>(rank))), b(at::zeros({width, rank})),
        scale(alpha / static_cast<double>(rank)) {
    a.set_requires_grad(true);
    b.set_requires_grad(true);
  }
  at::Tensor operator()(const at::Tensor& h) const {
    return h + at::matmul(at::matmul(h, a.transpose(0, 1)), b.transpose(0, 1)) * scale;
  }
  at::Tensor a, b;
  double scale;
};

} // namespace shoal::learn
