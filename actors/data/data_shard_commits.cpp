// The data shard: commits, and the proofs of their rounds.
#include "actors/data/data_shard.hpp"
#include "actors/data/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/host.hpp"
#include "actors/trust/known_groups.hpp"

#include <caf/actor_cast.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shoal::actors {

namespace {

bool are_whole(const commit& what) {
  return what.parts_total > 0 &&
         std::all_of(what.entries.begin(), what.entries.end(),
                     [&](const auto& one) { return one.parts_included <= what.parts_total; });
}

} // namespace

// -- arrival --------------------------------------------------------------------------------------

data_shard::handed_in data_shard::received(const commit& what) {
  return {what, sender_member(),
          [this, sender = caf::actor_cast<caf::actor>(current_sender()), group = what.group] {
            if (sender) send(sender, commit_received{group});
          }};
}

void data_shard::on_commit(const commit& what) {
  take(received(what));
}

void data_shard::on_commit(const proven_commit& what) {
  const auto& round = what.what.group;
  if (settings_.proves_rounds && !sender_member().is_zero() &&
      check_proof(round, what.by, false) == proof::holds)
    round_proven(round);
  take(received(what.what));
}

void data_shard::refer_to_primary() {
  if (const auto sender = caf::actor_cast<caf::actor>(current_sender()))
    send(sender, not_primary{replica_->known_primary()});
}

void data_shard::refuse(const handed_in& what, std::string why) {
  // A joiner hands in what its donors offered, and cannot check it. So the sender may be innocent.
  misbehaviour(0, "commit: " + std::move(why));
  // Also confirmed, so that the sender does not repeat it.
  replicate(what.then);
}

void data_shard::take(handed_in what) {
  if (what.member.is_zero()) return sender_misbehaves("commit: from nobody");
  if (what.what.entries.size() > settings_.max_entries) return refuse(what, "too many members");
  if (!are_whole(what.what)) return refuse(what, "a round of that many parts");
  if (!settings_.proves_rounds) return take_unproven(what);
  if (proofs_.proven(what.what.group)) return take_proven(what);
  if (!proofs_.wait(
          {what.what, what.member, caf::actor_cast<caf::actor>(current_sender()), what.then},
          now()))
    return refuse(what, "too many rounds without proof");
  wait_for_proofs();
}

void data_shard::take_unproven(const handed_in& what) {
  // A commit with any error is refused as a whole.
  std::vector<committed_entry> entries;
  for (const auto& entry : what.what.entries) {
    auto ranges = checked_ranges(entry.ranges, settings_.max_ranges);
    if (!ranges) return refuse(what, ranges.error());
    entries.push_back({entry.peer, what.member, std::move(*ranges), entry.parts_included});
  }
  if (auto said = commit_is_plausible(what, entries); !said) return refuse(what, said.error());
  commit_when_known(what, std::move(entries));
}

void data_shard::take_proven(const handed_in& what) {
  auto agreed = proofs_.agreed(what.what);
  if (!agreed) return refuse(what, agreed.error());
  // Each member signed its samples, so its own budgets pay for them, and not the sender's.
  std::vector<committed_entry> entries;
  for (auto& one : *agreed) {
    const auto claimed = ledger_->unrecorded(one.ranges);
    if (claimed > budgets_.left(one.member, member_budgets::claimed, now()) ||
        budgets_.left(one.member, member_budgets::reported, now()) == 0)
      misbehaviour(one.peer, "commit: more samples of other shards than one member may claim");
    else
      entries.push_back({one.peer, one.member, std::move(one.ranges), one.parts_included});
  }
  commit_when_known(what, std::move(entries));
}

result<void> data_shard::commit_is_plausible(const handed_in& what,
                                             std::span<const committed_entry> entries) const {
  std::size_t count = 0;
  std::uint64_t claimed = 0;
  for (const auto& each : entries) {
    count += each.ranges.size();
    claimed += ledger_->unrecorded(each.ranges);
  }
  if (count > settings_.max_ranges) return failure{"too many ranges of samples"};
  // Without the limit, a member could fill the memory with samples that no shard has issued.
  if (claimed > budgets_.left(what.member, member_budgets::claimed, now()))
    return failure{"claims more samples of other shards than one member may"};
  if (budgets_.left(what.member, member_budgets::reported, now()) == 0)
    return failure{"too many commits that contradict others"};
  return {};
}

// -- proofs ---------------------------------------------------------------------------------------

data_shard::proof data_shard::check_proof(const group_id& round, const certified_round& by,
                                          bool complete) {
  if (proofs_.proven(round)) return proof::holds;
  const auto member = sender_member();
  const auto wrong = [&](const std::string& why) {
    budgets_.take(member, member_budgets::false_proofs, 1, now());
    sender_misbehaves("commit: " + why);
    return proof::wrong;
  };
  if (budgets_.left(member, member_budgets::false_proofs, now()) == 0)
    return wrong("too many false certificates");
  if (!sensible(by) || by.roster.members.size() > settings_.max_entries)
    return wrong("a certificate that no round has");
  const auto certificate = certificate_of(by);
  if (certificate->round() != round) return wrong("the certificate of another round");
  for (const auto& who : certificate->roster.members)
    if (here().peer_of(caf::actor_cast<caf::strong_actor_ptr>(who.address)) != who.peer)
      return wrong("a member of the round has an address of another peer");
  if (auto fine = check(*certificate, here()); !fine) {
    const auto is_signed =
        check(*certificate, [this](const auto& key, const auto& text, const auto& with) {
          return here().is_signed_by(key, text, with);
        });
    if (complete || !is_signed) return wrong(fine.error());
    // This host has had no link to enough of the voters.
    budgets_.take(member, member_budgets::false_proofs, 1, now());
    return proof::incomplete;
  }
  proofs_.prove(*certificate);
  const auto members = certificate->roster.members.size();
  if (settings_.judging_members > 0 && members >= settings_.judging_members)
    here().remember_group(round, keys_of(certificate->roster));
  return proof::holds;
}

void data_shard::on_proof(const commit_proof& what) {
  const auto member = sender_member();
  // Another member may have been faster.
  if (!proofs_.was_asked(what.group, member)) return;
  auto said = proof::wrong;
  if (what.lacks == 0) {
    for (const auto& one : what.admitted) here().admits(one.key, one.text);
    said = check_proof(what.group, what.by, what.complete != 0);
  }
  if (said == proof::holds) return round_proven(what.group);
  if (said == proof::incomplete)
    return send(caf::actor_cast<caf::actor>(current_sender()), proof_wanted{what.group, 1});
  // A peer that only passes a commit on may lack the proof.
  for (auto& one : proofs_.take_of(what.group, member)) replicate(one.then);
  ask_for_proofs();
}

void data_shard::round_proven(const group_id& round) {
  for (auto& one : proofs_.take(round))
    take_proven({std::move(one.what), one.member, std::move(one.then)});
}

void data_shard::ask_for_proofs() {
  for (const auto& question : proofs_.ask(now())) send(question.to, proof_wanted{question.round});
  wait_for_proofs();
}

void data_shard::wait_for_proofs() {
  if (proofs_.waits() && !std::exchange(proof_timer_runs_, true))
    set_timer(proofs_.period(), proof_timer);
}

void data_shard::on_proof_timer() {
  proof_timer_runs_ = false;
  // Silence is no lie: the questions or the proofs may have been lost. The member repeats its
  // commit, because nobody confirms it.
  proofs_.take_hopeless(now());
  ask_for_proofs();
}

// -- the ledger -----------------------------------------------------------------------------------

void data_shard::commit_when_known(const handed_in& what, std::vector<committed_entry> entries) {
  bool known = true;
  for (const auto& one : entries) {
    budgets_.take(one.charged, member_budgets::claimed, ledger_->unrecorded(one.ranges), now());
    known = known && (!replica_ ||
                      ledger_->may_be_leased_elsewhere(ledger_->unknown_to(one.peer, one.ranges)));
  }
  if (known) return commit_all(what, entries);
  // Without room the commit has no answer, so that its sender repeats it.
  when_roles_confirmed(what.member,
                       [this, what, entries = std::move(entries)] { commit_all(what, entries); });
}

void data_shard::commit_all(const handed_in& what, std::span<const committed_entry> entries) {
  for (const auto& one : entries) commit_one(what.what, one);
  replicate(what.then);
}

void data_shard::commit_one(const commit& what, const committed_entry& entry) {
  const auto peer = entry.peer;
  auto result = ledger_->commit(peer, entry.ranges, what.epoch, what.group, entry.parts_included,
                                what.parts_total);
  budgets_.take(entry.charged, member_budgets::reported,
                result.repeated.size() + result.disputed.size(), now());
  // Without a proof, another peer may have written this entry.
  if (!result.unknown.empty())
    misbehaviour(settings_.proves_rounds ? peer : 0, "commit: samples that their peer never got");
  moved(sample_state::committed, peer, std::move(result.committed), what, entry.parts_included);
  moved(sample_state::partial, peer, std::move(result.partial), what, entry.parts_included);
  if (!result.returned.empty()) {
    tell_lost(peer, result.returned);
    moved(sample_state::returned, peer, std::move(result.returned), what, entry.parts_included);
  }
  for (auto& other : result.revoked) {
    tell_lost(other.peer, std::move(other.ranges));
    forget_idle(other.peer);
  }
  if (!result.repeated.empty())
    here().observe(samples_reported{"repeated: two peers may have used them", peer, what.epoch,
                                    std::move(result.repeated)});
  if (!result.disputed.empty())
    here().observe(samples_reported{"disputed: members of the round say different parts", peer,
                                    what.epoch, std::move(result.disputed)});
  forget_idle(peer);
}

} // namespace shoal::actors
