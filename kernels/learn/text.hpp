// A corpus of text files as bytes. The end of every file is held out, and the rest is cut into
// windows that are drawn in a seeded order. Sample i of the endless sequence can be computed alone.
// In pass p = i / windows() every window comes once, in an order that a keyed permutation gives. So
// a shard needs no state, and its replica yields the same bytes. The predictions of a pass's
// windows never overlap, and no window crosses the end of a file. Windows start at an offset drawn
// per pass and file, so that the model sees no fixed cuts.
//
// With a shuffle buffer of B windows a pass goes through the files in order, and permutes only the
// windows of one buffer. A reader that streams them holds B windows, and no window comes B places
// early or late, or more.
// Source: permutation: Luby and Rackoff's Feistel network with cycle walking (Black and Rogaway,
// CT-RSA 2002).
// Thread safety: immutable after loading.
#pragma once

#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::learn {

struct text_options {
  std::int64_t context = 64;  ///< a sample is context + 1 bytes
  double holdout = 0.1;       ///< the fraction at the end of each file that is never trained on
  std::uint64_t seed = 1;     ///< decides the order of the samples
  std::string field = "text"; ///< the text's field in each object of JSON lines (text_file.hpp)
  /// The number of consecutive windows among which windows are drawn; 0: all windows.
  std::uint64_t shuffle_buffer = 0;
  std::uint64_t max_bytes = std::uint64_t{1} << 30; ///< a larger corpus is refused
};

struct text_file {
  std::string name{}; ///< without its folder
  std::vector<std::uint8_t> bytes{};
  std::size_t train_bytes = 0; ///< bytes [0, train_bytes) are trained on, the others held out
  std::span<const std::uint8_t> train() const noexcept {
    return std::span(bytes).first(train_bytes);
  }
  std::span<const std::uint8_t> held_out() const noexcept {
    return std::span(bytes).subspan(train_bytes);
  }
};

class text_corpus {
public:
  /// Each pattern is a file, a folder (its files, without those of inner folders) or a glob such as
  /// 'texts/*.txt'. Symbolic links are followed. A file that is reached twice counts once, and so
  /// do files with equal contents. An empty file is an error if a pattern names it, and is left out
  /// of folders and globs. Files are sorted by name and content.
  /// Errors: a pattern that matches nothing, a file that cannot be read or unpacked
  /// (read_text_file()), more than max_bytes. Options out of range, or a corpus too short for one
  /// training and one held-out window.
  static result<text_corpus> load(std::span<const std::string> patterns,
                                  const text_options& options);
  /// The same from memory, with names and bytes.
  static result<text_corpus> from_files(std::vector<text_file> files, const text_options& options);

  const text_options& options() const noexcept { return options_; }
  const std::vector<text_file>& files() const noexcept { return files_; }
  /// BLAKE2b over the names and contents of the files, in their order.
  const digest& content_digest() const noexcept { return digest_; }
  std::size_t total_bytes() const noexcept;
  std::size_t sample_bytes() const noexcept {
    return static_cast<std::size_t>(options_.context) + 1;
  }

  /// The number of training windows in one pass.
  std::uint64_t windows() const noexcept { return first_window_.back(); }
  /// The place of sample `index`. All indices are valid. Complexity: O(log files).
  struct place {
    std::uint64_t pass, window;
    std::size_t file, offset;
  };
  place place_of(std::uint64_t index) const;
  /// Writes sample `index` [context + 1] into `out`. Requires: out.size() == sample_bytes().
  void sample(std::uint64_t index, std::span<std::byte> out) const;
  std::vector<std::byte> sample(std::uint64_t index) const;

  /// The number of held-out windows. They are consecutive, without overlap in their predictions,
  /// from the start of each held-out end. A rest that is shorter than a window is left out.
  std::uint64_t held_out_windows() const noexcept { return held_out_.size(); }
  /// All held-out windows [held_out_windows() x (context + 1)].
  std::vector<std::byte> held_out_samples() const;
  /// At most `most` of them, at even distances, since files differ.
  std::vector<std::byte> held_out_samples(std::uint64_t most) const;
  /// Views of each file's training bytes, and of each held-out window. The bigram table learns from
  /// the former and is tested on the latter.
  std::vector<std::span<const std::uint8_t>> train_segments() const;
  std::vector<std::span<const std::uint8_t>> held_out_segments() const;

private:
  text_options options_;
  std::vector<text_file> files_;
  digest digest_;
  std::vector<std::uint64_t> first_window_; // [files + 1]
  struct span_of_file {
    std::size_t file, offset;
  };
  std::vector<span_of_file> held_out_;
};

/// A bijection of [0, n) chosen by `key`. Requires: index < n.
std::uint64_t permute(std::uint64_t index, std::uint64_t n, std::uint64_t key);

/// A bijection that moves no index by `size` or more. It permutes each of a row of blocks of
/// `size`; the first block is a drawn part of that. Requires: index < n, size > 0.
std::uint64_t buffered(std::uint64_t index, std::uint64_t n, std::uint64_t size, std::uint64_t key);

} // namespace shoal::learn
