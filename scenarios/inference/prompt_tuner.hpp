// Prompt tuning at a client: the servers' layers stay as they are, and the client learns vectors
// that are added before layers. The optimizer and the learnt values are the client's alone.
//   input of the layers: [prompt_length rows of zeros; embedding of the text's tokens]
//   before layer l: + prompts[l], in the first prompt_length rows
//   loss: mean over the tokens, from the outputs after the first prompt_length rows
// Without `deep`, only prompts[0] is learnt, which is a trainable prompt before the text.
// Source: Lester et al., arXiv:2104.08691; Liu et al., arXiv:2110.07602 (deep); Borzunov et al.,
// arXiv:2209.01188, section 2.2.
#pragma once

#include "actors/inference/messages.hpp"
#include "actors/protocol_actor.hpp"
#include "kernels/learn/model_file.hpp"
#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace shoal::scenarios {

struct prompt_tuning {
  std::vector<learn::token_id> text; ///< the client learns to predict it; more than `length` tokens
  std::size_t samples = 4;           ///< sequences in a batch
  std::size_t length = 32;           ///< tokens of a sequence, beside the prompt
  std::size_t prompt_length = 4;
  bool deep = true;
  std::uint32_t steps = 20;
  kernels::optimizer_config optimizer{.learning_rate = 0.05};
};

/// The tensors [layers, prompt_length, width] at the beginning: small random values in each layer
/// that is learnt, and zeros in the others.
std::vector<float> first_prompts(const learn::decoder& model, const prompt_tuning& what,
                                 std::uint64_t seed);

/// The tokens [samples, length] of batch `step`, and the tokens after each of them.
struct tuning_batch {
  std::vector<learn::token_id> tokens, targets;
};
tuning_batch batch_of(const prompt_tuning& what, std::uint64_t seed, std::uint32_t step);

/// The mean loss of a batch with these prompts, on one machine.
double loss_alone(const learn::served_model& model, const prompt_tuning& what,
                  const tuning_batch& batch, const std::vector<float>& prompts);

struct prompt_tuner_config {
  const learn::served_model* model = nullptr; ///< the actor uses its ends alone
  prompt_tuning what;
  std::uint64_t seed = 1;
  caf::actor client; ///< a pass_client of the same host
  /// Called with each step's loss, and the prompts that had it.
  std::function<void(std::uint32_t step, double loss, const std::vector<float>& prompts)> on_step;
  std::function<void()> on_end;
};

class prompt_tuner final : public actors::protocol_actor {
public:
  prompt_tuner(caf::actor_config& config, actors::host& on, prompt_tuner_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  void begin();
  void go_back(const std::vector<float>& output);
  void learn(std::span<const float> gradient);

  prompt_tuner_config options_;
  std::vector<float> embedding_, head_, prompts_, state_;
  tuning_batch batch_;
  std::uint32_t step_ = 0;
  bool backward_ = false;
};

} // namespace shoal::scenarios
