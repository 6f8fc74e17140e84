// Nodes that do not answer: dead ones, which other nodes may still name, and silent ones, which are
// asked again from time to time. A plain state machine. blacklist.hpp says how long a silent node
// is left alone.
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
  /// The actor at that address is dead and does not come back. If the report was wrong, heard()
  /// undoes it.
  void died(const contact& who);
  bool is_dead(const contact& who) const { return dead_.contains(who.where()); }
  void heard(const contact& who);

  /// A node is silent. With too many silent nodes, the oldest is forgotten.
  void remember(const contact& who);
  void forget(const node_id& who);
  /// The silent nodes, the one that has been silent longest first.
  const std::deque<contact>& silent() const noexcept { return silent_; }

  /// True if the node is silent and no probe of it is planned.
  bool needs_probe(const contact& who) const;
  void plan_probe(std::uint64_t token, const contact& who) { probes_.emplace(token, who.where()); }
  /// The probe with that token is due. Returns the node to ask; empty if the node is not silent any
  /// more.
  std::optional<contact> take_probe(std::uint64_t token);

  static constexpr std::size_t most_silent = 64, most_dead = 1024;

private:
  const contact* find_silent(const contact::place& who) const;

  std::set<contact::place> dead_;
  std::deque<contact::place> dead_order_; // the last to die is last
  std::deque<contact> silent_;
  std::map<std::uint64_t, contact::place> probes_;
};

} // namespace shoal::actors
