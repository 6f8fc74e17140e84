// The coder `vq_vae`: vq_vae.hpp.
#include "kernels/learn/pictures/picture_coder.hpp"
#include "kernels/learn/pictures/vq_vae.hpp"

#include <algorithm>
#include <utility>

namespace shoal::learn {

namespace {

/// A size that a file names, and where it belongs.
struct named_size {
  const char* name;
  std::size_t vq_vae_sizes::*member;
  std::size_t least, most;
};
constexpr named_size named_sizes[] = {{"width", &vq_vae_sizes::width, 1, 1024},
                                      {"hidden", &vq_vae_sizes::hidden, 1, 1024},
                                      {"blocks", &vq_vae_sizes::blocks, 0, 64}};

/// Values of the neighbourhoods of all places, which one layer has in memory: 256 MiB.
constexpr std::size_t most_neighbours = std::size_t{1} << 26;

class vq_vae_pictures final : public picture_coder {
public:
  explicit vq_vae_pictures(vq_vae model)
      : picture_coder(model.sizes().grid), model_(std::move(model)) {}

  std::string_view kind() const noexcept override { return "vq_vae"; }
  std::vector<token_id> encode(const picture& from) const override { return model_.encode(from); }
  picture decode(std::span<const token_id> codes) const override { return model_.decode(codes); }
  coder_sizes sizes() const override {
    coder_sizes out;
    for (const auto& one : named_sizes) out[one.name] = model_.sizes().*one.member;
    return out;
  }
  const std::vector<float>& values() const noexcept override { return model_.values(); }

private:
  vq_vae model_;
};

made_coder train_vq_vae_coder(std::span<const picture> pictures, const coder_training& options,
                              const coder_progress& progress) {
  const auto side = patches_on_a_side(pictures, options.patch);
  if (!side) return failure{side.error()};
  vq_vae_training how;
  how.passes = options.passes;
  how.seed = options.seed;
  how.threads = options.threads;
  return made_coder{std::make_shared<const vq_vae_pictures>(
      train_vq_vae(pictures, {{options.patch, *side, options.codes}}, how, progress))};
}

made_coder read_vq_vae_coder(const coder_grid& grid, const coder_sizes& sizes,
                             std::vector<float> values) {
  vq_vae_sizes found{grid};
  for (const auto& [name, member, least, most] : named_sizes) {
    const auto one = sizes.find(name);
    if (one == sizes.end()) return failure{"its codebook has no size '" + std::string(name) + "'"};
    if (one->second < least || one->second > most)
      return failure{"its codebook has the size '" + std::string(name) + "' " +
                     std::to_string(one->second) + ", which is not from " + std::to_string(least) +
                     " to " + std::to_string(most)};
    found.*member = one->second;
  }
  if (9 * std::max(found.width, found.hidden) * grid.places() > most_neighbours)
    return failure{"its codebook has too many channels for " + std::to_string(grid.places()) +
                   " codes of a picture"};
  if (values.size() != found.values()) return failure{"its size does not agree with its header"};
  return made_coder{std::make_shared<const vq_vae_pictures>(vq_vae(found, std::move(values)))};
}

} // namespace

picture_coder_kind vq_vae_coder() {
  return {"vq_vae", "a small VQ-VAE, whose networks see the patches around a patch, too", 40,
          train_vq_vae_coder, read_vq_vae_coder};
}

} // namespace shoal::learn
