// Restores the order of a ledger's pieces. Small messages can overtake large ones, because
// netem/fabric.hpp keeps the order only within each of the two classes. A plain value type.
//
// The streams of one sender have ascending numbers, and the pieces of each stream the sequence
// numbers 1, 2, ... A newer stream replaces an older one when its first piece arrives. A lost piece
// stalls its stream; the sender notices that and starts a newer one.
#pragma once

#include "actors/data/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace shoal::actors {

class piece_order {
public:
  static constexpr std::size_t most_early = 256;
  /// The rows of all waiting pieces: about 25 MB.
  static constexpr std::size_t most_early_rows = std::size_t{1} << 18;

  /// The current stream; 0 before the first one.
  std::uint64_t stream() const noexcept { return stream_; }
  /// The number of pieces taken from it.
  std::uint64_t taken() const noexcept { return taken_; }

  /// Calls `take(piece, begins)` for `what` if it is next, and then for waiting pieces that follow.
  /// `begins`: the piece is the first of a stream. If `take` returns false, the piece does not
  /// count and the calls end. Early pieces wait. Pieces beyond the two limits, repeated ones and
  /// those of older streams are dropped.
  template <class Take>
  void add(const ledger_update& what, Take take) {
    const bool begins = what.stream > stream_ && what.sequence == 1;
    if (!begins && (what.stream != stream_ || what.sequence != taken_ + 1)) {
      const bool late =
          what.stream < stream_ || (what.stream == stream_ && what.sequence <= taken_);
      if (!late && early_.size() < most_early &&
          early_rows_ + what.rows.size() <= most_early_rows &&
          early_.try_emplace({what.stream, what.sequence}, what).second)
        early_rows_ += what.rows.size();
      return;
    }
    if (begins) {
      stream_ = what.stream;
      taken_ = 0;
      const auto current = early_.lower_bound({stream_, 0});
      for (auto at = early_.begin(); at != current; at = early_.erase(at))
        early_rows_ -= at->second.rows.size();
    }
    if (!take(what, begins)) return;
    ++taken_;
    for (auto next = early_.extract({stream_, taken_ + 1}); !next.empty();
         next = early_.extract({stream_, taken_ + 1})) {
      early_rows_ -= next.mapped().rows.size();
      if (!take(next.mapped(), false)) return;
      ++taken_;
    }
  }

  void clear() {
    stream_ = taken_ = 0;
    early_.clear();
    early_rows_ = 0;
  }

private:
  std::uint64_t stream_ = 0, taken_ = 0;
  std::size_t early_rows_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, ledger_update> early_; // by stream and sequence
};

} // namespace shoal::actors
