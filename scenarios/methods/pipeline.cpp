// The method 'pipeline': the model is cut into stages, and each host of the role 'stage' holds one.
// Trainers stream samples and send micro-batches through the stages. The hosts of a stage average
// their gradients and step together.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913.
#include "scenarios/methods/pipeline.hpp"

#include "actors/pipeline/pipeline_trainer.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "actors/pipeline/staged_workload.hpp"
#include "actors/training/state_pool.hpp"
#include "actors/training/training_peer.hpp"
#include "kernels/base/check.hpp"
#include "kernels/closed_network.hpp"
#include "kernels/compress/codec.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/pipeline/option_meanings.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "scenarios/workloads/workload.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace shoal::scenarios {

// A method may name its parts as other methods name theirs.
namespace pipeline_method_parts {
namespace {

constexpr const char* run_name = "training";

struct pipeline_choices {
  std::uint64_t stages = 4;
  std::uint64_t target_batch = 256;
  std::uint64_t in_flight = 8;
  std::string activations = "none"; ///< a codec of activation_codec()
  duration rebalance_every{};
  duration batch_timeout = std::chrono::seconds(60);
  double audit_share = 0;
  bool operator==(const pipeline_choices&) const = default;
};

template <class V>
void describe(V& v, pipeline_choices& o) {
  v.field("stages", o.stages, pipeline_meaning::stages_of_workload,
          {.at_least = 1, .at_most = 256});
  v.field("target_batch", o.target_batch, "samples of a step of the whole model",
          {.at_least = 1, .at_most = 1e12});
  v.field("in_flight", o.in_flight, pipeline_meaning::in_flight,
          {.at_least = 1, .at_most = 65536, .hide_default = true});
  v.field("activations", o.activations, pipeline_meaning::activations,
          {.hide_default = true, .one_of = pipeline_meaning::activation_codecs});
  v.field("rebalance_every", o.rebalance_every, pipeline_meaning::rebalance_every,
          {.hide_default = true});
  v.field("batch_timeout", o.batch_timeout,
          "after this time without a whole batch, a stage steps with the gradients that it has",
          {.above = 0, .hide_default = true});
  v.field("audit_share", o.audit_share,
          "the share of outputs of stages that a trainer has computed again by another host of the "
          "stage. A host that two others contradict gets no more tasks from that trainer",
          {.at_least = 0, .at_most = 1, .fraction = true, .hide_default = true});
}

const pipeline_choices& options_of(const scenario& what) {
  return what.training.method.as<pipeline_choices>();
}

bool is_stage(const peer_group& group) {
  return group.role.name() == "stage";
}

std::uint64_t stage_hosts(const scenario& what) {
  std::uint64_t out = 0;
  for (const auto& group : what.peers) out += is_stage(group) ? group.count : 0;
  return out;
}

sample_shape shape_of(const scenario& what) {
  return what.workload.definition().shape_between_stages(what.workload);
}

/// Null: the workload has no stages, or not so many.
std::shared_ptr<const actors::stage_model> cut_of(const scenario& what) {
  const auto& of = what.workload.definition();
  if (!of.shape_between_stages || (of.possible && !of.possible(what.workload).ok())) return nullptr;
  const auto stages = static_cast<std::uint32_t>(options_of(what).stages);
  if (of.cut) {
    const auto made = of.cut(what.workload, stages);
    return made ? *made : nullptr;
  }
  return actors::stage_model::sized(
      stages, shape_of(what).values,
      std::max<std::uint64_t>(1, kernels::end_of(of.tensors(what.workload)) / stages));
}

void check_model(const scenario& what, checking& report) {
  const auto& o = options_of(what);
  const auto& of = what.workload.definition();
  if (!report.sound({"workload.kind", "training.stages"})) return;
  if (!of.shape_between_stages) {
    const auto others = workloads().names_if(
        [](const workload_definition& each) { return each.shape_between_stages != nullptr; });
    return report.error("training.method",
                        fmt::format("the workload '{}' cannot be cut into stages", of.name),
                        {fmt::format("workloads that can: {}", fmt::join(others, ", "))});
  }
  if (!of.cut || (of.possible && !of.possible(what.workload).ok())) return;
  if (const auto cut = of.cut(what.workload, static_cast<std::uint32_t>(o.stages)); !cut)
    report.error("training.stages", cut.error());
}

void check_hosts(const scenario& what, checking& report) {
  if (what.peers.empty() || !report.sound({"workload.kind", "training.stages"})) return;
  for (const auto& group : what.peers)
    if (!report.sound({"peers." + group.name + ".role", "peers." + group.name + ".count"})) return;
  const auto held = stage_hosts(what);
  const auto cut = cut_of(what);
  const auto stages = cut ? cut->stages() : options_of(what).stages;
  std::vector<std::string> notes;
  if (stages != options_of(what).stages)
    notes.push_back(fmt::format("the layers of '{}' share their tensors and are one stage; its "
                                "ends are another one",
                                what.workload.name()));
  if (held < stages)
    report.error(
        "training.stages",
        fmt::format("{} stages: the groups of peers with 'role: stage' have {} host{}, and "
                    "each stage needs one",
                    stages, held, held == 1 ? "" : "s"),
        notes);
  if (held == count_of(what))
    report.error("peers",
                 "all groups have 'role: stage': a pipeline needs a trainer, too, which "
                 "sends micro-batches through the stages",
                 {"a group without 'role' is one of trainers"});
}

void check_training(const scenario& what, checking& report) {
  for (const auto& [field, why] : actors::unfit_fields(what.training.optimizer))
    if (const auto key = "training.optimizer." + field; report.sound({key})) report.error(key, why);
  if (report.sound({"averaging.power_sgd_rank"}) && what.averaging.power_sgd_rank > 0)
    report.error("averaging.power_sgd_rank", "PowerSGD has no place in a pipeline: its matrices "
                                             "are those of the whole model");
  if (report.sound({"averaging.compression"}) &&
      what.averaging.compression == kernels::codec::top_k)
    report.error("averaging.compression",
                 "top_k drops values, and a host of a stage keeps no residual");
}

const actors::staged_workload& staged(const role_site& site) {
  // Only this method's wrap() makes the pool's workload.
  return dynamic_cast<const actors::staged_workload&>(site.pool->work());
}

/// The number of this host among those of the same role, in the order of the file.
std::uint64_t number_of(const role_site& site) {
  std::uint64_t out = 0;
  for (const auto& host : expand_hosts(site.what)) {
    if (host.name == site.on.name()) break;
    out += host.role == &site.group.role.definition() ? 1 : 0;
  }
  return out;
}

std::vector<actors::round_codecs> codecs_by_stage(const scenario& what,
                                                  const actors::stage_model& cut) {
  std::vector<actors::round_codecs> out;
  for (std::uint32_t s = 0; s < cut.stages(); ++s) {
    std::vector<std::uint64_t> tensors;
    for (const auto& slot : cut.tensors_of(s)) tensors.push_back(slot.size());
    out.push_back(round_codecs_of(what.averaging, tensors));
  }
  return out;
}

/// How often hosts renew their records and read those of others.
duration refresh_of(const role_site& site) {
  return std::max<duration>(site.config.min_refresh, site.config.max_refresh / 10);
}

using checkpoint_writer =
    std::function<void(const actors::state_ptr& state, std::uint64_t data_from)>;

/// The whole model is at a new step.
void keep_whole(actors::state_pool& pool, const actors::state_ptr& whole, std::uint64_t every,
                const checkpoint_writer& write) {
  pool.offer(whole);
  if (every > 0 && whole->epoch % every == 0 && write) write(whole, whole->samples);
}

caf::actor spawn_trainer(const role_site& site) {
  const auto& o = options_of(site.what);
  const auto& work = staged(site);
  const auto codec = kernels::parse_codec(o.activations);
  SHOAL_CHECK(codec.ok(), "the schema knows the codecs");
  actors::pipeline_trainer_config config;
  config.run = run_name;
  config.model = work.cut();
  config.time = shape_of(site.what).rows;
  config.target_batch = o.target_batch;
  config.micro_batch = site.config.micro_batch;
  config.epochs = site.config.epochs;
  config.in_flight = o.in_flight;
  config.activations = *codec;
  config.shard = actors::shard_side_of(site.config, true, work.sample_bytes(), work.is_size_only());
  config.audit_share = o.audit_share;
  config.refresh = refresh_of(site);
  config.record_lifetime = site.config.record_lifetime;
  // Where one process runs all hosts, it has the states of all stages.
  config.wants_states = [pool = site.pool, every = site.config.checkpoint_every,
                         measures = site.what.record.held_out_every,
                         last = site.config.epochs](std::uint64_t epoch) {
    const bool due = epoch == last || (every > 0 && epoch % every == 0) ||
                     (measures > 0 && epoch % measures == 0);
    return due && pool->best()->epoch < epoch;
  };
  config.on_states = [pool = site.pool, every = site.config.checkpoint_every,
                      keep = site.config.on_checkpoint](const std::vector<actors::state_ptr>& all) {
    const auto& staged = dynamic_cast<const actors::staged_workload&>(pool->work());
    keep_whole(*pool, std::make_shared<const actors::model_state>(staged.joined(all)), every, keep);
  };
  config.initial = work.apart(site.pool->initial());
  config.dht = site.dht;
  return caf::actor_cast<caf::actor>(
      site.system.spawn<actors::pipeline_trainer>(std::ref(site.on), std::move(config)));
}

/// The stage that a host begins with, by its number among those of the role. A stage with more hops
/// gets more hosts.
std::uint32_t first_stage_of(std::uint64_t host, const actors::stage_model& cut) {
  return cut.stage_of(static_cast<std::uint32_t>(host % cut.last_hop()));
}

} // namespace
} // namespace pipeline_method_parts

caf::actor spawn_stage_peer(const role_site& site) {
  using namespace pipeline_method_parts;
  const auto& o = options_of(site.what);
  const auto& work = staged(site);
  actors::stage_peer_config config;
  config.run = run_name;
  config.first_stage = first_stage_of(number_of(site), *work.cut());
  if (o.rebalance_every > duration{})
    config.stage.reset();
  else
    config.stage = config.first_stage;
  config.model = work.cut();
  config.optimizer = work.optimizer();
  config.initial = work.apart(site.pool->initial());
  config.averaging = site.config.averaging;
  config.averaging.conduct = site.config.conduct;
  config.codecs = codecs_by_stage(site.what, *work.cut());
  config.target_batch = o.target_batch;
  config.trusts_trainers = true;
  // A device's rate is that of the whole model, forward and backward. A backward pass takes twice
  // the time of a forward one.
  config.sample_time =
      from_seconds(1 / site.config.device.samples_per_second / 3 / static_cast<double>(o.stages));
  config.jitter = site.config.device.jitter;
  config.step_time = site.config.device.step_time;
  config.refresh = refresh_of(site);
  config.record_lifetime = site.config.record_lifetime;
  config.rebalance_every = o.rebalance_every;
  config.batch_timeout = o.batch_timeout;
  config.on_step = [pool = site.pool, every = site.config.checkpoint_every,
                    keep = site.config.on_checkpoint](std::uint32_t stage,
                                                      const actors::state_ptr& state) {
    const auto& staged = dynamic_cast<const actors::staged_workload&>(pool->work());
    if (const auto whole = staged.stepped(stage, state)) keep_whole(*pool, whole, every, keep);
  };
  config.dht = site.dht;
  return caf::actor_cast<caf::actor>(
      site.system.spawn<actors::stage_peer>(std::ref(site.on), std::move(config)));
}

namespace pipeline_method_parts {
namespace {

// The time of a stage's hops for a sample, in forward passes of a hop. A backward pass counts three
// times, because it computes the forward pass again (actors/pipeline/stage_peer.hpp). The last hop
// goes backward only.
double hops_cost(const actors::stage_model& cut, std::uint32_t stage) {
  constexpr double forward = 1;
  return cut.hops_of(stage) * (forward + actors::backward_size) - (stage == 0 ? forward : 0);
}

struct held_stage {
  std::vector<host_speed> hosts;
  double rate = 0; ///< the hosts' together, in samples of the whole model per second
};

/// The stages with their hosts: in turn, or with `rebalance_every` so that the slowest stage is as
/// fast as can be.
std::vector<held_stage> stages_with_hosts(const scenario& what, const actors::stage_model& cut,
                                          std::vector<host_speed> hosts) {
  const auto& o = options_of(what);
  std::vector<held_stage> out(cut.stages());
  const bool balanced = o.rebalance_every > duration{};
  if (balanced)
    std::stable_sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
      return a.samples_per_second > b.samples_per_second;
    });
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto at = first_stage_of(i, cut);
    if (balanced)
      for (std::uint32_t s = 0; s < cut.stages(); ++s)
        if (out[s].rate / hops_cost(cut, s) < out[at].rate / hops_cost(cut, at)) at = s;
    out[at].rate += hosts[i].samples_per_second;
    out[at].hosts.push_back(std::move(hosts[i]));
  }
  return out;
}

struct named_queue {
  kernels::queue_class of;
  std::string name;
};

/// The lines of hosts that send and receive so many bits for a micro-batch, all together.
void add_lines(std::vector<named_queue>& into, const std::vector<host_speed>& hosts,
               const std::function<double(const host_speed&)>& share, double up, double down,
               const std::string& whose) {
  std::map<std::tuple<std::string, double, double, double>, double> counts;
  for (const auto& host : hosts) counts[{host.group, share(host), host.up, host.down}] += 1;
  for (const auto& [key, count] : counts) {
    const auto& [group, part, rate_up, rate_down] = key;
    into.push_back({{up * part / rate_up, count}, fmt::format("uplinks of {}{}", group, whose)});
    into.push_back(
        {{down * part / rate_down, count}, fmt::format("downlinks of {}{}", group, whose)});
  }
}

/// Micro-batches go round in a closed network of devices and lines. Then the stages average.
result<speed_prediction> speed_of_pipeline(const scenario& what) {
  const auto& o = options_of(what);
  std::vector<host_speed> holders, trainers;
  for (auto& host : speeds_of(what))
    (host.role != nullptr && host.role->name == "stage" ? holders : trainers)
        .push_back(std::move(host));
  const auto cut = cut_of(what);
  if (!cut) return failure{"the model cannot be cut into these stages"};
  if (holders.size() < cut->stages() || trainers.empty()) return failure{"a stage has no host"};
  const auto stages = stages_with_hosts(what, *cut, std::move(holders));
  const double batch = static_cast<double>(o.target_batch);
  const double samples = static_cast<double>(std::min(what.training.micro_batch, o.target_batch));
  const auto shape = shape_of(what);
  const auto codec = kernels::parse_codec(o.activations);
  SHOAL_CHECK(codec.ok(), "the schema knows the codecs");
  const double bits =
      8 * samples * shape.rows * static_cast<double>(kernels::encoded_bytes(*codec, shape.values));
  const double depth = static_cast<double>(o.stages);
  const double between = cut->last_hop(); // pairs of hops, with activations between them

  std::vector<named_queue> queues;
  double slowest_round = 0;
  averaging_time averaging;
  for (std::uint32_t s = 0; s < cut->stages(); ++s) {
    const auto& stage = stages[s];
    const double hops = cut->hops_of(s);
    const auto name = fmt::format(" in stage {}", s);
    // Each host gets micro-batches in proportion to its speed.
    queues.push_back({{hops_cost(*cut, s) * samples / (3 * depth * stage.rate),
                       static_cast<double>(stage.hosts.size())},
                      fmt::format("computing of stage {}", s)});
    const auto share = [&](const host_speed& host) { return host.samples_per_second / stage.rate; };
    // Forward an input and an output, and backward two inputs and an output. The first hop has no
    // input, and the last one has no output and no gradient of it.
    add_lines(queues, stage.hosts, share, (2 * hops - (s == 0 ? 2 : 0)) * bits,
              (3 * hops - (s == 0 ? 4 : 0)) * bits, name);
    const auto round = averaging_time_of(what, stage.hosts, kernels::end_of(cut->tensors_of(s)));
    if (!round) return failure{fmt::format("stage {}: {}", s, round.error())};
    if (s == 0 || round->total() > averaging.total()) averaging = *round;
    for (const auto& host : stage.hosts) slowest_round = std::max(slowest_round, host.step_seconds);
  }
  const auto part = [&](const host_speed&) { return 1 / static_cast<double>(trainers.size()); };
  add_lines(queues, trainers, part, (3 * between - 1) * bits, 2 * between * bits, "");

  std::vector<kernels::queue_class> classes;
  double alone = 0;
  for (const auto& each : queues) {
    classes.push_back(each.of);
    alone += each.of.demand * each.of.count;
  }
  // Each task and each count is a round trip.
  const double delay = (2 * between + 2) * round_trip_of(what);
  alone += delay;
  const auto jobs = static_cast<std::uint64_t>(
      std::min(static_cast<double>(o.in_flight) * static_cast<double>(trainers.size()),
               std::ceil(batch / samples)));
  const double rate = kernels::closed_network_rate(jobs, delay, classes);
  const double streaming = batch / samples / rate;
  const double rest = averaging.total() + slowest_round + alone / 2;

  const auto* busiest = &queues.front();
  for (const auto& each : queues)
    if (each.of.demand > busiest->of.demand) busiest = &each;
  speed_prediction out;
  out.samples_per_second = batch / (streaming + rest);
  out.reason = fmt::format(
      "a batch takes {}: {} of micro-batches, {} of averaging, {} to fill, to meet and to step. {} "
      "micro-batches are under way, and one alone takes {}",
      rough_time(streaming + rest), rough_time(streaming), rough_time(averaging.lines),
      rough_time(rest - averaging.lines), jobs, rough_time(alone));
  if (averaging.lines > streaming)
    out.limit = averaging.slowest;
  else if (rest > streaming)
    out.limit = "meeting for each batch";
  else if (rate * busiest->of.demand > 0.8)
    out.limit = busiest->name;
  else
    out.limit = "training.in_flight";
  return out;
}

std::vector<method_variant> pipeline_variants(const scenario& like) {
  const auto& of = like.workload.definition();
  const auto hosts = count_of(like);
  const bool has_stages = traits_of(like).has_stages;
  std::vector<std::uint64_t> depths;
  for (std::uint64_t stages = 2; stages <= 64 && stages < hosts; stages *= 2)
    depths.push_back(stages);
  if (has_stages &&
      std::find(depths.begin(), depths.end(), options_of(like).stages) == depths.end())
    depths.push_back(options_of(like).stages);
  std::vector<method_variant> out;
  for (const auto stages : depths) {
    // The check says why no cut is possible; one variant is enough for that.
    if (of.cut && !out.empty() && !of.cut(like.workload, static_cast<std::uint32_t>(stages)))
      continue;
    method_variant one{
        fmt::format("{} stages", stages), {{"stages", fmt::format("{}", stages)}}, {}};
    if (!has_stages) {
      one.training.emplace_back("target_batch",
                                fmt::format("{:.0f}", samples_between_rounds(like)));
      // So that each host of a stage has work while its answers are under way.
      one.training.emplace_back("in_flight",
                                fmt::format("{}", std::clamp<std::uint64_t>(hosts, 8, 256)));
    }
    out.push_back(std::move(one));
    if (!of.shape_between_stages) break;
  }
  return out;
}

} // namespace
} // namespace pipeline_method_parts

pipeline_memory memory_of_pipeline(const scenario& what) {
  using namespace pipeline_method_parts;
  pipeline_memory out;
  const auto& of = what.workload.definition();
  if (!traits_of(what).has_stages || !of.shape_between_stages) return out;
  const auto cut = cut_of(what);
  const auto optimizer = optimizer_of(what.training.optimizer);
  if (!optimizer || !cut) return out;
  constexpr std::uint64_t float32 = 4, float64 = 8;
  for (std::uint32_t s = 0; s < cut->stages(); ++s) {
    stage_memory one;
    one.parameters = kernels::end_of(cut->tensors_of(s));
    const auto values = float32 * one.parameters;
    one.weights = values + kernels::state_bytes(*optimizer, one.parameters);
    one.gradients = float64 * one.parameters + 2 * values;
    one.step = 2 * values + one.weights;
    out.stages.push_back(one);
  }
  // Each hop after the first one has an input, and the gradient with respect to it.
  const auto shape = shape_of(what);
  out.trainer_per_sample = 2 * float32 * cut->last_hop() * shape.rows * shape.values;
  return out;
}

method_definition pipeline_method() {
  using namespace pipeline_method_parts;
  method_definition out;
  out.name = "pipeline";
  out.meaning = "the model in stages on many hosts, and micro-batches that trainers send through "
                "them (SWARM)";
  out.options = options_box::of(pipeline_choices{});
  out.traits = [](const scenario& what) {
    method_traits traits;
    traits.target_batch = traits.baseline_batch = options_of(what).target_batch;
    traits.weights_are_samples = false;
    traits.whole_swarm = false;
    traits.has_stages = true;
    traits.idle_actors = 2; // the trainer and the node
    return traits;
  };
  out.steps_of_machine = [](const scenario&, std::uint64_t epoch) { return epoch; };
  out.check = [](const scenario& what, checking& report) {
    check_micro_batch(what, options_of(what).target_batch, report);
    check_model(what, report);
    check_hosts(what, report);
    check_training(what, report);
  };
  out.configure = [](const scenario& what, actors::peer_config& into) {
    into.target_batch = options_of(what).target_batch;
  };
  out.wrap = [](const scenario& what, std::shared_ptr<const actors::workload> work)
      -> result<std::shared_ptr<const actors::workload>> {
    const auto stages = static_cast<std::uint32_t>(options_of(what).stages);
    const auto& of = what.workload.definition();
    std::shared_ptr<const actors::stage_model> cut;
    if (work->is_size_only()) {
      const auto shape = shape_of(what);
      cut = actors::stage_model::sized(stages, shape.values,
                                       std::max<std::uint64_t>(1, work->value_count() / stages));
    } else {
      auto made = of.cut(what.workload, stages);
      if (!made) return failure{"training.stages: " + made.error()};
      cut = std::move(*made);
    }
    auto out =
        actors::staged_workload::make(std::move(work), std::move(cut), what.training.optimizer);
    if (!out) return failure{"training: " + out.error()};
    return std::shared_ptr<const actors::workload>(std::move(*out));
  };
  out.speed = speed_of_pipeline;
  out.variants = pipeline_variants;
  out.spawn = spawn_trainer;
  static_assert(actors::pipeline_trainer::drain == actors::training_peer::drain,
                "the role 'trainer' tells both to leave");
  return out;
}

} // namespace shoal::scenarios
