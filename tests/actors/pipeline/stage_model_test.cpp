// actors/pipeline: a pipeline has the gradients of the whole model, although peers die. Each sample
// counts once in each stage.
#include "actors/pipeline/stage_model.hpp"
#include "kernels/learn/even_cut.hpp"
#include "tests/actors/pipeline/distance.hpp"
#include "tests/actors/pipeline/five_layers.hpp"
#include "tests/actors/pipeline/pipeline_lab.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

/// `death`: the event at which a peer dies; 0: none.
pipeline_lab lab_of(std::uint32_t stages, std::uint64_t death) {
  const auto model = five_layers();
  return {stage_model::make(model, learn::even_cut(5, stages), read_batch).value(),
          model->layout(),
          parameters_of(*model),
          context + 1,
          2,
          death};
}

whole_result whole_of(const std::vector<std::byte>& samples) {
  const auto model = five_layers();
  return whole(*model, parameters_of(*model), samples, in_all);
}

} // namespace

TEST_CASE("the gradient of a pipeline is the gradient of the whole model") {
  const auto samples = samples_of(in_all);
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U}) {
    CAPTURE(stages);
    auto with = lab_of(stages, 0);
    with.run(samples, uneven);
    const auto expected = whole_of(samples);
    CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
    CHECK(with.loss() == doctest::Approx(expected.loss).epsilon(1e-6));
    for (std::uint32_t s = 0; s < stages; ++s)
      CHECK(with.samples_in(s) == in_all * with.cut().hops_of(s));
  }
}

TEST_CASE("a death at any point of the protocol loses no sample and repeats none") {
  const auto samples = samples_of(in_all);
  for (const std::uint32_t stages : {2U, 4U, 5U}) {
    CAPTURE(stages);
    auto untroubled = lab_of(stages, 0);
    untroubled.run(samples, uneven);
    const auto expected = whole_of(samples);
    std::uint64_t deaths = 0;
    for (std::uint64_t death = 1; death <= untroubled.events(); ++death) {
      CAPTURE(death);
      auto with = lab_of(stages, death);
      with.run(samples, uneven);
      deaths += with.died() ? 1 : 0;
      CHECK(distance(with.gradient(), expected.gradient) < 1e-6);
      for (std::uint32_t s = 0; s < stages; ++s)
        CHECK(with.samples_in(s) == in_all * with.cut().hops_of(s));
    }
    CHECK(deaths == untroubled.events());
  }
}

TEST_CASE("a stage has its tensors once and all stages have all tensors") {
  const auto model = five_layers();
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U}) {
    const auto cut = stage_model::make(model, learn::even_cut(5, stages), read_batch).value();
    std::size_t sum = 0;
    for (std::uint32_t s = 0; s < stages; ++s) sum += kernels::end_of(cut->tensors_of(s));
    CHECK(sum == kernels::end_of(model->layout()));
  }
}

TEST_CASE("a cut with a gap or with other layers than the model is refused") {
  const auto model = five_layers();
  CHECK(!stage_model::make(model, {{0, 2}, {3, 5}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 4}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 6}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 2}, {2, 2}, {2, 5}}, read_batch));
  CHECK(!stage_model::make(model, {{0, 0}}, read_batch));
  CHECK(!stage_model::make(model, {}, read_batch));
  CHECK(stage_model::make(model, {{0, 2}, {2, 5}}, read_batch));
  CHECK(learn::even_cut(5, 2) == std::vector<learn::layer_range>{{0, 3}, {3, 5}});
}

TEST_CASE("the first hop may have the ends of the model alone") {
  const auto samples = samples_of(in_all);
  const auto model = five_layers();
  const auto cut = stage_model::make(model, {{0, 0}, {0, 2}, {2, 5}}, read_batch).value();
  CHECK(cut->stages() == 3);
  CHECK(cut->hops() == 4);
  pipeline_lab with(cut, model->layout(), parameters_of(*model), context + 1, 2, 0);
  with.run(samples, uneven);
  CHECK(distance(with.gradient(), whole_of(samples).gradient) < 1e-6);
}
