#include "scenarios/runner/runner.hpp"

#include "kernels/base/digest.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/record/ledger_file.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/runner/expectations.hpp"
#include "scenarios/runner/run_state.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr const char* checkpoints = "checkpoints";

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

} // namespace

bool has_nat(const scenario& what) {
  return std::any_of(what.peers.begin(), what.peers.end(),
                     [](const peer_group& group) { return group.nat != netem::nat_class::open; });
}

actors::reachability_config reachability_of(const scenario& what) {
  actors::reachability_config out;
  out.enabled = has_nat(what);
  // A swarm with a short refresh interval also waits less for a peer that does not answer.
  out.timeout = std::min(out.timeout, 2 * what.training.max_refresh);
  return out;
}

bool cuts_off(fault_kind what) {
  return what == fault_kind::partition || what == fault_kind::blackhole ||
         what == fault_kind::swizzle_clog || what == fault_kind::pause;
}

duration job_before_following(const scenario& what) {
  // An audit computes as long as a contribution, and goes on during the next rounds.
  if (!traits_of(what).computes_meanwhile && what.security.kind != security_kind::btard) return {};
  double job = 0;
  for (const auto& [name, device] : what.devices)
    job = std::max(job, static_cast<double>(what.training.micro_batch) / device.samples_per_second *
                                (1 + 4 * device.jitter) +
                            to_seconds(device.step_time));
  return from_seconds(job);
}

runner::runner(std::unique_ptr<state> s) : state_(std::move(s)) {}
runner::~runner() = default;

result<std::unique_ptr<runner>> runner::prepare(scenario what, runner_options options) {
  auto s = std::make_unique<state>();
  const auto& program = what.program.definition();
  if (!program.on_runner()) return failure{program.title + " is no training run"};
  if (what.world == "cluster" && !options.node)
    return failure{"world 'cluster' is run by one process for each host; see shoal node --help"};
  if (what.world != "sim" && what.world != "emulate" && what.world != "loopback" &&
      what.world != "cluster")
    return failure{
        fmt::format("there is no world '{}'; use --world sim, emulate or loopback", what.world)};
  if (what.world != "sim" && !(options.branches.empty() && options.moments.empty()))
    return failure{fmt::format("world {} is on the wall clock: only a run in sim repeats exactly, "
                               "so only that can branch",
                               what.world)};
  if (!options.out.empty())
    if (auto free = run_directory::check_free(options.out, options.force); !free)
      return failure{free.error()};
  s->hosts = expand_hosts(what);
  if (options.node) {
    auto role = role_of(what, *options.node, s->hosts);
    if (!role) return failure{role.error()};
    s->role = *role;
    if (auto can = can_behave(options.conduct, s->role, options.node->name); !can)
      return failure{can.error()};
    // Check the address before the run writes any file.
    if (options.node->listen)
      if (auto free = netem::wire::check_can_listen(*options.node->listen); !free)
        return failure{free.error()};
    options.baseline = false;
    what.expect.clear(); // expectations are about whole swarms
  }
  auto work =
      prepare_workload(what, !options.sizes_only && (!options.node || s->role.shard.has_value()));
  if (!work) return failure{work.error()};
  if (options.sizes_only) {
    auto sizes = what;
    sizes.workload = timing_of((*work)->work()->value_count(), (*work)->work()->sample_bytes());
    work = prepare_workload(sizes);
    if (!work) return failure{work.error()};
  }
  auto averaged = averaged_workload(what, (*work)->work());
  if (!averaged) return failure{averaged.error()};
  auto start = load_training_start(what, **averaged);
  if (!start) return failure{start.error()};
  if (what.data.corpus_samples > 0 && !options.sizes_only) {
    auto fixed = fixed_corpus(what, **work);
    if (!fixed) return failure{fixed.error()};
    s->corpus = {what.data.corpus_samples, fixed->root, *start ? (*start)->data_from : 0};
    s->corpus_tree = std::move(fixed->tree);
  }
  for (const run_branch& each : options.branches) {
    s->branches.push_back({each.seed});
    s->stops.push_back(each.at);
  }
  for (std::size_t i = 1; i < s->branches.size(); ++i) s->branches[i - 1].next = &s->branches[i];
  s->stops.insert(s->stops.end(), options.moments.begin(), options.moments.end());
  std::sort(s->stops.begin(), s->stops.end());
  s->stops.erase(std::unique(s->stops.begin(), s->stops.end()), s->stops.end());
  auto join_plan = plan_churn(what, s->hosts, s->branches.empty() ? nullptr : s->branches.data());
  if (!join_plan) return failure{join_plan.error()};
  auto lines = plan_lines(what);
  if (!lines) return failure{lines.error()};
  auto cores = std::max(1u, std::thread::hardware_concurrency());
  // On the wall clock, leave one core to the actors.
  if (options.threads == 0) options.threads = what.world == "sim" ? cores : std::max(1u, cores - 1);
  s->what = std::move(what);
  s->options = std::move(options);
  s->work = std::move(*work);
  s->averaged = std::move(*averaged);
  s->start = std::move(*start);
  s->join_plan = std::move(*join_plan);
  s->line_plans = std::move(*lines);
  if (auto done = s->load_known_bans(); !done) return failure{done.error()};
  return std::unique_ptr<runner>(new runner(std::move(s)));
}

std::string runner::state::run_yaml(bool interrupted) const {
  provenance made_by{std::string(version()), work->data_digest(), options.until, interrupted,
                     options.build};
  if (options.node) {
    const auto& node = *options.node;
    made_by.node = node.name;
    made_by.group = node.group;
    made_by.address = !node.advertise.empty() ? node.advertise
                      : node.listen           ? node.listen->text()
                                              : std::string{};
    for (const auto& other : node.join)
      made_by.joins += (made_by.joins.empty() ? "" : " ") + other.text();
    made_by.invitation = node.invitation;
    made_by.insecure = !node.credentials;
  }
  if (!simulated()) made_by.started_utc_ns = started_utc_ns;
  made_by.branches = options.branches;
  return to_yaml(what) + to_yaml(made_by);
}

result<void> runner::state::write(const run_directory& to, const summary& result,
                                  bool interrupted) const {
  if (auto done = to.write("run.yaml", run_yaml(interrupted)); !done) return done;
  if (!shards.empty())
    if (auto done = write_ledger(to.file("ledger.csv").string(), ledger()); !done) return done;
  if (auto done = rounds.write(to.file("rounds.csv").string()); !done) return done;
  // A peer of a cluster has no ledger, so it counts only the samples that it heard of. A later run
  // from this checkpoint can set the first sample itself.
  if (auto best = pool->best(); best && has_model()) {
    const auto used = shards.empty() ? best->samples : ledger().high_water();
    if (auto done = work->save(*best, data_before() + used, to.file("final.ckpt").string()); !done)
      return done;
  }
  return to.write("summary.json", to_json(result));
}

std::string runner::advice() const {
  const auto& s = *state_;
  const auto& work = *s.work->work();
  if (s.simulated() || work.is_size_only()) return {};
  // Compare the rate of all devices with the rate of the compute threads.
  auto batch = s.what.training.micro_batch;
  std::vector<std::byte> samples(batch * work.sample_bytes());
  for (std::uint64_t i = 0; i < batch; ++i)
    s.work->source()->read(
        i, std::span(samples).subspan(i * work.sample_bytes(), work.sample_bytes()));
  auto state = work.initial();
  std::vector<double> gradient(work.value_count());
  prepare_compute_thread();
  work.accumulate(state, samples, batch, gradient); // warms up
  auto start = wall_clock::now();
  work.accumulate(state, samples, batch, gradient);
  auto possible = static_cast<double>(batch) / seconds_since(start) * s.options.threads;
  double wanted = 0;
  for (const auto& host : expand_hosts(s.what))
    if (host.role->trains) wanted += s.what.devices.at(host.device).samples_per_second;
  if (wanted <= 0.9 * possible) return {};
  std::string fits;
  for (const auto& [name, device] : s.what.devices)
    fits += fmt::format(" --set devices.{}.samples_per_second={:.2g}", name,
                        device.samples_per_second * 0.8 * possible / wanted);
  return fmt::format("the devices compute {:.0f} samples/s together, this machine about {:.0f}: "
                     "steps will be late and "
                     "times will not be those of the scenario. This fits:{}",
                     wanted, possible, fits);
}

double runner::state::measure_first(run_outcome& into) {
  const auto first = first_state();
  if (!has_model()) return std::numeric_limits<double>::quiet_NaN();
  into.text_prompt = work->sample_prompt();
  into.text_before = work->sample_text(first, what.seed);
  return work->held_out_loss(first);
}

void runner::state::compare(std::uint64_t steps, summary::losses& losses, run_outcome& into) {
  const auto began = wall_clock::now();
  auto told = began - std::chrono::hours(1);
  reference_options how{steps, options.threads, {}};
  how.on_step = [&](std::uint64_t step) {
    const auto now = wall_clock::now();
    if (options.on_status && now - told >= std::chrono::milliseconds(200)) {
      told = now;
      auto seen = status("baseline");
      seen.reference = {step, steps, seconds_since(began)};
      options.on_status(seen);
    }
    into.comparison_ended = options.interrupted && options.interrupted();
    return !into.comparison_ended;
  };
  if (options.on_status) options.on_status(status("baseline"));
  const auto references = work->references(how);
  losses.baseline = finite(references.baseline);
  losses.bigram = finite(references.bigram);
}

end_facts runner::state::facts(const actors::model_state& best, double first_loss,
                               run_outcome& into) {
  end_facts out;
  out.time = in->clock().now();
  out.deterministic = simulated();
  out.leaks = leaks();
  out.leading = best.id;
  out.loss.first = finite(first_loss);
  if (has_model()) out.loss.final = finite(work->held_out_loss(best));
  if (out.loss.final) observers->on_held_out_loss(stamp(out.time), *out.loss.final);
  if (has_model() && !best.parameters.is_size_only())
    out.state_hash = hash_of(best.parameters.bytes()).hex();
  if (options.baseline && work->has_references() && !into.interrupted && best.epoch > 0)
    compare(what.training.method.definition().steps_of_machine(what, best.epoch), out.loss, into);
  out.wall_seconds = seconds_since(started);
  return out;
}

/// Adds the world's own figures to the summary, and judges the scenario's expectations.
void runner::state::complete(run_outcome& into) const {
  into.late = in->late();
  if (const auto totals = in->net().nat_totals(); totals && into.summary.reachability) {
    auto& reach = *into.summary.reachability;
    const auto& c = totals->connections;
    std::tie(reach.direct, reach.reversed, reach.punched, reach.relayed) =
        std::tie(c[0], c[1], c[2], c[3]);
    reach.relayed_bytes = totals->relayed_bytes;
    reach.no_relay = totals->unreachable[0];
    reach.relay_spent = totals->unreachable[1];
  }
  if (!simulated())
    into.summary.distortion = summary::late_totals{into.late.late_steps, into.late.late_seconds};
  // Do not judge a run that ended early: expectations are about the end of a run.
  const bool early = into.interrupted || into.comparison_ended ||
                     (!goal.reached() && options.until && *options.until < what.stop_time);
  into.expectations_judged = !early || what.expect.empty();
  if (!early) into.missed = missed_expectations(what.expect, into.summary);
}

result<run_outcome> runner::run() {
  auto& s = *state_;
  std::optional<run_directory> directory;
  if (!s.options.out.empty()) {
    auto made = run_directory::create(s.options.out, s.options.force);
    if (!made) return failure{made.error()};
    directory = std::move(*made);
  }
  if (directory) s.exports.emplace(s.what.record, directory->path());
  if (directory && s.what.training.checkpoint_every > 0 && !s.work->work()->is_size_only()) {
    auto made = directory->folder(checkpoints);
    if (!made) return failure{made.error()};
    s.checkpoint_folder = std::move(*made);
  }
  s.signatures = std::make_shared<actors::signature_cache>(16 * (s.hosts.size() + 1));
  const auto& last_epoch = s.what.program.definition().last_epoch;
  s.goal.begin(last_epoch ? last_epoch(s.what) : 0, s.options.end_at_epoch,
               s.options.node.has_value());

  const auto* files = directory ? &*directory : nullptr;
  auto observers = run_observers::create(s.what_to_watch(files), files);
  if (!observers) return failure{observers.error()};
  s.observers = std::move(*observers);
  if (s.options.on_metrics) s.options.on_metrics(s.observers->values().registry());
  if (s.options.listener != nullptr) s.options.listener->begun(s.run_yaml(false));

  run_outcome out;
  // Measure before the world starts. The row of time 0 then has the loss, and the measurement takes
  // no time on the wall clock. A node measures at its end, because a swarm waits for its newcomer.
  double first_loss = std::numeric_limits<double>::quiet_NaN();
  if (!s.options.node) first_loss = s.measure_first(out);
  if (std::isfinite(first_loss)) s.observers->on_held_out_loss({}, first_loss);
  if (const auto every = s.what.record.held_out_every;
      every > 0 && (std::isfinite(first_loss) || (s.options.node && s.has_model())))
    s.held_out_next = (s.first_state().epoch / every + 1) * every;
  s.build();
  s.started_utc_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count() -
                     s.in->clock().now().count();
  // Write run.yaml early: it identifies the other files even if the process is killed.
  if ((s.options.node || s.what.record.export_every > duration::zero()) && directory)
    if (auto written = directory->write("run.yaml", s.run_yaml(false)); !written)
      return failure{written.error()};
  const auto ended = s.run_world(out.interrupted);
  if (auto broken = s.in->broken()) {
    // Nothing happened to a host that was refused. Its directory would count as one of the run's.
    if (s.refused && directory) directory->discard();
    return failure{*broken};
  }
  if (s.checkpoint_error) return *s.checkpoint_error;
  // The process of a shard has no trained state, and a peer that has just started has none yet.
  auto best = s.role.shard ? nullptr : s.pool->best();
  if (!best) best = s.pool->initial();
  if (s.options.node) first_loss = s.measure_first(out);
  const auto facts = s.facts(*best, first_loss, out);
  out.text_after = s.work->sample_text(*best, s.what.seed);
  auto finished = s.observers->finish(facts, out.summary);
  out.summary.virtual_seconds = to_seconds(ended);
  // The process of a shard sees no steps, but what its shard commits.
  if (s.role.shard) out.summary.epochs = std::max(out.summary.epochs, s.committed_epochs);
  out.left_behind = s.role.peer && s.goal.is_deserted();
  s.complete(out);
  if (!finished) return failure{finished.error()};
  if (directory)
    if (auto written = s.write(*directory, out.summary, out.interrupted); !written)
      return failure{written.error()};
  if (s.exports)
    if (auto written = s.exports->write(); !written) return failure{written.error()};
  if (s.options.listener != nullptr) {
    s.options.listener->begun(s.run_yaml(out.interrupted));
    s.options.listener->ended(to_json(out.summary));
  }
  return out;
}

} // namespace shoal::scenarios
