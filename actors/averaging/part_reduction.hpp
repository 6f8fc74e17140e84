// Collects the chunks of one part at its reducer, from all senders and in any order. An aggregator
// (aggregator.hpp) makes the result, chunk by chunk or of the whole part at once.
//
// Order: senders are added in member order once a unit is complete, never in order of arrival. So
// the same senders give the same bits at every reducer.
//
// By chunk: a chunk is complete when every sender's piece has arrived or will never arrive. Each
// chunk has its own list of senders, because a chunk that was sent back cannot be changed. A list
// for the whole part would be known only at its end, so the part would wait for its slowest sender.
// A sender that dies after k chunks is in the first k chunks, with its weight, and in no others.
//
// By part: nothing is complete before the part is. A sender that is left out before it has
// delivered all chunks is in no chunk.
//
// Values that would be all of the result. A unit refuses a sender whose norm is above 1e18, or
// above max_norm_ratio times the upper median of the senders' norms. With two senders nobody can
// say whose values are too large, so the second rule begins with three. Values that break only the
// second rule make nobody suspect, because an honest gradient can explode. It is the upper median
// because small values cost nothing: with the lower one, half of the senders could have the others
// refused. A unit of a few values, such as the end of a part, has a median that
// says little. So do values that most batches do not touch. So the median counts for each value at
// least as much as the largest one of the part's units so far. A chunk with values that are too
// large by the second rule waits until the part has no other one.
//
// Memory: by chunk, the pieces of incomplete chunks; by part, all pieces. At most the part's bytes
// times the number of senders.
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

/// True if reducers take such values: finite ones, whose norm is far from overflow. No honest
/// member sends others, so their sender is accused.
bool can_be_averaged(std::span<const float> values);

/// The chunks of a part, all of one size but the last.
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

/// A set of chunks of a part.
using chunk_set = std::vector<bool>;
std::vector<chunk_range> to_ranges(const chunk_set& chunks);
/// Empty if these are not ascending ranges of `count` chunks; a peer sent them.
std::optional<chunk_set> from_ranges(const std::vector<chunk_range>& ranges, std::uint32_t count);

/// The round that a part belongs to, for aggregators that depend on it.
struct round_extent {
  std::uint64_t values = 0; ///< length of the round's vector
  group_id group;           ///< the seed of permutations
};

class part_reduction {
public:
  struct refusals {
    /// Senders of values that cannot be averaged. No honest member sends such values.
    std::vector<std::uint32_t> faulty;
    /// Senders of values that are far longer than those of the others. The gradient of an honest
    /// member can explode.
    std::vector<std::uint32_t> outliers;
  };
  struct reduced {
    std::uint32_t chunk = 0;
    payload values;
    /// Empty if no sender's data can be had; then there are no values.
    std::vector<std::uint32_t> senders;
    refusals refused; ///< these senders are left out from now on
  };
  enum class taken : std::uint8_t { yes, too_late, wrong };

  /// `weights` are those of the members; a member of weight 0 sends nothing. `how` names the
  /// aggregator and the reducer's conduct. The result is written to `into`, whose index `first` is
  /// the part's first value, or to a new buffer if `into` is empty.
  part_reduction(chunk_grid grid, std::vector<std::uint64_t> weights, bool size_only,
                 const averaging_config& how, duration now, float_buffer into = {},
                 std::uint64_t first = 0, const round_extent& of = {});

  /// Asks for the results of more chunks. Returns the chunks that senders deliver from now on: the
  /// same ones, or, by part, all chunks at the first call and none later.
  chunk_set open(const chunk_set& chunks, duration now);
  /// Takes a chunk. `wrong`: no correct sender sends it (a repeated chunk, or one that is not
  /// open).
  taken add(std::uint32_t member, std::uint32_t chunk, payload data, duration now);
  /// Senders begin only now: their silence before does not count.
  void expect_from(duration now) {
    for (auto& last : last_progress_) last = now;
  }
  /// Stops waiting for a member. By chunk, its pieces that have arrived stay in the result. By
  /// part, they stay only if all have arrived.
  void leave_out(std::uint32_t member);
  /// True if chunks of the member are missing.
  bool waits_for(std::uint32_t member) const { return lacking_[member] > 0 && !out_[member]; }
  /// The members with missing chunks that sent nothing for at least `timeout`.
  std::vector<std::uint32_t> silent(duration now, duration timeout) const;
  /// The members with missing chunks, if more than half of the weight has arrived.
  std::vector<std::uint32_t> behind() const;
  /// The next result, if one is ready.
  std::optional<reduced> next();

private:
  using pieces = std::vector<std::pair<std::uint32_t, payload>>;
  struct open_chunk {
    pieces data;               // by sender, in order of arrival
    std::uint32_t waiting = 0; // senders that it still waits for
    bool open = false;
  };
  /// The values of one sender in a unit.
  struct contribution {
    std::uint32_t member = 0;
    std::span<const float> values;
  };
  void refuse_huge(std::vector<contribution>& from, refusals& refused);
  bool has(const open_chunk& chunk, std::uint32_t member) const;
  bool by_part() const { return how_->unit == aggregation_unit::part; }
  chunk_set expect(const chunk_set& chunks, duration now);
  void complete(std::uint32_t chunk);
  pieces& in_order(std::uint32_t chunk);
  std::span<float> room(std::uint64_t offset, std::uint64_t bytes);
  std::vector<std::uint32_t> aggregate(std::vector<contribution> from, std::span<float> out,
                                       refusals& refused);
  void leave_out(const refusals& refused);
  std::optional<reduced> reduce_chunk(std::uint32_t chunk, bool more);
  void reduce_part();
  std::optional<reduced> next_of_part();

  chunk_grid grid_;
  std::vector<std::uint64_t> weights_;
  bool size_only_;
  const aggregator_definition* how_;
  double max_norm_ratio_;
  double usual_square_ = 0; // the largest median of the units so far, for each value
  std::shared_ptr<conduct> conduct_;
  std::unique_ptr<aggregator> aggregator_;
  std::vector<open_chunk> chunks_;
  float_buffer values_;                // finished chunks are slices of this buffer
  std::uint64_t first_;                // index of the part's first value in it
  std::vector<std::uint32_t> lacking_; // for each member, open chunks that it has not delivered
  std::vector<bool> out_;
  std::vector<duration> last_progress_;
  std::deque<std::uint32_t> ready_;
  std::deque<std::uint32_t> doubtful_; // complete chunks that wait for the rest of the part
  // By part:
  chunk_set wanted_;                                  // chunks that next() returns
  std::uint32_t incomplete_ = 0;                      // chunks with missing pieces
  std::optional<std::vector<std::uint32_t>> senders_; // set once the part is reduced
  refusals refused_;                                  // not yet returned by next()
};

} // namespace shoal::actors
