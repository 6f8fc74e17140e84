#include "kernels/layout.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <cmath>

namespace shoal::kernels {

namespace {

constexpr double embedding_deviation = 0.02;

bool ends_with(const std::string& text, const char* tail) {
  return text.ends_with(tail);
}

} // namespace

result<void> validate(const transformer_config& config) {
  auto out_of_range = [](const char* name, std::int64_t value, std::int64_t most) -> result<void> {
    return failure{"model: " + std::string(name) + " is " + std::to_string(value) +
                   "; it must be from 1 to " + std::to_string(most)};
  };
  struct bound {
    const char* name;
    std::int64_t value, most;
  };
  for (const bound& b : {bound{"layers", config.layers, 1024}, bound{"heads", config.heads, 1024},
                         bound{"dim", config.dim, 65536}, bound{"context", config.context, 65536},
                         bound{"vocabulary", config.vocabulary, std::int64_t{1} << 31}})
    if (b.value < 1 || b.value > b.most) return out_of_range(b.name, b.value, b.most);
  if (config.dim % (2 * config.heads) != 0)
    return failure{"model: dim " + std::to_string(config.dim) +
                   " is not a multiple of 2 * heads = " + std::to_string(2 * config.heads) +
                   ", which rotary positions need"};
  return {};
}

std::size_t tensor_slot::size() const noexcept {
  std::size_t n = 1;
  for (auto extent : shape) n *= static_cast<std::size_t>(extent);
  return n;
}

std::size_t end_of(const std::vector<tensor_slot>& tensors) noexcept {
  return tensors.empty() ? 0 : tensors.back().offset + tensors.back().size();
}

std::vector<tensor_slot> layout_of(const transformer_config& config) {
  SHOAL_CHECK(validate(config).ok(), "the model's sizes are validated where they are read");
  std::vector<tensor_slot> slots;
  std::size_t offset = 0;
  auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    slots.push_back({std::move(name), offset, std::move(shape)});
    offset += slots.back().size();
  };
  const auto d = config.dim;
  add("embedding", {config.vocabulary, d});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const auto prefix = "layer" + std::to_string(i) + ".";
    add(prefix + "attention_norm", {d});
    add(prefix + "attention_qkv", {3 * d, d});
    add(prefix + "attention_out", {d, d});
    add(prefix + "mlp_norm", {d});
    add(prefix + "mlp_up", {4 * d, d});
    add(prefix + "mlp_down", {d, 4 * d});
  }
  add("final_norm", {d});
  return slots;
}

std::size_t parameter_count(const transformer_config& config) {
  const auto slots = layout_of(config);
  return slots.back().offset + slots.back().size();
}

std::vector<float> initial_parameters(const transformer_config& config, std::uint64_t seed) {
  std::vector<float> values(parameter_count(config));
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const auto slots = layout_of(config);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const auto& slot = slots[s];
    float* out = values.data() + slot.offset;
    if (slot.shape.size() == 1) {
      for (std::size_t i = 0; i < slot.size(); ++i) out[i] = 1.0F;
      continue;
    }
    double deviation = 1.0 / std::sqrt(2.0 * static_cast<double>(slot.shape[1]));
    if (slot.name == "embedding") deviation = embedding_deviation;
    if (ends_with(slot.name, "attention_out") || ends_with(slot.name, "mlp_down"))
      deviation *= residual;
    auto random = stream(seed, "initial_parameters", s);
    for (std::size_t i = 0; i < slot.size(); ++i)
      out[i] = static_cast<float>(random.normal(0.0, deviation));
  }
  return values;
}

} // namespace shoal::kernels
