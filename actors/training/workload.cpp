#include "actors/training/workload.hpp"

#include "kernels/base/digest.hpp"

namespace shoal::actors {

std::vector<std::uint64_t> sizes_of(std::span<const kernels::tensor_slot> layout) {
  std::vector<std::uint64_t> out;
  for (const auto& slot : layout) out.push_back(slot.size());
  return out;
}

payload mean_gradient(std::span<const double> sum, std::uint64_t samples) {
  std::vector<float> out(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i)
    out[i] = static_cast<float>(sum[i] / static_cast<double>(samples));
  return payload{std::move(out)};
}

id128 content_of(const model_state& state) {
  hasher h;
  for (const auto* part : {&state.parameters, &state.optimizer, &state.method_state}) {
    // Most states have none, and their hashes do not include it.
    if (part == &state.method_state && part->empty()) continue;
    h.add(static_cast<std::uint64_t>(part->size()));
    if (!part->empty() && !part->is_size_only()) h.add(part->bytes());
  }
  return id128::from(h.finish());
}

} // namespace shoal::actors
