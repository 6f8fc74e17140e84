#include "kernels/learn/dalle_layout.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace shoal::learn {

namespace {

float scale_of_layer(std::int64_t layer) {
  return layer < 18 ? 0.1F : layer < 24 ? 1e-5F : 1e-6F;
}

} // namespace

result<void> validate(const dalle_config& config) {
  struct bound {
    const char* name;
    std::int64_t value, least, most;
  };
  for (const bound& b :
       {bound{"text_vocabulary", config.text_vocabulary, 2, std::int64_t{1} << 24},
        bound{"text_length", config.text_length, 1, 8192},
        bound{"codes", config.codes, 2, std::int64_t{1} << 16}, bound{"side", config.side, 2, 256},
        bound{"dim", config.dim, 4, 65536}, bound{"heads", config.heads, 1, 1024},
        bound{"layers", config.layers, 1, 1024}, bound{"groups", config.groups, 0, 1024}})
    if (b.value < b.least || b.value > b.most)
      return failure{"model: " + std::string(b.name) + " is " + std::to_string(b.value) +
                     "; it must be from " + std::to_string(b.least) + " to " +
                     std::to_string(b.most)};
  if (config.dim % (2 * config.heads) != 0 || config.dim % 4 != 0)
    return failure{"model: dim " + std::to_string(config.dim) + " is no multiple of 4 and of " +
                   std::to_string(2 * config.heads) + ", twice the heads"};
  return {};
}

std::vector<kernels::tensor_slot> dalle_layout(const dalle_config& c) {
  SHOAL_CHECK(validate(c).ok(), "the model's sizes are validated where they are read");
  std::vector<kernels::tensor_slot> slots;
  std::size_t offset = 0;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    slots.push_back({std::move(name), offset, std::move(shape)});
    offset += slots.back().size();
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".LayerNorm.weight", {c.dim});
    add(name + ".LayerNorm.bias", {c.dim});
  };
  add("embedding.weight", {c.tokens(), c.dim});
  for (std::int64_t w = 0; w < c.weight_sets(); ++w) {
    const auto name = "weights." + std::to_string(w) + ".";
    add(name + "attention.qkv.weight", {3 * c.dim, c.dim});
    linear(name + "attention.out", c.dim, c.dim);
    linear(name + "feed_forward.in", 8 * c.dim, c.dim);
    linear(name + "feed_forward.out", c.dim, 4 * c.dim);
  }
  for (std::int64_t l = 0; l < c.layers; ++l)
    for (const char* part : {".attention", ".feed_forward"}) {
      const auto name = "layers." + std::to_string(l) + part;
      norm(name);
      add(name + ".scale", {c.dim});
    }
  norm("output");
  add("output.bias", {c.tokens()});
  return slots;
}

std::vector<float> dalle_initial_parameters(const dalle_config& config, std::uint64_t seed) {
  const auto slots = dalle_layout(config);
  std::vector<float> values(kernels::end_of(slots));
  const auto first_layer =
      1 + dalle_weight_tensors * static_cast<std::size_t>(config.weight_sets());
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto& slot = slots[s];
    float* out = values.data() + slot.offset;
    if (slot.name.ends_with(".bias")) continue;
    if (slot.shape.size() == 1) {
      const auto layer = static_cast<std::int64_t>((s - first_layer) / dalle_layer_tensors);
      std::fill_n(out, slot.size(), slot.name.ends_with(".scale") ? scale_of_layer(layer) : 1.0F);
      continue;
    }
    const double bound = 1 / std::sqrt(static_cast<double>(slot.shape.back()));
    auto random = stream(seed, "dalle_parameters", s);
    for (std::size_t i = 0; i < slot.size(); ++i)
      out[i] = static_cast<float>(random.uniform(-bound, bound));
  }
  return values;
}

} // namespace shoal::learn
