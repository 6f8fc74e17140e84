// Handles the events and observations of a run in progress.
#include "actors/averaging/observations.hpp"
#include "actors/data/observations.hpp"
#include "actors/experts/observations.hpp"
#include "actors/failpoints.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/runner/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

/// Decides whether a host takes a branch of actors/failpoints.hpp. The seed enables half of the
/// branches, the same ones at each host (swarm testing). Each host has its own random stream.
bool runner::state::takes_failpoint(netem::host_index host, std::string_view branch) {
  const auto& all = actors::failpoint::all;
  const auto number =
      static_cast<std::uint64_t>(std::find(all.begin(), all.end(), branch) - all.begin());
  if (stream(what.seed, "rare.branches", number).uniform() < 0.5) return false;
  std::lock_guard guard(watching);
  if (over ||
      failpoint_draws.try_emplace(host, stream(seed(), "rare", host)).first->second.uniform() >=
          what.failpoints)
    return false;
  if (options.on_failpoint) options.on_failpoint(branch);
  return true;
}

void runner::state::on_event(const netem::delivered_event& event) {
  auto killed = event.kind == netem::event_kind::host_killed;
  auto machine = killed ? in->net().machine_of(event.to.host) : 0;
  auto id = killed ? in->peer_id_of(event.to.host) : 0;
  std::lock_guard guard(watching);
  if (over) return;
  if (killed && !simulated()) dead.insert(id);
  auto in_order = event;
  in_order.time = stamp(event.time);
  observers->on_event(in_order);
  if (killed) nodes.erase(machine);
  if (!killed || !peer_of.contains(machine)) return;
  auto by = in->net().died_by(event.to.host);
  observers->on_host_killed(in_order.time, id,
                            by == netem::kill_scope::machine ? "machine_killed" : "process_killed");
  open_rounds.erase(id);
  peers.erase(machine);
}

/// Saves a checkpoint when the first peer reaches an epoch. All peers that reach the epoch by steps
/// hold the same bits. If groups average parameters, the peers' states differ but are equally good.
void runner::state::keep_checkpoint(const actors::state_ptr& state, std::uint64_t data_from) {
  std::lock_guard guard(watching);
  if (checkpoint_error || !checkpoint_epochs.insert(state->epoch).second) return;
  // With groups, other peers may have used later samples than this peer heard of.
  if (traits_of(what).averages_parameters) data_from += count_of(what) * what.data.prefetch_samples;
  const auto name = fmt::format("epoch-{}.ckpt", state->epoch);
  if (auto saved =
          work->save(*state, data_before() + data_from, (checkpoint_folder / name).string());
      !saved)
    checkpoint_error = failure{saved.error()};
}

/// The model's state at this epoch is there.
void runner::state::held_out_at(std::uint64_t epoch) {
  if (held_out_next == 0 || epoch < held_out_next) return;
  const auto every = what.record.held_out_every;
  held_out_next = (epoch / every + 1) * every;
  held_out_due = true;
}

void runner::state::on_observation(const actors::host& from, const actors::observation& seen) {
  auto machine = in->net().machine_of(in->index_of(from));
  auto now = in->clock().now();
  std::lock_guard guard(watching);
  // Ignore an actor whose host another thread has killed meanwhile.
  if (over || dead.contains(from.id())) return;
  observers->on_observation(stamp(now), from.id(), machine, from.name(), seen);
  if (options.node) reported.observe(now, seen);
  rounds.observe(from.id(), seen);
  if (options.on_observation) options.on_observation(from, seen);
  if (actors::holds_alternative<actors::contributed>(seen)) {
    ++rounds_asked;
    ++open_rounds[from.id()];
  } else if (auto* ended = actors::get_if<actors::round_ended>(&seen)) {
    if (!ended->group.is_zero()) --open_rounds[from.id()];
  } else if (const auto* moved = actors::get_if<actors::samples_moved>(&seen)) {
    if (moved->to == actors::sample_state::committed) {
      committed_epochs = std::max(committed_epochs, moved->epoch + 1);
      goal.committed(moved->epoch, now);
    }
  } else if (auto* step = actors::get_if<actors::stepped>(&seen)) {
    // Without a host that has the whole model, its state comes later.
    if (!traits_of(what).has_experts) held_out_at(step->epoch);
    if (goal.stepped(step->epoch, now)) in->clock().at(now, [this] { drain(); });
  } else if (const auto* part = actors::get_if<actors::stage_stepped>(&seen)) {
    // The process of a stage sees no step of the whole model.
    if (options.node && goal.stepped(part->epoch, now)) in->clock().at(now, [this] { drain(); });
  } else if (const auto* joined = actors::get_if<actors::stage_joined>(&seen)) {
    if (goal.adopted(joined->epoch, now)) in->clock().at(now, [this] { drain(); });
  } else if (const auto* whole = actors::get_if<actors::model_gathered>(&seen)) {
    held_out_at(whole->epoch);
  } else if (const auto* followed = actors::get_if<actors::experts_followed>(&seen)) {
    // The process of a host of experts sees no step, and that of a late trainer may see none.
    if (options.node && goal.stepped(followed->epoch, now))
      in->clock().at(now, [this] { drain(); });
  } else if (const auto* took = actors::get_if<actors::adopted>(&seen)) {
    if (goal.adopted(took->epoch, now)) in->clock().at(now, [this] { drain(); });
  }
}

} // namespace shoal::scenarios
