// The verdicts about groups that a host does not know yet. Anybody can make up a group, so the
// places are shared: at the limit the oldest verdict of the member that sent the most goes. No
// actor and no clock.
#pragma once

#include "actors/ids.hpp"
#include "actors/trust/proof.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace shoal::actors {

class waiting_proofs {
public:
  static constexpr std::size_t most = 64;
  struct entry {
    proof what;
    member_id from;
  };

  bool has(const proof& what) const {
    return std::any_of(all_.begin(), all_.end(), [&](const auto& x) { return x.what == what; });
  }
  /// Requires: not has(what).
  void add(proof what, const member_id& from) {
    all_.push_back({std::move(what), from});
    if (all_.size() <= most) return;
    std::map<member_id, std::size_t> counts;
    for (const auto& each : all_) ++counts[each.from];
    const auto least = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto whose = std::max_element(counts.begin(), counts.end(), least)->first;
    all_.erase(std::find_if(all_.begin(), all_.end(),
                            [&](const auto& each) { return each.from == whose; }));
  }
  /// All of them, the oldest first. None is left.
  std::vector<entry> take() { return std::exchange(all_, {}); }

private:
  std::vector<entry> all_;
};

} // namespace shoal::actors
