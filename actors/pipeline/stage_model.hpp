// A model that is cut into pipeline stages. Stage 0 holds the embedding, its layers and the head.
// The other stages hold layers. A micro-batch passes through hops:
//   hop 0: samples -> embedding -> layers of hop 0, which may be none -> activations
//   hop h: activations -> layers of hop h -> activations, for 0 < h < last
//   the last hop, on stage 0: activations, samples -> head -> loss
// A stage is a set of tensors, and hops with the same tensors are on one stage. So an embedding
// that is tied to the head has one gradient, one average and one step, as in the whole model. The
// price is one more hop. The same holds for layers that share their tensors, as ALBERT's do.
// A backward pass computes its hop's forward pass again from the hop's input, so that a peer keeps
// nothing between the two passes. Source: Ryabinin et al., arXiv:2301.11913, section 3.1.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/decay_groups.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/layered_model.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shoal::actors {

/// Samples in the form that the ends of a model take.
struct piece_batch {
  learn::pass_shape shape;
  std::vector<learn::token_id> inputs, targets; ///< [samples * time]
};

class stage_model {
public:
  /// Reads `count` samples. Errors: bytes that are no samples of the model.
  using batch_reader =
      std::function<result<piece_batch>(std::span<const std::byte> samples, std::uint64_t count)>;

  /// `layers`: the layers of each hop but the last one, in order. Only the first hop may have none.
  /// `decays`: the tensors that weight decay shrinks; null: all. Errors: layers that leave a gap,
  /// or that the model lacks; hops that share some of their tensors and not all.
  static result<std::shared_ptr<const stage_model>>
  make(std::shared_ptr<const learn::layered_model> model, std::vector<learn::layer_range> layers,
       batch_reader read, kernels::decays decays = nullptr);

  /// A model of sizes alone, to predict times. It computes nothing. A sample has one row of
  /// `values` values between two hops, and each stage has `parameters` parameters. Requires: all
  /// are above 0.
  static std::shared_ptr<const stage_model> sized(std::uint32_t stages, std::size_t values,
                                                  std::uint64_t parameters);
  /// The values of a row of a model of sizes alone; 0: the model has numbers.
  std::size_t sized_values() const noexcept { return sized_values_; }

  std::uint32_t stages() const noexcept { return static_cast<std::uint32_t>(tensors_.size()); }
  std::uint32_t hops() const noexcept { return last_hop() + 1; }
  /// The hop of the head.
  std::uint32_t last_hop() const noexcept { return static_cast<std::uint32_t>(layers_.size()); }
  std::uint32_t stage_of(std::uint32_t hop) const noexcept {
    return hop < last_hop() ? stage_of_[hop] : 0;
  }
  /// The number of hops on a stage: at least 2 on stage 0.
  std::uint32_t hops_of(std::uint32_t stage) const noexcept;
  /// 1 in a model of sizes alone.
  std::size_t width() const noexcept { return model_ ? model_->width() : 1; }
  kernels::decays decays() const noexcept { return decays_; }

  /// The tensors of a stage, without gaps. A tensor that two of its pieces share occurs once.
  const std::vector<kernels::tensor_slot>& tensors_of(std::uint32_t stage) const {
    return tensors_[stage];
  }

  /// The output of a hop before the last one. Hop 0 reads `samples`, and the others read `in`
  /// [tokens, width]. Errors: those of layered_model.
  result<std::vector<float>> forward(std::uint32_t hop, std::span<const float> parameters,
                                     std::span<const std::byte> samples, std::uint64_t count,
                                     std::span<const float> in) const;

  struct slope {
    std::vector<float> gradient_in; ///< [tokens, width]; empty for hop 0
    double loss = 0;                ///< the sum of the samples' losses; only of the last hop
  };
  /// Adds the gradient of the stage's parameters to `gradient_sum`. `gradient_out` [tokens, width]
  /// is that of the loss with respect to the hop's output; the last hop has none, and reads
  /// `samples`. Errors: those of layered_model.
  result<slope> backward(std::uint32_t hop, std::span<const float> parameters,
                         std::span<const std::byte> samples, std::uint64_t count,
                         std::span<const float> in, std::span<const float> gradient_out,
                         std::span<float> gradient_sum) const;

private:
  stage_model() = default;

  /// The tokens of an end of the model, or the shape alone of a hop between them.
  result<piece_batch> batch_of(std::uint32_t hop, std::span<const std::byte> samples,
                               std::uint64_t count, std::span<const float> in) const;
  /// The parameters of one piece of a stage.
  result<std::vector<float>> part(std::uint32_t stage, std::span<const float> parameters,
                                  const std::vector<kernels::tensor_slot>& piece) const {
    return learn::gather(tensors_[stage], parameters, piece);
  }

  std::shared_ptr<const learn::layered_model> model_; // null in a model of sizes alone
  std::vector<learn::layer_range> layers_;            // one entry for each hop but the last one
  std::vector<std::uint32_t> stage_of_;               // the stages of these hops
  // For each stage, the tensors of its layers alone, and all its tensors.
  std::vector<std::vector<kernels::tensor_slot>> blocks_, tensors_;
  std::vector<kernels::tensor_slot> embedding_, head_;
  batch_reader read_;
  kernels::decays decays_ = nullptr;
  std::size_t sized_values_ = 0;
};

} // namespace shoal::actors
