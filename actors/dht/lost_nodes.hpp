// Nodes that do not answer: the dead, whose names others still give, and the silent, which are
// asked again now and then. A plain state machine; how long a silent node is left alone is in
// blacklist.hpp.
#pragma once

#include "actors/dht/messages.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace shoal::actors {

class lost_nodes {
public:
  /// A dead node does not come back, unless the report was wrong: then heard() takes it back.
  void died(const node_id& who);
  bool is_dead(const node_id& who) const { return dead_.contains(who); }
  void heard(const node_id& who);

  /// A node is silent. The oldest is forgotten when there are too many.
  void remember(const contact& who);
  void forget(const node_id& who);
  /// The silent nodes, those of longest ago first.
  const std::deque<contact>& silent() const noexcept { return silent_; }

  /// True if the node is silent and no probe of it is planned.
  bool needs_probe(const node_id& who) const;
  void plan_probe(std::uint64_t token, const node_id& who) { probes_.emplace(token, who); }
  /// The probe with that token is due. The node to ask; nobody if it is not silent any more.
  std::optional<contact> take_probe(std::uint64_t token);

  static constexpr std::size_t most_silent = 64, most_dead = 1024;

private:
  const contact* find_silent(const node_id& who) const;

  std::set<node_id> dead_;
  std::deque<node_id> dead_order_; // the last to die last
  std::deque<contact> silent_;
  std::map<std::uint64_t, node_id> probes_;
};

} // namespace shoal::actors
