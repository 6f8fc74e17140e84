#include "kernels/decay_groups.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace shoal::kernels {

void step_in_groups(const optimizer_config& config, std::int64_t step_number,
                    std::span<const float> gradient, std::span<float> parameters,
                    std::span<std::byte> state, std::span<const tensor_slot> layout, decays which) {
  SHOAL_CHECK(float_state(config.kind), "a coded state has no place for each tensor");
  const auto n = parameters.size();
  SHOAL_CHECK(state.size() == state_bytes(config, n) && gradient.size() == n,
              "gradient and state have the sizes of the parameters");
  auto now = config;
  now.clip_norm = 0;
  std::vector<float> clipped;
  if (const double norm = config.clip_norm == 0 ? 0 : norm_of(gradient); norm > config.clip_norm) {
    const auto scale = static_cast<float>(config.clip_norm / norm);
    for (const float value : gradient) clipped.push_back(scale * value);
    gradient = clipped;
  }
  // The state has one array after the other, such as m and s. A tensor has its part of each.
  const auto arrays = n == 0 ? 0 : state.size() / sizeof(float) / n;
  std::vector<float> part;
  std::size_t done = 0;
  for (const auto& slot : layout) {
    const auto size = slot.size();
    SHOAL_CHECK(slot.offset == done && done + size <= n, "the layout covers all parameters");
    done += size;
    const bool decayed = which(slot.name);
    now.weight_decay = decayed ? config.weight_decay : 0;
    now.kind = !decayed && config.kind == optimizer_kind::lamb && !config.adapt_undecayed
                   ? optimizer_kind::adamw
                   : config.kind;
    part.resize(arrays * size);
    const auto place = [&](std::size_t a) {
      return state.data() + (a * n + slot.offset) * sizeof(float);
    };
    for (std::size_t a = 0; a < arrays; ++a)
      std::memcpy(part.data() + a * size, place(a), size * sizeof(float));
    step(now, step_number, gradient.subspan(slot.offset, size),
         parameters.subspan(slot.offset, size), std::span<float>(part));
    for (std::size_t a = 0; a < arrays; ++a)
      std::memcpy(place(a), part.data() + a * size, size * sizeof(float));
  }
  SHOAL_CHECK(done == n, "the layout covers all parameters");
}

} // namespace shoal::kernels
