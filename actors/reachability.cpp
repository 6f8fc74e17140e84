#include "actors/reachability.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <set>

namespace shoal::actors {

reachability::reachability(const reachability_config& config, rng draws)
    : config_(config), draws_(draws) {}

std::vector<std::pair<caf::actor, address_query>>
reachability::look(std::vector<other> others, const caf::actor& self,
                   const std::vector<caf::actor>& shards) {
  std::vector<std::pair<caf::actor, address_query>> out;
  if (others.empty()) return out;
  // Peers that say they are open come first, in random order, so that the queries of many askers
  // spread over them.
  draws_.shuffle(std::span(others));
  std::stable_partition(others.begin(), others.end(), [](const other& o) { return o.open; });
  std::set<member_id> members;
  std::erase_if(others, [&](const other& o) {
    return !o.member.is_zero() && !members.insert(o.member).second;
  });
  ++token_;
  looking_ = true;
  asked_.clear();
  self_ = self;
  const auto open = static_cast<std::size_t>(
      std::count_if(others.begin(), others.end(), [](const other& o) { return o.open; }));
  for (std::size_t i = 0; i < std::min<std::size_t>(config_.askers, others.size()); ++i) {
    address_query query{self, {}, token_};
    // The third host has to be one that the queried peer can reach. At first most peers have no
    // verdict yet, so an open one may be missing.
    const bool another_open = open > (i < open ? 1u : 0u);
    if (!another_open && in_vain_ > 0 && !shards.empty()) {
      query.third = shards[draws_.below(shards.size())];
    } else if (others.size() > 1) {
      const auto among = another_open ? open : others.size();
      auto third = static_cast<std::size_t>(draws_.below(among));
      if (third == i) third = (third + 1) % among;
      query.third = others[third].address;
    }
    asked_.push_back({others[i].address, query.third});
    out.emplace_back(others[i].address, std::move(query));
  }
  return out;
}

std::vector<std::pair<caf::actor, address_query>> reachability::again() const {
  std::vector<std::pair<caf::actor, address_query>> out;
  for (const auto& a : asked_)
    if (!a.answered || (a.third && !a.tested))
      out.emplace_back(a.who, address_query{self_, a.third, token_});
  return out;
}

reachability::asked* reachability::from(std::uint64_t token, const caf::strong_actor_ptr& sender) {
  if (!looking_ || token != token_ || !sender) return nullptr;
  auto found = std::find_if(asked_.begin(), asked_.end(), [&](const asked& a) {
    return caf::actor_cast<caf::strong_actor_ptr>(a.who) == sender;
  });
  return found == asked_.end() ? nullptr : &*found;
}

void reachability::on(const address_answer& message, const caf::strong_actor_ptr& sender) {
  auto* by = from(message.token, sender);
  // Late, or from a peer that was not queried.
  if (by == nullptr || by->answered) return;
  by->answered = true;
  by->seen = message.seen;
}

void reachability::on(const dial_answer& message, const caf::strong_actor_ptr& sender) {
  auto* by = from(message.token, sender);
  if (by == nullptr || by->tested || !by->third) return;
  by->tested = true;
  by->opened = message.opened != 0;
}

bool reachability::complete() const {
  return std::all_of(asked_.begin(), asked_.end(),
                     [](const asked& a) { return a.answered && (a.tested || !a.third); });
}

bool reachability::conclude(duration now) {
  looking_ = false;
  ++looks_;
  std::size_t tested = 0, opened = 0, answered = 0, silent = 0;
  std::map<std::uint64_t, std::size_t> seen;
  for (const auto& a : asked_) {
    tested += a.tested ? 1 : 0;
    opened += a.tested && a.opened ? 1 : 0;
    answered += a.answered ? 1 : 0;
    if (!a.answered) continue;
    silent += a.seen == 0 ? 1 : 0;
    if (a.seen != 0) ++seen[a.seen];
  }
  asked_.clear();
  self_ = nullptr;
  const auto before = known_;
  const bool open = 2 * opened > tested;
  const bool silence = 2 * silent > answered;
  if (tested == 0 || answered == 0 || (!open && !silence && answered - silent < 2)) {
    if (++in_vain_ >= config_.forget_after) known_ = reach::unknown;
  } else {
    in_vain_ = 0;
    std::size_t most = 0;
    for (const auto& [address, count] : seen) most = std::max(most, count);
    if (open)
      known_ = reach::open;
    else if (silence)
      known_ = reach::outbound_only;
    else
      known_ = 2 * most > answered - silent ? reach::cone : reach::symmetric;
  }
  next_look_ = now + (known_ == reach::unknown ? config_.timeout / 4 : config_.again);
  return known_ != before;
}

bool dial_helper::has_place(const errands& in, const member_id& by, std::size_t most) {
  const auto of_member =
      std::count_if(in.begin(), in.end(), [&](const auto& entry) { return entry.second.by == by; });
  return in.size() < most_open && static_cast<std::size_t>(of_member) < most;
}

std::optional<dial_request> dial_helper::asked(const address_query& query, const member_id& asker,
                                               const caf::actor& self, duration now,
                                               duration timeout) {
  std::erase_if(passing_, [&](const auto& entry) { return entry.second.until <= now; });
  if (!query.third || !has_place(passing_, asker, most_asked_by_member)) return std::nullopt;
  passing_.emplace(next_, errand{query.reply_to, query.token, query.third, now + timeout, asker});
  return dial_request{self, query.reply_to, next_++};
}

std::optional<dial_helper::reply> dial_helper::passed_on(const dial_answer& message,
                                                         const caf::strong_actor_ptr& sender) {
  auto found = passing_.find(message.token);
  if (found == passing_.end() || !sender ||
      caf::actor_cast<caf::strong_actor_ptr>(found->second.third) != sender)
    return std::nullopt;
  reply out{found->second.asker, {found->second.token, message.opened}};
  passing_.erase(found);
  return out;
}

std::optional<std::uint64_t> dial_helper::third(const dial_request& request,
                                                const member_id& sender) {
  if (!has_place(dialling_, sender, most_dials_for_member)) return std::nullopt;
  dialling_.emplace(next_, errand{request.reply_to, request.token, {}, {}, sender});
  return next_++;
}

bool dial_helper::dial(const dial_request& request, const caf::strong_actor_ptr& sender, host& by,
                       const caf::actor& self, duration timeout) {
  if (!request.reply_to || !request.target || !sender ||
      caf::actor_cast<caf::strong_actor_ptr>(request.reply_to) != sender)
    return false;
  if (const auto token = third(request, by.member_of(sender)))
    by.dial(request.target, timeout, self, *token);
  return true;
}

std::optional<dial_helper::reply> dial_helper::done(const dialled& outcome) {
  auto found = dialling_.find(outcome.token);
  if (found == dialling_.end()) return std::nullopt;
  reply out{found->second.asker,
            {found->second.token, static_cast<std::uint8_t>(outcome.opened ? 1 : 0)}};
  dialling_.erase(found);
  return out;
}

} // namespace shoal::actors
