// A small VQ-VAE: a network turns patches into vectors, the code of a vector is its nearest entry,
// and a network turns entries into patches. Both networks see the neighbours of a patch.
//   z = encoder(x), e = nearest entry of z, x' = decoder(e)
//   loss of a patch = |x - x'|^2 + commitment |z - e|^2
// The gradient of e goes to z unchanged (straight through). Entries have no gradient: they are
// moving averages (moving_codes.hpp).
// Source: van den Oord et al., "Neural Discrete Representation Learning", arXiv:1711.00937.
#pragma once

#include "kernels/learn/pictures/grid_network.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

struct vq_vae_sizes {
  coder_grid grid;
  std::size_t width = 64;              ///< values of an entry
  std::size_t hidden = 96, blocks = 2; ///< channels and blocks of each network

  grid_shape encoder() const noexcept {
    return {grid.side, 1, grid.patch_values(), hidden, blocks, width};
  }
  grid_shape decoder() const noexcept {
    return {grid.side, 3, width, hidden, blocks, grid.patch_values()};
  }
  std::size_t entries() const noexcept { return grid.codes * width; }
  std::size_t values() const noexcept {
    return encoder().parameters() + decoder().parameters() + entries();
  }
};

/// Pictures as rows of patches [pictures * places, patch_values], less a half.
std::vector<float> centred_patches(std::span<const picture> pictures, const coder_grid& grid);

/// Thread safety: functions that are const may be called from several threads at once.
class vq_vae {
public:
  /// Requires: sizes.values() of them: the encoder, the decoder, the entries [codes, width].
  vq_vae(const vq_vae_sizes& sizes, std::vector<float> values);
  /// Drawn networks, and entries of zeros.
  vq_vae(const vq_vae_sizes& sizes, std::uint64_t seed);

  const vq_vae_sizes& sizes() const noexcept { return sizes_; }
  const std::vector<float>& values() const noexcept { return values_; }
  /// Both networks.
  std::span<float> parameters() noexcept;
  std::span<float> entries() noexcept;
  std::span<const float> entries() const noexcept;

  /// As of picture_coder.
  std::vector<token_id> encode(const picture& from) const;
  picture decode(std::span<const token_id> codes) const;

  std::vector<float> vectors_of(std::span<const float> patches) const;

  /// A step of training on some pictures.
  struct measured {
    double squared_error = 0, loss = 0; ///< summed over all patches
    std::vector<float> vectors;         ///< z of each patch
    std::vector<token_id> codes;
  };
  /// Adds the gradient of parameters(). Requires: centred_patches() of some pictures.
  measured loss(std::span<const float> patches, double commitment,
                std::span<float> gradient_sum) const;

private:
  std::span<const float> of_encoder() const noexcept;
  std::span<const float> of_decoder() const noexcept;

  vq_vae_sizes sizes_;
  grid_network encoder_, decoder_;
  std::vector<float> values_;
};

struct vq_vae_training {
  std::size_t passes = 40, batch = 32;
  double learning_rate = 3e-3;           ///< falls to a hundredth of it
  double commitment = 0.25;              ///< the weight of |z - e|^2
  double decay = 0.99, dead_below = 0.1; ///< as in moving_codes.hpp
  std::uint64_t seed = 1;
  std::size_t threads = 1; ///< the result does not depend on them
};

/// Trains with AdamW. Each picture is mirrored in half of its passes. Equal arguments give equal
/// bits. `progress` gets the PSNR of each picture as the model was when it saw the picture.
/// Requires: patches_on_a_side(pictures, sizes.grid.patch) == sizes.grid.side.
vq_vae train_vq_vae(std::span<const picture> pictures, const vq_vae_sizes& sizes,
                    const vq_vae_training& options, const coder_progress& progress = {});

} // namespace shoal::learn
