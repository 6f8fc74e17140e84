#include "actors/dht/iterative_lookup.hpp"

#include <algorithm>
#include <array>

namespace shoal::actors {

void iterative_lookup::start(const std::vector<contact>& known) {
  std::size_t path = 0;
  for (const auto& who : known) learn(who, 1, path++ % paths_);
  for (path = 0; path < paths_; ++path) limit(path);
}

std::optional<contact> iterative_lookup::next() {
  std::array<std::size_t, most_paths> open{}, answered{};
  std::array<candidate*, most_paths> first{};
  std::size_t all_open = 0, all_answered = 0;
  for (const auto& [d, c] : candidates_)
    if (c.state == state::asked) ++open[c.path], ++all_open;
  if (all_open >= share_of(alpha_) * paths_) return std::nullopt;
  for (auto& [d, c] : candidates_) {
    if (c.state == state::answered) ++answered[c.path], ++all_answered;
    const bool over = all_answered >= wanted_ && answered[c.path] >= wanted_of_path();
    if (c.state == state::fresh && !over && first[c.path] == nullptr) first[c.path] = &c;
  }
  for (std::size_t i = 0; i < paths_; ++i) {
    const auto path = (turn_ + i) % paths_;
    if (first[path] == nullptr || open[path] >= share_of(alpha_)) continue;
    turn_ = (path + 1) % paths_;
    first[path]->state = state::asked;
    ++asked_;
    return first[path]->who;
  }
  return std::nullopt;
}

void iterative_lookup::heard(const contact& from, const std::vector<contact>& nearer) {
  auto* by = find(from);
  if (by == nullptr || by->state == state::fresh || by->state == state::failed) return;
  const auto depth = by->depth + 1;
  const auto path = by->path;
  for (const auto& who : nearer) learn(who, depth, path);
  limit(path);
}

void iterative_lookup::learn(const contact& who, unsigned depth, std::size_t path) {
  const auto at = distance(target_, who.id);
  // The nodes of one member are neighbours in the order of distance.
  std::size_t of_member = 0;
  for (auto i = candidates_.lower_bound({node_id{at.high, at.middle, 0}, 0});
       i != candidates_.end() && i->second.who.id.member() == who.id.member(); ++i)
    of_member += i->second.path == path ? 1 : 0;
  if (of_member < most_of_member)
    candidates_.try_emplace({at, who.where().second}, candidate{who, depth, path});
}

void iterative_lookup::limit(std::size_t path) {
  // The farthest candidates are dropped. A node that was asked stays, so that its answer is
  // accepted.
  const auto waits = [&](const auto& e) {
    return e.second.path == path && e.second.state == state::fresh;
  };
  auto count =
      static_cast<std::size_t>(std::count_if(candidates_.begin(), candidates_.end(), waits));
  for (auto i = candidates_.end();
       count > share_of(most_candidates_) && i != candidates_.begin();) {
    --i;
    if (!waits(*i)) continue;
    i = candidates_.erase(i);
    --count;
  }
}

void iterative_lookup::slow(const contact& who) {
  if (auto* found = find(who); found != nullptr && found->state == state::asked)
    found->state = state::slow;
}

void iterative_lookup::set(const contact& who, state to) {
  auto* found = find(who);
  if (found != nullptr && found->state != state::fresh) found->state = to;
}

iterative_lookup::candidate* iterative_lookup::find(const contact& who) {
  auto found = candidates_.find({distance(target_, who.id), who.where().second});
  return found == candidates_.end() ? nullptr : &found->second;
}

bool iterative_lookup::is_done(std::size_t path) const {
  std::size_t answered = 0;
  for (const auto& [d, c] : candidates_) {
    if (c.path != path) continue;
    if (c.state == state::fresh || c.state == state::asked) return false;
    if (c.state == state::answered && ++answered >= wanted_of_path()) return true;
  }
  return true;
}

bool iterative_lookup::done() const {
  for (std::size_t path = 0; path < paths_ && paths_ > 1; ++path)
    if (!is_done(path)) return false;
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

template <class Counts>
std::vector<contact> iterative_lookup::nearest_where(std::size_t count, Counts counts) const {
  std::vector<contact> out;
  for (const auto& [d, c] : candidates_)
    if (out.size() < count && counts(c.state) &&
        (out.empty() || out.back().id.member() != c.who.id.member()))
      out.push_back(c.who);
  return out;
}

std::vector<contact> iterative_lookup::nearest(std::size_t count) const {
  return nearest_where(count, [](state s) { return s == state::answered; });
}

std::vector<contact> iterative_lookup::nearest_living(std::size_t count) const {
  return nearest_where(count, [](state s) { return s == state::answered || s == state::slow; });
}

unsigned iterative_lookup::hops() const {
  for (const auto& [d, c] : candidates_)
    if (c.state == state::answered) return c.depth;
  return 0;
}

} // namespace shoal::actors
