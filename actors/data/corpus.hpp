// The corpus of a run: a fixed number of samples that everybody can check. The scenario names the
// root of a hash tree over them (kernels/base/hash_tree.hpp). Each message with samples has the
// digests that lead from them to the root. So a data shard can withhold samples, and cannot change
// them. Indices beyond the last sample begin again at the first one.
//
// Bytes: at most 64 log2(samples) for each message. See docs/adr/0060-prove-samples-to-trainers.md.
#pragma once

#include "actors/data/sample_source.hpp"
#include "actors/ids.hpp"
#include "kernels/base/hash_tree.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace shoal::actors {

/// A receiver knows this of the corpus.
struct corpus_root {
  std::uint64_t samples = 0; ///< 0: the run has no such corpus
  digest root;
  std::uint64_t first = 0; ///< the run's index 0 is this sample; a run that goes on begins later

  bool exists() const noexcept { return samples > 0; }
  /// Requires: exists().
  std::uint64_t sample_of(std::uint64_t index) const noexcept {
    return (index % samples + first % samples) % samples;
  }
  /// True if `bytes` are the samples of `range`, one after the other, and `proof` shows it. False
  /// for a range that passes the end of the corpus, and for payloads without bytes.
  /// Requires: exists().
  bool has(const sample_range& range, const payload& bytes, const payload& proof) const;
};

/// The tree over the first `samples` samples of a source. Requires: samples > 0, and the source's
/// samples have bytes. Complexity: reads and hashes each sample once; 64 bytes of memory for each.
std::shared_ptr<const hash_tree> tree_of(const sample_source& from, std::uint64_t samples);

/// The corpus as a data shard streams it.
class corpus final : public sample_source {
public:
  /// Requires: `tree` is that of the source's first samples.
  corpus(std::shared_ptr<const sample_source> from, std::shared_ptr<const hash_tree> tree,
         std::uint64_t first);

  std::uint32_t sample_bytes() const override { return from_->sample_bytes(); }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    from_->read(root_.sample_of(index), out);
  }
  const corpus_root& root() const noexcept { return root_; }
  /// The samples from `index` to the end of the corpus. One message has no more.
  std::uint64_t left_at(std::uint64_t index) const noexcept {
    return root_.samples - root_.sample_of(index);
  }
  /// The proof of corpus_root::has(). Requires: 0 < range.count <= left_at(range.first).
  payload proof_of(const sample_range& range) const;

private:
  std::shared_ptr<const sample_source> from_;
  std::shared_ptr<const hash_tree> tree_;
  corpus_root root_;
};

} // namespace shoal::actors
