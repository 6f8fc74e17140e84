// A codebook of square patches: the code of a patch is its nearest entry. It is learnt by k-means.
//   start: entries drawn one by one, each with probability proportional to its squared distance
//     from the earlier ones
//   pass: each patch goes to its nearest entry, and each entry becomes the mean of its patches. An
//     entry without patches becomes the patch that is farthest from its own entry.
// Source: Lloyd, "Least squares quantization in PCM" (1982); Arthur and Vassilvitskii, "k-means++"
// (2007).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/pictures/picture.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace shoal::learn {

struct codebook {
  std::size_t patch = 4;      ///< pixels on a side
  std::size_t side = 8;       ///< patches on a side of a picture
  std::vector<float> entries; ///< [codes, patch * patch * 3]

  std::size_t width() const noexcept { return patch * patch * 3; }
  std::size_t codes() const noexcept { return entries.size() / width(); }
  coder_grid grid() const noexcept { return {patch, side, codes()}; }

  /// The codes row by row [side * side]; of equally near entries the first one. Requires: a picture
  /// of the grid's size.
  std::vector<token_id> encode(const picture& from) const;
  /// Requires: side * side codes below codes().
  picture decode(std::span<const token_id> codes) const;
};

struct codebook_training {
  std::size_t patch = 4, codes = 512, passes = 12;
  std::uint64_t seed = 1;
};

/// Equal arguments give equal bits. `progress` gets each pass and its PSNR.
/// Errors: no pictures, pictures that are no squares of the same size, a patch that does not divide
/// them, or fewer different patches than codes.
result<codebook> train_codebook(std::span<const picture> pictures, const codebook_training& options,
                                const std::function<void(std::size_t, double)>& progress = {});

} // namespace shoal::learn
