#include "scenarios/chaos/chaos_case.hpp"

#include "actors/conduct/conducts.hpp"
#include "actors/probes.hpp"
#include "scenarios/chaos/dice.hpp"
#include "scenarios/methods/method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace shoal::scenarios {

namespace {

double seconds_of(duration what) {
  return std::chrono::duration<double>(what).count();
}

void add(std::string& to, const std::string& option) {
  add_option(to, option);
}

void replace(std::string& in, std::string_view what, std::string_view by) {
  if (const auto at = in.find(what); at != std::string::npos) in.replace(at, what.size(), by);
}

/// How fast a swarm is. Real swarms need minutes for a step; a fast swarm meets more faults in the
/// middle of a step. Durations of computing (epochs, leases, faults) grow with the epoch. Durations
/// of the network (timeouts, records) grow with its square root, as in scenarios/reference/.
struct pace {
  double epoch = 5; // seconds
  double work() const { return epoch / 5; }
  double wait() const { return std::max(1.0, std::sqrt(work())); }
};

std::string in_seconds(double seconds) {
  return fmt::format("{}ms", static_cast<std::uint64_t>(std::llround(seconds * 1000)));
}

/// Returns the time that a swarm needs after a storm, in seconds: its timeouts pass, and then the
/// peers need some epochs.
double healing_of(const pace& p) {
  return 120 * p.wait() + 12 * p.epoch;
}

/// Returns the longest epoch, in seconds, with which a swarm can heal in half of the case's time.
double slowest(const chaos_options& how) {
  double out = 600;
  while (how.length > duration{} && out > 4 && healing_of({out}) > seconds_of(how.length) / 2)
    out = std::max(4.0, out * 0.95);
  return out;
}

chaos_times times_of(const pace& p, const chaos_options& how) {
  const auto of = [](double seconds) {
    return std::chrono::duration_cast<duration>(
        std::chrono::milliseconds(std::llround(seconds * 1000)));
  };
  chaos_times out;
  const double healing = healing_of(p);
  if (how.length == duration{}) {
    out.healing = of(healing);
    out.storm = of(std::max(180.0, 30 * p.epoch));
  } else {
    out.healing = std::clamp(how.length / 3, std::min(of(healing), how.length / 2), how.length / 2);
    out.storm = how.length - out.healing;
  }
  out.bound = out.healing * 2 / 3;
  return out;
}

std::string line(dice& d) {
  auto out = text{"up: {}kbit, down: {}kbit", static_cast<unsigned>(d.spread(500, 50'000)),
                  static_cast<unsigned>(d.spread(2'000, 100'000))};
  if (d.chance(0.3)) add(out, text{"delay: {}ms", d.between(1, 150)});
  if (d.chance(0.15)) add(out, text{"loss: {}%", d.between(1, 3)});
  return out;
}

/// One of the methods, by their shares.
const method_definition& any_method(dice& d) {
  std::uint64_t shares = 0;
  for (const auto* kind : methods().kinds())
    shares += static_cast<const method_definition*>(kind)->drawn_share;
  auto at = d.between(0, shares - 1);
  for (const auto* kind : methods().kinds()) {
    const auto& one = static_cast<const method_definition&>(*kind);
    if (at < one.drawn_share) return one;
    at -= one.drawn_share;
  }
  return methods().standard();
}

/// `speed` is the sum over all trainers, in samples a second, before they are scaled to the pace.
/// `scale` receives the factor for each trainer.
std::string training(dice& d, const chaos_options& how, std::string& averaging, unsigned peers,
                     double speed, const pace& p, double& scale) {
  const auto micro_batch = d.between(2, 16);
  std::string out =
      text{"micro_batch: {}, min_refresh: {}, max_refresh: {}, record_lifetime: {}", micro_batch,
           in_seconds(0.5 * p.wait()), in_seconds(p.wait() * static_cast<double>(d.between(4, 10))),
           in_seconds(p.wait() * static_cast<double>(d.between(20, 40)))};
  const std::string_view fixed = how.guarded ? "synchronous" : std::string_view(how.method);
  const auto& method = fixed.empty() ? any_method(d) : *methods().find(fixed);
  drawn_method drawn;
  drawn.peers = peers;
  drawn.micro_batch = micro_batch;
  drawn.batch = d.between(2, 12) * 16;
  drawn.training = out;
  drawn.averaging = averaging;
  method.draw(d, drawn);
  out = drawn.training;
  averaging = drawn.averaging;
  if (how.guarded) {
    for (const auto* option : {"overlap: update", "overlap: averaging"})
      replace(out, option, "overlap: none");
    replace(averaging, ", power_sgd_rank: 2", "");
  }
  scale = static_cast<double>(drawn.batch) / (speed * p.epoch);
  // Optimizer states of 8 bits cannot be averaged.
  if (drawn.may_average_optimizer && d.chance(0.5)) {
    add(out, "average_optimizer: true, optimizer: {kind: adamw, learning_rate: 0.01}");
    return out;
  }
  add(out, d.one_of({"optimizer: {kind: sgd, learning_rate: 0.05}",
                     "optimizer: {kind: sgd, learning_rate: 0.05, momentum: 0.9}",
                     "optimizer: {kind: adamw, learning_rate: 0.01}",
                     "optimizer: {kind: lamb8, learning_rate: 0.01}"}));
  return out;
}

/// `until` is the end of the storm. Periodic faults stop at that time, and lasting faults end
/// before.
std::string random_fault(dice& d, double until, const pace& p,
                         const std::vector<chaos_case::group>& groups) {
  const bool late = std::any_of(groups.begin(), groups.end(),
                                [](const auto& each) { return each.name == "late"; });
  const bool losable = late && d.chance(0.3);
  unsigned peers = 0;
  for (const auto& each : groups) peers += each.count;
  const bool few = peers < 4; // some shapes of a partition need four hosts
  std::string out, select = losable ? "late-*" : d.chance(0.2) ? "shard-0" : "*";
  // Faults last between less than a round trip and some epochs.
  const double lasts = d.spread(0.3, std::min(30 * std::max(1.0, p.work() / 2), until / 4));
  const auto downtime = [&] { return d.seconds(0.2, 30 * std::max(1.0, p.work() / 2)); };
  const auto both = [&] { return std::string(d.one_of({"both", "both", "to", "from"})); };
  switch (d.between(0, 9)) {
  case 0:
    out = losable ? text{"kill: {}", d.one_of({"process", "machine"})}
                  : text{"restart: {}, downtime: {}", d.one_of({"process", "machine"}), downtime()};
    break;
  case 1:
    out = text{"restart: {}, downtime: {}", d.one_of({"process", "machine"}), downtime()};
    break;
  case 2:
    out = fmt::format("pause: host, duration: {:.3f}s", lasts);
    break;
  case 3:
    out = text{"throttle: {}, factor: {}%, duration: {:.3f}s", d.one_of({"both", "up", "down"}),
               d.between(2, 50), lasts};
    break;
  case 4:
    out = text{"netem: {}, delay: {}ms, jitter: {}ms, loss: {}%, duplicate: {}%, duration: {:.3f}s",
               both(),
               d.between(100, 500),
               d.between(0, 100),
               d.between(0, 20),
               d.between(0, 5),
               lasts};
    break;
  case 5: {
    const std::string_view shape = d.one_of({"minority-third", "halves", "majorities-ring"});
    out = text{"partition: {}, duration: {:.3f}s", few ? "halves" : shape, lasts};
    select.clear();
    break;
  }
  case 6:
    out = text{"partition: selected, direction: {}, duration: {:.3f}s", both(), lasts};
    break;
  case 7:
    out = text{"blackhole: {}, duration: {:.3f}s", both(), lasts};
    break;
  case 8:
    out = text{"swizzle-clog: {}, duration: {:.3f}s", both(), lasts};
    select.clear();
    break;
  default:
    out = d.chance(0.5)
              ? text{"clock: bump, {}: {}s, duration: {:.3f}s", d.one_of({"ahead", "behind"}),
                     d.between(1, 90), lasts}
              : text{"clock: skew, drift: {}%, duration: {:.3f}s", d.between(1, 10), lasts};
    break;
  }
  if (!select.empty()) {
    add(out, fmt::format("select: \"{}\"", select));
    if (select != "shard-0")
      add(out, d.one_of({"mode: one", "mode: one", "mode: random-max-percent, value: 60%",
                         "mode: fixed, value: 2"}));
  }
  const double last = until - lasts - 1;
  const bool at_point = !select.empty() && select != "shard-0" && d.chance(0.4);
  if (at_point) {
    const auto& points = actors::probes::all;
    const auto point = points[d.between(0, points.size() - 1)];
    // `mode` draws among the selected hosts of a timed fault. A fault at a probe strikes the host
    // that reached the probe.
    out = out.substr(0, out.find(", mode:"));
    return out + text{", on: {}, nth: {}, until: {:.3f}s", point, d.between(1, 12), last};
  }
  if (out.starts_with("kill") || d.chance(0.5))
    return out + text{", at: {:.3f}s", d.spread(2, last)};
  return out + text{", every: {:.3f}s, at: {:.3f}s, until: {:.3f}s, probability: {}%",
                    d.spread(lasts + 2, until / 2), d.spread(2, last / 2), last,
                    d.between(30, 100)};
}

/// Kills and restarts hosts at probes, in the middle of rounds. Rounds are short, so a fault at a
/// random time hardly ever meets one. Without these faults, 2 of 4,300 rounds of forty seeds were
/// partial.
std::string aimed(dice& d, double until, const pace& p) {
  const auto& points = actors::probes::all;
  return text{
      "restart: {}, downtime: {}, select: \"*\", on: {}, probability: {:.2f}%, until: {:.3f}s",
      d.one_of({"process", "process", "machine"}),
      d.seconds(0.2, 20 * p.wait()),
      points[d.between(0, points.size() - 1)],
      d.spread(0.2, 6),
      until - 1};
}

/// Gives about half of the swarms that can audit each other a guard. Their rounds have to be
/// computable again. A slow device needs up to three epochs for the contribution of a fast one.
void add_guard(chaos_case& to, const pace& p, bool always) {
  const bool fits = to.training.find("method: ") == std::string::npos &&
                    to.training.find("overlap: none") != std::string::npos &&
                    to.averaging.find("power_sgd") == std::string::npos;
  dice d(to.seed, "chaos.guard");
  if (!fits || (!d.chance(0.5) && !always)) return;
  to.security = text{"kind: btard, validators: {}, radius: {}, commit_time: {}, duty_time: {}",
                     d.between(1, 2), d.one_of({"0.1", "1", "100"}), in_seconds(2 * p.wait()),
                     in_seconds(20 * p.wait() + p.epoch * static_cast<double>(d.between(4, 8)))};
  if (d.chance(0.2)) add(to.security, text{"jurors: {}", d.between(1, 3)});
  if (d.chance(0.2)) add(to.security, text{"probation: {}", d.between(1, 3)});
  if (to.averaging.find("compression: ") != std::string::npos)
    add(to.averaging, "means_compression: none");
}

/// Attacks on numbers and on the guard are of use only against a guard.
bool is_drawn(const actors::conduct_definition& one, bool guarded) {
  return one.kind == actors::conduct_kind::attack && (guarded || one.for_chaos) &&
         !one.changes_labels && !one.of_shards;
}

void add_attacker(chaos_case& to, const pace& p, bool guarded) {
  add_guard(to, p, guarded);
  dice d(to.seed, "chaos.hostile");
  std::vector<std::string> attacks;
  for (const auto& one : actors::conducts().all())
    if (is_drawn(one, !to.security.empty())) attacks.push_back(one.name);
  const auto& attack = attacks[d.between(0, attacks.size() - 1)];
  to.groups.front().count = std::max(to.groups.front().count, 5u);
  to.groups.push_back(
      {std::string(attacker_group),
       text{"up: 20Mbit, down: 50Mbit, device: fast, conduct: {{kind: {}, from: {}, every: {}, "
            "strength: {}}}",
            attack, d.seconds(0.1, to.epoch_seconds * 4), d.seconds(0.001, to.epoch_seconds),
            d.one_of({1, 2, 10})},
       1});
}

} // namespace

unsigned chaos_case::peers() const {
  unsigned out = 0;
  for (const auto& each : groups) out += each.count;
  return out;
}

std::string chaos_case::text() const {
  const auto value = [](const std::string& in, const std::string& key,
                        const std::string& otherwise) {
    const auto at = in.find(key + ": ");
    if (at == std::string::npos) return otherwise;
    const auto from = at + key.size() + 2;
    return in.substr(from, in.find_first_of(",}", from) - from);
  };
  return fmt::format("{}{}, {:.0f} s an epoch, {}, {} peer{}, {} fault{}",
                     value(training, "method", "synchronous"),
                     security.empty() ? "" : " with " + value(security, "kind", ""), epoch_seconds,
                     value(network, "model", "tcp"), peers(), peers() == 1 ? "" : "s",
                     faults.size(), faults.size() == 1 ? "" : "s");
}

std::string chaos_case::yaml() const {
  auto out = fmt::format(
      "name: chaos-{}\nseed: {}\nstop_time: {}ms\nnetwork: {{{}}}\n"
      "devices: {{{}}}\npeers:\n",
      seed, seed,
      std::chrono::duration_cast<std::chrono::milliseconds>(times.storm + times.healing).count(),
      network, devices);
  for (const auto& each : groups)
    out += fmt::format("  {}: {{count: {}, {}}}\n", each.name, each.count, each.options);
  out += fmt::format("data: {{{}}}\nworkload: {{{}}}\ntraining: {{{}}}\naveraging: {{{}}}\nrecord: "
                     "{{events: none, transfers: 0, metrics_interval: {}}}\n",
                     data, workload, training, averaging,
                     in_seconds(std::max(1.0, epoch_seconds / 4)));
  if (!security.empty()) out += fmt::format("security: {{{}}}\n", security);
  if (failpoints > 0) out += fmt::format("failpoints: {}%\n", failpoints);
  if (!faults.empty()) out += "faults:\n";
  for (const auto& each : faults) out += "  - {" + each + "}\n";
  return out;
}

chaos_case draw_case(std::uint64_t seed, const chaos_options& how) {
  chaos_case out;
  out.seed = seed;
  dice d(seed, "chaos.swarm");
  const pace p{d.spread(4, slowest(how))};
  out.epoch_seconds = p.epoch;
  out.times = times_of(p, how);
  const double storm_seconds = seconds_of(out.times.storm);
  out.network = text{"model: {}, default_delay: {}ms, default_jitter: {}ms, detection_time: {}s",
                     d.one_of({"tcp", "max_min", "lv08"}), d.between(20, 120), d.between(0, 15),
                     d.between(1, 5)};
  double speed = 0;
  const auto device = [&](std::uint64_t count) {
    const bool fast = d.chance(2.0 / 3);
    speed += static_cast<double>(count) * (fast ? 8 : 3);
    return std::string(fast ? ", device: fast" : ", device: slow");
  };
  const auto nat = [&] {
    return d.chance(0.2) ? std::string(", nat: ") + d.one_of({"cone", "symmetric", "outbound_only"})
                         : std::string{};
  };
  const auto core = static_cast<unsigned>(d.between(2, 6));
  auto options = line(d);
  options += device(core);
  out.groups.push_back({"core", options + ", start_spacing: 10ms", core});
  if (d.chance(0.6)) {
    const auto count = static_cast<unsigned>(d.between(1, 6));
    options = line(d);
    options += device(count);
    options += nat();
    add(options, "start: " + in_seconds(d.between(0, 18) * p.epoch / 4));
    add(options, text{"start_spacing: {}", d.seconds(0.01, p.epoch)});
    out.groups.push_back({"late", options, count});
  }
  out.averaging =
      text{"matchmaking_time: {}, round_timeout: {}, sender_timeout: {}, chunk_size: {}KiB",
           in_seconds(p.wait() * static_cast<double>(d.between(1, 4))),
           in_seconds(p.wait() * static_cast<double>(d.between(15, 30))),
           in_seconds(p.wait() * static_cast<double>(d.between(3, 8))), d.one_of({2, 8, 64})};
  if (d.chance(0.3))
    add(out.averaging, std::string("split: ") + d.one_of({"equal", "parameter_server"}));
  if (d.chance(0.35))
    add(out.averaging, std::string("compression: ") +
                           d.one_of({"float16", "uniform8", "blockwise8", "size_adaptive"}));
  double scale = 1;
  out.training = training(d, how, out.averaging, out.peers(), speed, p, scale);
  out.devices =
      fmt::format("fast: {{samples_per_second: {:.4g}, jitter: 10%, step_time: {}}}, slow: "
                  "{{samples_per_second: {:.4g}, jitter: 20%, step_time: {}}}",
                  8 * scale, in_seconds(0.02 * p.epoch), 3 * scale, in_seconds(0.08 * p.epoch));
  const bool synchronous = out.training.find("method: ") == std::string::npos;
  if (synchronous && out.averaging.find("power_sgd") == std::string::npos && d.chance(0.15)) {
    out.groups.push_back({"aux", "up: 50Mbit, down: 50Mbit, device: fast, role: auxiliary", 1});
    out.auxiliary = true;
  }
  out.data = text{"prefetch_samples: {}, lease_time: {}", d.between(8, 64),
                  in_seconds(std::max(1.0, p.work()) * static_cast<double>(d.between(20, 120)))};
  if (d.chance(0.4)) add(out.data, text{"replicas: {}", d.between(2, 3)});
  const auto size = static_cast<std::uint64_t>(d.spread(50, 800));
  const std::string_view kind = d.one_of({"timing", "quadratic"});
  // A sample of the quadratic workload is as long as its parameters. With many parameters the swarm
  // waits for data and hardly ever averages.
  out.workload = fmt::format("kind: {}, parameters: {}{}", kind,
                             kind == "quadratic" ? size * 2 / 8 * 8 : size * 8,
                             kind == "timing" ? ", sample_size: 64B" : "");
  if (out.averaging.find("power_sgd") != std::string::npos) add(out.workload, "rows: 8");

  dice storm(seed, "chaos.storm");
  const auto faults = storm.between(0, 8);
  for (std::uint64_t i = 0; i < faults; ++i)
    out.faults.push_back(random_fault(storm, storm_seconds, p, out.groups));
  // A replica takes over only where the shard has several and one of them can fail.
  if (out.data.find("replicas") != std::string::npos && storm.chance(0.5))
    out.faults.push_back(text{
        "restart: {}, downtime: {}, select: \"shard-*\", mode: one, every: {:.3f}s, until: {:.3f}s",
        storm.one_of({"process", "machine"}), storm.seconds(0.2, 60 * p.wait()),
        storm.spread(storm_seconds / 20, storm_seconds / 2), storm_seconds - 1});
  // A cut leaves two branches when it outlasts the records and some steps. The usual draws hardly
  // ever give such a cut, so some cases get one here.
  const auto apart = 60 * p.wait() + storm.spread(1, 5) * p.epoch;
  if (storm.chance(0.15) && apart < storm_seconds / 2)
    out.faults.push_back(text{"partition: halves, duration: {:.3f}s, at: {:.3f}s", apart,
                              storm.spread(p.epoch, storm_seconds - apart - 1)});
  dice draws(seed, "chaos.rare");
  if (draws.chance(0.5)) out.failpoints = static_cast<unsigned>(draws.between(1, 10));
  dice aim(seed, "chaos.aim");
  if (aim.chance(0.6))
    for (auto i = aim.between(1, 4); i > 0; --i) out.faults.push_back(aimed(aim, storm_seconds, p));
  // Two branches of one epoch meet when both halves make as many steps. Each half has a data shard
  // and no other faults.
  dice branches(seed, "chaos.branches");
  if (branches.chance(0.08) && apart < storm_seconds / 2) {
    out.faults = {
        text{"partition: halves, duration: {:.3f}s, every: {:.3f}s, at: {:.3f}s, until: {:.3f}s",
             apart, apart + 2 * p.epoch + 20 * p.wait(), 2 * p.epoch, storm_seconds - apart - 1}};
    if (out.data.find("replicas") == std::string::npos) add(out.data, "replicas: 2");
  }
  if (how.hostile) add_attacker(out, p, how.guarded);
  return out;
}

} // namespace shoal::scenarios
