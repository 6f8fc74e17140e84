// kernels/learn/pictures/contrastive.
#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/contrastive.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

constexpr contrastive_sizes sizes{20, 16, 4};

/// Caption (a, b) belongs to a picture of codes around a and b.
std::vector<captioned_codes> some_pairs(std::size_t count) {
  auto random = stream(1, "pairs");
  std::vector<captioned_codes> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<token_id>(random.below(8)),
               b = static_cast<token_id>(random.below(8));
    out.push_back({{a, 8 + b}, {a, a, 8 + b, static_cast<token_id>(random.below(16))}});
  }
  return out;
}

double similarity(const contrastive_pair& pair, const captioned_codes& caption,
                  const captioned_codes& picture) {
  const auto u = pair.caption_vector(caption.text), v = pair.picture_vector(picture.codes);
  return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
}

} // namespace

TEST_CASE("the gradient of a contrastive pair is the slope of its loss") {
  contrastive_pair pair(sizes, 3);
  const auto batch = some_pairs(6);
  std::vector<float> gradient(pair.parameters().size());
  const double at = pair.loss(batch, gradient);
  CHECK(at > 0);
  double size = 0;
  for (const float value : gradient) size += static_cast<double>(value) * value;
  const double step = 0.002 / std::sqrt(size);
  auto up = pair, down = pair;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    up.parameters()[i] += static_cast<float>(step * gradient[i]);
    down.parameters()[i] -= static_cast<float>(step * gradient[i]);
  }
  CHECK((up.loss(batch, {}) - down.loss(batch, {})) / (2 * step) ==
        doctest::Approx(size).epsilon(0.02));
}

TEST_CASE("a trained contrastive pair finds the picture of a caption it never saw with it") {
  const auto all = some_pairs(600);
  contrastive_pair pair(sizes, 1);
  contrastive_training options;
  options.passes = 20;
  options.batch = 32;
  pair.train(std::span(all).first(500), options);
  // Among one picture of each kind of (a, b).
  std::size_t right = 0;
  for (std::size_t i = 500; i < 600; ++i) {
    bool best = true;
    for (std::size_t j = 500; j < 600; ++j)
      if (all[j].text != all[i].text &&
          similarity(pair, all[i], all[j]) > similarity(pair, all[i], all[i]))
        best = false;
    right += best ? 1 : 0;
  }
  MESSAGE(right << " of 100");
  CHECK(right > 70);
}
