#include "actors/dht/lost_nodes.hpp"

#include <algorithm>

namespace shoal::actors {

void lost_nodes::died(const contact& who) {
  if (dead_.insert(who.where()).second) dead_order_.push_back(who.where());
  if (dead_order_.size() > most_dead) {
    dead_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
  std::erase_if(silent_, [&](const contact& c) { return c.where() == who.where(); });
}

void lost_nodes::heard(const contact& who) {
  if (dead_.erase(who.where()) > 0) std::erase(dead_order_, who.where());
}

void lost_nodes::remember(const contact& who) {
  std::erase_if(silent_, [&](const contact& c) { return c.where() == who.where(); });
  silent_.push_back(who);
  if (silent_.size() > most_silent) silent_.pop_front();
}

void lost_nodes::forget(const node_id& who) {
  std::erase_if(silent_, [&](const contact& c) { return c.id == who; });
}

bool lost_nodes::needs_probe(const contact& who) const {
  if (find_silent(who.where()) == nullptr) return false;
  return std::none_of(probes_.begin(), probes_.end(),
                      [&](const auto& p) { return p.second == who.where(); });
}

std::optional<contact> lost_nodes::take_probe(std::uint64_t token) {
  const auto planned = probes_.extract(token);
  if (planned.empty()) return std::nullopt;
  const auto* who = find_silent(planned.mapped());
  if (who == nullptr) return std::nullopt;
  return *who;
}

const contact* lost_nodes::find_silent(const contact::place& who) const {
  const auto found = std::find_if(silent_.begin(), silent_.end(),
                                  [&](const contact& c) { return c.where() == who; });
  return found == silent_.end() ? nullptr : &*found;
}

} // namespace shoal::actors
