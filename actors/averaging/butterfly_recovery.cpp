// Losses: who is gone, whom a part is taken from then, and how it is reduced again. The rules are
// in butterfly.hpp.
#include "actors/averaging/butterfly.hpp"
#include "actors/averaging/guard.hpp"
#include "actors/probes.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

void butterfly::on_down(const caf::actor_addr& whom) {
  for (std::uint32_t m = 0; m < size_; ++m)
    if (m != self_ && caf::actor_cast<caf::actor_addr>(group_.members[m].address) == whom)
      lose_and_go_on(m, reason::sender_lost);
}

void butterfly::on(const member_declined& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "refusal of a group by a stranger")) return;
  if (!is_decline(message.member, message.by))
    return ban(message.member, "refusal of a group without a signature");
  if (take_decline(message.member, message.by))
    lose_and_go_on(message.member, reason::member_declined);
}

void butterfly::lose(std::uint32_t m, reason why) {
  auto& member = members_[m];
  member.down = true;
  member.lost = why;
  outbox_.drop(m);
  ballot_.lose(m);
  for (std::uint32_t p = 0; p < size_; ++p) {
    auto& part = parts_[p];
    part.receivers.erase(m);
    part.recovery.lose(m);
    leave_out(p, m, why);
  }
}

void butterfly::lose_and_go_on(std::uint32_t m, reason why) {
  if (members_[m].down) return;
  lose(m, why);
  for (std::uint32_t p = 0; p < size_ && !finished_; ++p) {
    look_for_source(p);
    gather(p);
    reduce(p);
  }
  finish_if_decided();
  fail_if_hopeless();
}

// -- the reducer of a part -----------------------------------------------------------------------

std::uint32_t butterfly::first_alive(std::uint32_t part) const {
  for (std::uint32_t step = 0; step < size_; ++step) {
    auto m = (part + step) % size_;
    if (!members_[m].down && (m == part || reachable(m))) return m;
  }
  return size_;
}

void butterfly::look_for_source(std::uint32_t p) {
  auto& part = parts_[p];
  if (finished_ || part.missing == 0) return;
  auto next = first_alive(p);
  if (next == part.source) return;
  part.source = next;
  if (next == size_)
    return fail(members_[p].lost == reason::member_declined ? reason::member_declined
                                                            : reason::reducer_lost);
  if (next == self_) return claim(p);
  if (!takes(self_)) return;
  chunk_set held(part.chunks.size());
  for (std::uint32_t k = 0; k < held.size(); ++k) held[k] = part.chunks[k].senders != nullptr;
  tell(next, caf::make_message(part_query{group_.group, self_, p, to_ranges(held)}));
}

void butterfly::on(const part_query& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "part query by a stranger")) return;
  if (message.part >= size_ || message.part == message.member ||
      (message.part != self_ && !reachable(self_)))
    return ban(message.member, "part query that makes no sense");
  auto& part = parts_[message.part];
  auto held = from_ranges(message.held, part.grid.count());
  if (!held || held->empty() || part.recovery.has_reported(message.member))
    return ban(message.member, "part query that makes no sense");
  if (finished_ && parts_missing_ > 0) return; // we failed, and said so
  part.recovery.reported(message.member, *held);
  part.receivers.insert_or_assign(message.member, std::move(*held));
  serve(message.member, message.part);
  gather(message.part);
}

// -- reducing what was somebody else's ------------------------------------------------------------

void butterfly::claim(std::uint32_t p) {
  parts_[p].recovery.reduce(chunk_set(parts_[p].chunks.size(), false));
  for (auto to : others_) tell(to, caf::make_message(part_claim{group_.group, self_, p}));
  io_.probe(probes::part_claimed);
}

void butterfly::on(const part_claim& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "claim by a stranger")) return;
  if (message.part >= size_ || parts_[message.part].grid.count() == 0 || message.part == self_)
    return ban(message.member, "claim that makes no sense");
  parts_[message.part].recovery.claimed_by(message.member);
  answer_claims(message.part);
}

void butterfly::answer_claims(std::uint32_t p) {
  if (parts_[p].missing > 0) return;
  for (auto m : parts_[p].recovery.take_claimants())
    tell(m, caf::make_message(part_answer{group_.group, self_, p}));
}

void butterfly::on(const part_answer& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "part answer by a stranger")) return;
  if (message.part >= size_ || message.part == self_ || parts_[message.part].source != self_)
    return ban(message.member, "part answer that nobody asked for");
  parts_[message.part].recovery.complete_at(message.member);
  gather(message.part);
}

/// We claimed the part: fetches the chunks that some member has. Once all members have spoken,
/// reduces the chunks that no member has.
void butterfly::gather(std::uint32_t p) {
  auto& part = parts_[p];
  if (finished_ || p == self_ || part.source != self_ || part.missing == 0) return;
  const auto next =
      part.recovery.gather([&](std::uint32_t k) { return part.chunks[k].senders != nullptr; });
  for (const auto& [m, chunks] : next.fetch)
    tell(m, caf::make_message(part_wanted{group_.group, self_, p, 1, to_ranges(chunks)}));
  for (auto m : others_)
    if (takes(m) && !members_[m].down && !part.recovery.has_spoken(m)) return;
  // Without a majority the work would be for nothing. A member that sees one may still bring us its
  // result.
  if (!next.any_left() || ballot_.possible() < majority()) return;
  if (!part.reduction) {
    part.reduction.emplace(part.grid, weights(), values_.is_size_only(), config_, io_.time(),
                           float_buffer{}, 0, extent());
    for (auto m : others_)
      if (members_[m].down || (guard_ != nullptr && !guard_->has_committed(m)))
        part.reduction->leave_out(m);
  }
  // An aggregator of whole parts wants all slices, also of chunks that are fetched; another time it
  // wants none.
  const auto wanting = part.reduction->open(next.left, io_.time());
  part.recovery.reduce_also(next.left);
  if (const auto slices = to_ranges(wanting); !slices.empty())
    for (auto m : others_)
      if (group_.members[m].weight > 0)
        tell(m, caf::make_message(part_wanted{group_.group, self_, p, 0, slices}));
  contribute(p, wanting);
}

void butterfly::on(const part_wanted& message, const caf::strong_actor_ptr& sender) {
  if (!listen_to(message.member, sender, "order by a stranger")) return;
  if (message.part >= size_) return ban(message.member, "order for a part that there is not");
  auto& part = parts_[message.part];
  auto chunks = from_ranges(message.chunks, part.grid.count());
  if (!chunks) return ban(message.member, "order for chunks that there are not");
  if (finished_ && parts_missing_ > 0) return; // we failed, and said so
  // A member gets each chunk once: one that could ask again and again would have our line for
  // itself.
  const bool reduced = message.reduced != 0;
  if (!reduced && (request_.weight == 0 || part.source != message.member || message.part == self_))
    return ban(message.member, "order for values by a member that does not reduce them");
  if (!reduced && guard_ != nullptr) guard_->send_hashes(message.part, message.member);
  const auto count = static_cast<std::uint32_t>(chunks->size());
  for (std::uint32_t k = 0; k < count; ++k) {
    if (!(*chunks)[k]) continue;
    if ((reduced && !part.chunks[k].senders) ||
        !part.recovery.give(message.member, reduced, k, count))
      return ban(message.member, "order for chunks that it has, or that we never said we have");
    outbox_.queue(message.member, {reduced, message.part, k});
  }
  pump(message.member);
}

// -- whether it can still end well ----------------------------------------------------------------

void butterfly::fail_if_hopeless() {
  if (finished_) return;
  auto alone = std::all_of(others_.begin(), others_.end(),
                           [this](std::uint32_t m) { return members_[m].down || apart(m); });
  if (!(alone && ballot_.own()) && ballot_.possible() >= majority()) return hopeless_since_.reset();
  if (!hopeless_since_) hopeless_since_ = io_.time();
  if (!alone && io_.time() - *hopeless_since_ < config_.sender_timeout)
    return ask_for_certificate(false);
  auto why = reason::no_majority;
  for (std::uint32_t p = 0; p < size_; ++p)
    if (parts_[p].missing > 0 && members_[p].down)
      why = members_[p].lost == reason::member_declined ? reason::member_declined
                                                        : reason::reducer_lost;
  fail(why);
}

} // namespace shoal::actors
