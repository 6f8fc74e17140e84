#include "actors/training/chain_follower.hpp"

#include "actors/averaging/certificate.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

namespace shoal::actors {

namespace {

// A member counts as beside this peer if it took part in one of so many last steps.
constexpr std::size_t recent_steps = 3;

chain_point claim_of(const progress& what) {
  return {what.epoch, what.state};
}

/// Spreads the questions of many peers over the claimants.
std::uint64_t spread(const member_id& self, peer_id peer) {
  auto x = (self.low ^ peer) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 32;
}

} // namespace

chain_follower::chain_follower(settings how, chain_point start, member_id self)
    : how_(how), self_(self), own_(start), fork_(start) {}

bool chain_follower::knows(const chain_point& state) const {
  return own_.contains(state) || is_ahead(state);
}

std::shared_ptr<const round_certificate>
chain_follower::certificate_of(const group_id& round) const {
  constexpr std::size_t most_steps_back = 256;
  const auto find = [&](auto step, auto end) -> std::shared_ptr<const round_certificate> {
    for (std::size_t back = 0; step != end && back < most_steps_back; ++step, ++back)
      if ((*step)->certificate->round() == round) return (*step)->certificate;
    return nullptr;
  };
  if (auto ahead = find(ahead_.rbegin(), ahead_.rend())) return ahead;
  return find(own_.steps().rbegin(), own_.steps().rend());
}

bool chain_follower::may_adopt(const chain_point& state) const {
  return is_ahead(state) || (!ahead_.empty() && !is_behind() && state == fork_);
}

bool chain_follower::is_ahead(const chain_point& state) const {
  return state.epoch > fork_.epoch && state.epoch - fork_.epoch <= ahead_.size() &&
         ahead_[static_cast<std::size_t>(state.epoch - fork_.epoch - 1)]->after == state;
}

step_ptr chain_follower::step_to(const chain_point& state) const {
  if (is_ahead(state)) return ahead_[static_cast<std::size_t>(state.epoch - fork_.epoch - 1)];
  auto step = own_.step_to(state.epoch);
  return step && step->after == state ? step : nullptr;
}

step_ptr chain_follower::step_from(const chain_point& state) const {
  if (state.epoch >= fork_.epoch && state.epoch - fork_.epoch < ahead_.size()) {
    const auto& step = ahead_[static_cast<std::size_t>(state.epoch - fork_.epoch)];
    if (step->before == state) return step;
  }
  auto step = own_.step_to(state.epoch + 1);
  return step && step->before == state ? step : nullptr;
}

// -- the owner's states ---------------------------------------------------------------------------

void chain_follower::stepped(const step_ptr& step) {
  // The owner begins each round from the head of its chain.
  if (!own_.extend(step).ok()) return;
  // A step that the leading branch has, too, is no longer ahead.
  if (!ahead_.empty() && ahead_.front()->after == step->after)
    ahead_.erase(ahead_.begin());
  else
    ahead_.clear();
  fork_ = own_.head();
  asked_.clear();
}

void chain_follower::adopted(const chain_point& state) {
  const auto count = static_cast<std::ptrdiff_t>(state.epoch - fork_.epoch);
  own_.cut(fork_);
  for (auto step = ahead_.begin(); step != ahead_.begin() + count; ++step)
    (void)own_.extend(*step).ok();
  ahead_.erase(ahead_.begin(), ahead_.begin() + count);
  fork_ = own_.head();
}

// -- questions ------------------------------------------------------------------------------------

std::vector<chain_point> chain_follower::locator() const {
  std::vector<chain_point> out;
  std::size_t back = 0;
  for (std::size_t stride = 1; back < ahead_.size() && out.size() + 40 < chain::most_points;
       back += stride) {
    out.push_back(ahead_[ahead_.size() - 1 - back]->after);
    if (out.size() >= 8) stride *= 2;
  }
  for (const auto& point : own_.locator())
    if (point.epoch <= fork_.epoch && out.size() < chain::most_points) out.push_back(point);
  // The chains may part between two points of the own locator.
  return out;
}

std::vector<chain_follower::question>
chain_follower::ask(const progress_table& claims, std::optional<duration> max_wait, duration now) {
  expire(now);
  // A branch that no peer claims any more has no donors, so it leads nobody. A peer that has gone
  // further may have come along it.
  if (!ahead_.empty() &&
      std::none_of(claims.entries().begin(), claims.entries().end(), [&](const auto& one) {
        const auto claim = claim_of(one.second.what);
        return one.second.what.arriving == 0 && (is_ahead(claim) || claim.epoch > leading().epoch);
      })) {
    ahead_.clear();
    fork_ = own_.head();
  }
  compare_again(claims);
  std::erase_if(asked_, [&](const auto& one) { return claims.find(one.first) == nullptr; });
  // The claimants of each unknown state that may be asked now.
  std::map<chain_point, std::vector<peer_id>> unknown;
  std::map<chain_point, std::size_t> claimants;
  for (const auto& [peer, e] : claims.entries()) {
    const auto claim = claim_of(e.what);
    if (e.what.arriving != 0 || knows(claim) || waits(claim)) continue;
    if (max_wait && claim.epoch == own_.head().epoch + 1 && now - e.changed < *max_wait) continue;
    ++claimants[claim];
    const auto known = asked_.find(peer);
    if (known != asked_.end() && (known->second.claim == claim || now < known->second.not_before))
      continue;
    unknown[claim].push_back(peer);
  }
  for (const auto& [peer, q] : open_) unknown.erase(q.claim);
  std::vector<chain_point> order;
  for (const auto& [claim, peers] : unknown) order.push_back(claim);
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return std::pair(claimants[a], a.epoch) > std::pair(claimants[b], b.epoch);
  });
  std::vector<question> out;
  for (const auto& claim : order) {
    if (open_.size() >= most_questions) break;
    auto& peers = unknown[claim];
    const auto rank = [&](peer_id peer) {
      const auto known = asked_.find(peer);
      return std::tuple(claims.at(peer).what.unreachable,
                        known == asked_.end() ? 0u : known->second.failures, spread(self_, peer));
    };
    std::erase_if(peers, [&](peer_id peer) { return open_.contains(peer); });
    if (peers.empty()) continue;
    const auto peer = *std::min_element(peers.begin(), peers.end(),
                                        [&](auto a, auto b) { return rank(a) < rank(b); });
    const auto& e = claims.at(peer);
    open_[peer] = {claim, e.member, e.address, now, {}, {}};
    asked_[peer].claim = claim;
    out.push_back({peer, e.address, locator()});
  }
  return out;
}

chain_follower::questions::iterator chain_follower::failed(questions::iterator which,
                                                           duration now) {
  auto& known = asked_[which->first];
  const auto pause = how_.timeout * (std::int64_t{1} << std::min(known.failures, 20u));
  known.not_before = now + std::min(pause, how_.most_pause);
  ++known.failures;
  return open_.erase(which);
}

void chain_follower::refuted(peer_id peer, duration now) {
  const auto which = open_.find(peer);
  if (which != open_.end()) failed(which, now);
}

bool chain_follower::lost(const caf::actor_addr& address, duration now) {
  const auto which = std::find_if(open_.begin(), open_.end(), [&](const auto& one) {
    return caf::actor_cast<caf::actor_addr>(one.second.to) == address;
  });
  if (which == open_.end()) return false;
  failed(which, now);
  return true;
}

void chain_follower::expire(duration now) {
  for (auto which = open_.begin(); which != open_.end();)
    which = now - which->second.asked < how_.timeout ? std::next(which) : failed(which, now);
}

// -- answers --------------------------------------------------------------------------------------

std::optional<chain_follower::question>
chain_follower::answered(peer_id peer, const chain_point& common,
                         const std::vector<step_ptr>& steps, bool more,
                         const progress_table& claims, duration now) {
  const auto which = open_.find(peer);
  if (which == open_.end()) return std::nullopt;
  auto& q = which->second;
  const auto wrong = [&] {
    refuted(peer, now);
    return std::nullopt;
  };
  if (!q.fork) {
    if (own_.contains(common)) {
      q.fork = common;
    } else if (is_ahead(common)) {
      q.fork = fork_;
      q.steps.assign(ahead_.begin(),
                     ahead_.begin() + static_cast<std::ptrdiff_t>(common.epoch - fork_.epoch));
    } else {
      return wrong(); // the own chain was cut meanwhile, or the peer names a state of no chain
    }
  } else if (common != (q.steps.empty() ? *q.fork : q.steps.back()->after)) {
    return wrong();
  }
  auto head = common;
  for (const auto& step : steps) {
    if (step->before != head || step->after.epoch != head.epoch + 1) return wrong();
    head = step->after;
    q.steps.push_back(step);
  }
  q.asked = now;
  if (more && !steps.empty() && q.steps.size() < chain::most_steps)
    return question{peer, q.to, {head}};
  // The last page.
  if (!own_.contains(*q.fork)) return wrong();
  candidate found{*q.fork, std::move(q.steps)};
  leave_out_shared(found);
  if (found.steps.empty()) {
    // The peer has only what this one has already: it knows less, and no harm is meant.
    open_.erase(which);
    return std::nullopt;
  }
  if (!leads_own(found, claims)) {
    wait_for_support(std::move(found));
    return wrong();
  }
  asked_.erase(peer);
  open_.erase(which);
  take_lead(found, claims);
  return std::nullopt;
}

/// Steps that the own chain has, too, are no fork.
void chain_follower::leave_out_shared(candidate& of) const {
  auto shared = of.steps.begin();
  while (shared != of.steps.end() && own_.contains((*shared)->after)) of.fork = (*shared++)->after;
  of.steps.erase(of.steps.begin(), shared);
}

bool chain_follower::take_lead(const candidate& what, const progress_table& claims) {
  if (!leads_own(what, claims) || (!ahead_.empty() && !leads_ahead(what, claims))) return false;
  fork_ = what.fork;
  ahead_ = what.steps;
  return true;
}

bool chain_follower::waits(const chain_point& head) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const auto& one) { return one.steps.back()->after == head; });
}

void chain_follower::wait_for_support(candidate what) {
  const auto& head = what.steps.back()->after;
  std::erase_if(waiting_, [&](const auto& one) { return one.steps.back()->after == head; });
  waiting_.push_back(std::move(what));
  if (waiting_.size() > most_waiting) waiting_.pop_front();
}

void chain_follower::compare_again(const progress_table& claims) {
  std::erase_if(waiting_, [&](auto& one) {
    const auto head = one.steps.back()->after;
    // A chain that nobody is on any more has no donors.
    const bool is_claimed =
        std::any_of(claims.entries().begin(), claims.entries().end(), [&](const auto& entry) {
          return entry.second.what.arriving == 0 && claim_of(entry.second.what) == head;
        });
    if (!is_claimed || !own_.contains(one.fork) || knows(head)) return true;
    leave_out_shared(one);
    return take_lead(one, claims);
  });
}

std::set<member_id> chain_follower::active_at(const chain_point& state) const {
  std::set<member_id> out;
  const auto& steps = own_.steps();
  const auto end = static_cast<std::size_t>(state.epoch - own_.start().epoch);
  for (std::size_t i = end - std::min(end, recent_steps); i < end; ++i)
    out.insert(steps[i]->supporters.begin(), steps[i]->supporters.end());
  return out;
}

std::set<member_id> chain_follower::members_near(const progress_table& claims) const {
  std::set<member_id> out{self_};
  for (const auto& [peer, e] : claims.entries()) {
    const auto claim = claim_of(e.what);
    if (e.what.arriving == 0 && claim.epoch + 1 >= own_.head().epoch && own_.contains(claim))
      out.insert(e.member);
  }
  return out;
}

std::set<member_id> chain_follower::active_of(std::set<member_id> near) const {
  const auto active = active_at(own_.head());
  if (!active.empty())
    std::erase_if(near, [&](const auto& who) { return who != self_ && !active.contains(who); });
  return near;
}

std::size_t chain_follower::members_needed(const progress_table& claims) const {
  // A member of the round that took part in no last step leaves one more of the others. So it
  // counts, too. Half of the active members lead all others in any case.
  auto near = members_near(claims);
  const auto third = near.size() / 3 + 1;
  const auto half = (active_of(std::move(near)).size() + 1) / 2;
  return std::min({third, half, how_.group_size});
}

std::set<member_id> chain_follower::supporters_of(const chain_point& fork,
                                                  std::span<const step_ptr> steps,
                                                  const progress_table& claims) const {
  std::set<member_id> out;
  if (steps.empty()) return out;
  for (const auto& step : steps) out.insert(step->supporters.begin(), step->supporters.end());
  const auto active = active_at(fork);
  const auto counts = [&](const member_id& member) {
    return active.empty() || active.contains(member);
  };
  const auto is_on = [&](const chain_point& point) {
    return point.epoch > fork.epoch && point.epoch - fork.epoch <= steps.size() &&
           steps[static_cast<std::size_t>(point.epoch - fork.epoch - 1)]->after == point;
  };
  if (is_on(own_.head()) && counts(self_)) out.insert(self_);
  for (const auto& [peer, e] : claims.entries())
    if (e.what.arriving == 0 && counts(e.member) && is_on(claim_of(e.what))) out.insert(e.member);
  return out;
}

std::size_t chain_follower::others_beside(const std::set<member_id>& supporters,
                                          const progress_table& claims) const {
  auto beside = active_of(members_near(claims));
  for (const auto& supporter : supporters) beside.erase(supporter);
  return beside.size();
}

bool chain_follower::leads_own(const candidate& what, const progress_table& claims) const {
  const auto supporters = supporters_of(what.fork, what.steps, claims);
  const auto beside = std::min(others_beside(supporters, claims), 2 * how_.group_size - 1);
  if (2 * supporters.size() <= beside) return false;
  const auto own = own_.after(what.fork);
  if (own.empty()) return true;
  auto theirs = weight_of(what.fork, what.steps), mine = weight_of(what.fork, own);
  theirs.supporters = supporters.size();
  mine.supporters = supporters_of(what.fork, own, claims).size();
  return theirs.leads(mine);
}

/// Compares with the branch that leads so far, from the last state that both have.
bool chain_follower::leads_ahead(const candidate& what, const progress_table& claims) const {
  const auto earlier = std::min(what.fork.epoch, fork_.epoch);
  const auto from = [&](const chain_point& fork, const std::vector<step_ptr>& steps) {
    std::vector<step_ptr> out;
    for (auto epoch = earlier + 1; epoch <= fork.epoch; ++epoch) out.push_back(own_.step_to(epoch));
    out.insert(out.end(), steps.begin(), steps.end());
    return out;
  };
  auto theirs = from(what.fork, what.steps), best = from(fork_, ahead_);
  std::size_t same = 0;
  while (same < theirs.size() && same < best.size() && theirs[same]->after == best[same]->after)
    ++same;
  const auto common =
      same > 0 ? best[same - 1]->after : (what.fork.epoch < fork_.epoch ? what.fork : fork_);
  const auto rest = [&](std::vector<step_ptr>& of) {
    const auto steps = std::span<const step_ptr>(of).subspan(same);
    auto out = weight_of(common, steps);
    // The chains may part beyond the own chain, where this peer knows of no followers' steps.
    if (own_.contains(common)) out.supporters = supporters_of(common, steps, claims).size();
    return out;
  };
  return rest(theirs).leads(rest(best));
}

} // namespace shoal::actors
