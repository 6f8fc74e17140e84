// kernels/learn/decoder: gradients against differences of the loss, for all kinds of layers and
// for every cut.
#include "kernels/base/rng.hpp"
#include "kernels/learn/decoder.hpp"
#include "tests/learn/decoder/kinds.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<float> rough(const decoder& model) {
  std::vector<float> out(kernels::end_of(model.layout()));
  auto random = stream(3, "rough");
  for (const auto& slot : model.layout())
    for (std::size_t i = 0; i < slot.size(); ++i)
      out[slot.offset + i] =
          static_cast<float>((slot.shape.size() == 1 ? 1 : 0) + 0.3 * random.normal());
  return out;
}

struct batch {
  pass_shape shape{2, 5};
  std::vector<token_id> inputs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
      targets{2, 3, 4, 5, 6, 7, 8, 9, 10, 0};
};

double loss_of(const decoder& model, const std::vector<float>& parameters, const batch& data) {
  const auto part = [&](const std::vector<kernels::tensor_slot>& tensors) {
    return gather(model.layout(), parameters, tensors).value();
  };
  const layer_range all{0, model.layers()};
  auto x = model.embed(part(model.embedding_tensors()), data.shape, data.inputs).value();
  x = model.forward(all, part(*model.block_tensors(all)), data.shape, x).value();
  return model.loss(part(model.head_tensors()), data.shape, x, data.targets).value();
}

/// The gradient of the whole model by pieces.
std::vector<float> gradient_of(const decoder& model, const std::vector<float>& parameters,
                               const batch& data, const std::vector<layer_range>& cut) {
  const auto part = [&](const std::vector<kernels::tensor_slot>& tensors) {
    return gather(model.layout(), parameters, tensors).value();
  };
  std::vector<float> out(parameters.size());
  const auto add = [&](const std::vector<kernels::tensor_slot>& tensors,
                       const std::vector<float>& gradient) {
    REQUIRE(scatter_add(tensors, gradient, model.layout(), out).ok());
  };
  const auto embedding = part(model.embedding_tensors()), head = part(model.head_tensors());
  std::vector<std::vector<float>> entered{model.embed(embedding, data.shape, data.inputs).value()};
  for (const auto& block : cut)
    entered.push_back(
        model.forward(block, part(*model.block_tensors(block)), data.shape, entered.back())
            .value());
  std::vector<float> head_sum(head.size()), embedding_sum(embedding.size());
  auto back = model.loss_backward(head, data.shape, entered.back(), data.targets, head_sum).value();
  add(model.head_tensors(), head_sum);
  auto upstream = std::move(back.gradient_in);
  for (auto i = cut.size(); i-- > 0;) {
    const auto tensors = *model.block_tensors(cut[i]);
    const auto values = part(tensors);
    std::vector<float> sum(values.size());
    upstream = model.backward(cut[i], values, data.shape, entered[i], upstream, sum).value();
    add(tensors, sum);
    // A server without gradients of its own returns the same.
    const auto served = model.block(cut[i], values).value();
    std::vector<float> gradient_out;
    CHECK(served->forward(data.shape, entered[i]).value() == entered[i + 1]);
  }
  REQUIRE(model.embed_backward(embedding, data.shape, data.inputs, upstream, embedding_sum).ok());
  add(model.embedding_tensors(), embedding_sum);
  return out;
}

} // namespace

TEST_CASE("gradients are the differences of the loss, and no cut changes a bit of them") {
  for (const auto what : test::decoder_kinds) {
    CAPTURE(what);
    const decoder model(test::small_decoder(what));
    const auto parameters = rough(model);
    const batch data;
    const auto whole = gradient_of(model, parameters, data, {{0, 2}});
    CHECK(gradient_of(model, parameters, data, {{0, 1}, {1, 2}}) == whole);
    for (const auto& slot : model.layout()) {
      // The difference along a random direction, within one tensor.
      auto random = stream(5, slot.name);
      std::vector<float> direction(slot.size());
      double along = 0;
      for (std::size_t i = 0; i < slot.size(); ++i) {
        direction[i] = static_cast<float>(random.normal());
        along += static_cast<double>(direction[i]) * static_cast<double>(whole[slot.offset + i]);
      }
      // A shorter step drowns in the rounding of float losses, a longer one in curvature.
      const double step = 6e-3 / std::sqrt(static_cast<double>(slot.size()));
      const auto moved = [&](double by) {
        auto out = parameters;
        for (std::size_t i = 0; i < slot.size(); ++i)
          out[slot.offset + i] += static_cast<float>(by * static_cast<double>(direction[i]));
        return loss_of(model, out, data);
      };
      const double difference = (moved(step) - moved(-step)) / (2 * step);
      CHECK_MESSAGE(std::abs(difference - along) < 2e-2 * (0.1 + std::abs(along)), slot.name, ": ",
                    difference, " and ", along);
    }
  }
}

TEST_CASE("a layout names each tensor once and has no gaps") {
  for (const auto what : test::decoder_kinds) {
    const auto layout = layout_of(test::small_decoder(what));
    std::size_t end = 0;
    for (const auto& slot : layout) {
      CHECK(slot.offset == end);
      end += slot.size();
    }
    CHECK(end == kernels::end_of(layout));
  }
  const kernels::transformer_config bytes{.layers = 3, .heads = 2, .dim = 16, .context = 12};
  const auto ours = layout_of(decoder_of(bytes)), theirs = kernels::layout_of(bytes);
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].name == theirs[i].name);
    CHECK(ours[i].shape == theirs[i].shape);
    CHECK(ours[i].offset == theirs[i].offset);
  }
}

TEST_CASE("sizes that no model can have are refused with the reason") {
  auto config = test::small_decoder(test::decoder_kind::llama);
  config.kv_heads = 3;
  CHECK(validate(config).error() == "model: 4 heads cannot share 3 kv_heads equally");
  config = test::small_decoder(test::decoder_kind::llama);
  config.dim = 12;
  CHECK(!validate(config).ok());
  config = test::small_decoder(test::decoder_kind::llama);
  config.layers = 0;
  CHECK(validate(config).error() == "model: layers is 0; it must be from 1 to 1024");
}
