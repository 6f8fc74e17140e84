// Nodes that did not answer are left alone for a time that doubles with each further failure, to a
// minute or so, and then is a sixteenth of the time for which they have been silent: after a cut of
// some hours its two halves find each other within minutes, and who is gone for good costs a
// message now and then. Many requests may fail by one outage: that is one failure.
#pragma once

#include "actors/dht/node_id.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <map>

namespace shoal::actors {

class blacklist {
public:
  explicit blacklist(duration first) : first_(first) {}

  /// `asked`: when the request was sent that failed.
  void failed(const node_id& who, duration asked, duration now) {
    auto& e = entries_[who];
    if (e.failures > 0 && asked <= e.noticed) return;
    if (e.failures == 0) e.since = now;
    e.noticed = now;
    e.until = now + std::max(first_ * (std::int64_t{1} << std::min(e.failures, most_doublings)),
                             std::min((now - e.since) / patience, first_ * longest));
    ++e.failures;
    if (entries_.size() > most_entries) forget_oldest();
  }
  /// True if it had failed.
  bool alive(const node_id& who) { return entries_.erase(who) > 0; }
  /// Until when it is left alone.
  duration until(const node_id& who) const {
    auto found = entries_.find(who);
    return found == entries_.end() ? duration{} : found->second.until;
  }
  bool blocks(const node_id& who, duration now) const {
    auto found = entries_.find(who);
    return found != entries_.end() && now < found->second.until;
  }
  std::size_t size() const noexcept { return entries_.size(); }

private:
  static constexpr unsigned most_doublings = 6;
  static constexpr std::int64_t patience = 16, longest = 1024;
  static constexpr std::size_t most_entries = 4096;
  struct entry {
    duration since{}, until{}, noticed{};
    unsigned failures = 0;
  };
  void forget_oldest() {
    entries_.erase(
        std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
          return a.second.until < b.second.until;
        }));
  }

  duration first_;
  std::map<node_id, entry> entries_;
};

} // namespace shoal::actors
