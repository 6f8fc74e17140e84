// A network of layers of experts. The entrance turns samples into rows. Each layer adds the
// weighted outputs of some experts to a row. The exit has the loss.
//   x_0 = enter(sample);  x_{l+1} = x_l + sum_e w_e expert_e(x_l);  loss = leave(x_L)
// w is the softmax of the gate's logits over those chosen experts that answered, or the probability
// of each (gate_kind). If none answered, the row passes the layer as it is. On the way back an
// expert without an answer is a constant. The experts are elsewhere: a `mixture_pass` stops before
// each layer, and its owner calls them. Source: Ryabinin and Gusev, arXiv:2002.04013, sections 3.1
// and 3.2. Switch: Fedus et al., arXiv:2101.03961, equations 1 and 2.
#pragma once

#include "kernels/expert_gate.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// The entrance and the exit of a network. A sample has one row or more. Functions with a
/// `gradient_sum` add the gradient to it. Thread safety: immutable.
class network_ends {
public:
  virtual ~network_ends() = default;
  virtual std::size_t sample_bytes() const noexcept = 0;
  virtual std::size_t rows_of_sample() const noexcept { return 1; }
  virtual std::size_t width() const noexcept = 0; ///< floats of a row
  virtual std::size_t parameter_count() const noexcept = 0;
  virtual std::vector<float> initial_parameters(std::uint64_t seed) const = 0;

  virtual std::vector<float> enter(std::span<const float> parameters,
                                   std::span<const std::byte> samples) const = 0;
  virtual void enter_backward(std::span<const float> parameters, std::span<const std::byte> samples,
                              std::span<const float> gradient,
                              std::span<float> gradient_sum) const = 0;
  /// The mean loss of the samples, and the number of right answers.
  struct judgement {
    double loss = 0;
    std::size_t right = 0;
  };
  virtual judgement judge(std::span<const float> parameters, std::span<const std::byte> samples,
                          std::span<const float> x) const = 0;
  /// The same, with the gradient of the mean loss with respect to x, [rows, width] of zeros at
  /// first.
  virtual judgement leave(std::span<const float> parameters, std::span<const std::byte> samples,
                          std::span<const float> x, std::span<float> gradient_x,
                          std::span<float> gradient_sum) const = 0;
};

/// How the outputs of a row's experts are weighted.
enum class gate_kind : std::uint8_t {
  softmax, ///< by the softmax of their logits over those that answered
  /// By the probability of each among all experts of the layer. With one expert for a row the other
  /// weight is always 1, and the gate would learn from the balance loss alone.
  switching,
};

struct mixture_shape {
  std::size_t layers = 4;
  std::vector<std::uint32_t> grid; ///< the experts of each layer stand on it
  double balance = 0;              ///< factor of the balance loss (expert_gate::balance())
  gate_kind gate = gate_kind::softmax;
};

/// The parts of a network that its trainer holds. Thread safety: immutable.
class mixture_network {
public:
  mixture_network(std::shared_ptr<const network_ends> ends, mixture_shape shape);

  const network_ends& ends() const noexcept { return *ends_; }
  const kernels::expert_gate& gate() const noexcept { return gate_; }
  const mixture_shape& shape() const noexcept { return shape_; }
  /// The parameters of the ends, then those of the gate of each layer.
  std::size_t parameter_count() const noexcept;
  std::vector<float> initial_parameters(std::uint64_t seed) const;

  template <class Span>
  Span of_ends(Span all) const {
    return all.first(ends_->parameter_count());
  }
  template <class Span>
  Span of_gate(Span all, std::size_t layer) const {
    return all.subspan(ends_->parameter_count() + layer * gate_.parameters(), gate_.parameters());
  }

private:
  std::shared_ptr<const network_ends> ends_;
  mixture_shape shape_;
  kernels::expert_gate gate_;
};

/// One expert of one row. `output` and `gradient` are empty where the expert did not answer.
struct expert_choice {
  kernels::expert_place place;
  std::vector<float> output{};   ///< [width]
  std::vector<float> gradient{}; ///< [width], with respect to the expert's input
};

/// The rows that an expert gets: for each its number, and the place of the expert in its choices.
struct routed_row {
  std::size_t row = 0, choice = 0;
};
/// The same for each expert that is chosen, ascending.
std::map<kernels::expert_place, std::vector<routed_row>>
rows_by_expert(const std::vector<std::vector<expert_choice>>& chosen);

/// One pass of samples, forward and back. A plain state machine:
///   advance() for each layer from the first, leave(), retreat() for each layer from the last,
///   finish().
class mixture_pass {
public:
  /// Requires: the network and its parameters outlive the pass, whole samples.
  mixture_pass(const mixture_network& of, std::span<const float> parameters,
               std::vector<std::byte> samples);

  std::size_t rows() const noexcept {
    return samples_.size() / net_.ends().sample_bytes() * net_.ends().rows_of_sample();
  }
  /// The layer whose experts are called now.
  std::size_t layer() const noexcept { return at_; }
  /// The rows [rows, width] that enter the layer, and their scores [rows, keys].
  std::span<const float> input() const noexcept { return layers_[at_].x; }
  std::span<const float> scores() const noexcept { return layers_[at_].scores; }
  std::span<const float> row(std::size_t n) const { return input().subspan(n * width_, width_); }

  /// Ends the layer with the experts of each row. Requires: layer() < layers, chosen.size() ==
  /// rows().
  void advance(std::vector<std::vector<expert_choice>> chosen);
  /// The loss of the rows that left the last layer. Requires: layer() == layers.
  network_ends::judgement judge() const;
  /// The same, and starts the way back. layer() is then the last layer.
  network_ends::judgement leave();

  /// The choices of the layer on the way back. The owner fills in the gradients.
  std::vector<std::vector<expert_choice>>& chosen() noexcept { return layers_[at_].chosen; }
  /// The gradient with respect to the output of one expert of one row.
  std::vector<float> gradient_of(std::size_t row, std::size_t choice) const;
  /// The inputs of one expert, and the gradients with respect to its outputs: [rows.size(), width].
  std::vector<float> inputs_of(std::span<const routed_row> rows) const;
  std::vector<float> gradients_of(std::span<const routed_row> rows) const;
  double weight_of(std::size_t row, std::size_t choice) const {
    return layers_[at_].weights[row][choice];
  }
  /// Ends the layer on the way back. After the first layer the pass is over.
  void retreat();
  bool is_over() const noexcept { return over_; }
  /// The gradient of the mean loss and the balance loss. Requires: is_over().
  const std::vector<float>& gradient() const noexcept { return gradient_; }
  /// The mean over layers of the balance loss. Requires: is_over().
  double balance() const noexcept { return balance_; }
  /// Rows and layers in which no expert answered.
  std::size_t unanswered() const noexcept { return unanswered_; }

private:
  struct layer_state {
    std::vector<float> x, scores;
    std::vector<std::vector<expert_choice>> chosen;
    std::vector<std::vector<double>> weights; // by row and choice
  };
  void enter_layer(std::vector<float> x);
  /// The scores of a row in the layer `at_`.
  std::span<const float> scores_of(std::size_t row) const;
  std::vector<double> weights_of(std::size_t row, const std::vector<expert_choice>& chosen) const;
  /// Adds the gradient with respect to the row's scores, given that of its weights.
  void weights_back(std::size_t row, std::span<const double> gradient_weights,
                    std::span<float> gradient_scores_sum) const;

  const mixture_network& net_;
  std::span<const float> parameters_;
  std::vector<std::byte> samples_;
  std::size_t width_;
  std::vector<layer_state> layers_; // one more than there are layers: the rows that leave
  std::size_t at_ = 0, unanswered_ = 0;
  std::vector<float> upstream_, gradient_;
  double balance_ = 0;
  bool over_ = false;
};

} // namespace shoal::learn
