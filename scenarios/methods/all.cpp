// The built-in training methods, a line each. NAME_method() stands in scenarios/methods/, in the
// file of that method.
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/describe.hpp"

#include <caf/actor.hpp>
#include <fmt/format.h>

#define SHOAL_METHODS(X)                                                                           \
  X(synchronous)                                                                                   \
  X(local_updates)                                                                                 \
  X(moshpit)                                                                                       \
  X(diloco)                                                                                        \
  X(pipeline)                                                                                      \
  X(experts)

namespace shoal::scenarios {

#define SHOAL_DECLARE(name) method_definition name##_method();
SHOAL_METHODS(SHOAL_DECLARE)
#undef SHOAL_DECLARE

registry<method_definition>& methods() {
#define SHOAL_MAKE(name) name##_method(),
  static registry<method_definition> all{SHOAL_METHODS(SHOAL_MAKE)};
#undef SHOAL_MAKE
  return all;
}

kind_list method_kinds() {
  return methods().kinds();
}

method_choice::method_choice() : choice(methods().standard()) {}
const method_definition& method_choice::definition() const {
  return static_cast<const method_definition&>(*kind);
}

method_traits traits_of(const scenario& what) {
  return what.training.method.definition().traits(what);
}

std::uint64_t count_of(const scenario& what) {
  std::uint64_t out = 0;
  for (const auto& group : what.peers) out += group.count;
  return out;
}

kernels::grid grid_of(const scenario& what) {
  if (const auto given = kernels::parse_grid(what.averaging.grid)) return *given;
  return kernels::square_grid(count_of(what));
}

void check_optimizer_average(const scenario& what, bool averages_optimizer, checking& report) {
  const auto kind = what.training.optimizer.kind;
  if (averages_optimizer &&
      report.sound({"training.average_optimizer", "training.optimizer.kind"}) &&
      (kind == kernels::optimizer_kind::adamw8 || kind == kernels::optimizer_kind::lamb8))
    report.error("training.average_optimizer",
                 fmt::format("the state of {} is coded in 8 bits: it cannot be averaged; take {}, "
                             "or let each peer keep its own",
                             name_of(kind),
                             kind == kernels::optimizer_kind::adamw8 ? "adamw" : "lamb"));
}

void check_micro_batch(const scenario& what, std::uint64_t target_batch, checking& report) {
  if (report.sound({"training.micro_batch", "training.target_batch"}) &&
      what.training.micro_batch > target_batch)
    report.error(report.given("training.micro_batch") ? "training.micro_batch"
                                                      : "training.target_batch",
                 fmt::format("micro_batch {} is larger than target_batch {}",
                             what.training.micro_batch, target_batch));
}

} // namespace shoal::scenarios
