#include "actors/training/state_cache.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <limits>

namespace shoal::actors {

void state_cache::put(state_ptr before, std::optional<taken_step> step, duration now) {
  const auto id = before->id;
  const auto epoch = before->epoch;
  entries_.push_back({std::move(before), id, epoch, std::move(step)});
  trim(now);
}

const state_cache::entry* state_cache::latest(const id128& object) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const entry& e) {
    return e.is_state(object) || e.is_step(object);
  });
  return found == entries_.rend() ? nullptr : &*found;
}

std::shared_ptr<const shared_object>
state_cache::find(const id128& object, const state_ptr& current, std::uint64_t chunk_bytes) {
  const auto& wanted = object.is_zero() ? current->id : object;
  const auto fresh = [&](const shared_object& made) {
    const auto& offer = made.offer();
    // The current state may be the same for several epochs.
    if (wanted == current->id) return offer.epoch == current->epoch;
    if (offer.object == offer.state) return true;
    // Two steps may lead on from one state. A download under way keeps the step with which it
    // began.
    const auto* last = latest(wanted);
    return last == nullptr || (last->step && last->step->after == offer.state) || leased(wanted);
  };
  if (auto known = cut_.find(wanted); known != cut_.end() && fresh(*known->second))
    return known->second;
  const auto cut = [&](auto&&... from) {
    return cut_[wanted] = std::make_shared<const shared_object>(from..., chunk_bytes);
  };
  if (wanted == current->id) return cut(*current);
  const auto* last = latest(wanted);
  if (last == nullptr) return nullptr;
  return last->is_state(wanted) ? cut(*last->state) : cut(last->id, *last->step);
}

state_ptr state_cache::state_of(const state_id& id) const {
  for (auto e = entries_.rbegin(); e != entries_.rend(); ++e)
    if (e->is_state(id)) return e->state;
  return nullptr;
}

bool state_cache::leased(const id128& object) const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [&](const lease& l) { return l.object == object; });
}

state_cache::lease* state_cache::find_lease(const caf::actor& who) {
  const auto address = caf::actor_cast<caf::actor_addr>(who);
  const auto found = std::find_if(leases_.begin(), leases_.end(),
                                  [&](const lease& l) { return l.who == address; });
  return found == leases_.end() ? nullptr : &*found;
}

std::uint64_t state_cache::uploads(duration now) {
  expire(now);
  return static_cast<std::uint64_t>(std::count_if(
      leases_.begin(), leases_.end(), [now](const lease& l) { return l.uploads_until > now; }));
}

bool state_cache::admit(const caf::actor& who, const member_id& member, const shared_object& object,
                        bool reserve, duration now) {
  expire(now);
  const auto address = caf::actor_cast<caf::actor_addr>(who);
  std::erase_if(leases_, [&](const lease& l) {
    return !member.is_zero() && l.member == member && l.who != address;
  });
  auto* known = find_lease(who);
  const bool has_place = known != nullptr && known->uploads_until > now;
  if (!reserve && !has_place && uploads(now) >= bounds_.uploads) return false;
  if (known == nullptr) {
    if (leases_.size() >= bounds_.leases) {
      const auto idle = std::find_if(leases_.begin(), leases_.end(),
                                     [now](const lease& l) { return l.uploads_until <= now; });
      if (idle == leases_.end()) return false;
      leases_.erase(idle);
    }
    known = &leases_.emplace_back();
    known->who = address;
    known->member = member;
  }
  const auto& offer = object.offer();
  known->object = offer.object;
  known->epoch = offer.object == offer.state ? offer.epoch : offer.epoch - 1;
  if (!reserve) known->uploads_until = now + bounds_.lease;
  known->expires = now + bounds_.lease;
  return true;
}

bool state_cache::renew(const caf::actor& who, const id128& object, duration now) {
  auto* known = find_lease(who);
  if (known == nullptr || known->object != object) return false;
  known->expires = now + bounds_.lease;
  return true;
}

void state_cache::release(const caf::actor& who) {
  if (auto* known = find_lease(who)) known->uploads_until = {};
}

void state_cache::expire(duration now) {
  std::erase_if(leases_, [&](const lease& l) { return l.expires <= now; });
}

void state_cache::trim(duration now) {
  expire(now);
  auto oldest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& l : leases_) oldest = std::min(oldest, l.epoch);
  // The oldest states are kept first: the downloads that began first keep their object longest.
  std::size_t pinned = 0;
  const auto old = entries_.size() - std::min(entries_.size(), bounds_.recent);
  for (std::size_t i = 0; i < old; ++i) {
    auto& e = entries_[i];
    if (e.state && (!leased(e.id) || ++pinned > bounds_.pinned)) e.state.reset();
    if (e.step && (e.epoch < oldest || i + bounds_.recent + bounds_.steps < entries_.size()))
      e.step.reset();
  }
  std::erase_if(entries_, [](const entry& e) { return !e.state && !e.step; });
  std::erase_if(cut_, [&](const auto& one) { return latest(one.first) == nullptr; });
}

void state_cache::clear() {
  entries_.clear();
  leases_.clear();
  cut_.clear();
}

} // namespace shoal::actors
