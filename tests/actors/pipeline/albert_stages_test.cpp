// ALBERT in stages: the layers share their tensors, so they are one stage with many hops. The
// pipeline has the gradient of the whole model, although peers die and samples are padded.
#include "actors/inference/activations.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/albert.hpp"
#include "scenarios/pipeline/albert_stages.hpp"
#include "tests/actors/pipeline/distance.hpp"
#include "tests/actors/pipeline/pipeline_lab.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

learn::albert_config small_albert() {
  learn::albert_config out;
  out.vocabulary = 40;
  out.embedding = 8;
  out.hidden = 16;
  out.layers = 5;
  out.heads = 2;
  out.feed_forward = 24;
  out.positions = 12;
  return out;
}

/// Larger values than at the start of a training, so that every tensor has a gradient.
std::vector<float> rough_parameters() {
  auto out = learn::albert_initial_parameters(small_albert(), 3);
  auto random = stream(4, "rough");
  for (auto& value : out) value += static_cast<float>(0.2 * random.normal());
  return out;
}

/// Samples of several lengths, one of them without a label.
std::vector<std::byte> albert_samples(std::uint64_t count) {
  const auto config = small_albert();
  const learn::albert_format format{config.vocabulary, config.positions};
  std::vector<std::byte> out(count * format.bytes());
  auto random = stream(6, "samples");
  for (std::uint64_t i = 0; i < count; ++i) {
    learn::albert_sample one;
    const auto tokens = 5 + random.below(8);
    for (std::uint64_t t = 0; t < tokens; ++t) {
      one.tokens.push_back(static_cast<learn::token_id>(1 + random.below(39)));
      const bool masked = i > 0 && t > 0 && random.below(3) == 0;
      one.labels.push_back(masked ? static_cast<learn::token_id>(random.below(40))
                                  : learn::albert_sample::no_label);
    }
    one.first = 2 + random.below(tokens - 2);
    one.order = static_cast<learn::token_id>(random.below(2));
    format.write(one, std::span(out).subspan(i * format.bytes(), format.bytes()));
  }
  return out;
}

struct whole_albert {
  double loss = 0;
  std::vector<float> gradient;
};

whole_albert whole_of(const std::vector<std::byte>& samples) {
  const learn::albert model(small_albert());
  whole_albert out{0, std::vector<float>(model.parameter_count())};
  out.loss = model.accumulate_gradient(rough_parameters(), samples, in_all, out.gradient);
  return out;
}

pipeline_lab lab_of(std::uint32_t parts, std::uint64_t death) {
  const auto config = small_albert();
  return {scenarios::cut_albert(config, false, parts).value(),
          learn::albert_layout(config),
          rough_parameters(),
          learn::albert_format{config.vocabulary, config.positions}.bytes(),
          2,
          death};
}

} // namespace

TEST_CASE("the gradient of ALBERT in stages is the gradient of the whole model") {
  const auto samples = albert_samples(in_all);
  const auto expected = whole_of(samples);
  for (const std::uint32_t parts : {1U, 2U, 4U, 5U}) {
    CAPTURE(parts);
    auto with = lab_of(parts, 0);
    with.run(samples, uneven);
    CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
    CHECK(with.loss() == doctest::Approx(expected.loss).epsilon(1e-6));
    CHECK(with.samples_in(0) == in_all * 2);
    CHECK(with.samples_in(1) == in_all * parts);
  }
}

TEST_CASE("a death at any point of the protocol leaves ALBERT's gradient as it is") {
  const auto samples = albert_samples(in_all);
  const auto expected = whole_of(samples);
  constexpr std::uint32_t parts = 4;
  auto untroubled = lab_of(parts, 0);
  untroubled.run(samples, uneven);
  std::uint64_t deaths = 0;
  for (std::uint64_t death = 1; death <= untroubled.events(); ++death) {
    CAPTURE(death);
    auto with = lab_of(parts, death);
    with.run(samples, uneven);
    deaths += with.died() ? 1 : 0;
    CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
    CHECK(with.samples_in(0) == in_all * 2);
    CHECK(with.samples_in(1) == in_all * parts);
  }
  CHECK(deaths == untroubled.events());
}

TEST_CASE("all layers of ALBERT are one stage, and the ends another") {
  const auto config = small_albert();
  const auto cut = scenarios::cut_albert(config, false, 4).value();
  CHECK(cut->stages() == 2);
  CHECK(cut->hops() == 6);
  for (const std::uint32_t hop : {1U, 2U, 3U, 4U}) CHECK(cut->stage_of(hop) == 1);
  CHECK(cut->stage_of(0) == 0);
  CHECK(cut->stage_of(5) == 0);
  CHECK(cut->tensors_of(1).size() == learn::albert_layer_tensors);
  CHECK(kernels::end_of(cut->tensors_of(0)) + kernels::end_of(cut->tensors_of(1)) ==
        kernels::end_of(learn::albert_layout(config)));
  CHECK(scenarios::cut_albert(config, false, 6).error() ==
        "6 stages: the model uses its layer only 5 times");
  CHECK(!scenarios::cut_albert(config, false, 0));
}

TEST_CASE("a lossy codec of activations leaves the padding of samples as it is") {
  const auto config = small_albert();
  const auto cut = scenarios::cut_albert(config, false, 2).value();
  const auto samples = albert_samples(in_all);
  const auto parameters = rough_parameters();
  const auto layout = learn::albert_layout(config);
  const auto ends = learn::gather(layout, parameters, cut->tensors_of(0)).value();
  const auto layers = learn::gather(layout, parameters, cut->tensors_of(1)).value();
  const auto exact = cut->forward(0, ends, samples, in_all, {}).value();
  const auto width = cut->width(), rows = exact.size() / width;
  REQUIRE(rows == in_all * static_cast<std::uint64_t>(config.positions));
  std::size_t padding = 0;
  for (std::size_t r = 0; r < rows; ++r) padding += exact[r * width + width - 1] == 0 ? 1 : 0;
  CHECK(padding > 10);
  const auto want = cut->forward(1, layers, {}, in_all, exact).value();
  for (const auto codec : {kernels::codec::float16, kernels::codec::blockwise8}) {
    auto sent = exact;
    // Large values leave few of a block's steps for the mark.
    for (std::size_t r = 0; r < rows; ++r) sent[r * width] *= 100;
    const auto changed = cut->forward(1, layers, {}, in_all, sent).value();
    const auto packed = pack_activations(codec, sent, width).value();
    const auto got =
        cut->forward(1, layers, {}, in_all, unpack_activations(codec, packed, rows, width).value())
            .value();
    for (std::size_t r = 0; r < rows; ++r)
      CHECK(got[r * width + width - 1] == want[r * width + width - 1]);
    CHECK(distance(got, changed) < 0.1);
  }
}

TEST_CASE("samples of another size or with impossible tokens are refused") {
  const auto config = small_albert();
  const auto cut = scenarios::cut_albert(config, false, 2).value();
  auto samples = albert_samples(2);
  const std::vector<float> ends(kernels::end_of(cut->tensors_of(0)));
  CHECK(cut->forward(0, ends, std::span(samples).first(samples.size() - 1), 2, {}).error() ==
        "pipeline: a message has samples of another size");
  CHECK(!cut->forward(0, ends, samples, 3, {}));
  std::fill(samples.begin() + 8, samples.begin() + 12, std::byte{255});
  const auto wrong = cut->forward(0, ends, samples, 2, {});
  REQUIRE(!wrong);
  CHECK(wrong.error().find("samples: number 0") == 0);
}
