// The method 'experts': the layers of a mixture are grids of experts, which the hosts of the role
// 'expert' hold. Trainers hold the trunk and the gates, stream samples, and wait for no other
// trainer.
// Source: Ryabinin and Gusev, "Learning@home", arXiv:2002.04013.
#include "scenarios/methods/experts.hpp"

#include "actors/experts/expert_server.hpp"
#include "actors/experts/expert_trainer.hpp"
#include "actors/experts/mixture_workload.hpp"
#include "actors/training/state_pool.hpp"
#include "actors/training/training_peer.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/mixture_model.hpp"
#include "kernels/mixing.hpp"
#include "netem/nat_class.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace shoal::scenarios {

// A method may name its parts as other methods name theirs.
namespace experts_method_parts {
namespace {

constexpr const char* run_name = "training";

enum class trunk_groups : std::uint8_t { pairs, grid };
constexpr auto names_of(trunk_groups) {
  return std::array{std::pair{trunk_groups::pairs, "pairs"}, std::pair{trunk_groups::grid, "grid"}};
}

struct expert_choices {
  std::uint64_t target_batch = 256;
  std::uint64_t look_ups = 64;
  std::uint64_t copies = 2;
  duration copy_every = std::chrono::seconds(30);
  duration share_every = std::chrono::seconds(10);
  trunk_groups groups = trunk_groups::pairs;
  std::uint64_t most_staleness = 0;
  duration answer_timeout = std::chrono::seconds(5);
  double most_growth = 32;
  bool operator==(const expert_choices&) const = default;
};

template <class V>
void describe(V& v, expert_choices& o) {
  v.field("target_batch", o.target_batch,
          "samples of all trainers in an epoch. A step of one trainer has `micro_batch` samples",
          {.at_least = 1, .at_most = 1e12});
  v.field("copies", o.copies, "other hosts that keep a copy of an expert",
          {.at_least = 0, .at_most = 64});
  v.field("copy_every", o.copy_every, "the time between two copies of an expert that has changed",
          {.above = 0});
  v.field("share_every", o.share_every,
          "the time after which a trainer averages its trunk with those of others; 0: never");
  v.field("groups", o.groups,
          "the trainers that average together. `pairs`: a trainer sends its trunk to another one, "
          "which takes the mean. `grid`: the rows of `averaging.grid`, as in Moshpit SGD",
          {.hide_default = true});
  v.field("most_staleness", o.most_staleness,
          "an expert refuses a gradient after more steps since the forward pass; 0: never",
          {.hide_default = true});
  v.field("answer_timeout", o.answer_timeout,
          "an expert that has not answered by then is left out. It is left out sooner if earlier "
          "answers of its host came sooner, but not within a tenth of this time",
          {.above = 0, .hide_default = true});
  v.field(
      "most_growth", o.most_growth,
      "the values that an expert adds, and a copy of it, may be so many times as large as those "
      "of most other hosts. A trainer takes a larger answer for none; 0: any size is taken",
      {.at_least = 0, .hide_default = true});
  v.field("look_ups", o.look_ups, "the most prefixes that a search for experts expands",
          {.at_least = 1, .at_most = 1e6, .hide_default = true});
}

const expert_choices& options_of(const scenario& what) {
  return what.training.method.as<expert_choices>();
}

bool holds_experts(const peer_group& group) {
  return group.role.name() == "expert";
}

/// Trainers average their trunks in groups.
bool has_rounds(const scenario& what) {
  const auto& o = options_of(what);
  return o.groups == trunk_groups::grid && o.share_every > duration{};
}

std::uint64_t expert_hosts(const scenario& what) {
  std::uint64_t out = 0;
  for (const auto& group : what.peers) out += holds_experts(group) ? group.count : 0;
  return out;
}

/// `averaging.grid`, or the smallest square that holds all trainers.
kernels::grid trunk_grid(const scenario& what) {
  if (const auto given = kernels::parse_grid(what.averaging.grid)) return *given;
  return kernels::square_grid(count_of(what) - expert_hosts(what));
}

void check_model(const scenario& what, checking& report) {
  if (!report.sound({"workload.kind"})) return;
  const auto& of = what.workload.definition();
  if (!of.experts)
    report.error("training.method", fmt::format("the workload '{}' has no experts", of.name),
                 {"the workload mixture has"});
}

void check_hosts(const scenario& what, checking& report) {
  if (what.peers.empty()) return;
  for (const auto& group : what.peers)
    if (!report.sound({"peers." + group.name + ".role", "peers." + group.name + ".count"})) return;
  const auto held = expert_hosts(what);
  if (held == 0)
    report.error("peers", "no group has 'role: expert': some hosts have to hold the experts",
                 {"peers.GROUP.role: expert"});
  if (held == count_of(what))
    report.error("peers",
                 "all groups have 'role: expert': a mixture needs a trainer, too, which has the "
                 "trunk",
                 {"a group without 'role' is one of trainers"});
}

/// Any trainer of a group may reduce for the others.
void check_rounds(const scenario& what, checking& report) {
  if (!report.sound({"training.groups", "training.share_every"}) || !has_rounds(what)) return;
  for (const auto& group : what.peers) {
    const auto path = "peers." + group.name;
    if (!report.sound({path + ".role", path + ".nat"}) || holds_experts(group)) continue;
    if (group.nat != netem::nat_class::open)
      report.error(path + ".nat",
                   fmt::format("the trainers of '{}' are behind a NAT: with 'groups: grid' others "
                               "send them their trunks, so their lines have to be open",
                               group.name),
                   {"training.groups: pairs"});
  }
}

void check_training(const scenario& what, checking& report) {
  const auto& optimizer = what.training.optimizer;
  if (report.sound({"training.optimizer.clip_norm"}) && optimizer.clip_norm > 0)
    report.error("training.optimizer.clip_norm",
                 "clip_norm needs the norm of the whole gradient, which no host of a mixture has: "
                 "leave it out");
  if (report.sound({"training.optimizer.kind"}) && !kernels::float_state(optimizer.kind))
    report.error("training.optimizer.kind",
                 fmt::format("the state of {} is coded in blocks, and an expert may begin within "
                             "one: take adamw, lamb or sgd",
                             to_string(optimizer.kind)));
}

const actors::mixture_workload& mixture_of(const role_site& site) {
  // Only this method's wrap() makes the pool's workload.
  return dynamic_cast<const actors::mixture_workload&>(site.pool->work());
}

/// The numbers of the experts that a host begins with. All are dealt in a random order.
std::vector<std::size_t> hand_of(const role_site& site, std::size_t experts) {
  std::vector<std::size_t> all(experts), out;
  for (std::size_t n = 0; n < experts; ++n) all[n] = n;
  stream(site.what.seed, "experts.deal").shuffle(std::span(all));
  std::size_t before = 0;
  for (const auto& host : expand_hosts(site.what)) {
    if (host.name == site.on.name()) break;
    before += host.role == &site.group.role.definition() ? 1 : 0;
  }
  for (auto i = before; i < experts; i += expert_hosts(site.what)) out.push_back(all[i]);
  return out;
}

/// A device's rate is that of the whole model, forward and backward, with the experts of a sample.
/// A pass of an expert back takes three times as long as one forward, because it computes that
/// again.
struct sample_times {
  duration trunk{}; ///< forward and backward, for one sample
  duration row{};   ///< forward through one expert
};

sample_times times_of(const role_site& site) {
  const auto parts = site.what.workload.definition().experts(site.what.workload);
  SHOAL_CHECK(parts.ok(), "the workload was made before");
  const auto& model = *parts->model;
  const double sample = 1 / site.config.device.samples_per_second;
  const auto rows = static_cast<double>(model.net()->ends().rows_of_sample() *
                                        model.net()->shape().layers * model.chosen());
  return {from_seconds(sample * (1 - parts->expert_share)),
          from_seconds(sample * parts->expert_share / rows / 4)};
}

caf::actor spawn_trainer(const role_site& site) {
  const auto& o = options_of(site.what);
  const auto& work = mixture_of(site);
  const auto& model = work.model();
  const auto initial = site.pool->initial();
  actors::expert_trainer_config config;
  config.model = run_name;
  config.net = model.net();
  config.seed = site.what.seed;
  config.optimizer = work.optimizer();
  config.search = {.best = model.chosen(), .most_look_ups = static_cast<std::size_t>(o.look_ups)};
  config.step_time = site.config.device.step_time;
  config.timeout = o.answer_timeout;
  config.most_growth = o.most_growth;
  config.cache.hosts.record_lifetime = site.config.record_lifetime;
  config.cache.fresh = site.config.record_lifetime / 2;
  config.cache.fresh_empty = site.config.record_lifetime / 12;
  config.cache.hosts.ban = site.config.record_lifetime / 4;
  config.record_lifetime = site.config.record_lifetime;
  config.share_every = o.share_every;
  if (has_rounds(site.what))
    config.rounds = {trunk_grid(site.what), site.config.averaging, site.config.codecs.first};
  config.shard =
      actors::shard_side_of(site.config, true, model.net()->ends().sample_bytes(), false);
  config.batch = site.config.micro_batch;
  config.epoch_of = o.target_batch;
  config.epochs = site.config.epochs;
  config.trunk = work.trunk_of(*initial);
  config.trunk_time = times_of(site).trunk * static_cast<std::int64_t>(site.config.micro_batch);
  config.jitter = site.config.device.jitter;
  config.refresh = std::max<duration>(site.config.min_refresh, site.config.max_refresh / 10);
  for (std::size_t n = 0; n < model.experts(); ++n) {
    config.experts.push_back(work.id_of(n));
    config.initial.push_back(std::make_shared<const actors::expert_state>(
        work.expert_of(*initial, config.experts.back())));
  }
  config.expert_size = model.block()->parameter_count();
  config.wants_model = [pool = site.pool, every = site.config.checkpoint_every,
                        measures = site.what.record.held_out_every, last = site.config.epochs](
                           std::uint64_t before,
                           std::uint64_t after) -> std::optional<std::uint64_t> {
    std::uint64_t due = after == last ? last : 0;
    for (const auto each : {every, measures})
      if (each > 0) due = std::max(due, after / each * each);
    const auto& mixture = dynamic_cast<const actors::mixture_workload&>(pool->work());
    if (due <= before || !mixture.claims(due)) return std::nullopt;
    return due;
  };
  config.on_model = [pool = site.pool, every = site.config.checkpoint_every,
                     keep = site.config.on_checkpoint](std::uint64_t epoch, std::uint64_t samples,
                                                       const actors::expert_state& trunk,
                                                       const actors::expert_states& experts) {
    const auto& mixture = dynamic_cast<const actors::mixture_workload&>(pool->work());
    auto whole = mixture.joined(trunk, experts);
    whole.epoch = epoch;
    whole.samples = samples;
    whole.id = actors::state_id::from(
        hasher().add(std::string_view{"shoal.experts.whole"}).add(epoch).add(samples).finish());
    const auto state = std::make_shared<const actors::model_state>(std::move(whole));
    pool->offer(state);
    if (every > 0 && epoch % every == 0 && keep) keep(state, samples);
  };
  config.dht = site.dht;
  return caf::actor_cast<caf::actor>(
      site.system.spawn<actors::expert_trainer>(std::ref(site.on), std::move(config)));
}

} // namespace
} // namespace experts_method_parts

caf::actor spawn_expert_server(const role_site& site) {
  using namespace experts_method_parts;
  const auto& o = options_of(site.what);
  const auto& work = mixture_of(site);
  const auto& model = work.model();
  actors::expert_server_config config;
  config.model = run_name;
  config.block = model.block();
  config.layers = static_cast<std::uint32_t>(model.net()->shape().layers);
  config.grid = model.net()->shape().grid;
  for (const auto n : hand_of(site, model.experts())) config.hand.push_back(work.id_of(n));
  // The pool has a state from now on, even if this host never begins an expert.
  config.initial = [pool = site.pool,
                    first = site.pool->initial()](const actors::expert_id& which) {
    return dynamic_cast<const actors::mixture_workload&>(pool->work()).expert_of(*first, which);
  };
  config.forget_after = 2 * site.config.record_lifetime;
  config.epoch_of = o.target_batch;
  config.epochs = site.config.epochs;
  config.seed = site.what.seed;
  config.optimizer = work.optimizer();
  config.batch_time = duration{};
  config.row_time = times_of(site).row;
  config.jitter = site.config.device.jitter;
  config.conduct = site.config.conduct;
  config.most_growth = o.most_growth;
  config.most_staleness = o.most_staleness;
  config.copies = static_cast<std::size_t>(o.copies);
  config.copy_every = o.copy_every;
  config.record_lifetime = site.config.record_lifetime;
  config.renew = site.config.record_lifetime / 3;
  config.dht = site.dht;
  return caf::actor_cast<caf::actor>(
      site.system.spawn<actors::expert_server>(std::ref(site.on), std::move(config)));
}

expert_memory memory_of_experts(const scenario& what) {
  using namespace experts_method_parts;
  expert_memory out;
  const auto& of = what.workload.definition();
  if (!traits_of(what).has_experts || !of.experts) return out;
  const auto parts = of.experts(what.workload);
  const auto optimizer = optimizer_of(what.training.optimizer);
  if (!parts || !optimizer) return out;
  const auto& model = *parts->model;
  constexpr std::uint64_t float32 = 4;
  out.experts = model.experts();
  out.hosts = expert_hosts(what);
  out.parameters = model.block()->parameter_count();
  const auto of_state = [&](std::uint64_t parameters) {
    return float32 * parameters + kernels::state_bytes(*optimizer, parameters);
  };
  out.expert = of_state(out.parameters);
  if (out.hosts > 0)
    out.of_host = (out.experts + out.hosts - 1) / out.hosts * out.expert *
                  (1 + std::min<std::uint64_t>(options_of(what).copies, out.hosts - 1));
  out.trunk = 2 * of_state(model.trunk_size()) + float32 * model.trunk_size();
  return out;
}

method_definition experts_method() {
  using namespace experts_method_parts;
  method_definition out;
  out.name = "experts";
  out.meaning = "a mixture of experts on many hosts, and trainers that call them and wait for "
                "nobody (Learning@home)";
  out.options = options_box::of(expert_choices{});
  out.traits = [](const scenario& what) {
    method_traits traits;
    traits.averages_parameters = true;
    traits.weights_are_samples = false;
    traits.target_batch = options_of(what).target_batch;
    traits.baseline_batch = what.training.micro_batch;
    traits.whole_swarm = false;
    traits.uses_grid = has_rounds(what);
    traits.has_experts = true;
    traits.idle_actors = 2; // the trainer and the node
    traits.max_epoch_difference = 2;
    return traits;
  };
  out.steps_of_machine = [](const scenario& what, std::uint64_t epoch) {
    return std::max<std::uint64_t>(1, epoch * options_of(what).target_batch /
                                          what.training.micro_batch);
  };
  out.check = [](const scenario& what, checking& report) {
    check_micro_batch(what, options_of(what).target_batch, report);
    check_model(what, report);
    check_hosts(what, report);
    check_rounds(what, report);
    check_training(what, report);
  };
  out.configure = [](const scenario& what, actors::peer_config& into) {
    into.target_batch = options_of(what).target_batch;
  };
  out.wrap = [](const scenario& what, std::shared_ptr<const actors::workload> work)
      -> result<std::shared_ptr<const actors::workload>> {
    const auto& of = what.workload.definition();
    if (!of.experts) return failure{"training.method: the workload has no experts"};
    auto parts = of.experts(what.workload);
    if (!parts) return failure{"workload: " + parts.error()};
    auto out = actors::mixture_workload::make(std::move(work), std::move(parts->model),
                                              what.training.optimizer);
    if (!out) return failure{"training: " + out.error()};
    return std::shared_ptr<const actors::workload>(std::move(*out));
  };
  out.spawn = spawn_trainer;
  static_assert(actors::expert_trainer::drain == actors::training_peer::drain,
                "the role 'trainer' tells both to leave");
  return out;
}

} // namespace shoal::scenarios
