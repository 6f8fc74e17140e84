// kernels/learn/baseline: the baseline learns, and its bits depend on lanes and batches but not on
// threads.
#include "kernels/learn/baseline.hpp"
#include "kernels/learn/text.hpp"
#include "kernels/learn/transformer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

using namespace shoal;
using namespace shoal::learn;

namespace {

const kernels::transformer_config tiny{.layers = 1, .heads = 2, .dim = 32, .context = 16};

text_corpus pangrams() {
  text_file file{.name = "pangrams"};
  const std::string sentence = "the quick brown fox jumps over the lazy dog. ";
  for (int i = 0; i < 80; ++i)
    file.bytes.insert(file.bytes.end(), sentence.begin(), sentence.end());
  return text_corpus::from_files({file}, {.context = tiny.context}).value();
}

} // namespace

TEST_CASE("the baseline learns a repeated sentence, with the same bits on one thread and two") {
  const transformer model(tiny);
  const auto corpus = pangrams();
  const auto initial = model.initial_parameters(1);
  const auto held_out = corpus.held_out_samples();
  std::set<std::uint64_t> asked;
  auto sample = [&](std::uint64_t index, std::span<std::byte> out) {
    asked.insert(index);
    corpus.sample(index, out);
  };
  const kernels::optimizer_config optimizer{.learning_rate = 0.01, .beta2 = 0.95};
  const baseline_options options{.target_batch = 20, .micro_batch = 4, .steps = 40};
  const auto one = train_baseline(model, optimizer, initial, sample, held_out, options);
  CHECK(one.first_loss == doctest::Approx(std::log(256.0)).epsilon(0.02));
  CHECK(one.final_loss < 2);
  CHECK(one.final_loss == model.mean_loss(one.parameters, held_out, corpus.held_out_windows()));
  CHECK(one.losses.size() == 40);
  CHECK(asked.size() == 40 * 20);
  CHECK(*asked.rbegin() == 40 * 20 - 1);

  auto with = [&](std::size_t threads, std::size_t micro_batch) {
    auto changed = options;
    changed.threads = threads;
    changed.micro_batch = micro_batch;
    return train_baseline(model, optimizer, initial, sample, held_out, changed);
  };
  const auto two = with(2, 4);
  CHECK(two.parameters == one.parameters);
  CHECK(two.state == one.state);
  CHECK(two.losses == one.losses);
  // Another cut of the same batch rounds differently but learns the same.
  CHECK(with(1, 7).losses[5] == doctest::Approx(one.losses[5]).epsilon(1e-4));
}

TEST_CASE("a step uses the mean gradient of its samples") {
  const transformer model(tiny);
  const auto corpus = pangrams();
  const auto initial = model.initial_parameters(2);
  const kernels::optimizer_config sgd{.kind = kernels::optimizer_kind::sgd, .learning_rate = 1};
  auto sample = [&](std::uint64_t index, std::span<std::byte> out) { corpus.sample(index, out); };
  const auto trained = train_baseline(model, sgd, initial, sample, {},
                                      {.target_batch = 10, .micro_batch = 3, .steps = 1});
  std::vector<float> sum(initial.size(), 0.0F);
  for (std::uint64_t i = 0; i < 10; ++i)
    model.accumulate_gradient(initial, corpus.sample(i), 1, sum);
  double difference = 0, update = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    difference += std::pow(initial[i] - sum[i] / 10.0 - trained.parameters[i], 2);
    update += std::pow(sum[i] / 10.0, 2);
  }
  CHECK(std::sqrt(difference / update) < 1e-4);
}

TEST_CASE("the loop stops when on_step returns false") {
  const transformer model(tiny);
  const auto corpus = pangrams();
  baseline_options options{.target_batch = 2, .steps = 100};
  options.on_step = [](std::int64_t k, double) { return k < 3; };
  const auto result = train_baseline(
      model, {}, model.initial_parameters(1), [&](auto i, auto out) { corpus.sample(i, out); }, {},
      options);
  CHECK(result.losses.size() == 3);
}
