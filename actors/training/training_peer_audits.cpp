// Training peer: the contributions of other members that it computes again, and the members that
// sit out because they did not do their duties.
#include "actors/training/training_peer_parts.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/probation.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

// States that are kept for audits.
constexpr std::size_t most_judged = 32;
constexpr std::uint64_t most_judged_bytes = std::uint64_t{2} << 30;

/// The answer to a duty that this peer cannot do.
audit_done not_computed(const recomputation& what) {
  return {what.group, what.target, false, {}};
}

} // namespace

state_ptr training_peer::recent_state(const state_id& id) const {
  if (state()->id == id) return state();
  for (const auto& [since, kept] : parts_->judged)
    if (kept->id == id) return kept;
  return parts_->cache.state_of(id);
}

/// A member that keeps back its secret delays the draw of the validators. The swarm may have made
/// many steps by then, and jurors compute even later.
void training_peer::keep_judged_state() {
  if (!options_.averaging.guard || !traits_.streams_samples) return;
  const auto longest = options_.averaging.round_timeout + 2 * options_.averaging.guard->duty_time;
  auto& judged = parts_->judged;
  std::erase_if(judged, [&](const auto& one) {
    return one.second->id == state()->id || now() - one.first >= longest;
  });
  auto bytes = state()->bytes();
  for (const auto& [since, kept] : judged) bytes += kept->bytes();
  while (!judged.empty() && (judged.size() == most_judged || bytes > most_judged_bytes)) {
    bytes -= judged.front().second->bytes();
    judged.pop_front();
  }
  judged.emplace_back(now(), state());
}

void training_peer::on_audit(const audit_duty& message) {
  const auto& what = *message.what;
  const auto from = caf::actor_cast<caf::actor>(current_sender());
  auto at = traits_.streams_samples ? recent_state(what.state) : nullptr;
  if (!parts_->audits.add(message.what, from, std::move(at), now()))
    return send(from, not_computed(what));
  look_after_audits();
}

template <class Copies>
void training_peer::on_copies(const Copies& message) {
  const auto came = parts_->shard.take(message, current_sender(), now());
  on_samples(came);
  if (came && parts_->audits.came(message.range, message.data)) audit_next();
}
template void training_peer::on_copies(const sample_copies& message);
template void training_peer::on_copies(const proven_copies& message);

/// Asks for samples that are missing.
void training_peer::look_after_audits() {
  parts_->shard.ask_for_copies(parts_->audits.wanted(now()));
  give_up_late_audits();
}

void training_peer::give_up_late_audits() {
  auto late = parts_->audits.expired(now());
  if (!parts_->auditing && parts_->audit && parts_->audits.is_late(parts_->audit->what(), now()))
    late.push_back(std::exchange(parts_->audit, nullptr)->what());
  for (const auto& one : late) send(one.reply_to, not_computed(*one.what));
}

bool training_peer::audit_next() {
  if (parts_->auditing) return true;
  if (held().running()) return false;
  give_up_late_audits();
  auto& audit = parts_->audit;
  if (!audit) {
    auto next = parts_->audits.next();
    if (!next) return false;
    audit = std::make_shared<recomputing>(std::move(*next));
  }
  parts_->auditing = true;
  const auto samples = audit->next_samples();
  auto work = [pool = pool(), audit] { audit->compute_next(pool->work()); };
  compute(std::move(work), samples, [this] {
    parts_->auditing = false;
    if (parts_->audit->done()) {
      const auto ended = std::exchange(parts_->audit, nullptr);
      const auto& task = ended->what();
      send(task.reply_to, audit_done{task.what->group, task.what->target, true, ended->take()});
    }
    decide();
  });
  return true;
}

void training_peer::on_missed(const duty_missed& message) {
  parts_->duties.miss(actors::member_of(message.key), state()->epoch);
}

bool training_peer::on_probation() const {
  const auto& guard = options_.averaging.guard;
  return guard && guard->probation > 0 && follower() &&
         newcomers(follower()->own().steps(), guard->probation)
             .has(actors::member_of(here().key()));
}

void training_peer::judge_members(round_request& request) const {
  if (const auto& guard = options_.averaging.guard; guard && guard->probation > 0 && follower())
    request.on_probation =
        std::make_shared<const newcomers>(follower()->own().steps(), guard->probation);
  // A pause is counted in epochs. It would never end if the others are too few for a round, so then
  // nobody sits out.
  if (parts_->rounds.lacks_members()) return;
  request.sit_out = parts_->duties.out(request.epoch);
  request.bad_leaders.insert(request.sit_out.begin(), request.sit_out.end());
}

} // namespace shoal::actors
