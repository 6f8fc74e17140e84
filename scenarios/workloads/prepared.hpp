// The workloads that a scenario can name, and where their samples come from.
#pragma once

#include "actors/data/sample_source.hpp"
#include "actors/training/contribution.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/hash_tree.hpp"
#include "kernels/base/result.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shoal::scenarios {

/// Losses that are measured for comparison with the swarm. NaN where there is none.
struct reference_losses {
  double baseline = std::numeric_limits<double>::quiet_NaN();
  double bigram = std::numeric_limits<double>::quiet_NaN();
};

/// The training of one machine that references() compares with the swarm.
struct reference_options {
  std::uint64_t steps = 0; ///< optimizer steps
  unsigned threads = 1;    ///< compute threads; the losses do not depend on them
  /// Called after each step with its number, from 1, on the calling thread. False ends the
  /// training, and `baseline` is NaN. A workload whose steps take no time need not call. May be
  /// empty.
  std::function<bool(std::uint64_t step)> on_step = {};
};

class prepared_workload {
public:
  virtual ~prepared_workload() = default;

  virtual std::shared_ptr<const actors::workload> work() const = 0;
  virtual std::shared_ptr<const actors::sample_source> source() const = 0;
  /// The digest of the training data; empty if there is none.
  virtual std::string data_digest() const { return {}; }

  /// Loss on held-out data; NaN if the workload knows none.
  virtual double held_out_loss(const actors::model_state& state) const = 0;
  /// Share of held-out samples that are classified rightly; NaN if there are no classes.
  virtual double held_out_accuracy(const actors::model_state& state) const {
    (void)state;
    return std::numeric_limits<double>::quiet_NaN();
  }
  /// Whether references() has anything to say.
  virtual bool has_references() const { return false; }
  /// The losses of the same training on one machine without actors.
  virtual reference_losses references(const reference_options& how) const {
    (void)how;
    return {};
  }
  /// Writes a checkpoint; `data_from`: kernels/learn/checkpoint.hpp. Does nothing for workloads
  /// without numbers.
  virtual result<void> save(const actors::model_state& state, std::uint64_t data_from,
                            const std::string& path) const = 0;
  /// The text that sample_text() continues; empty for a workload without text.
  virtual std::string sample_prompt() const { return {}; }
  /// The model's continuation of sample_prompt(); empty for a workload without text.
  virtual std::string sample_text(const actors::model_state& state, std::uint64_t seed) const = 0;
};

/// Unless it `needs_data`, a workload is made without the data when they cannot be read: it has no
/// source then, and knows no held-out loss. Errors: data files that cannot be read; a workload that
/// this build lacks.
result<std::unique_ptr<prepared_workload>> prepare_workload(const scenario& from,
                                                            bool needs_data = true);

/// The fixed corpus of a run (actors/data/corpus.hpp).
struct known_corpus {
  digest root;
  std::shared_ptr<const hash_tree> tree; ///< null on a host without the data
};
/// Requires: data.corpus_samples is above 0. Errors: the data have another root than the scenario
/// says; neither has one.
result<known_corpus> fixed_corpus(const scenario& from, const prepared_workload& work);

/// Writes a checkpoint of a state of `from`'s workload.
result<void> save_checkpoint(const scenario& from, const kernels::optimizer_config& optimizer,
                             const std::string& data_digest, const actors::model_state& state,
                             std::uint64_t data_from, const std::string& path);

/// Makes the workload of peers: `work`, or what the training method makes of it. With
/// averaging.power_sgd_rank another workload wraps it, whose gradients are averaged in two rounds.
/// Errors: a rank, or options of the method, that make no sense for it.
result<std::shared_ptr<const actors::workload>>
averaged_workload(const scenario& from, std::shared_ptr<const actors::workload> work);
/// The codecs for a vector of tensors of these sizes; no sizes: one tensor.
actors::round_codecs round_codecs_of(const averaging_options& from,
                                     std::span<const std::uint64_t> tensors);
/// The codecs for the vectors that are averaged.
actors::averaging_codecs codecs_of(const averaging_options& from, const actors::workload& work);

/// The state from which training starts.
struct training_start {
  actors::model_state state;
  std::uint64_t data_from = 0; ///< samples with lower indices were used, or may have been
};
/// None if `from` begins with a fresh model. `work`: as averaged_workload has it; a state that
/// lacks its Q, or has one of another rank, gets the first one. Errors: load_start().
result<std::optional<training_start>> load_training_start(const scenario& from,
                                                          const actors::workload& work);

/// Requires: each compute thread calls it once before it computes.
void prepare_compute_thread();

} // namespace shoal::scenarios
