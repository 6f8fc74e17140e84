// Texts from several sources as an endless sequence of segment pairs. Sample i can be computed
// alone, so a shard needs no state and its replica yields the same bytes.
//   source: in each run of `run_of_sources` samples, each source comes as often as its weight says
//   chunk: in each pass of a source every chunk comes once, in an order that a keyed permutation
//     gives, among all chunks or those of a shuffle buffer (text.hpp)
//   pair: the chunk's sentences are cut before a drawn sentence; with probability 1/2 the parts
//     swap
// A chunk has consecutive sentences of one document, until they have `length` tokens or fill
// `text_bytes`, and at least two. Whole documents are held out.
// Source: the data path of the sahajBERT run, Diskin et al., "Distributed Deep Learning in Open
// Collaborations", arXiv:2106.10207, appendix; it drew the source of each sample.
// Thread safety: immutable after loading.
#pragma once

#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/masked_pair.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

struct text_source {
  std::vector<std::string> patterns; ///< files, folders or globs
  double weight = 1;
};

/// The piece of text that is one document.
enum class document_unit : std::uint8_t {
  file,      ///< a file
  paragraph, ///< the lines between two empty lines
  line       ///< a line, as in JSON lines
};

struct pair_options {
  masking_options masking{};
  document_unit documents = document_unit::file;
  std::string sentence_ends = ".?!\u0964\u3002";
  double holdout = 0.1;             ///< the fraction of each source's text that is never trained on
  std::uint64_t shuffle_buffer = 0; ///< consecutive chunks among which chunks are drawn; 0: all
  std::string field = "text";       ///< the text's field in JSON lines
  std::size_t held_out_most = 64;   ///< held-out samples that are used, spread over their chunks
  std::uint64_t max_bytes = std::uint64_t{1} << 30; ///< a larger corpus is refused
};

class pair_corpus {
public:
  /// Errors: as text_corpus::load; a weight that is no positive number; a source without two
  /// sentences to train on, or without any held out.
  static result<pair_corpus> load(std::span<const text_source> sources,
                                  const pair_vocabulary& vocabulary, const pair_options& options);
  /// The same from memory: the documents of each source.
  struct documents {
    std::string name;
    std::vector<std::string> texts;
    double weight = 1;
  };
  static result<pair_corpus> from_documents(std::vector<documents> sources,
                                            const pair_vocabulary& vocabulary,
                                            const pair_options& options);

  static constexpr std::uint64_t run_of_sources = 1024;

  const pair_options& options() const noexcept { return options_; }
  const pair_vocabulary& vocabulary() const noexcept { return vocabulary_; }
  albert_format sample_format() const;
  pair_format text_format() const { return {text_bytes()}; }
  std::size_t text_bytes() const { return pair_text_bytes(options_.masking.length); }

  std::size_t sources() const noexcept { return sources_.size(); }
  std::uint64_t chunks(std::size_t source) const { return sources_[source].train.size(); }
  /// The source of sample `index`, and its chunk.
  struct place {
    std::size_t source = 0;
    std::uint64_t chunk = 0;
  };
  place place_of(std::uint64_t index) const;
  segment_pair pair(std::uint64_t index) const;
  albert_sample sample(std::uint64_t index) const {
    return masked_sample(pair(index), index, vocabulary_, options_.masking);
  }

  std::uint64_t held_out_count() const noexcept { return held_out_.size(); }
  /// The held-out samples [held_out_count() x sample_format().bytes()].
  std::vector<std::byte> held_out_samples() const;
  /// The cross-entropy of the held-out labels in nats, if each token has its frequency in the
  /// training text (plus 1). A model that learnt anything from the context is below it.
  double unigram_loss() const;
  std::uint64_t train_tokens() const noexcept { return train_tokens_; }

  /// BLAKE2b over the names and texts of the documents, in their order.
  const digest& content_digest() const noexcept { return digest_; }

private:
  struct sentence {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct chunk {
    std::uint32_t first = 0, count = 0; ///< sentences
  };
  struct source {
    std::string text;
    std::vector<sentence> sentences;
    std::vector<chunk> train, held_out;
    std::uint64_t share = 0; ///< samples in a run of sources
  };
  struct held_place {
    std::size_t source = 0, chunk = 0;
  };

  void add(const documents& from);
  void add_chunks(source& to, const std::string& text, bool held, std::vector<chunk>& chunks);
  result<void> divide(std::span<const documents> sources);
  segment_pair cut(const source& of, const chunk& from, std::uint64_t index) const;

  pair_options options_;
  pair_vocabulary vocabulary_;
  std::vector<source> sources_;
  std::vector<held_place> held_out_;
  std::vector<std::uint64_t> counts_; ///< how often each token is in the training text
  std::uint64_t train_tokens_ = 0;
  digest digest_;
};

} // namespace shoal::learn
