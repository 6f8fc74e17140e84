// A whole mixture of experts on one machine: the network that a trainer holds, and all experts. A
// swarm that has spread the experts over hosts is compared with it, and its held-out loss is
// measured by it.
//   parameters = trunk | expert 0 | expert 1 | ...
// The trunk's parameters are those of mixture_network. The experts follow by layer, then by place,
// the last coordinate first.
#pragma once

#include "kernels/learn/expert_block.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// Thread safety: immutable.
class mixture_model {
public:
  /// `chosen`: experts of a row in each layer. Requires: the block's width is that of the network's
  /// rows, 0 < chosen <= the experts of a layer.
  mixture_model(std::shared_ptr<const mixture_network> net,
                std::shared_ptr<const expert_block> block, std::size_t chosen);

  const std::shared_ptr<const mixture_network>& net() const noexcept { return net_; }
  const std::shared_ptr<const expert_block>& block() const noexcept { return block_; }
  std::size_t chosen() const noexcept { return chosen_; }

  /// The experts of one layer, and of all layers.
  std::size_t experts_of_layer() const noexcept { return cells_; }
  std::size_t experts() const noexcept { return net_->shape().layers * cells_; }
  /// The number of an expert among all of them, from 0, and the place of a number in its layer.
  std::size_t number_of(std::size_t layer, const kernels::expert_place& place) const;
  kernels::expert_place place_of(std::size_t number) const;
  std::size_t layer_of(std::size_t number) const noexcept { return number / cells_; }

  std::size_t trunk_size() const noexcept { return net_->parameter_count(); }
  std::size_t parameter_count() const noexcept {
    return trunk_size() + experts() * block_->parameter_count();
  }
  template <class Span>
  Span of_trunk(Span all) const {
    return all.first(trunk_size());
  }
  template <class Span>
  Span of_expert(Span all, std::size_t number) const {
    return all.subspan(trunk_size() + number * block_->parameter_count(),
                       block_->parameter_count());
  }
  std::vector<float> initial_parameters(std::uint64_t seed) const;

  /// The experts with the largest logits, in descending order; ties by place.
  std::vector<kernels::expert_place> best_experts(std::span<const float> scores_of_row) const;
  /// The mean loss of whole samples. Errors: a failure of the library that computes.
  result<network_ends::judgement> judge(std::span<const float> parameters,
                                        std::span<const std::byte> samples) const;
  /// The same, and adds the gradient of the mean loss, with the balance loss, to `gradient_sum`
  /// [parameter_count()].
  result<network_ends::judgement> add_gradient(std::span<const float> parameters,
                                               std::span<const std::byte> samples,
                                               std::span<float> gradient_sum) const;

private:
  result<void> go_forward(mixture_pass& pass, std::span<const float> parameters) const;

  std::shared_ptr<const mixture_network> net_;
  std::shared_ptr<const expert_block> block_;
  std::size_t chosen_, cells_;
};

} // namespace shoal::learn
