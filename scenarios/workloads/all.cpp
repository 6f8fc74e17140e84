// The built-in workloads, a line each. NAME_workload() stands in scenarios/workloads/, in the file
// of that workload.
#include "kernels/learn/checkpoint.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#define SHOAL_WORKLOADS(X)                                                                         \
  X(transformer)                                                                                   \
  X(mixture)                                                                                       \
  X(albert)                                                                                        \
  X(dalle)                                                                                         \
  X(timing)                                                                                        \
  X(quadratic)                                                                                     \
  X(logistic)                                                                                      \
  X(digits)

namespace shoal::scenarios {

#define SHOAL_DECLARE(name) workload_definition name##_workload();
SHOAL_WORKLOADS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

registry<workload_definition>& workloads() {
#define SHOAL_MAKE(name) name##_workload(),
  static registry<workload_definition> all{SHOAL_WORKLOADS(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

kind_list workload_kinds() {
  return workloads().kinds();
}

workload_choice::workload_choice() : choice(workloads().standard()) {}
const workload_definition& workload_choice::definition() const {
  return static_cast<const workload_definition&>(*kind);
}

result<kernels::optimizer_config> optimizer_of(const kernels::optimizer_config& from) {
  if (auto valid = kernels::validate(from); !valid)
    return failure{"training.optimizer: " + valid.error()};
  return from;
}

std::vector<kernels::tensor_slot> matrix_of(std::uint64_t parameters, std::uint64_t rows) {
  auto out = learn::one_tensor("weights", parameters);
  if (rows > 1)
    out.front().shape = {static_cast<std::int64_t>(rows),
                         static_cast<std::int64_t>(parameters / rows)};
  return out;
}

result<void> possible_matrix(std::uint64_t parameters, std::uint64_t rows) {
  if (parameters % rows != 0)
    return failure{fmt::format("{} parameters are no matrix of {} rows", parameters, rows)};
  return {};
}

void check_rows(std::uint64_t parameters, std::uint64_t rows, checking& report) {
  if (!report.sound({"workload.parameters", "workload.rows"})) return;
  if (const auto possible = possible_matrix(parameters, rows); !possible)
    report.error("workload.rows", possible.error());
}

} // namespace shoal::scenarios
