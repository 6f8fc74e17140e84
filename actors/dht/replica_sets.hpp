// The replicas of each key that this node writes or reads, and how long that knowledge holds. A
// plain state machine: its owner looks replicas up and sends records to new ones.
//
// Steps: a look-up renews a set. The set is current until it is `stale`, but at most for `refresh`
// after the look-up. It also has to be confirmed by its farthest member every `fresh`, because a
// nearer node would push out the farthest member first. A set becomes stale when a nearer node
// appears, when a member leaves, or when a member says that it is no replica.
#pragma once

#include "actors/dht/messages.hpp"
#include "kernels/base/units.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace shoal::actors {

struct replica_set {
  std::vector<contact> members; ///< nearest first; this node may be among them
  duration since{};             ///< when the set was looked up
  duration confirmed{};         ///< when the members were last known to be the nearest
  bool stale = false;           ///< the set has to be looked up again
  bool merged = false;          ///< this node has read the records of all members

  bool contains(const node_id& who) const;
};

class replica_sets {
public:
  struct limits {
    std::size_t replicas = 5; ///< members of a set, in a network that is large enough
    duration fresh{}, refresh{};
  };
  replica_sets(const node_id& self, limits bounds) : self_(self), limits_(bounds) {}

  /// Null if the key was never looked up.
  const replica_set* find(const std::string& key) const;
  /// Null if the replicas of the key have to be looked up.
  const replica_set* current(const std::string& key, duration now) const;
  /// True if this node is a replica of the key.
  bool holds(const std::string& key) const;
  bool holds(const replica_set& set) const { return set.contains(self_); }

  /// A look-up has ended. `read`: this node has read the records of all members.
  const replica_set& renew(const std::string& key, std::vector<contact> members, bool read,
                           duration now);
  void mark_stale(const std::string& key);
  /// A member says that it is no replica. True if the set becomes stale. Soon after a look-up the
  /// message is ignored. The member may not know that other nodes died, and each of its messages
  /// would cost a look-up.
  bool denied(const std::string& key, duration now);
  /// Node `by` says that it is a replica of the key.
  void confirmed(const std::string& key, const node_id& by, duration now);

  // The following functions return the keys whose sets become stale, ascending.
  std::vector<std::string> arrived(const node_id& who);
  std::vector<std::string> left(const contact& who);
  /// This node starts or stops serving others.
  std::vector<std::string> role_changed();

  /// This node has missed messages, so sets that it belongs to are not merged any more.
  void missed_messages();
  /// Forgets sets that were looked up more than `lifetime` ago, except where `in_use(key)`.
  template <class F>
  void drop_idle(duration now, duration lifetime, F in_use) {
    std::erase_if(
        sets_, [&](const auto& e) { return now - e.second.since > lifetime && !in_use(e.first); });
  }

  static constexpr duration denial_timeout = std::chrono::seconds(2);

private:
  node_id self_;
  limits limits_;
  std::map<std::string, replica_set> sets_;
};

/// `nearest` to `target`, sorted, with `self` at its place; at most `most`.
std::vector<contact> with_self(const node_id& target, std::vector<contact> nearest,
                               const contact& self, std::size_t most);

} // namespace shoal::actors
