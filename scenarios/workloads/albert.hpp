// Options of the workload 'albert': an encoder that is pre-trained with masked tokens and the order
// of two segments.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct scenario;

/// Where text becomes tokens, some of them masked.
enum class sample_place : std::uint8_t { shard, peers };
/// The piece of text that is one document (kernels/learn/pair_corpus.hpp).
enum class document_kind : std::uint8_t { file, paragraph, line };

struct albert_options {
  std::uint64_t layers = 6, heads = 4, hidden = 256, embedding = 64, feed_forward = 1024;
  std::uint64_t length = 128; ///< tokens in a sample
  std::string tokenizer; ///< path of a tokenizer.json, which load() makes absolute; empty: bytes
  std::uint64_t vocabulary = 261;
  bool checkpoint = false;
  sample_place prepared_by = sample_place::shard;
  document_kind documents = document_kind::file;
  std::vector<double> weights; ///< one for each entry of data.files; empty: equal
  std::string sentence_ends = ".?!\u0964\u3002";
  double masked = 0.15;
  std::uint64_t held_out_samples = 64;
  bool operator==(const albert_options&) const = default;
};

learn::albert_config model_of(const albert_options& from);

/// How well a model predicts the held-out samples of a run.
struct masked_quality {
  double tokens = 0, order = 0;             ///< nats for each label, and for each sample
  double right_tokens = 0, right_order = 0; ///< fractions
};

/// The held-out samples of a scenario.
struct masked_task {
  std::uint64_t samples = 0, labels = 0;
  double unigram_loss = 0; ///< nats for each label, if each token had its frequency in training
  /// Requires: parameters of the scenario's model.
  std::function<masked_quality(std::span<const float> parameters)> measure;
};

/// Errors: a scenario of another workload; texts that cannot be read; a build without libtorch.
result<masked_task> masked_task_of(const scenario& from);

} // namespace shoal::scenarios
