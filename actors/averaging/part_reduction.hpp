// The reducer's side of one part: takes its chunks from all senders in any order, and gives each chunk
// back as soon as every sender's piece of it is here, or is known not to come.
//
// One order, one result: a chunk is added up in member order once it is complete, never in the order of
//   arrival, so that the same senders give the same bits whoever reduces it and however they came.
// Senders are listed by chunk, not by part. A chunk that was sent back cannot be taken back: a list for
//   the whole part could only be known when the last piece of it is, and the part would be reduced in
//   lock step with its slowest sender (or fail whenever one dies half-way). So a sender that dies after
//   k chunks is in the first k, weight and all, and in none of the others.
// Memory: what came of chunks that are not complete, at most the part's bytes times its senders.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"

namespace shoal::actors {

/// A part cut into chunks of one size, but for the last.
struct chunk_grid {
  std::uint64_t part_bytes = 0, piece = 4;

  std::uint32_t count() const noexcept { return static_cast<std::uint32_t>((part_bytes + piece - 1) / piece); }
  std::uint64_t offset(std::uint32_t chunk) const noexcept { return chunk * piece; }
  std::uint64_t size(std::uint32_t chunk) const noexcept {
    return std::min<std::uint64_t>(piece, part_bytes - offset(chunk));
  }
};

/// Which chunks of a part.
using chunk_set = std::vector<bool>;
std::vector<chunk_range> to_ranges(const chunk_set& chunks);
/// None if these are not ascending ranges of `count` chunks (a peer said so).
std::optional<chunk_set> from_ranges(const std::vector<chunk_range>& ranges, std::uint32_t count);

class part_reduction {
 public:
  struct reduced {
    std::uint32_t chunk = 0;
    payload values;
    std::vector<std::uint32_t> senders;   ///< empty: nobody's data can be had, and there are no values
    std::vector<std::uint32_t> refused;   ///< sent values that cannot be averaged; left out from now on
  };
  enum class taken : std::uint8_t { yes, too_late, wrong };

  /// `weights` of the members; who weighs nothing sends nothing. The means are written `into` that, the part's first value at `first`;
  /// into memory of their own if it is empty.
  part_reduction(chunk_grid grid, std::vector<std::uint64_t> weights, bool hollow, mutant bug, duration now, float_buffer into = {},
                 std::uint64_t first = 0);

  /// These chunks are to be reduced, too.
  void open(const chunk_set& chunks, duration now);
  /// wrong: no correct sender sends this (another time the same chunk, or one that is not open).
  taken add(std::uint32_t member, std::uint32_t chunk, payload data, duration now);
  /// It is not waited for any more. What is here of it in chunks that are not complete stays in.
  void leave_out(std::uint32_t member);
  /// Something of it is still to come.
  bool waits_for(std::uint32_t member) const { return lacking_[member] > 0 && !out_[member]; }
  /// Whom we have heard nothing of for `patience`, of those that something is to come of.
  std::vector<std::uint32_t> silent(duration now, duration patience) const;
  /// Those to come of who are behind, when more than half of the weight is here.
  std::vector<std::uint32_t> behind() const;
  /// The next chunk that is ready, if any.
  std::optional<reduced> next();

 private:
  struct open_chunk {
    std::vector<std::pair<std::uint32_t, payload>> data;   // by sender, as they came
    std::uint32_t waiting = 0;                             // senders that it waits for
    bool open = false;
  };
  bool has(const open_chunk& chunk, std::uint32_t member) const;

  chunk_grid grid_;
  std::vector<std::uint64_t> weights_;
  bool hollow_;
  mutant bug_;
  std::vector<open_chunk> chunks_;
  float_buffer values_;                      // finished chunks are slices of it
  std::uint64_t first_;                      // where the part begins in it
  std::vector<std::uint32_t> lacking_;       // open chunks that a member has not delivered
  std::vector<bool> out_;
  std::vector<duration> last_progress_;
  std::deque<std::uint32_t> ready_;
};

}  // namespace shoal::actors
