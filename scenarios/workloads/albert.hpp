// Options of the workload 'albert': an encoder that is pre-trained with masked tokens and the order
// of two segments.
#pragma once

#include "kernels/learn/albert_layout.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Where text becomes tokens, some of them masked.
enum class sample_place : std::uint8_t { shard, peers };
/// The piece of text that is one document (kernels/learn/pair_corpus.hpp).
enum class document_kind : std::uint8_t { file, paragraph, line };

struct albert_options {
  std::uint64_t layers = 6, heads = 4, hidden = 256, embedding = 64, feed_forward = 1024;
  std::uint64_t length = 128; ///< tokens in a sample
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

} // namespace shoal::scenarios
