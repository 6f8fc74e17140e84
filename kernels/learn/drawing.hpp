// Drawing with a trained DALL-E, and how well it learnt to draw.
#pragma once

#include "kernels/learn/dalle.hpp"
#include "kernels/learn/picture_samples.hpp"
#include "kernels/learn/pictures/contrastive.hpp"
#include "kernels/learn/sampling.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

/// A contrastive pair that is trained with the pictures that are not held out. Requires: at least
/// two of them.
contrastive_pair train_ranker(const picture_samples& data, const contrastive_training& options,
                              const std::function<void(std::size_t, double)>& progress = {});

/// The indices of `pictures` by their similarity to the caption, the best first.
std::vector<std::size_t> ranked(const contrastive_pair& by, std::span<const token_id> caption,
                                const std::vector<std::vector<token_id>>& pictures);

/// As in the published run: the 256 likeliest codes, and of these the likeliest with 3/4 of the
/// probability. Source: arXiv:2207.03481, section 3.
inline constexpr sampling_options published_sampling{1, 256, 0.75};

/// The codes of `count` pictures for a caption, as of dalle::draw().
std::vector<std::vector<token_id>> drawn_codes(const dalle& model,
                                               std::span<const float> parameters,
                                               const picture_samples& data,
                                               const std::string& caption, std::size_t count,
                                               const sampling_options& options, std::uint64_t seed);

/// The tokens of a caption without padding, cut to the model's length; never empty.
std::vector<token_id> caption_tokens(const picture_samples& data, const std::string& caption);

/// Losses of held-out pictures in nats for each code.
struct drawing_score {
  std::size_t pictures = 0;
  double image = 0, text = 0;  ///< nats for each code, and for each position of a caption
  double unigram = 0;          ///< each position has its frequencies in the training pictures
  double shuffled = 0;         ///< the model, with the caption of another held-out picture
  double best_likelihood = 0;  ///< share of captions whose own picture is the likeliest
  double best_contrastive = 0; ///< share of captions whose own picture is the most similar
  std::size_t asked = 0;       ///< captions whose pictures were looked for
  std::size_t among = 0;       ///< pictures that a caption's own one is among
};

struct scoring {
  std::size_t most = 1024; ///< held-out pictures whose losses are taken
  std::size_t among = 128; ///< held-out pictures among which the right one is looked for
  std::size_t asked = 128; ///< captions of these whose pictures are looked for and drawn
  std::size_t threads = 1; ///< the result does not depend on them
};

/// Measures held-out pictures and the retrieval among them (among = 0 leaves it out). The unigram
/// of a position is mixed with that of all positions, which counts as ten pictures.
drawing_score score_drawing(const dalle& model, std::span<const float> parameters,
                            const picture_samples& data, const scoring& how,
                            const contrastive_pair& ranker);

/// Drawn pictures beside the right ones. `first` counts the first drawn picture of each caption,
/// and `best` the drawn picture that the ranker puts first.
struct drawn_score {
  std::size_t asked = 0, among = 0; ///< held-out captions, and the pictures that are compared
  double first = 0, best = 0;       ///< share of drawn pictures whose nearest one is the right one
  double psnr_first = 0, psnr_best = 0; ///< drawn pictures against the right ones, in dB
};

/// Draws `count` pictures for each asked caption, those of caption i with seed + i. The nearest
/// picture is that with the least squared error of its pixels. Requires: count > 0,
/// validate(options).
drawn_score score_drawn(const dalle& model, std::span<const float> parameters,
                        const picture_samples& data, const scoring& how, std::size_t count,
                        const sampling_options& options, const contrastive_pair& ranker,
                        std::uint64_t seed);

/// The words of a caption that no picture in training has in its caption.
std::vector<std::string> unknown_words(const picture_samples& data, const std::string& caption);

} // namespace shoal::learn
