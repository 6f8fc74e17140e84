// How long a trainer waits for the answer of a host: a plain state machine.
//
//   deadline = mean + 4 deviations of the host's earlier times (actors/averaging/deadline.hpp)
//
// A deadline is between `most / least_share` and `most`. A host without an earlier answer has the
// deadline of all hosts together. So a slow host that is steady is waited for, and a dead one costs
// far less than the detection of its death. The times of late answers count, too.
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/ids.hpp"

#include <cstddef>
#include <map>

namespace shoal::actors {

class answer_times {
public:
  static constexpr std::size_t most_hosts = 4096;
  static constexpr int least_share = 10;

  explicit answer_times(duration most) : all_(most / least_share, most), unknown_(all_) {}

  void answered(peer_id host, duration took) {
    all_.measured(took);
    if (by_host_.size() < most_hosts || by_host_.contains(host))
      by_host_.try_emplace(host, unknown_).first->second.measured(took);
  }
  void forget(peer_id host) { by_host_.erase(host); }

  duration deadline(peer_id host) const {
    const auto known = by_host_.find(host);
    return known == by_host_.end() ? all_.value() : known->second.value();
  }

private:
  adaptive_deadline all_, unknown_;
  std::map<peer_id, adaptive_deadline> by_host_;
};

} // namespace shoal::actors
