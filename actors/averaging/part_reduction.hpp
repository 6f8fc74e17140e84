// The books of one part at its reducer: they take chunks from all senders in any order, and say
// when something is complete. An aggregator (aggregator.hpp) makes the result of it, chunk by chunk
// or of the whole part at once.
//
// One order, one result: senders are added in member order once everything is here, never in the
// order of
//   arrival, so that the same senders give the same bits whoever reduces and however they came.
// By chunk, a chunk is complete as soon as every sender's piece of it is here, or is known not to
// come. Senders are listed by
//   chunk, because a chunk that was sent back cannot be taken back: a list for the whole part is
//   only known when its last piece is, and the part would be reduced in lock step with its slowest
//   sender. So a sender that dies after k chunks is in the first k, weight and all, and in none of
//   the others.
// By part, nothing is complete before the part is. A sender that is left out before it has
// delivered everything is in no chunk. Memory: by chunk, what came of chunks that are not complete;
// by part, everything; at most the part's bytes times its senders.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "actors/averaging/messages.hpp"
#include "actors/averaging/round.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

/// A part cut into chunks of one size, but for the last.
struct chunk_grid {
  std::uint64_t part_bytes = 0, piece = 4;

  std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>((part_bytes + piece - 1) / piece);
  }
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
    std::vector<std::uint32_t>
        senders; ///< empty: nobody's data can be had, and there are no values
    std::vector<std::uint32_t>
        refused; ///< sent values that cannot be averaged; left out from now on
  };
  enum class taken : std::uint8_t { yes, too_late, wrong };

  /// `weights` of the members; a member of weight 0 sends nothing. `how` names the aggregator and
  /// the reducer's conduct. The result is written `into` that, the part's first value at `first`;
  /// into memory of its own if it is empty.
  part_reduction(chunk_grid grid, std::vector<std::uint64_t> weights, bool hollow,
                 const averaging_config& how, duration now, float_buffer into = {},
                 std::uint64_t first = 0);

  /// next() is to give these chunks, too. Returns the chunks of which the senders' pieces are
  /// expected from now on: the same ones, or, by part, all at the first time and none later.
  chunk_set open(const chunk_set& chunks, duration now);
  /// wrong: no correct sender sends this (another time the same chunk, or one that is not open).
  taken add(std::uint32_t member, std::uint32_t chunk, payload data, duration now);
  /// It is not waited for any more. By chunk, its pieces that are here stay in; by part, only if
  /// all of them are here.
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
  using pieces = std::vector<std::pair<std::uint32_t, payload>>;
  struct open_chunk {
    pieces data;               // by sender, as they came
    std::uint32_t waiting = 0; // senders that it waits for
    bool open = false;
  };
  /// What an aggregator takes of one sender.
  struct contribution {
    std::uint32_t member = 0;
    std::span<const float> values;
  };
  bool has(const open_chunk& chunk, std::uint32_t member) const;
  bool by_part() const { return how_->unit == aggregation_unit::part; }
  chunk_set expect(const chunk_set& chunks, duration now);
  void complete(std::uint32_t chunk);
  pieces take(std::uint32_t chunk);
  std::span<float> room(std::uint64_t offset, std::uint64_t bytes);
  std::vector<std::uint32_t> aggregate(std::vector<contribution> from, std::span<float> out,
                                       std::vector<std::uint32_t>& refused);
  reduced reduce_chunk(std::uint32_t chunk);
  void reduce_part();
  std::optional<reduced> next_of_part();

  chunk_grid grid_;
  std::vector<std::uint64_t> weights_;
  bool hollow_;
  const aggregator_definition* how_;
  std::shared_ptr<conduct> conduct_;
  std::unique_ptr<aggregator> aggregator_;
  std::vector<open_chunk> chunks_;
  float_buffer values_;                // finished chunks are slices of it
  std::uint64_t first_;                // where the part begins in it
  std::vector<std::uint32_t> lacking_; // open chunks that a member has not delivered
  std::vector<bool> out_;
  std::vector<duration> last_progress_;
  std::deque<std::uint32_t> ready_;
  // By part:
  chunk_set wanted_;                                  // chunks that next() is to give
  std::uint32_t incomplete_ = 0;                      // chunks that lack something
  std::optional<std::vector<std::uint32_t>> senders_; // once the part is reduced
  std::vector<std::uint32_t> refused_;                // not yet given by next()
};

} // namespace shoal::actors
