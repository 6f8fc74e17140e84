// Advances the world's time to the goal of the run, and then until no work is under way.
#include "actors/host_messages.hpp"
#include "actors/trust/guard_options.hpp"
#include "scenarios/runner/run_state.hpp"

#include <caf/send.hpp>

#include <cmath>

namespace shoal::scenarios {

live_status runner::state::status(const char* doing) {
  std::lock_guard guard(watching);
  auto progress = observers->progress();
  if (role.shard) progress.epoch = std::max(progress.epoch, committed_epochs);
  return {progress,
          observers->rounds(),
          seconds_since(started),
          goal.epoch(),
          options.until.value_or(what.stop_time),
          doing,
          simulated()};
}

std::array<std::uint64_t, 4> runner::state::bytes_sent() const {
  std::array<std::uint64_t, 4> out{};
  if (!in) return out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in->net().traffic_bytes(i);
  return out;
}

void runner::state::drain() {
  if (draining.exchange(true)) return;
  churn->stop();
  faults->end();
  lines->stop();
  const auto now = in->clock().now();
  auto alive = [this, now] {
    std::lock_guard guard(watching);
    observers->on_ending(stamp(now));
    return peers;
  }();
  for (auto& [machine, peer] : alive) role_on(machine).drain(peer);
}

bool runner::state::quiet() const {
  for (auto machine : machines) {
    auto host = in->net().host_on(machine);
    if (host != netem::no_host && in->net().live_actors(host) > idle_actors(machine)) return false;
  }
  if (in->net().active_flows() > 0) return false;
  // Wait until two separated primaries have met, and until a replica that takes over is primary.
  if (shards.empty()) return true;
  const auto replicas = [this] {
    std::lock_guard guard(watching);
    return shards;
  }();
  const auto alive = [this](netem::machine_index machine) { return lives(machine); };
  const bool some = std::any_of(replicas.begin(), replicas.end(),
                                [&](const shard_unit& s) { return alive(s.machine); });
  return shards.size() == 1 || !some || primaries_of(replicas, alive) == 1;
}

/// Measures the held-out loss between two slices of time, on this thread. In sim, the virtual time
/// of the measurement is the same in each run. In emulate, the actors' threads go on. The
/// measurement takes no virtual time and leaves no event.
void runner::state::measure_held_out() {
  {
    std::lock_guard guard(watching);
    if (!std::exchange(held_out_due, false)) return;
  }
  auto loss = work->held_out_loss(*pool->best());
  if (!std::isfinite(loss)) return;
  std::lock_guard guard(watching);
  observers->on_held_out_loss(stamp(in->clock().now()), loss);
}

/// Exports for other programs between two slices of time. In sim this takes no virtual time.
void runner::state::export_if_due() {
  if (!exports || !exports->due(in->clock().now())) return;
  {
    std::lock_guard guard(watching);
    observers->flush();
  }
  // The export at the end reports the error, if it is still there.
  (void)exports->write();
}

void runner::state::run_until(duration end) {
  // A slice keeps its end when the world stops within it. So whatever is measured between slices is
  // measured at the same times with and without stops.
  for (; stops_passed < stops.size() && stops[stops_passed] <= end; ++stops_passed) {
    const duration stop = stops[stops_passed];
    if (stop > duration{}) in->clock().run(stop - duration(1));
    if (goal.reached() || in->broken() || in->clock().now() + duration(1) < stop) return;
    for (std::size_t i = 0; i < branches.size(); ++i)
      if (options.branches[i].at == stop) branches[i].reached = true;
    if (!options.on_moment) continue;
    std::lock_guard guard(watching);
    options.on_moment({stop, observers->event_hash().hex(), observers->progress().events,
                       seconds_since(started)});
  }
  in->clock().run(end);
}

duration runner::state::run_world(bool& interrupted) {
  auto limit = std::min(options.until.value_or(what.stop_time), what.stop_time);
  auto last_status = wall_clock::now() - std::chrono::hours(1);
  auto look = [&](const char* doing) {
    if (wall_clock::now() - last_status < std::chrono::milliseconds(200)) return;
    last_status = wall_clock::now();
    if (options.on_status) options.on_status(status(doing));
    if (told_to_leave || (options.interrupted && options.interrupted())) interrupted = true;
  };
  duration slice = std::chrono::milliseconds(100);
  auto written = [&] {
    std::lock_guard guard(watching);
    return !observers->write_error() && !checkpoint_error;
  };
  // A replica that only follows sees no step and no commit. For this replica the run is over when
  // all hosts have left for good. A peer that missed the last step has nobody to download it from
  // then.
  const auto end_if_deserted = [&] {
    std::lock_guard guard(watching);
    const auto since = deserted.since();
    if (since && in->clock().now() - *since >= deserted_for()) goal.deserted(*since);
  };
  while (!goal.reached() && !interrupted && in->clock().now() < limit && written() &&
         !in->broken()) {
    run_until(std::min(limit, in->clock().now() + slice));
    end_if_deserted();
    if (!goal.reached() && !in->broken()) measure_held_out();
    export_if_due();
    look("running");
    if (options.node) {
      const auto now = in->clock().now();
      std::lock_guard guard(watching);
      observers->on_time(stamp(now));
    }
  }
  auto ended = goal.reached() ? goal.time() : in->clock().now();
  drain();
  // Other hosts may be a step behind and still need this one. Stay for twice the time after which
  // they would consider this host dead.
  const auto stays = options.node && goal.reached()
                         ? in->clock().now() + 2 * what.network.detection_time
                         : duration{};
  auto deadline = in->clock().now() + 2 * what.averaging.round_timeout;
  // Members of a round stay until its audits and cases are over.
  if (what.security.kind == security_kind::btard)
    deadline += actors::guard_options::longest_stay(what.security.duty_time);
  do {
    in->clock().run(in->clock().now() + (simulated() ? duration(std::chrono::seconds(1)) : slice));
    look("ending");
  } while (((!quiet() && in->clock().now() < deadline) || in->clock().now() < stays) &&
           !in->broken());
  if (options.node) {
    const auto host = in->net().host_on(role.peer ? machines[*role.peer] : shards.front().machine);
    if (host != netem::no_host) {
      in->wire()->leave(host);
      const auto now = in->clock().now();
      const auto id = in->peer_id_of(host);
      std::lock_guard guard(watching);
      if (role.peer) observers->on_host_killed(stamp(now), id, "left");
    }
  }
  // From here on no thread serves the clock and no actor runs, so the observers can be read. The
  // wire's threads may still report.
  in->clock().settle();
  std::lock_guard guard(watching);
  over = true;
  return ended;
}

leak_facts runner::state::leaks() const {
  leak_facts out;
  const auto& net = in->net();
  out.bypassed = net.bypassed();
  out.messages = in->clock().messages_resumed();
  out.requests = rounds_asked;
  for (const auto& [peer, open] : open_rounds) out.requests_open += open;
  out.flows_of_dead_hosts = net.orphaned_flows();
  out.actors_alive = in->clock().live_actors();
  for (const auto& shard : shards)
    if (net.host_on(shard.machine) != netem::no_host) out.actors_expected += shard.idle_actors();
  for (const auto& [machine, peer] : peers) out.actors_expected += idle_actors(machine);
  return out;
}

} // namespace shoal::scenarios
