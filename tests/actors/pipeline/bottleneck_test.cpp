// kernels/learn/maxout_model in a pipeline: stages with bottlenecks between them have the gradients
// of one machine's model with the same bottlenecks, also where peers die. Activations are narrow.
#include "actors/inference/activations.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "kernels/learn/even_cut.hpp"
#include "kernels/learn/maxout_model.hpp"
#include "kernels/learn/whole_pass.hpp"
#include "tests/actors/pipeline/distance.hpp"
#include "tests/actors/pipeline/five_layers.hpp"
#include "tests/actors/pipeline/pipeline_lab.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

constexpr std::int64_t width = 8;

/// The model with `pieces` bottlenecks, its layout and its parameters.
struct narrow_model {
  std::shared_ptr<const learn::layered_model> model;
  std::vector<kernels::tensor_slot> layout;
  std::vector<float> parameters;

  narrow_model(std::int64_t pieces, std::int64_t group) {
    const auto inner = five_layers();
    model = learn::with_bottlenecks(inner, {pieces, group}).value();
    layout = inner->layout();
    parameters = parameters_of(*inner);
    auto random = stream(11, "bottlenecks");
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      auto slot = learn::expand_tensor({pieces, group}, piece, width);
      slot.offset = kernels::end_of(layout);
      layout.push_back(slot);
      for (std::size_t i = 0; i < slot.size(); ++i)
        parameters.push_back(static_cast<float>(0.7 * random.normal()));
    }
  }

  double loss(const std::vector<float>& at, const std::vector<std::byte>& samples,
              std::uint64_t count, std::span<float> gradient) const {
    const auto batch = read_batch(samples, count).value();
    return learn::whole_pass(*model, layout, at, batch.shape, batch.inputs, batch.targets, gradient)
        .value();
  }

  pipeline_lab lab(std::uint32_t stages, std::uint64_t death) const {
    return {stage_model::make(model, learn::even_cut(5, stages), read_batch).value(),
            layout,
            parameters,
            context + 1,
            2,
            death};
  }
};

} // namespace

TEST_CASE("stages with bottlenecks have the gradient of one machine's model with bottlenecks") {
  const auto samples = samples_of(in_all);
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U})
    for (const std::int64_t group : {2, 4, 8}) {
      CAPTURE(stages);
      CAPTURE(group);
      const narrow_model of(stages, group);
      std::vector<float> expected(of.parameters.size());
      const auto loss = of.loss(of.parameters, samples, in_all, expected);
      auto with = of.lab(stages, 0);
      with.run(samples, uneven);
      CHECK(distance(with.gradient(), expected) < 1e-6);
      CHECK(with.loss() == doctest::Approx(loss).epsilon(1e-6));
      CHECK(with.cut().width() == static_cast<std::size_t>(width / group));
    }
}

TEST_CASE("a death at any point loses no sample of a model with bottlenecks") {
  const auto samples = samples_of(in_all);
  const narrow_model of(4, 2);
  std::vector<float> expected(of.parameters.size());
  of.loss(of.parameters, samples, in_all, expected);
  auto untroubled = of.lab(4, 0);
  untroubled.run(samples, uneven);
  for (std::uint64_t death = 1; death <= untroubled.events(); ++death) {
    CAPTURE(death);
    auto with = of.lab(4, death);
    with.run(samples, uneven);
    CHECK(with.died());
    CHECK(distance(with.gradient(), expected) < 1e-6);
  }
}

TEST_CASE("the gradient of a model with bottlenecks is the slope of its loss") {
  const std::uint64_t count = 4;
  const auto samples = samples_of(count);
  const narrow_model of(2, 2);
  std::vector<float> gradient(of.parameters.size());
  of.loss(of.parameters, samples, count, gradient);
  auto random = stream(13, "directions");
  for (const auto& slot : of.layout) {
    CAPTURE(slot.name);
    // Along a drawn direction within one tensor.
    constexpr float step = 2e-4F;
    auto up = of.parameters, down = of.parameters;
    double slope = 0, length = 0;
    for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i) {
      const auto along = static_cast<float>(random.normal());
      up[i] += step * along;
      down[i] -= step * along;
      slope += static_cast<double>(gradient[i]) * along;
      length += static_cast<double>(along) * along;
    }
    const auto found = (of.loss(up, samples, count, {}) - of.loss(down, samples, count, {})) /
                       (2.0 * static_cast<double>(step));
    CHECK(found == doctest::Approx(slope).epsilon(0.03).scale(std::sqrt(length)));
  }
}

TEST_CASE("a stage with bottlenecks holds the matrix before its layers") {
  const narrow_model of(5, 2);
  const auto cut = stage_model::make(of.model, learn::even_cut(5, 5), read_batch).value();
  std::size_t sum = 0;
  for (std::uint32_t s = 0; s < 5; ++s) {
    const auto& tensors = cut->tensors_of(s);
    const auto held = "bottleneck" + std::to_string(s == 0 ? 4 : s - 1) + ".expand";
    CHECK(std::count_if(tensors.begin(), tensors.end(),
                        [&](const auto& one) { return one.name == held; }) == 1);
    sum += kernels::end_of(tensors);
  }
  CHECK(sum == of.parameters.size());
}

TEST_CASE("activations behind a bottleneck have their part of the bytes") {
  for (const auto codec : {kernels::codec::none, kernels::codec::bfloat16}) {
    const auto bytes = [&](std::size_t of_row) {
      return pack_activations(codec, std::vector<float>(3 * of_row, 0.5F), of_row).value().size();
    };
    CHECK(4 * bytes(narrow_model(2, 4).model->width()) == bytes(five_layers()->width()));
  }
}

TEST_CASE("bottlenecks that fit no model are refused with the reason") {
  const auto why = [](learn::maxout_config maxout) {
    return learn::with_bottlenecks(five_layers(), maxout).error();
  };
  CHECK(why({2, 3}) == "model: maxout 3 does not divide the width 8");
  CHECK(why({6, 2}) == "model: 6 bottlenecks: the model has only 5 layers, and each bottleneck "
                       "stands behind one");
  CHECK(why({0, 2}).find("needs bottlenecks") != std::string::npos);
  CHECK(why({2, 1}).find("need 'maxout'") != std::string::npos);
  const narrow_model of(2, 2);
  CHECK(!stage_model::make(of.model, learn::even_cut(5, 4), read_batch));
  CHECK(stage_model::make(of.model, {{0, 5}}, read_batch));
  CHECK(of.model->block_tensors({0, 2}).error() ==
        "layers: [0, 2) begins or ends where the model has no bottleneck");
}
