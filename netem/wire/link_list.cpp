#include "netem/wire/link_list.hpp"

#include <algorithm>

namespace shoal::netem::wire {

using link_ptr = link_list::link_ptr;

link_ptr link_list::whole(const link_ptr& given) const {
  const auto found = joined_.find(given.get());
  return found == joined_.end() ? given : found->second;
}

link_ptr link_list::hello_came(const link_ptr& of, int which, const hello& theirs) {
  if (of->closed) return nullptr;
  of->theirs = theirs;
  of->pipes[which].hello = true;
  if (of->relayed) return of->pipes[1 - which].hello ? of : nullptr;
  const auto half = std::find_if(links_.begin(), links_.end(), [&](const auto& l) {
    return l != of && !l->dialled && !l->up && !l->closed && l->theirs.link == theirs.link &&
           l->theirs.name == theirs.name && l->pipes[1 - which].hello && !l->pipes[which].through &&
           l->certified.name == of->certified.name &&
           l->certified.identity == of->certified.identity;
  });
  if (half == links_.end()) return nullptr;
  // The control pipe's half remains. From now on, frames of the other half belong to it.
  auto whole = which == 0 ? of : *half;
  auto other = which == 0 ? *half : of;
  whole->pipes[1] = std::move(other->pipes[1]);
  whole->last_sent[1] = other->last_sent[1].load();
  other->pipes[1] = {};
  joined_[other.get()] = whole;
  other->closed = true;
  std::erase(links_, other);
  return whole;
}

link_ptr link_list::close(const link_ptr& given) {
  auto of = whole(given);
  joined_.erase(given.get());
  if (of->closed.exchange(true)) return nullptr;
  std::erase(links_, of);
  std::erase_if(joined_, [&](const auto& entry) { return entry.second == of; });
  return of;
}

std::vector<link_ptr> link_list::close_all() {
  std::vector<link_ptr> out;
  out.swap(links_);
  for (const auto& each : out) each->closed = true;
  return out;
}

std::vector<link_ptr> link_list::up() const {
  std::vector<link_ptr> out;
  for (const auto& each : links_)
    if (each->up) out.push_back(each);
  return out;
}

std::size_t link_list::waiting_of(const certified_member& owner) const {
  if (owner.identity.empty()) return 0;
  return static_cast<std::size_t>(std::count_if(links_.begin(), links_.end(), [&](const auto& l) {
    return !l->up && !l->dialled && l->certified.identity == owner.identity;
  }));
}

std::vector<link_ptr> link_list::with(host_index host) const {
  std::vector<link_ptr> out;
  for (const auto& each : links_)
    if (each->host == host) out.push_back(each);
  return out;
}

std::vector<link_ptr> link_list::same_way(const host_link& of) const {
  std::vector<link_ptr> out;
  for (const auto& each : links_)
    if (each.get() != &of && each->up && each->host == of.host && each->dialled == of.dialled &&
        (!of.relayed || each->relayed))
      out.push_back(each);
  return out;
}

link_ptr link_list::up_with(host_index host) const {
  for (const auto& each : links_)
    if (each->up && each->host == host) return each;
  return nullptr;
}

std::vector<link_ptr> link_list::over_relay(const link_ptr& relay) const {
  std::vector<link_ptr> out;
  for (const auto& each : links_)
    if (each->relay.lock() == relay) out.push_back(each);
  return out;
}

link_ptr link_list::over_relay(const link_ptr& relay, const node_key& other,
                               std::uint64_t token) const {
  for (const auto& each : links_)
    if (each->relayed == other && each->token == token && each->relay.lock() == relay) return each;
  return nullptr;
}

std::vector<std::shared_ptr<pipe>> pipes_of(const host_link& of) {
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& direction : of.pipes)
    if (direction.through) out.push_back(direction.through);
  return out;
}

} // namespace shoal::netem::wire
