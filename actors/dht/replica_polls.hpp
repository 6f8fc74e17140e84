// Chooses the replica of a key that is polled for changes: one at a time, another one if it is slow
// or fails. A plain state machine.
#pragma once

#include "actors/dht/messages.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

class replica_polls {
public:
  explicit replica_polls(const node_id& self) : self_(self) {}

  struct step {
    std::optional<contact> ask; ///< the replica to ask now
    bool exhausted = false;     ///< all have failed; the poll is over
  };
  /// Begins a poll, or continues one. Replicas with `leave_out(contact)` are not asked.
  template <class F>
  step next(const std::string& key, const std::vector<contact>& replicas, F leave_out) {
    auto [at, fresh] = polls_.try_emplace(key);
    auto& poll = at->second;
    if (!fresh && poll.open > 0 && poll.asked.size() >= replicas.size()) return {};
    // Each reader begins at another replica, so that all replicas have the same load.
    const auto first =
        replicas.empty() ? 0 : static_cast<std::size_t>(self_.middle % replicas.size());
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const auto& who = replicas[(first + i) % replicas.size()];
      if (who.id == self_ || poll.asked.contains(who.id) || leave_out(who)) continue;
      poll.asked.insert(who.id);
      ++poll.open;
      return {who, false};
    }
    if (poll.open > 0) return {};
    polls_.erase(at);
    return {std::nullopt, true};
  }

  bool contains(const std::string& key) const { return polls_.contains(key); }
  /// A replica that was asked has failed. True if no other question is open; next() then names
  /// another one.
  bool failed(const std::string& key) {
    const auto at = polls_.find(key);
    if (at == polls_.end()) return false;
    if (at->second.open > 0) --at->second.open;
    return at->second.open == 0;
  }
  /// A replica has answered, or the replicas have to be looked up. The poll is over.
  void end(const std::string& key) { polls_.erase(key); }

private:
  struct poll {
    std::set<node_id> asked;
    unsigned open = 0;
  };

  node_id self_;
  std::map<std::string, poll> polls_;
};

} // namespace shoal::actors
