// Fine-tuning of ALBERT for a downstream task: a class for each labelled token, or for the whole
// text. Training is Hugging Face's: AdamW without weight decay, a rate that falls linearly to 0,
// and gradients clipped to a norm of 1. Dropout acts before the classifier. Training stops early
// when the validation loss no longer falls, and returns the parameters with the lowest loss.
// The classifier's bias begins at the logarithms of the classes' frequencies in the training texts.
// A drawn classifier would first have to learn them, and the rate of a fine-tuning moves a bias
// slowly.
// Source: the downstream evaluation of sahajBERT, Diskin et al., arXiv:2106.10207; constants of the
// Hugging Face Trainer.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/albert_math.hpp"
#include "kernels/learn/albert_sample.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

struct predictions {
  double mean_loss = 0; ///< over all labels
  /// The likeliest class of each labelled token of each sample, or of each sample (one value).
  std::vector<std::vector<token_id>> classes;
};

/// An ALBERT with a classifier. The labels of a sample are the classes of its labelled tokens (head
/// `tokens`), or its order is the class of the sample (head `sequence`).
/// Thread safety: immutable; all functions may be called from several threads at once.
class albert_classifier {
public:
  /// Loads libtorch. Throws std::runtime_error if that fails. Requires: validate(config), and a
  /// head other than `pretraining`.
  explicit albert_classifier(const albert_config& config);

  const albert_config& config() const noexcept { return config_; }
  const std::vector<kernels::tensor_slot>& layout() const noexcept { return layout_; }

  /// Returns the mean loss over all labels of the samples, and writes its gradient. Each factor of
  /// the classifier's input is 0 with probability `dropout`; seed and step decide the draws.
  double gradient(std::span<const float> parameters, std::span<const albert_sample> samples,
                  double dropout, std::uint64_t seed, std::uint64_t step,
                  std::span<float> gradient) const;
  predictions predict(std::span<const float> parameters,
                      std::span<const albert_sample> samples) const;

  /// The encoder's tensors from a pre-trained model, and a drawn classifier. Requires: `from` has
  /// the sizes of this model's encoder.
  std::vector<float> start_from(const albert_config& pretrained, std::span<const float> from,
                                std::uint64_t seed) const;

private:
  albert_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::shared_ptr<const albert_math> math_;
};

struct fine_tune_options {
  double learning_rate = 1e-5;
  std::size_t batch = 128;
  std::size_t epochs = 20;
  double dropout = 0.1;
  std::size_t patience = 3; ///< epochs without a better validation loss or score before the end
  double threshold = 0.01;  ///< a smaller improvement does not count for patience
  std::uint64_t seed = 1;
  /// The score of the classes that are predicted for the validation samples. If given, the score
  /// chooses the epoch, and its rise counts for `patience` like a fall of the loss.
  std::function<double(const std::vector<std::vector<token_id>>&)> score{};
  /// Called after each epoch, counted from 1, with the validation loss; false ends the training.
  std::function<bool(std::size_t, double)> on_epoch{};
};

/// The options for a model of this width. From 512 values for each token on they are those of the
/// blog post. Narrower models learn in larger and more steps, and their loss falls by less than the
/// blog's threshold in an epoch.
fine_tune_options usual_fine_tuning(const albert_config& config);

struct fine_tuned {
  std::vector<float> parameters;  ///< those with the lowest validation loss, or the best score
  std::vector<double> dev_losses; ///< after each epoch
  std::vector<double> dev_scores; ///< the same, if the options have a score
  std::size_t best_epoch = 0;     ///< from 1; 0: no epoch
};

/// `parameters` are those of start_from(). Their bias of the classifier is replaced as above.
/// Requires: samples that are not empty, with labels in the model's classes.
fine_tuned fine_tune(const albert_classifier& model, std::vector<float> parameters,
                     std::span<const albert_sample> train, std::span<const albert_sample> dev,
                     const fine_tune_options& options);

} // namespace shoal::learn
