// Audits of a pipeline's trainer: other peers compute drawn outputs again (stage_audit.hpp).
#include "actors/inference/activations.hpp"
#include "actors/inference/output_check.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/pipeline_trainer.hpp"

#include <utility>

namespace shoal::actors {

using pass_kind = micro_batch::task_kind;

/// The trainer draws after the answer, so that no peer knows which of its outputs will be checked.
void pipeline_trainer::draw_audit(const micro_batch& pass, micro_batch::task what, peer_id by,
                                  const stage_output& m) {
  if (options_.audit_share <= 0 || audit_draws_.uniform() >= options_.audit_share) return;
  // The gradient of the first hop's parameters stays at its peer.
  if (what.kind == pass_kind::backward && what.hop == 0) return;
  const auto* peer = stages_.find(by);
  if (peer == nullptr || peer->epoch != epoch_) return;
  auto task = task_of(pass, what);
  auto first = opinion_of(by, task, m);
  const auto number = task.number;
  task.number = ++numbers_; // as that of a further micro-batch
  const auto audit =
      audits_
          .emplace(task.number, running_audit{stage_audit(std::move(first), options_.model->width(),
                                                          check_tolerance(options_.activations)),
                                              std::move(task), number, peer->state})
          .first;
  audit->second.without.insert(by);
  ask_auditor(audit);
}

stage_audit::opinion pipeline_trainer::opinion_of(peer_id by, const stage_task& task,
                                                  const stage_output& m) const {
  auto values = unpack_activations(options_.activations, m.values, task.count * task.time,
                                   options_.model->width(), options_.model->sized_values());
  return {by, values ? std::move(*values) : std::vector<float>{},
          static_cast<double>(m.loss_nanos) * 1e-9};
}

/// Any peer of the stage with the same parameters, so that no peer can tell where its outputs go.
void pipeline_trainer::ask_auditor(std::map<std::uint64_t, running_audit>::iterator audit) {
  auto& [number, one] = *audit;
  if (one.asked != 0) one.without.insert(one.asked);
  const auto stage = options_.model->stage_of(one.task.hop);
  const auto away = banned();
  std::vector<const known_stages::peer*> able;
  std::vector<peer_id> ids;
  for (const auto& [peer, known] : stages_.peers())
    if (known.stage == stage && known.epoch == epoch_ && known.state == one.state &&
        !one.without.contains(peer) && !away.contains(peer)) {
      able.push_back(&known);
      ids.push_back(peer);
    }
  if (able.empty()) {
    const bool differ = one.of.opinions() > 1;
    if (differ) one.of.give_up();
    return end_audit(audit, differ ? audit_end::disputed : audit_end::unfinished);
  }
  const auto chosen = audit_draws_.below(able.size());
  one.asked = ids[chosen];
  const bool backward = one.task.backward != 0;
  set_timer(sent_.timeout_of({backward ? pass_kind::backward : pass_kind::forward, one.task.hop}),
            audit_timer, number);
  send(able[chosen]->address, one.task);
}

void pipeline_trainer::audit_answered(const stage_output& m) {
  const auto audit = audits_.find(m.number);
  auto& one = audit->second;
  if (sender_peer() != one.asked || m.hop != one.task.hop || m.backward != one.task.backward ||
      m.epoch != one.task.epoch)
    return;
  switch (one.of.add(opinion_of(one.asked, one.task, m))) {
  case stage_audit::verdict::right:
    return end_audit(audit, audit_end::right);
  case stage_audit::verdict::wrong:
    convict(one);
    audits_.erase(audit);
    return pump();
  default:
    return ask_auditor(audit);
  }
}

void pipeline_trainer::end_audit(std::map<std::uint64_t, running_audit>::iterator audit,
                                 audit_end how) {
  const auto& one = audit->second;
  here().observe(stage_audited{one.task.epoch, options_.model->stage_of(one.task.hop), one.task.hop,
                               one.task.backward != 0, one.number, one.of.opinions(), how, 0});
  audits_.erase(audit);
}

/// The tasks that the peers have now go to others. Gradients that have counted at them stay: they
/// are in the sums of the peers, which other peers average.
void pipeline_trainer::convict(const running_audit& audit) {
  for (const auto peer : audit.of.wrong_peers()) {
    // Another audit was under way when the peer was banned.
    if (const auto ban = bans_.find(peer); ban != bans_.end() && ban->second == duration::max())
      continue;
    here().observe(stage_audited{audit.task.epoch, options_.model->stage_of(audit.task.hop),
                                 audit.task.hop, audit.task.backward != 0, audit.number,
                                 audit.of.opinions(), audit_end::wrong, peer});
    misbehaviour(peer, "stage_output: two other hosts of the stage compute other values");
    bans_[peer] = duration::max();
    for (const auto& each : sent_.drop_all_of(peer)) {
      note_failure(each.number, each.task, task_failure::banned);
      passes_.at(each.number).failed(each.task, peer);
    }
  }
}

} // namespace shoal::actors
