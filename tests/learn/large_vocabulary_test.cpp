// A model of 32,000 tokens, from its first parameters over training and a checkpoint to the tokens
// that it writes.
#include "kernels/base/rng.hpp"
#include "kernels/learn/baseline.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/generate.hpp"
#include "kernels/learn/transformer.hpp"
#include "kernels/learn/transformer_description.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

const kernels::transformer_config config{
    .layers = 1, .heads = 2, .dim = 16, .context = 8, .vocabulary = 32000};

/// Each token determines the next one. Some tokens need two bytes.
constexpr std::array<token_id, 4> cycle{31999, 5, 256, 20000};

void write_sample(std::uint64_t index, std::span<std::byte> out) {
  std::vector<token_id> tokens(9);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = cycle[(index + i) % cycle.size()];
  encode_tokens(tokens, config.vocabulary, out);
}

} // namespace

TEST_CASE("a model of 32,000 tokens is trained, saved, loaded, and writes the learnt text") {
  const transformer model(config);
  CHECK(model.sample_bytes() == 9 * 2);
  CHECK(model.parameter_count() == 32000 * 16 + (12 * 16 * 16 + 2 * 16) + 16);
  std::vector<std::byte> held_out(4 * model.sample_bytes());
  for (std::uint64_t i = 0; i < 4; ++i)
    write_sample(i, std::span(held_out).subspan(i * model.sample_bytes(), model.sample_bytes()));
  CHECK(model.check_samples(held_out).ok());

  const kernels::optimizer_config optimizer{.kind = kernels::optimizer_kind::adamw,
                                            .learning_rate = 0.03};
  const auto trained =
      train_baseline(model, optimizer, model.initial_parameters(1), write_sample, held_out,
                     {.target_batch = 4, .micro_batch = 4, .steps = 200});
  CHECK(trained.first_loss == doctest::Approx(std::log(32000.0)).epsilon(0.02));
  CHECK(trained.final_loss < 0.5);

  const scratch_folder folder;
  checkpoint saved;
  saved.workload = "transformer";
  saved.model = description_of(config);
  saved.tensors = model.layout();
  saved.optimizer = optimizer;
  saved.parameters = trained.parameters;
  saved.optimizer_state = trained.state;
  REQUIRE(save(saved, folder.path / "large.ckpt").ok());
  const auto loaded = load_checkpoint(folder.path / "large.ckpt");
  REQUIRE_MESSAGE(loaded.ok(), loaded.error());
  CHECK(continues(*loaded, saved).ok());
  REQUIRE(transformer_of(*loaded).ok());
  CHECK(transformer_of(*loaded).value() == config);

  const transformer again(transformer_of(*loaded).value());
  rng random(1);
  const std::vector<token_id> prompt{cycle[0], cycle[1]};
  const auto written = generate(again, loaded->parameters, prompt, 12, {.temperature = 0}, random);
  for (std::size_t i = 0; i < written.size(); ++i)
    CHECK(written[i] == cycle[(i + 2) % cycle.size()]);
}

TEST_CASE("samples with a token outside the vocabulary, or with a part of a sample, are refused "
          "before they are used") {
  const transformer model(config);
  std::vector<std::byte> samples(2 * model.sample_bytes());
  CHECK(model.check_samples(samples).ok());
  samples.back() = std::byte{0xff};
  CHECK(model.check_samples(samples).error() ==
        "tokens: number 17 is 65280; the vocabulary has 32000");
  samples.pop_back();
  CHECK(model.check_samples(samples).error() == "samples: 35 bytes are no samples of 18 each");
}
