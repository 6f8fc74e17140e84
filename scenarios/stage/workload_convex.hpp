// Workloads 'quadratic' and 'logistic': convex problems whose answer is known (kernels/convex_quadratic.hpp,
// kernels/convex_logistic.hpp). Samples are streamed for real: `parameters` float32 values each, from which a peer computes
// its gradients and draws nothing itself.
#pragma once

#include <memory>

#include "kernels/convex_problem.hpp"
#include "scenarios/stage/workloads.hpp"

namespace shoal::scenarios {

/// Errors: values of training.optimizer that nothing can be trained with. Requires: workload.kind is one of the two.
result<std::unique_ptr<prepared_workload>> prepare_convex(const scenario& from);

}  // namespace shoal::scenarios
