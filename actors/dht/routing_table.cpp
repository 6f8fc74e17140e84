#include "actors/dht/routing_table.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace shoal::actors {

namespace {

constexpr unsigned most_failures = 3;

template <class Range>
auto find_in(Range& entries, const node_id& id) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& e) {
    if constexpr (requires { e.who; })
      return e.who.id == id;
    else
      return e.id == id;
  });
}

template <class Entry>
bool is_of(const Entry& e, const member_id& member) {
  if constexpr (requires { e.who; })
    return e.who.id.member() == member;
  else
    return e.id.member() == member;
}

} // namespace

routing_table::arrival routing_table::seen(const contact& who, duration now) {
  if (who.id.member() == self_.member() || !who.address) return arrival::refused;
  auto& in = buckets_[common_prefix(self_, who.id)];
  const auto same = [&](const auto& e) { return is_of(e, who.id.member()); };
  std::erase_if(in.waiting, same);
  if (auto known = std::find_if(in.members.begin(), in.members.end(), same);
      known != in.members.end()) {
    const bool restarted = known->who.id != who.id;
    in.members.erase(known);
    in.members.push_back({who, now});
    if (restarted) ++changes_;
    return restarted ? arrival::added : arrival::known;
  }
  if (in.members.size() < bucket_size_) {
    in.members.push_back({who, now});
    ++size_;
    ++changes_;
    return arrival::added;
  }
  in.waiting.push_back(who);
  if (in.waiting.size() > bucket_size_) in.waiting.pop_front();
  return arrival::waits;
}

std::optional<contact> routing_table::stalest(const node_id& beside, duration now,
                                              duration silence) const {
  auto found = buckets_.find(common_prefix(self_, beside));
  if (found == buckets_.end() || found->second.members.empty()) return std::nullopt;
  const auto& first = found->second.members.front();
  if (now - first.heard < silence) return std::nullopt;
  return first.who;
}

std::vector<contact> routing_table::silent(std::size_t count, duration now,
                                           duration silence) const {
  std::multimap<duration, const entry*> all;
  for (const auto& [prefix, in] : buckets_)
    for (const auto& e : in.members) {
      // Later members were heard of more recently.
      if (now - e.heard < silence) break;
      if (all.size() == count && (all.empty() || std::prev(all.end())->first <= e.heard)) break;
      all.emplace(e.heard, &e);
      if (all.size() > count) all.erase(std::prev(all.end()));
    }
  std::vector<contact> out;
  for (const auto& [heard, e] : all) out.push_back(e->who);
  return out;
}

void routing_table::failed(const node_id& who) {
  auto found = buckets_.find(common_prefix(self_, who));
  if (found == buckets_.end()) return;
  auto entry = find_in(found->second.members, who);
  if (entry == found->second.members.end()) return;
  if (++entry->failures >= most_failures || !found->second.waiting.empty()) remove(who);
}

void routing_table::remove(const node_id& who) {
  auto found = buckets_.find(common_prefix(self_, who));
  if (found == buckets_.end()) return;
  auto& in = found->second;
  if (auto waits = find_in(in.waiting, who); waits != in.waiting.end()) in.waiting.erase(waits);
  auto entry = find_in(in.members, who);
  if (entry == in.members.end()) return;
  in.members.erase(entry);
  --size_, ++changes_;
  if (!in.waiting.empty()) {
    // The contact was not heard of since it began to wait, so it is the first to be pinged.
    in.members.push_front({std::move(in.waiting.back()), duration{}});
    in.waiting.pop_back();
    ++size_;
  }
  if (in.members.empty()) buckets_.erase(found);
}

std::vector<contact>
routing_table::nearest(const node_id& target, std::size_t count,
                       const std::function<bool(const contact&)>& leave_out) const {
  // The contacts of the target's own bucket are nearer to the target than all others. The contacts
  // of the buckets behind that one come next, in any order, and then bucket for bucket backwards.
  using measured = std::pair<node_id, const contact*>;
  std::vector<measured> all;
  std::vector<contact> out;
  const auto add = [&](const bucket& in) {
    for (const auto& e : in.members)
      if (!leave_out || !leave_out(e.who)) all.emplace_back(distance(target, e.who.id), &e.who);
  };
  const auto take = [&] {
    const auto nearer = [](const measured& a, const measured& b) { return a.first < b.first; };
    const auto end =
        all.begin() + static_cast<std::ptrdiff_t>(std::min(count - out.size(), all.size()));
    std::partial_sort(all.begin(), end, all.end(), nearer);
    for (auto i = all.begin(); i != end; ++i) out.push_back(*i->second);
    all.clear();
  };
  const auto own = buckets_.lower_bound(common_prefix(self_, target));
  auto behind = own;
  if (own != buckets_.end() && own->first == common_prefix(self_, target)) {
    add(own->second);
    take();
    ++behind;
  }
  if (out.size() < count) {
    for (; behind != buckets_.end(); ++behind) add(behind->second);
    take();
  }
  for (auto before = own; before != buckets_.begin() && out.size() < count;) {
    add((--before)->second);
    take();
  }
  return out;
}

std::optional<contact> routing_table::of_member(const member_id& member) const {
  const auto found = buckets_.find(common_prefix(self_, {member.high, member.low, 0}));
  if (found == buckets_.end()) return std::nullopt;
  for (const auto& e : found->second.members)
    if (is_of(e, member)) return e.who;
  return std::nullopt;
}

bool routing_table::contains(const node_id& who) const {
  auto found = buckets_.find(common_prefix(self_, who));
  return found != buckets_.end() &&
         find_in(found->second.members, who) != found->second.members.end();
}

std::vector<unsigned> routing_table::gaps() const {
  std::vector<unsigned> out;
  unsigned next = 0;
  for (const auto prefix : prefixes()) {
    for (; next < prefix; ++next) out.push_back(next);
    next = prefix + 1;
  }
  return out;
}

std::vector<unsigned> routing_table::prefixes() const {
  std::vector<unsigned> out;
  for (const auto& [prefix, in] : buckets_)
    if (!in.members.empty()) out.push_back(prefix);
  return out;
}

} // namespace shoal::actors
