#include "actors/dht/replica_sets.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

bool replica_set::contains(const node_id& who) const {
  return std::any_of(members.begin(), members.end(), [&](const contact& c) { return c.id == who; });
}

const replica_set* replica_sets::find(const std::string& key) const {
  const auto found = sets_.find(key);
  return found == sets_.end() ? nullptr : &found->second;
}

const replica_set* replica_sets::current(const std::string& key, duration now) const {
  const auto* set = find(key);
  if (set == nullptr || set->stale) return nullptr;
  const bool believed = now - set->confirmed < limits_.fresh && now - set->since < limits_.refresh;
  return believed ? set : nullptr;
}

bool replica_sets::holds(const std::string& key) const {
  const auto* set = find(key);
  return set != nullptr && holds(*set);
}

const replica_set& replica_sets::renew(const std::string& key, std::vector<contact> members,
                                       bool read, duration now) {
  auto& set = sets_[key];
  const auto same = [](const contact& a, const contact& b) { return a.id == b.id; };
  const bool unchanged =
      std::equal(members.begin(), members.end(), set.members.begin(), set.members.end(), same);
  set = {std::move(members), now, now, false, read || (set.merged && unchanged)};
  return set;
}

void replica_sets::mark_stale(const std::string& key) {
  if (const auto found = sets_.find(key); found != sets_.end()) found->second.stale = true;
}

bool replica_sets::denied(const std::string& key, duration now) {
  const auto found = sets_.find(key);
  if (found == sets_.end() || found->second.stale || now - found->second.since < denial_timeout)
    return false;
  found->second.stale = true;
  return true;
}

void replica_sets::confirmed(const std::string& key, const node_id& by, duration now) {
  const auto found = sets_.find(key);
  if (found == sets_.end()) return;
  const auto& members = found->second.members;
  const auto farthest = std::find_if(members.rbegin(), members.rend(),
                                     [&](const contact& c) { return c.id != self_; });
  if (farthest != members.rend() && farthest->id == by) found->second.confirmed = now;
}

std::vector<std::string> replica_sets::arrived(const node_id& who) {
  std::vector<std::string> out;
  for (auto& [key, set] : sets_) {
    const auto target = node_id::of_key(key);
    const bool full = set.members.size() >= limits_.replicas;
    if (full && distance(target, set.members.back().id) < distance(target, who)) continue;
    set.stale = true;
    out.push_back(key);
  }
  return out;
}

std::vector<std::string> replica_sets::left(const contact& who) {
  std::vector<std::string> out;
  for (auto& [key, set] : sets_) {
    const auto same = [&](const contact& c) { return c.where() == who.where(); };
    if (std::erase_if(set.members, same) == 0) continue;
    set.stale = true;
    out.push_back(key);
  }
  return out;
}

std::vector<std::string> replica_sets::role_changed() {
  std::vector<std::string> out;
  for (auto& [key, set] : sets_) {
    set.stale = true;
    out.push_back(key);
  }
  return out;
}

void replica_sets::missed_messages() {
  for (auto& [key, set] : sets_)
    if (holds(set)) set.merged = false;
}

std::vector<contact> with_self(const node_id& target, std::vector<contact> nearest,
                               const contact& self, std::size_t most) {
  const auto nearer = [&](const contact& a, const contact& b) {
    return distance(target, a.id) < distance(target, b.id);
  };
  nearest.insert(std::upper_bound(nearest.begin(), nearest.end(), self, nearer), self);
  if (nearest.size() > most) nearest.pop_back();
  return nearest;
}

} // namespace shoal::actors
