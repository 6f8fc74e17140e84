// The limits of a queue of requests. One member may have a quarter of the places and of the memory,
// so that it does not keep the others out. No actor and no clock.
#pragma once

#include "actors/ids.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

namespace shoal::actors {

class queue_shares {
public:
  queue_shares(std::size_t most, std::size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}

  /// True if there is room for one more request of this size. A lone request may be larger than the
  /// share.
  bool fits(const member_id& whose, std::size_t bytes) const {
    const auto found = of_.find(whose);
    const auto mine = found == of_.end() ? use{} : found->second;
    const auto share = [](std::size_t most) { return std::max<std::size_t>(1, most / 4); };
    if (all_.count >= most_ || mine.count >= share(most_)) return false;
    return mine.count == 0 ||
           (all_.bytes + bytes <= most_bytes_ && mine.bytes + bytes <= share(most_bytes_));
  }
  void add(const member_id& whose, std::size_t bytes) {
    for (auto* each : {&all_, &of_[whose]}) {
      ++each->count;
      each->bytes += bytes;
    }
  }
  /// Requires: add() was called with the same values before.
  void remove(const member_id& whose, std::size_t bytes) {
    const auto mine = of_.find(whose);
    for (auto* each : {&all_, &mine->second}) {
      --each->count;
      each->bytes -= bytes;
    }
    if (mine->second.count == 0) of_.erase(mine);
  }
  std::size_t size() const noexcept { return all_.count; }

private:
  struct use {
    std::size_t count = 0, bytes = 0;
  };
  std::size_t most_, most_bytes_;
  use all_;
  std::map<member_id, use> of_;
};

} // namespace shoal::actors
