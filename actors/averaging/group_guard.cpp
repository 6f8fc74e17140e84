// The group actor's part in a round with a guard: messages, timers, and the owner's computing.
#include "actors/averaging/group.hpp"
#include "actors/averaging/guard_observations.hpp"
#include "actors/trust/known_groups.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

caf::message_handler group_actor::guard_handlers() {
  return {
      [this](round_commitment& m) { for_guard(m); },
      [this](commitments_seen& m) { for_guard(m); },
      [this](commitments_given& m) { for_guard(m); },
      [this](chunk_hashes& m) { for_guard(m); },
      [this](part_sealed& m) { for_guard(m); },
      [this](secret_revealed& m) { for_guard(m); },
      [this](part_checks& m) { for_guard(m); },
      [this](audit_passed& m) { for_guard(m); },
      [this](accusation& m) { for_guard(m); },
      [this](opening_wanted& m) { for_guard(m); },
      [this](opening& m) { for_guard(m); },
      [this](juror_vote& m) { for_guard(m); },
      [this](audit_done& m) {
        if (guard_) guard_->recomputed(m);
        leave_if_idle();
      },
  };
}

template <class Message>
void group_actor::for_guard(Message& message) {
  if (guard_) {
    if (guard_->group() == message.group) guard_->on(message, current_sender());
    return leave_if_idle();
  }
  // A member waits for our commitment before it sends more than these.
  if constexpr (is_for_guard<Message>)
    if (rounds_.empty() && may_keep(message))
      early_.emplace_back(current_sender(), std::move(message));
}

void group_actor::begin_guard(butterfly& round) {
  SHOAL_CHECK(!has_second(), "a guard's round is the only one of its group");
  here().remember_group(round.group().group, keys_of(round.group()));
  auto draws = here().random_stream("guard." + round.group().group.hex());
  const key256 secret{draws.next(), draws.next(), draws.next(), draws.next()};
  guard_.emplace(options_, request_, round.group(), round.self(), round.contribution(), secret,
                 static_cast<round_io&>(*this), static_cast<guard_io&>(*this));
  round.guard_with(*guard_);
}

void group_actor::wake_in(duration time) {
  set_timer(time, guard_tick);
}
void group_actor::values_may_leave(const std::vector<std::uint32_t>& without) {
  rounds_.back().values_may_leave(without);
}
void group_actor::leave_out(std::uint32_t member, const char* why) {
  misbehaviour(begun_->members[member].peer, why);
  rounds_.back().leave_out_member(member, reason::bad_message);
}
bool group_actor::is_lost(std::uint32_t member) const {
  const auto lost = rounds_.back().lost_members();
  return std::any_of(lost.begin(), lost.end(),
                     [member](const auto& one) { return one.first == member; });
}
void group_actor::convict(const evidence& proof, std::uint32_t culprit) {
  // The host's DHT node bans the culprit, and tells the others.
  if (request_.dht) send(request_.dht, proof);
  misbehaviour(begun_->members[culprit].peer, "two signed statements that contradict each other");
  rounds_.back().leave_out_member(culprit, reason::bad_message);
}
void group_actor::convict(const verdict& proof, std::uint32_t culprit) {
  if (request_.dht) send(request_.dht, proof);
  misbehaviour(begun_->members[culprit].peer,
               fmt::format("lost a case about {}", name_of(static_cast<case_kind>(proof.kind))));
}
void group_actor::recompute(recomputation what) {
  send(owner_, audit_duty{std::make_shared<const recomputation>(std::move(what))});
}
void group_actor::note_failure(std::uint32_t member, std::string_view what) {
  here().observe(duty_failed{begun_->group, member, begun_->members[member].peer, what});
  send(owner_, duty_missed{begun_->group, member, begun_->members[member].key});
}
void group_actor::observe(const observation& what) {
  here().observe(what);
}

} // namespace shoal::actors
