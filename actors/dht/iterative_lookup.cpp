#include "actors/dht/iterative_lookup.hpp"

#include <algorithm>

namespace shoal::actors {

std::optional<contact> iterative_lookup::next() {
  std::size_t open = 0, answered = 0;
  for (const auto& [d, c] : candidates_) open += c.state == state::asked ? 1 : 0;
  if (open >= alpha_) return std::nullopt;
  for (auto& [d, c] : candidates_) {
    if (c.state == state::answered && ++answered >= wanted_) return std::nullopt;
    if (c.state != state::fresh) continue;
    c.state = state::asked;
    ++asked_;
    return c.who;
  }
  return std::nullopt;
}

void iterative_lookup::heard(const node_id& from, const std::vector<contact>& nearer) {
  auto* who = find(from);
  if (who == nullptr || who->state == state::fresh || who->state == state::failed) return;
  learn(nearer, who->depth + 1);
}

void iterative_lookup::learn(const std::vector<contact>& known, unsigned depth) {
  for (const auto& who : known)
    candidates_.try_emplace(distance(target_, who.id), candidate{who, depth});
  // The farthest candidates are dropped. A node that was asked stays, so that its answer is
  // accepted.
  for (auto i = candidates_.end();
       candidates_.size() > most_candidates_ && i != candidates_.begin();) {
    --i;
    if (i->second.state == state::fresh) i = candidates_.erase(i);
  }
}

void iterative_lookup::slow(const node_id& who) {
  if (auto* found = find(who); found != nullptr && found->state == state::asked)
    found->state = state::slow;
}

void iterative_lookup::set(const node_id& who, state to) {
  auto* found = find(who);
  if (found != nullptr && found->state != state::fresh) found->state = to;
}

iterative_lookup::candidate* iterative_lookup::find(const node_id& who) {
  auto found = candidates_.find(distance(target_, who));
  return found == candidates_.end() ? nullptr : &found->second;
}

bool iterative_lookup::done() const {
  std::size_t answered = 0, living = 0;
  // `heard`: of the nodes that count; `open`: of all nodes.
  bool heard = false, open = false;
  for (const auto& [d, c] : candidates_) {
    if (c.state == state::fresh || c.state == state::asked) return false;
    if (c.state == state::failed) continue;
    const bool slow = c.state == state::slow;
    open = open || slow;
    heard = heard || (!slow && (!values_ || living < wanted_));
    ++living;
    if (!slow && ++answered >= wanted_) break;
  }
  return heard || !open;
}

std::vector<contact> iterative_lookup::nearest(std::size_t count) const {
  std::vector<contact> out;
  for (const auto& [d, c] : candidates_)
    if (c.state == state::answered && out.size() < count) out.push_back(c.who);
  return out;
}

std::vector<contact> iterative_lookup::nearest_living(std::size_t count) const {
  std::vector<contact> out;
  for (const auto& [d, c] : candidates_)
    if ((c.state == state::answered || c.state == state::slow) && out.size() < count)
      out.push_back(c.who);
  return out;
}

unsigned iterative_lookup::hops() const {
  for (const auto& [d, c] : candidates_)
    if (c.state == state::answered) return c.depth;
  return 0;
}

} // namespace shoal::actors
