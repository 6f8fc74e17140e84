// Pieces of a ledger in the order in which they were sent: small messages overtake large ones on
// their way, as order holds only within each of the two classes (netem/fabric.hpp). A plain value
// type.
//
// Streams of one sender have ascending numbers, and the pieces of each the sequence 1, 2, ... A
// newer stream takes the place of the one before when its first piece is here. What is lost for
// good stalls the stream; the sender notices, and begins a newer one.
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

  /// 0: none has begun.
  std::uint64_t stream() const noexcept { return stream_; }
  /// How many pieces of it were taken.
  std::uint64_t taken() const noexcept { return taken_; }

  /// Calls `take(piece, begins)` for `what` if it is next, and for those that have waited for it;
  /// `begins`: the first one of a stream. False from it: the piece is not taken, and no further one
  /// is. What comes too early waits, and beyond `most_early` is dropped, as is what was taken and
  /// what is of an older stream.
  template <class Take>
  void add(const ledger_update& what, Take take) {
    const bool begins = what.stream > stream_ && what.sequence == 1;
    if (!begins && (what.stream != stream_ || what.sequence != taken_ + 1)) {
      const bool late =
          what.stream < stream_ || (what.stream == stream_ && what.sequence <= taken_);
      if (!late && early_.size() < most_early)
        early_.insert_or_assign({what.stream, what.sequence}, what);
      return;
    }
    if (begins) {
      stream_ = what.stream;
      taken_ = 0;
      early_.erase(early_.begin(), early_.lower_bound({stream_, 0}));
    }
    if (!take(what, begins)) return;
    ++taken_;
    for (auto next = early_.extract({stream_, taken_ + 1}); !next.empty();
         next = early_.extract({stream_, taken_ + 1})) {
      if (!take(next.mapped(), false)) return;
      ++taken_;
    }
  }

  void clear() {
    stream_ = taken_ = 0;
    early_.clear();
  }

private:
  std::uint64_t stream_ = 0, taken_ = 0;
  std::map<std::pair<std::uint64_t, std::uint64_t>, ledger_update> early_; // by stream and sequence
};

} // namespace shoal::actors
