#include "scenarios/schema/start_from.hpp"

#include "kernels/learn/formats/import_model.hpp"
#include "scenarios/schema/describe.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {

result<kernels::power_sgd> low_rank_of(const scenario& what) {
  const auto tensors = what.workload.definition().tensors(what.workload);
  kernels::power_sgd_options options;
  options.rank = what.averaging.power_sgd_rank;
  options.seed = what.seed;
  auto out =
      kernels::power_sgd::make(tensors, tensors.back().offset + tensors.back().size(), options);
  if (out && out->first_round() == 0)
    return failure{fmt::format("PowerSGD: rank {} leaves more than half of the values of every "
                               "matrix: nothing would be compressed",
                               options.rank)};
  return out;
}

result<learn::checkpoint> shape_of(const scenario& what) {
  learn::checkpoint out;
  const auto& of = what.workload.definition();
  out.workload = of.name;
  out.optimizer = what.training.optimizer;
  if (!of.has_numbers) return failure{"workload '" + of.name + "' has no numbers to keep"};
  if (auto valid = of.possible(what.workload); !valid) return failure{"workload: " + valid.error()};
  out.tensors = of.tensors(what.workload);
  if (of.describe_model) out.model = of.describe_model(what.workload);
  return out;
}

result<learn::checkpoint> load_start(const scenario& what, const std::string& path) {
  auto wanted = shape_of(what);
  if (!wanted) return failure{wanted.error()};
  auto saved = learn::is_exchanged_model(path) ? learn::import_model(path, *wanted)
                                               : learn::load_checkpoint(path);
  if (!saved) return saved;
  if (auto fits = learn::continues(*saved, *wanted); !fits)
    return failure{fmt::format("checkpoint: '{}' {}", path, fits.error())};
  if (saved->state_id.size() != 32 ||
      saved->state_id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return failure{
        fmt::format("checkpoint: '{}' is damaged: '{}' is no state id", path, saved->state_id)};
  return saved;
}

} // namespace shoal::scenarios
