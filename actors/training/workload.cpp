#include "actors/training/workload.hpp"

#include "kernels/base/digest.hpp"

namespace shoal::actors {

id128 content_of(const model_state& state) {
  hasher h;
  for (const auto* part : {&state.parameters, &state.optimizer}) {
    h.add(static_cast<std::uint64_t>(part->size()));
    if (!part->empty() && !part->is_hollow()) h.add(part->bytes());
  }
  return id128::from(h.finish());
}

}  // namespace shoal::actors
