// A classifier with at most one hidden layer, for studies that need a small problem that is not
// convex. Without a hidden layer it is multinomial logistic regression.
//   h = max(0, A x + a),  z = B h + b,  loss = log sum_k exp(z_k) - z_y
// Parameters in order: A [hidden, inputs], a [hidden], B [classes, hidden], b [classes]. Without a
// hidden layer: B [classes, inputs], b [classes].
// The bits do not depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

class perceptron {
public:
  /// Requires: inputs > 0, classes > 1. `hidden` 0: there is no hidden layer.
  perceptron(std::size_t inputs, std::size_t hidden, std::size_t classes)
      : inputs_(inputs), hidden_(hidden), classes_(classes) {}

  std::size_t parameters() const noexcept {
    return hidden_ > 0 ? hidden_ * (inputs_ + 1) + classes_ * (hidden_ + 1)
                       : classes_ * (inputs_ + 1);
  }
  /// Weights of a hidden layer are normal with variance 2 / inputs, those of the last layer with 1
  /// / inputs of the layer; biases are 0. Source: He et al., arXiv:1502.01852.
  void initial(std::uint64_t seed, std::span<float> parameters) const;
  /// Adds the gradient of the loss of one sample to `gradient_sum` [parameters()], and returns the
  /// loss. Requires: x [inputs], label < classes.
  double accumulate(std::span<const float> parameters, std::span<const float> x, std::size_t label,
                    std::span<double> gradient_sum) const;
  /// The loss of one sample, and whether the largest output is that of the label.
  struct judgement {
    double loss = 0;
    bool right = false;
  };
  judgement judge(std::span<const float> parameters, std::span<const float> x,
                  std::size_t label) const;

private:
  struct activity;
  double forward(std::span<const float> parameters, std::span<const float> x, std::size_t label,
                 activity& out) const;

  std::size_t inputs_, hidden_, classes_;
};

} // namespace shoal::kernels
