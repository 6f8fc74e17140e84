// kernels/learn/pictures/vq_vae.
#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/codebook.hpp"
#include "kernels/learn/pictures/vq_vae.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// Slopes of any direction: neighbouring patches say much about each other.
std::vector<picture> slopes(std::size_t count) {
  auto random = stream(1, "vq_vae_test");
  std::vector<picture> out;
  for (std::size_t p = 0; p < count; ++p) {
    out.push_back(white_picture(8, 8));
    const double dx = random.uniform(-0.1, 0.1), dy = random.uniform(-0.1, 0.1);
    for (std::size_t i = 0; i < 64; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        out.back().rgb[3 * i + c] =
            static_cast<float>(0.5 + dx * (static_cast<double>(i % 8) - 3.5) +
                               dy * (static_cast<double>(i / 8) - 3.5));
  }
  return out;
}

vq_vae_sizes small_sizes() {
  return {{2, 4, 8}, 6, 12, 1};
}

double psnr_of(const std::vector<picture>& pictures, const auto& coder) {
  double error = 0;
  for (const auto& one : pictures)
    error +=
        squared_error(one, coder.decode(coder.encode(one))) / static_cast<double>(pictures.size());
  return psnr(error);
}

/// A model with drawn entries.
vq_vae drawn_model() {
  vq_vae out(small_sizes(), 3);
  auto random = stream(2, "vq_vae_test");
  for (auto& value : out.entries()) value = static_cast<float>(0.3 * random.normal());
  for (auto& value : out.parameters())
    if (value == 0) value = static_cast<float>(0.1 * random.normal());
  return out;
}

} // namespace

TEST_CASE("patches hold the pixels of their squares") {
  auto one = white_picture(4, 4);
  for (std::size_t i = 0; i < one.rgb.size(); ++i) one.rgb[i] = static_cast<float>(i);
  const auto patches = centred_patches({&one, 1}, {2, 2, 1});
  REQUIRE(patches.size() == 48);
  // The second patch begins at the third pixel, and its second row at the seventh.
  CHECK(patches[12] == 6 - 0.5F);
  CHECK(patches[12 + 6] == 18 - 0.5F);
  CHECK(patches[47] == 47 - 0.5F);
}

TEST_CASE("the gradient of a VQ-VAE goes straight through the codes") {
  auto model = drawn_model();
  const auto pictures = slopes(2);
  const auto patches = centred_patches(pictures, model.sizes().grid);
  constexpr double commitment = 0.25;
  std::vector<float> gradient(model.parameters().size());
  const auto at = model.loss(patches, commitment, gradient);
  CHECK(at.codes.size() == 32);
  CHECK(at.loss > at.squared_error);
  std::vector<float> read;
  for (const auto code : at.codes)
    for (std::size_t i = 0; i < 6; ++i)
      read.push_back(model.entries()[static_cast<std::size_t>(code) * 6 + i]);

  // By hand: the codes stay, the decoder reads e + (z - z at the start), and the entries are fixed.
  const grid_network encoder(model.sizes().encoder()), decoder(model.sizes().decoder());
  const auto split = encoder.parameter_count();
  const auto loss = [&] {
    const auto z = encoder.forward(model.parameters().first(split), patches);
    auto moved = read;
    double out = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      moved[i] += z[i] - at.vectors[i];
      out += commitment * static_cast<double>((z[i] - read[i]) * (z[i] - read[i]));
    }
    const auto x = decoder.forward(model.parameters().subspan(split), moved);
    for (std::size_t i = 0; i < x.size(); ++i)
      out += static_cast<double>((x[i] - patches[i]) * (x[i] - patches[i]));
    return out;
  };
  CHECK(loss() == doctest::Approx(at.loss).epsilon(1e-5));
  double wrong = 0, size = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto& value = model.parameters()[i];
    const float before = value;
    constexpr float step = 2e-3F;
    value = before + step;
    const double above = loss();
    value = before - step;
    const double below = loss();
    value = before;
    const double wanted = (above - below) / (2 * static_cast<double>(step));
    wrong += std::pow(wanted - static_cast<double>(gradient[i]), 2);
    size += wanted * wanted;
  }
  CHECK(std::sqrt(wrong / size) < 0.02);
}

TEST_CASE("a VQ-VAE learns what patches share and beats k-means with as many codes") {
  const auto pictures = slopes(64);
  vq_vae_training how;
  how.passes = 150;
  how.batch = 16;
  how.learning_rate = 4e-3;
  std::vector<double> seen;
  const auto model = train_vq_vae(pictures, small_sizes(), how,
                                  [&](std::size_t, double quality) { seen.push_back(quality); });
  const auto book = train_codebook(pictures, {2, 8, 12, 1});
  REQUIRE(book.ok());
  MESSAGE(psnr_of(pictures, model) << " dB, k-means " << psnr_of(pictures, *book) << " dB");
  CHECK(psnr_of(pictures, model) > psnr_of(pictures, *book) + 1);
  REQUIRE(seen.size() == how.passes);
  CHECK(seen.back() > seen.front());
}

TEST_CASE("a VQ-VAE has the same bits each time and with any number of threads") {
  const auto pictures = slopes(20);
  vq_vae_training how;
  how.passes = 2;
  how.batch = 20;
  const auto model = train_vq_vae(pictures, small_sizes(), how);
  CHECK(train_vq_vae(pictures, small_sizes(), how).values() == model.values());
  how.threads = 3;
  CHECK(train_vq_vae(pictures, small_sizes(), how).values() == model.values());
  how.seed = 2;
  CHECK(train_vq_vae(pictures, small_sizes(), how).values() != model.values());
}

TEST_CASE("fewer vectors than codes and equal pictures are learnt all the same") {
  const std::vector<picture> blank{white_picture(4, 4)};
  vq_vae_training how;
  how.passes = 30;
  const auto model = train_vq_vae(blank, {{2, 2, 16}, 4, 8, 1}, how);
  for (const float value : model.values()) REQUIRE(std::isfinite(value));
  CHECK(model.decode(model.encode(blank[0])).rgb.size() == blank[0].rgb.size());
}
