// How long to wait for an answer: deadlines from the times that earlier answers took. A plain state
// machine. Decision: ADR 0057.
//
// Each key has its own times: the host that answers, or the stage of a pipeline. A key without an
// earlier answer has the deadline of all keys together. `Deadline` turns times into a deadline, and
// has the limits (actors/averaging/deadline.hpp).
// - adaptive_deadline, where a step goes on without the answer: the deadline may be far shorter
//   than the limit that the user has set (actors/experts/expert_trainer.hpp).
// - mean_deadline, where another host repeats the work: the deadline is never shorter than the
//   limit, and longer if all answers take long (actors/pipeline/sent_tasks.hpp).
#pragma once

#include "actors/averaging/deadline.hpp"

#include <cstddef>
#include <map>

namespace shoal::actors {

template <class Key, class Deadline>
class answer_times {
public:
  static constexpr std::size_t most_keys = 4096;

  /// `blank`: a deadline without measured times.
  explicit answer_times(Deadline blank) : all_(blank), blank_(blank) {}

  /// An answer took this time, or has not come by then. A late answer counts, too.
  void answered(const Key& key, duration took) {
    all_.measured(took);
    if (by_key_.size() < most_keys || by_key_.contains(key))
      by_key_.try_emplace(key, blank_).first->second.measured(took);
  }
  void forget(const Key& key) { by_key_.erase(key); }

  duration deadline(const Key& key) const {
    const auto known = by_key_.find(key);
    return known == by_key_.end() ? all_.value() : known->second.value();
  }

private:
  Deadline all_, blank_;
  std::map<Key, Deadline> by_key_;
};

} // namespace shoal::actors
