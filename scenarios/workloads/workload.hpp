// A workload, as everything that handles scenarios sees it: the reader, the checks, the runner,
// checkpoints, `shoal new`. Each workload is one file in this folder that makes a
// workload_definition, and one line in scenarios/workloads/all.cpp.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/registry.hpp"
#include "scenarios/schema/scenario.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::actors {
class stage_model;
} // namespace shoal::actors
namespace shoal::learn {
class mixture_model;
} // namespace shoal::learn

namespace shoal::scenarios {

class prepared_workload; // scenarios/workloads/prepared.hpp

/// One sample between two layers: so many rows of values.
struct sample_shape {
  std::uint32_t rows = 1;
  std::uint64_t values = 1; ///< in one row
};

/// A model whose experts other hosts can hold.
struct mixture_parts {
  std::shared_ptr<const learn::mixture_model> model;
  double expert_share = 0; ///< the share of a sample's operations that experts take
};

/// The lines that `shoal new` writes for a workload.
struct workload_starter {
  std::string comment;   ///< behind `kind:`
  std::string options;   ///< the lines below `kind:`, indented by two
  std::string optimizer; ///< a mapping on one line
};

struct workload_definition : kind_definition {
  bool has_numbers =
      true; ///< gradients, a loss and checkpoints; otherwise only sizes and durations
  bool has_labels = false;  ///< samples have labels, which an attack can make wrong
  bool learns_text = false; ///< the workload reads `data.files`, and its model writes text

  /// Reports what the descriptions of the options cannot say. Called when `workload.kind` could be
  /// read; values that could not be read are not sound(). May be empty.
  std::function<void(const scenario&, checking&)> check;
  /// Errors: a model that cannot be made.
  std::function<result<void>(const workload_choice&)> possible;
  /// The tensors of the parameters. Requires: the model is possible.
  std::function<std::vector<kernels::tensor_slot>(const workload_choice&)> tensors;
  /// Floating-point operations of a sample, forward and backward. May be empty: a multiplication
  /// and an addition for each parameter, three times. Requires: the model is possible.
  std::function<double(const workload_choice&)> sample_flops;
  /// The model as a canonical JSON object, for checkpoints. May be empty: the tensors say
  /// everything.
  std::function<std::string(const workload_choice&)> describe_model;
  /// The model in words: measurements of computing speed hold for equal ones.
  std::function<std::string(const workload_choice&)> fingerprint;
  /// The model in so many stages, which hosts of the method 'pipeline' hold. Layers that share
  /// their tensors are one stage, with so many hops. Empty: the model cannot be cut. Errors: more
  /// stages than layers.
  std::function<result<std::shared_ptr<const actors::stage_model>>(const workload_choice&,
                                                                   std::uint32_t stages)>
      cut;
  /// The size of one sample between two stages. May be empty: the model cannot be cut.
  std::function<sample_shape(const workload_choice&)> shape_between_stages;
  /// The model with its experts, which hosts of the method 'experts' hold. Empty: the model has
  /// none. Errors: a model that cannot be made.
  std::function<result<mixture_parts>(const workload_choice&)> experts;
  /// Reads the data and builds the model. Unless `needs_data`, a workload is made without data that
  /// cannot be read: it has no source then, and knows no held-out loss. Errors: bad input.
  std::function<result<std::unique_ptr<prepared_workload>>(const scenario&, bool needs_data)>
      prepare;
  workload_starter starter;
};

/// All workloads; the first one is the default.
registry<workload_definition>& workloads();

/// `training.optimizer`. Errors: values that no optimizer can work with.
result<kernels::optimizer_config> optimizer_of(const kernels::optimizer_config& from);

/// The parameters as one tensor, or as a matrix of `rows` rows. Requires: rows divides parameters.
std::vector<kernels::tensor_slot> matrix_of(std::uint64_t parameters, std::uint64_t rows);
/// Errors: rows that do not divide the parameters.
result<void> possible_matrix(std::uint64_t parameters, std::uint64_t rows);
/// Reports the same.
void check_rows(std::uint64_t parameters, std::uint64_t rows, checking& report);

} // namespace shoal::scenarios
