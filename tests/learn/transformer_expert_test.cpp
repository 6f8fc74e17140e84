// kernels/learn/transformer_expert, text_trunk: a network with one expert in each layer, which
// always answers, is the transformer of the same parameters, wherever its layers are.
#include "kernels/base/rng.hpp"
#include "kernels/learn/text_trunk.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_expert.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

const kernels::transformer_config shape{.layers = 2, .heads = 2, .dim = 8, .context = 6};

std::vector<float> part(const std::vector<float>& all, const std::vector<kernels::tensor_slot>& of,
                        std::size_t first, std::size_t last) {
  return {all.begin() + static_cast<std::ptrdiff_t>(of[first].offset),
          all.begin() + static_cast<std::ptrdiff_t>(of[last - 1].offset + of[last - 1].size())};
}

std::vector<std::byte> drawn_text(std::size_t bytes) {
  std::vector<std::byte> out;
  auto random = stream(1, "text");
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(std::byte(random.below(256)));
  return out;
}

/// The second gradient is a sum over three samples, and the first their mean.
void check_close(std::span<const float> mine, const std::vector<float>& theirs) {
  REQUIRE(mine.size() == theirs.size());
  float most = 0, off = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    most = std::max(most, std::abs(theirs[i] / 3));
    off = std::max(off, std::abs(mine[i] - theirs[i] / 3));
  }
  CHECK(most > 0);
  CHECK(off < 1e-4F * most);
}

} // namespace

TEST_CASE("experts: transformer blocks as the only experts are the transformer") {
  const transformer whole(shape);
  const auto parameters = whole.initial_parameters(4);
  const auto& slots = whole.layout();
  const auto samples = drawn_text(3 * 7);
  std::vector<float> gradient(parameters.size());
  const double loss = whole.accumulate_gradient(parameters, samples, 3, gradient) / 3;

  const auto block = make_transformer_expert(shape).value();
  auto without_layers = shape;
  without_layers.layers = 0;
  const auto ends = make_text_trunk(without_layers, text_row::sequence).value();
  const mixture_network net(ends, {.layers = 2, .grid = {1}});
  auto trunk = net.initial_parameters(1);
  auto of_ends = part(parameters, slots, 0, 1); // the embedding, then the final norm
  const auto norm = part(parameters, slots, slots.size() - 1, slots.size());
  of_ends.insert(of_ends.end(), norm.begin(), norm.end());
  REQUIRE(of_ends.size() == ends->parameter_count());
  std::copy(of_ends.begin(), of_ends.end(), trunk.begin());
  const std::vector<float> experts[] = {part(parameters, slots, 1, 7),
                                        part(parameters, slots, 7, 13)};
  REQUIRE(experts[0].size() == block->parameter_count());

  mixture_pass pass(net, trunk, samples);
  while (pass.layer() < 2) {
    std::vector<std::vector<expert_choice>> chosen(pass.rows());
    for (std::size_t n = 0; n < pass.rows(); ++n)
      chosen[n].push_back({{0}, block->forward(experts[pass.layer()], pass.row(n)).value()});
    pass.advance(std::move(chosen));
  }
  CHECK(pass.leave().loss == doctest::Approx(loss).epsilon(1e-5));
  std::vector<float> of_experts[] = {std::vector<float>(experts[0].size()),
                                     std::vector<float>(experts[1].size())};
  while (!pass.is_over()) {
    const auto layer = pass.layer();
    for (std::size_t n = 0; n < pass.rows(); ++n)
      pass.chosen()[n][0].gradient =
          block->backward(experts[layer], pass.row(n), pass.gradient_of(n, 0), of_experts[layer])
              .value();
    pass.retreat();
  }
  check_close(of_experts[0], part(gradient, slots, 1, 7));
  check_close(of_experts[1], part(gradient, slots, 7, 13));
  check_close(std::span(pass.gradient()).first(slots[0].size()), part(gradient, slots, 0, 1));
  check_close(std::span(pass.gradient()).subspan(slots[0].size(), norm.size()),
              part(gradient, slots, slots.size() - 1, slots.size()));
}

TEST_CASE("experts: rows of tokens that no expert answers are those of the trunk's transformer") {
  const transformer whole(shape);
  const auto parameters = whole.initial_parameters(4);
  const auto& slots = whole.layout();
  const auto samples = drawn_text(3 * 7);
  std::vector<float> gradient(parameters.size());
  const double loss = whole.accumulate_gradient(parameters, samples, 3, gradient) / 3;

  const auto ends = make_text_trunk(shape, text_row::token).value();
  const mixture_network net(ends, {.layers = 1, .grid = {2}});
  auto trunk = net.initial_parameters(1);
  // The trunk has the embedding, the final norm, and then its layers.
  std::vector<float> of_ends = part(parameters, slots, 0, 1);
  for (const auto& each : {part(parameters, slots, slots.size() - 1, slots.size()),
                           part(parameters, slots, 1, slots.size() - 1)})
    of_ends.insert(of_ends.end(), each.begin(), each.end());
  REQUIRE(of_ends.size() == ends->parameter_count());
  std::copy(of_ends.begin(), of_ends.end(), trunk.begin());

  mixture_pass pass(net, trunk, samples);
  REQUIRE(pass.rows() == 3 * 6);
  REQUIRE(pass.row(0).size() == 8);
  pass.advance(std::vector<std::vector<expert_choice>>(pass.rows()));
  CHECK(pass.unanswered() == pass.rows());
  CHECK(pass.leave().loss == doctest::Approx(loss).epsilon(1e-5));
  pass.retreat();
  REQUIRE(pass.is_over());
  auto expected = part(gradient, slots, 0, 1);
  for (const auto& each : {part(gradient, slots, slots.size() - 1, slots.size()),
                           part(gradient, slots, 1, slots.size() - 1)})
    expected.insert(expected.end(), each.begin(), each.end());
  check_close(std::span(pass.gradient()).first(expected.size()), expected);
}

TEST_CASE("experts: a transformer block refuses rows and parameters of another size") {
  const auto block = make_transformer_expert(shape).value();
  const auto parameters = block->initial_parameters(1);
  CHECK_FALSE(block->forward(parameters, std::vector<float>(47)));
  CHECK_FALSE(block->forward(std::span(parameters).first(5), std::vector<float>(48)));
  CHECK_FALSE(make_transformer_expert({.heads = 3, .dim = 8}));
}
