// The model of a pipeline: a byte transformer that learns text, in plain loops. The task has its
// samples, its loss on held-out text, and the same training on one machine.
#pragma once

#include "actors/pipeline/stage_model.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/decoder.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

class text_task {
public:
  /// Errors: texts that cannot be read, or are too short; sizes that make no model.
  static result<text_task> load(const kernels::transformer_config& model,
                                const std::vector<std::string>& files, double holdout,
                                std::uint64_t seed);

  const learn::decoder& model() const noexcept { return *model_; }
  /// The model in even stages. Requires: 0 < stages <= layers.
  result<std::shared_ptr<const actors::stage_model>> cut(std::uint32_t stages) const;
  const std::vector<float>& first_parameters() const noexcept { return first_; }

  /// The bytes of the samples [first, first + count).
  payload samples(std::uint64_t first, std::uint64_t count) const;
  /// The mean loss of at most 256 held-out samples, in nats for each byte. Requires: parameters of
  /// the model.
  result<double> held_out_loss(std::span<const float> parameters) const;

  /// The parameters after steps of one machine with the same batches. `proceed` is called after
  /// each step; false ends the training.
  result<std::vector<float>> train_alone(const kernels::optimizer_config& optimizer,
                                         std::uint64_t batch, std::uint64_t steps,
                                         const std::function<bool(std::uint64_t)>& proceed) const;

private:
  text_task() = default;
  /// The sum of the losses of `count` samples, and of their gradients unless `gradient` is empty.
  result<double> pass(std::span<const float> parameters, std::span<const std::byte> samples,
                      std::uint64_t count, std::span<float> gradient) const;

  kernels::transformer_config config_;
  std::shared_ptr<const learn::decoder> model_;
  std::shared_ptr<const learn::text_corpus> corpus_;
  std::vector<float> first_;
  std::vector<std::byte> held_out_;
  std::uint64_t held_out_count_ = 0;
};

/// The parameters of the whole model, from the states of its stages. Errors: states of another
/// model.
result<std::vector<float>> whole_of(const actors::stage_model& cut, const learn::decoder& model,
                                    const std::vector<actors::state_ptr>& states);

} // namespace shoal::scenarios
