#include "scenarios/schema/start_from.hpp"

#include <fmt/format.h>

#include "scenarios/schema/describe.hpp"

namespace shoal::scenarios {

kernels::transformer_config model_of(const workload_options& from) {
  kernels::transformer_config out;
  out.layers = static_cast<std::int64_t>(from.layers);
  out.heads = static_cast<std::int64_t>(from.heads);
  out.dim = static_cast<std::int64_t>(from.dim);
  out.context = static_cast<std::int64_t>(from.context);
  return out;
}

std::vector<kernels::tensor_slot> tensors_of(const workload_options& from) {
  if (from.kind == workload_kind::transformer) return kernels::layout_of(model_of(from));
  auto out = learn::one_tensor("weights", from.parameters);
  if (from.rows > 1) out.front().shape = {static_cast<std::int64_t>(from.rows), static_cast<std::int64_t>(from.parameters / from.rows)};
  return out;
}

std::vector<kernels::tensor_slot> matrix_of(const workload_options& from) {
  return from.rows > 1 ? tensors_of(from) : std::vector<kernels::tensor_slot>{};
}

result<kernels::power_sgd> low_rank_of(const scenario& what) {
  const auto tensors = tensors_of(what.workload);
  kernels::power_sgd_options options;
  options.rank = what.averaging.power_sgd_rank;
  options.seed = what.seed;
  auto out = kernels::power_sgd::make(tensors, tensors.back().offset + tensors.back().size(), options);
  if (out && out->first_round() == 0)
    return failure{fmt::format("PowerSGD: rank {} leaves more than half of the values of every matrix: nothing would be compressed", options.rank)};
  return out;
}

result<learn::checkpoint> shape_of(const scenario& what) {
  learn::checkpoint out;
  out.workload = name_of(what.workload.kind);
  out.optimizer.kind = what.training.optimizer.kind == optimizer_kind::sgd     ? kernels::optimizer_kind::sgd
                       : what.training.optimizer.kind == optimizer_kind::adamw ? kernels::optimizer_kind::adamw
                                                                               : kernels::optimizer_kind::lamb;
  out.optimizer.momentum = what.training.optimizer.momentum;
  switch (what.workload.kind) {
    case workload_kind::timing: return failure{"workload 'timing' has no numbers to keep"};
    case workload_kind::quadratic:
    case workload_kind::logistic: out.tensors = tensors_of(what.workload); break;
    case workload_kind::transformer:
      out.model = model_of(what.workload);
      if (auto valid = kernels::validate(out.model); !valid) return failure{"workload: " + valid.error()};
      out.tensors = tensors_of(what.workload);
      break;
  }
  return out;
}

result<learn::checkpoint> load_start(const scenario& what, const std::string& path) {
  auto wanted = shape_of(what);
  if (!wanted) return failure{wanted.error()};
  auto saved = learn::load_checkpoint(path);
  if (!saved) return saved;
  if (auto fits = learn::continues(*saved, *wanted); !fits) return failure{fmt::format("checkpoint: '{}' {}", path, fits.error())};
  if (saved->state_id.size() != 32 || saved->state_id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return failure{fmt::format("checkpoint: '{}' makes no sense: '{}' is no state id", path, saved->state_id)};
  return saved;
}

}  // namespace shoal::scenarios
