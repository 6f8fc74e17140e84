#include "scenarios/stage/workloads.hpp"

#include "scenarios/stage/workload_convex.hpp"
#include "scenarios/stage/workload_timing.hpp"
#if SHOAL_WITH_LEARN
#include "kernels/learn/transformer.hpp"
#include "scenarios/stage/workload_transformer.hpp"
#endif

namespace shoal::scenarios {

result<std::unique_ptr<prepared_workload>> prepare_workload(const scenario& from) {
  switch (from.workload.kind) {
    case workload_kind::timing: return prepare_timing(from);
    case workload_kind::quadratic:
    case workload_kind::logistic: return prepare_convex(from);
    case workload_kind::transformer:
#if SHOAL_WITH_LEARN
      return prepare_transformer(from);
#else
      return failure{"workload.kind 'transformer' needs libtorch, which this build was made without"};
#endif
  }
  return failure{"unknown workload"};
}

void prepare_compute_thread() {
#if SHOAL_WITH_LEARN
  learn::use_one_thread();
#endif
}

}  // namespace shoal::scenarios
