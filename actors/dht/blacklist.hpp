// Addresses that did not answer, and how long each is left alone. An entry is for one actor of one
// host. So a liar that names a dead actor of a living host keeps nobody from that host's node. The
// time doubles with each further failure, to about a minute. After that it is a sixteenth of the
// time for which the node has been silent. So the halves of a network find each other within
// minutes after a cut of hours. A node that is gone for good costs few messages. All requests that
// one outage makes fail count as one failure.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <map>

namespace shoal::actors {

class blacklist {
public:
  explicit blacklist(duration first) : first_(first) {}

  /// A request to `who`, sent at `asked`, has failed.
  void failed(const contact::place& who, duration asked, duration now) {
    auto& e = entries_[who];
    if (e.failures > 0 && asked <= e.noticed) return;
    if (e.failures == 0) e.since = now;
    e.noticed = now;
    e.until = now + std::max(first_ * (std::int64_t{1} << std::min(e.failures, most_doublings)),
                             std::min((now - e.since) / silence_fraction, first_ * longest));
    ++e.failures;
    if (entries_.size() > most_entries) forget_oldest();
  }
  /// The node has answered. True if it was on the list.
  bool alive(const contact::place& who) { return entries_.erase(who) > 0; }
  /// The end of the time for which the node is left alone; zero if it is not on the list.
  duration until(const contact::place& who) const {
    auto found = entries_.find(who);
    return found == entries_.end() ? duration{} : found->second.until;
  }
  bool blocks(const contact::place& who, duration now) const {
    auto found = entries_.find(who);
    return found != entries_.end() && now < found->second.until;
  }
  std::size_t size() const noexcept { return entries_.size(); }

private:
  static constexpr unsigned most_doublings = 6;
  static constexpr std::int64_t silence_fraction = 16, longest = 1024;
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
  std::map<contact::place, entry> entries_;
};

} // namespace shoal::actors
