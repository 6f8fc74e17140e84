#include "kernels/learn/pictures/vq_vae.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/in_parallel.hpp"
#include "kernels/learn/pictures/moving_codes.hpp"
#include "kernels/learn/pictures/nearest_entry.hpp"
#include "kernels/learn/pictures/patches.hpp"
#include "kernels/optimizer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::learn {

namespace {

constexpr float grey = 0.5F; // the networks read and write differences from it
/// Pictures whose gradient one thread computes. The rounding of a batch's sum depends on it.
constexpr std::size_t slice = 8;

picture mirrored(const picture& from) {
  auto out = from;
  for (std::size_t p = 0; p < from.width * from.height; ++p) {
    const auto x = p % from.width;
    std::copy_n(from.rgb.begin() + static_cast<std::ptrdiff_t>(3 * p), 3,
                out.rgb.begin() + static_cast<std::ptrdiff_t>(3 * (p - x + from.width - 1 - x)));
  }
  return out;
}

/// Makes the steps of the training.
class trainer {
public:
  trainer(vq_vae& model, std::span<const picture> pictures, const vq_vae_training& options)
      : model_(model), pictures_(pictures), options_(options),
        batch_(std::min(options.batch, pictures.size())), steps_(pictures.size() / batch_),
        order_(pictures.size()), random_(stream(options.seed, "vq_vae_training")),
        codes_(first_entries(), model.sizes().width, options.decay, options.dead_below) {
    const auto total = steps_ * options.passes;
    how_.learning_rate = options.learning_rate;
    how_.warmup_steps = std::min<std::size_t>(100, total / 4);
    how_.decay_steps = total;
    how_.final_rate_fraction = 0.01;
    state_.resize(kernels::state_bytes(how_, model.parameters().size()));
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    use_entries();
  }

  /// The PSNR of the pass.
  double pass() {
    random_.shuffle(std::span(order_));
    double error = 0;
    for (std::size_t s = 0; s < steps_; ++s)
      error += step(std::span(order_).subspan(s * batch_, batch_));
    const auto values = steps_ * batch_ * pictures_[0].rgb.size();
    return psnr(error / static_cast<double>(values));
  }

private:
  /// Vectors of the first batch that are far from each other.
  std::vector<float> first_entries() {
    auto random = stream(options_.seed, "vq_vae_entries");
    std::vector<picture> some;
    for (std::size_t i = 0; i < batch_; ++i)
      some.push_back(pictures_[random.below(pictures_.size())]);
    const auto& sizes = model_.sizes();
    const auto vectors = model_.vectors_of(centred_patches(some, sizes.grid));
    const std::vector<double> weights(vectors.size() / sizes.width, 1.0);
    return spread_entries(vectors, weights, sizes.width, sizes.grid.codes, random);
  }

  void use_entries() {
    std::copy(codes_.entries().begin(), codes_.entries().end(), model_.entries().begin());
  }

  /// The squared error of these pictures.
  double step(std::span<const std::size_t> which) {
    std::vector<picture> some;
    for (const auto i : which)
      some.push_back(random_.below(2) == 0 ? pictures_[i] : mirrored(pictures_[i]));
    const auto slices = (some.size() + slice - 1) / slice;
    std::vector<vq_vae::measured> parts(slices);
    std::vector<std::vector<float>> gradients(slices,
                                              std::vector<float>(model_.parameters().size()));
    in_parallel(slices, options_.threads, [&](std::size_t s) {
      const auto own = std::span(some).subspan(s * slice, std::min(slice, some.size() - s * slice));
      parts[s] =
          model_.loss(centred_patches(own, model_.sizes().grid), options_.commitment, gradients[s]);
    });
    auto& gradient = gradients.front();
    auto& all = parts.front();
    for (std::size_t s = 1; s < slices; ++s) {
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += gradients[s][i];
      all.squared_error += parts[s].squared_error;
      all.vectors.insert(all.vectors.end(), parts[s].vectors.begin(), parts[s].vectors.end());
      all.codes.insert(all.codes.end(), parts[s].codes.begin(), parts[s].codes.end());
    }
    const float share = 1 / static_cast<float>(some.size() * some.front().rgb.size());
    for (auto& value : gradient) value *= share;
    kernels::step(how_, ++made_, gradient, model_.parameters(), state_);
    codes_.update(all.vectors, all.codes, random_);
    use_entries();
    return all.squared_error;
  }

  vq_vae& model_;
  std::span<const picture> pictures_;
  vq_vae_training options_;
  std::size_t batch_, steps_;
  std::vector<std::size_t> order_;
  rng random_;
  moving_codes codes_;
  kernels::optimizer_config how_;
  std::vector<std::byte> state_;
  std::int64_t made_ = 0;
};

} // namespace

std::vector<float> centred_patches(std::span<const picture> pictures, const coder_grid& grid) {
  std::vector<float> out;
  for (const auto& one : pictures)
    for (const float value : patches_of(one, grid)) out.push_back(value - grey);
  return out;
}

vq_vae::vq_vae(const vq_vae_sizes& sizes, std::vector<float> values)
    : sizes_(sizes), encoder_(sizes.encoder()), decoder_(sizes.decoder()),
      values_(std::move(values)) {
  SHOAL_CHECK(values_.size() == sizes.values(), "a model has all of its values");
}

vq_vae::vq_vae(const vq_vae_sizes& sizes, std::uint64_t seed)
    : vq_vae(sizes, std::vector<float>(sizes.values())) {
  auto random = stream(seed, "vq_vae_parameters");
  encoder_.initialize(random, parameters().first(encoder_.parameter_count()));
  decoder_.initialize(random, parameters().subspan(encoder_.parameter_count()));
}

std::span<float> vq_vae::parameters() noexcept {
  return std::span(values_).first(values_.size() - sizes_.entries());
}
std::span<float> vq_vae::entries() noexcept {
  return std::span(values_).last(sizes_.entries());
}
std::span<const float> vq_vae::entries() const noexcept {
  return std::span(values_).last(sizes_.entries());
}
std::span<const float> vq_vae::of_encoder() const noexcept {
  return std::span(values_).first(encoder_.parameter_count());
}
std::span<const float> vq_vae::of_decoder() const noexcept {
  return std::span(values_).subspan(encoder_.parameter_count(), decoder_.parameter_count());
}

std::vector<float> vq_vae::vectors_of(std::span<const float> patches) const {
  return encoder_.forward(of_encoder(), patches);
}

std::vector<token_id> vq_vae::encode(const picture& from) const {
  const auto vectors = vectors_of(centred_patches({&from, 1}, sizes_.grid));
  return codes_of(vectors, entries(), sizes_.width);
}

picture vq_vae::decode(std::span<const token_id> codes) const {
  SHOAL_CHECK(codes.size() == sizes_.grid.places(), "a picture has a code for each patch");
  auto patches = decoder_.forward(of_decoder(), entries_of(codes, entries(), sizes_.width));
  // NaN, which the huge values of a strange file give, becomes white.
  for (auto& value : patches) value = std::max(0.0F, std::min(1.0F, value + grey));
  return picture_of(patches, sizes_.grid);
}

vq_vae::measured vq_vae::loss(std::span<const float> patches, double commitment,
                              std::span<float> gradient_sum) const {
  grid_pass encoding, decoding;
  measured out;
  out.vectors = encoder_.forward(of_encoder(), patches, &encoding);
  out.codes = codes_of(out.vectors, entries(), sizes_.width);
  const auto read = entries_of(out.codes, entries(), sizes_.width);
  auto gradient = decoder_.forward(of_decoder(), read, &decoding);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float error = gradient[i] - patches[i];
    out.squared_error += static_cast<double>(error * error);
    gradient[i] = 2 * error;
  }
  const auto split = encoder_.parameter_count();
  auto straight = decoder_.backward(of_decoder(), decoding, gradient, gradient_sum.subspan(split));
  double far = 0;
  for (std::size_t i = 0; i < straight.size(); ++i) {
    const float error = out.vectors[i] - read[i];
    far += static_cast<double>(error * error);
    straight[i] += static_cast<float>(2 * commitment) * error;
  }
  encoder_.backward(of_encoder(), encoding, straight, gradient_sum.first(split));
  out.loss = out.squared_error + commitment * far;
  return out;
}

vq_vae train_vq_vae(std::span<const picture> pictures, const vq_vae_sizes& sizes,
                    const vq_vae_training& options, const coder_progress& progress) {
  SHOAL_CHECK(!pictures.empty() && options.batch > 0, "training needs pictures");
  vq_vae out(sizes, options.seed);
  trainer training(out, pictures, options);
  for (std::size_t pass = 1; pass <= options.passes; ++pass) {
    const auto quality = training.pass();
    if (progress) progress(pass, quality);
  }
  return out;
}

} // namespace shoal::learn
