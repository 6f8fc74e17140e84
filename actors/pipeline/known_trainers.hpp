// The trainers of a pipeline as a peer of a stage knows them, and whether their batch is closed. A
// trainer that closes its part much later than the others is not waited for. No actor and no clock.
//
// The wait for a trainer begins once at least half of the trainers with a batch have closed it. It
// is as long as the batch has taken so far, and at least `least_wait`. It begins again when the
// trainer opens its part again, which a trainer may do a few times in a batch.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/patience.hpp"
#include "actors/pipeline/pipeline_record.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace shoal::actors {

class known_trainers {
public:
  using records = std::map<peer_id, std::pair<member_id, trainer_record>>;

  explicit known_trainers(duration least_wait) : least_wait_(least_wait) {}

  /// The records are as far as one stage is concerned: they have no open stages.
  void told(peer_id whom, member_id member, const trainer_record& record);
  /// All records that there are. A later one that a trainer has told stays.
  void read(records all);
  void clear() { known_.clear(); }
  void begin_batch(duration now);

  /// True if all trainers have closed the batch of `epoch`, or are not waited for any more. False
  /// without a trainer that has a batch.
  bool is_closed(std::uint64_t epoch, duration now);
  /// When a wait ends that is_closed() has found. None if no wait has begun.
  std::optional<duration> due() const { return due_; }
  /// The samples of the parts that are closed, each of `most` at most.
  std::uint64_t samples(std::uint64_t epoch, std::uint64_t most) const;
  /// The batch of `epoch` is over. Trainers that have not closed it get less time from now on.
  void stepped(std::uint64_t epoch);

private:
  struct opening {
    unsigned count = 0;
    duration since{}; // the last opening that counts
    bool was_closed = false;
  };
  static bool has_batch(const trainer_record& one) { return one.closed != no_batch_yet; }
  /// The trainers with a batch, and whether each has closed it.
  std::map<member_id, bool> closed_by(std::uint64_t epoch) const;

  duration least_wait_, begun_{};
  records known_;
  std::map<member_id, patience> patience_;
  std::optional<duration> half_since_, due_; // half of the trainers have closed the batch since
  std::map<member_id, opening> openings_;    // in this batch
};

} // namespace shoal::actors
