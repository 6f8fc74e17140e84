// A small contrastive pair: one tower for captions and one for codes of pictures, whose vectors
// agree for a caption and its picture. It chooses the best of many drawn pictures.
//   caption: mean of token vectors, a layer with relu, a layer
//   picture: the vectors of its codes one behind the other, a layer with relu, a layer
//   similarity = exp(t) u v, with u and v normalized
//   loss = half the mean cross-entropy of the right picture of each caption of a batch, plus half
//     that of the right caption of each picture
// Source: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision",
// arXiv:2103.00020, figure 3. This pair is far smaller than CLIP and is trained from nothing.
#pragma once

#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shoal::learn {

struct contrastive_sizes {
  std::size_t tokens = 0, codes = 0; ///< vocabularies of captions and of pictures
  std::size_t places = 64;           ///< codes of a picture
};

/// A caption without padding, and the codes of its picture.
struct captioned_codes {
  std::vector<token_id> text, codes;
};

struct contrastive_training {
  std::size_t passes = 20, batch = 128;
  double learning_rate = 2e-3;
  std::uint64_t seed = 1;
};

class contrastive_pair {
public:
  /// Drawn parameters. Equal seeds give equal bits.
  contrastive_pair(contrastive_sizes sizes, std::uint64_t seed);

  const std::vector<float>& parameters() const noexcept { return parameters_; }
  std::vector<float>& parameters() noexcept { return parameters_; }

  /// The normalized vector of a caption, and that of a picture. Requires: tokens and codes in their
  /// vocabularies.
  std::vector<float> caption_vector(std::span<const token_id> text) const;
  std::vector<float> picture_vector(std::span<const token_id> codes) const;

  /// The loss of a batch; adds its gradient to `gradient_sum` unless that is empty. Requires: at
  /// least two samples.
  double loss(std::span<const captioned_codes> batch, std::span<float> gradient_sum) const;

  /// Trains with AdamW. A caption that occurs twice in a batch counts as two different ones.
  /// `progress` gets each pass and its mean loss. Requires: at least two samples.
  void train(std::span<const captioned_codes> samples, const contrastive_training& options,
             const std::function<void(std::size_t, double)>& progress = {});

private:
  struct matrix {
    std::size_t offset = 0, rows = 0, columns = 0;
  };
  struct tower_pass;
  tower_pass forward(std::vector<float> input, const matrix& first, const matrix& second) const;
  std::vector<float> backward(const tower_pass& pass, std::span<const float> upstream,
                              const matrix& first, const matrix& second,
                              std::span<float> gradient_sum) const;
  std::vector<float> caption_input(std::span<const token_id> text) const;
  std::vector<float> picture_input(std::span<const token_id> codes) const;

  contrastive_sizes sizes_;
  matrix words_, text_first_, text_second_, entries_, image_first_, image_second_;
  std::size_t scale_ = 0;
  std::vector<float> parameters_;
};

} // namespace shoal::learn
