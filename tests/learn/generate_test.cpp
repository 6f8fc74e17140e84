// kernels/learn/sampling and generate: which bytes can be chosen, their frequencies, and one text
// per seed.
#include "kernels/learn/generate.hpp"
#include "kernels/learn/transformer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// Probabilities 0.5, 0.25, 0.15, 0.1 at temperature 1, in another order.
const std::vector<float> logits{std::log(0.15F), std::log(0.5F), std::log(0.1F), std::log(0.25F)};

std::vector<double> frequencies(const sampling_options& options) {
  rng random(5);
  std::vector<double> counts(logits.size());
  for (int i = 0; i < 20000; ++i) counts[choose(logits, options, random)] += 1.0 / 20000;
  return counts;
}

} // namespace

TEST_CASE("at temperature one bytes come as often as the model predicts") {
  const auto f = frequencies({.temperature = 1});
  CHECK(f[0] == doctest::Approx(0.15).epsilon(0.1));
  CHECK(f[1] == doctest::Approx(0.5).epsilon(0.05));
  CHECK(f[2] == doctest::Approx(0.1).epsilon(0.1));
  CHECK(f[3] == doctest::Approx(0.25).epsilon(0.05));
}

TEST_CASE("top-k and top-p leave only the likeliest") {
  const auto k = frequencies({.temperature = 1, .top_k = 2});
  CHECK(k[1] == doctest::Approx(2.0 / 3).epsilon(0.05));
  CHECK(k[0] + k[2] == 0);
  const auto p =
      frequencies({.temperature = 1, .top_p = 0.8}); // 0.5 + 0.25 < 0.8, so the third is in
  CHECK(p[0] == doctest::Approx(0.15 / 0.9).epsilon(0.1));
  CHECK(p[2] == 0);
  CHECK(frequencies({.temperature = 1, .top_p = 0.4})[1] == doctest::Approx(1));
}

TEST_CASE("temperature zero takes the likeliest and a high one levels") {
  CHECK(frequencies({.temperature = 0})[1] == doctest::Approx(1));
  CHECK(frequencies({.temperature = 100})[2] == doctest::Approx(0.25).epsilon(0.05));
}

TEST_CASE("logits that are not numbers are never chosen") {
  rng random(1);
  const std::vector<float> odd{NAN, 1, -INFINITY};
  for (int i = 0; i < 100; ++i) CHECK(choose(odd, {.temperature = 1}, random) == 1);
}

TEST_CASE("sampling options out of range are refused") {
  CHECK(validate(sampling_options{}).ok());
  CHECK(!validate(sampling_options{.temperature = -1}).ok());
  CHECK(!validate(sampling_options{.top_p = 0}).ok());
  CHECK(!validate(sampling_options{.top_p = 1.5}).ok());
}

TEST_CASE("the same seed gives the same text, past the end of the context") {
  const transformer model({.layers = 1, .heads = 2, .dim = 16, .context = 8});
  const auto p = model.initial_parameters(1);
  rng a(1), b(1), c(2);
  const auto text = generate(model, p, byte_codec(), "Once", 20, {.temperature = 1}, a);
  CHECK(text.size() == 20);
  CHECK(text == generate(model, p, byte_codec(), "Once", 20, {.temperature = 1}, b));
  CHECK(text != generate(model, p, byte_codec(), "Once", 20, {.temperature = 1}, c));
  CHECK(generate(model, p, byte_codec(), "", 3, {}, a).size() == 3);
  rng d(1);
  CHECK(byte_codec().decode(
            generate(model, p, byte_codec().encode("Once"), 20, {.temperature = 1}, d)) == text);
  CHECK(printable(std::string("a\n\x01\xff", 4)) == "a\n??");
}
