#include "scenarios/pipeline/pipeline_swarm.hpp"

#include "actors/observe.hpp"
#include "actors/pipeline/pipeline_trainer.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "kernels/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr const char* pipeline_name = "pipeline";
constexpr auto pipeline_settling = std::chrono::seconds(5); // the hosts find each other

world_options options_of(const pipeline_swarm& what) {
  world_options out;
  out.seed = what.seed;
  if (what.model->sized_values() != 0) out.compute_threads = 0;
  out.detection_time = what.detection_time;
  out.on_event = [](const netem::delivered_event&) {};
  return out;
}

class pipeline_run {
public:
  explicit pipeline_run(const pipeline_swarm& what)
      : what_(what), world_(options_of(what), what.line),
        lives_(
            world_.in(),
            {what.seed, "pipeline.lives", what.lifetime, what.downtime, netem::kill_scope::machine},
            [this](std::size_t i, actors::host& host) { start_peer(i, host); },
            [this](std::size_t, netem::host_index host) { died(host); }) {
    world_.in().on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    auto speeds = stream(what.seed, "pipeline.speeds");
    for (std::size_t i = 0; i < what.hosts; ++i)
      sample_times_.push_back(
          from_seconds(to_seconds(what.sample_time) * (1 + (what.slowest - 1) * speeds.uniform())));
    out_.states = what.initial;
    out_.tasks.resize(stages());
    out_.hosts_at_end.resize(stages());
  }

  pipeline_figures run() {
    world_.open();
    for (std::size_t i = 0; i < what_.hosts; ++i)
      lives_.add(world_.add_machine(fmt::format("host-{}", i)));
    world_.clock().run(pipeline_settling);
    out_.began = bound_since_ = world_.clock().now();
    for (std::uint32_t i = 0; i < what_.trainers; ++i) start_trainer(i);
    world_.clock().run(out_.began + what_.stop_time);
    out_.ended = world_.clock().now();
    note_capacity();
    const double seconds = to_seconds(out_.ended - out_.began);
    if (seconds > 0) out_.bound /= seconds;
    for (const auto& [peer, one] : serving_) ++out_.hosts_at_end[one.stage];
    count_samples();
    out_.bytes = world_.bytes();
    out_.bypassed = world_.net().bypassed();
    return std::move(out_);
  }

private:
  struct server {
    std::uint32_t stage = 0;
    duration sample_time{};
  };
  /// The step of a stage that ends in a state.
  struct made_step {
    actors::state_id before;
    std::uint64_t epoch = 0, counted = 0;
  };

  std::uint32_t stages() const { return what_.model->stages(); }

  duration record_lifetime() const {
    return std::max<duration>(std::chrono::seconds(10), 3 * what_.refresh);
  }

  void start_peer(std::size_t i, actors::host& host) {
    const bool returns = world_.clock().now() > duration{};
    machine_of_[host.id()] = i;
    actors::stage_peer_config config;
    config.run = pipeline_name;
    // A host that comes back joins where the load is, if the pipeline balances it.
    if (returns && what_.rebalance_every > duration{})
      config.stage.reset();
    else
      config.stage = static_cast<std::uint32_t>(i % stages());
    config.model = what_.model;
    config.optimizer = what_.optimizer;
    config.initial = what_.initial;
    config.averaging = what_.averaging;
    config.target_batch = what_.batch;
    config.sample_time = sample_times_[i];
    config.step_time = what_.step_time;
    config.rebalance_every = what_.rebalance_every;
    config.refresh = what_.refresh;
    config.record_lifetime = record_lifetime();
    config.on_step = [this](std::uint32_t stage, const actors::state_ptr& state) {
      stepped(stage, state);
    };
    config.dht = world_.start_node(host);
    world_.in().spawn<actors::stage_peer>(host, std::move(config));
  }

  void start_trainer(std::uint32_t i) {
    auto& host = world_.in().boot(world_.add_machine(fmt::format("trainer-{}", i)));
    actors::pipeline_trainer_config config;
    config.run = pipeline_name;
    config.model = what_.model;
    config.time = what_.time;
    config.target_batch = what_.batch;
    config.micro_batch = what_.micro_batch;
    config.epochs = what_.steps;
    config.trainer = i;
    config.trainers = what_.trainers;
    config.in_flight = what_.in_flight;
    config.activations = what_.activations;
    config.samples = what_.samples;
    config.refresh = what_.refresh;
    config.record_lifetime = record_lifetime();
    config.dht = world_.start_node(host);
    world_.in().spawn<actors::pipeline_trainer>(host, std::move(config));
  }

  void died(netem::host_index host) {
    ++out_.deaths;
    leave(world_.in().peer_id_of(host));
  }

  // -- the bound --------------------------------------------------------------------------------

  /// Samples a second that the hosts of the weakest stage can compute.
  double weakest_stage() const {
    std::vector<double> rates(stages());
    for (const auto& [peer, one] : serving_) rates[one.stage] += 1 / to_seconds(one.sample_time);
    double out = std::numeric_limits<double>::infinity();
    for (std::uint32_t s = 0; s < stages(); ++s) {
      // A hop goes backward, and forward unless it is the last one.
      const double forward = 1, backward = actors::backward_size;
      const double work = forward + backward + (s == 0 ? backward : 0);
      out = std::min(out, rates[s] / work);
    }
    return out;
  }

  void note_capacity() {
    const auto now = world_.clock().now();
    if (out_.began > duration{} && now > bound_since_)
      out_.bound += weakest_stage() * to_seconds(now - bound_since_);
    bound_since_ = std::max(bound_since_, now);
  }

  void join(actors::peer_id peer, std::uint32_t stage) {
    note_capacity();
    serving_[peer] = {stage, sample_times_[machine_of_.at(peer)]};
  }

  void leave(actors::peer_id peer) {
    note_capacity();
    const auto found = serving_.find(peer);
    if (found == serving_.end()) return;
    const auto stage = found->second.stage;
    serving_.erase(found);
    const bool held = std::any_of(serving_.begin(), serving_.end(),
                                  [&](const auto& one) { return one.second.stage == stage; });
    // A stage that has made no step has the first state, which every newcomer has, too.
    if (held || out_.states[stage]->epoch == 0) return;
    out_.lost_stage = stage;
    world_.clock().request_stop();
  }

  // -- steps ------------------------------------------------------------------------------------

  void stepped(std::uint32_t stage, const actors::state_ptr& state) {
    if (state->epoch > out_.states[stage]->epoch) out_.states[stage] = state;
    const auto least =
        (*std::min_element(out_.states.begin(), out_.states.end(),
                           [](const auto& a, const auto& b) { return a->epoch < b->epoch; }))
            ->epoch;
    if (least <= out_.steps) return;
    out_.steps = least;
    out_.step_times.push_back(world_.clock().now() - out_.began);
    if (what_.on_step && !what_.on_step(least, out_.states)) {
      out_.stopped = true;
      world_.clock().request_stop();
    }
    if (what_.steps > 0 && least >= what_.steps) world_.clock().request_stop();
  }

  /// Follows the states at the end back to the first ones.
  void count_samples() {
    std::map<std::uint64_t, std::uint64_t> missing, more;
    for (std::uint32_t s = 0; s < stages(); ++s) {
      const auto all = what_.batch * what_.model->hops_of(s);
      std::map<std::uint64_t, std::size_t> ways;
      for (const auto& [state, step] : steps_of_[s]) ++ways[step.epoch];
      for (const auto& [epoch, count] : ways) out_.split_steps += count > 1 ? 1 : 0;
      for (auto at = steps_of_[s].find(out_.states[s]->id); at != steps_of_[s].end();
           at = steps_of_[s].find(at->second.before)) {
        const auto counted = at->second.counted;
        auto& lacks = missing[at->second.epoch];
        lacks = std::max(lacks, counted < all ? all - counted : 0);
        auto& extra = more[at->second.epoch];
        extra = std::max(extra, counted > all ? counted - all : 0);
      }
    }
    for (const auto& [epoch, samples] : missing) out_.samples_missing += samples;
    for (const auto& [epoch, samples] : more) out_.samples_repeated += samples;
    for (const auto& [epoch, loss] : loss_sums_)
      if (epoch < out_.steps) out_.losses.push_back(loss / static_cast<double>(what_.batch));
  }

  void observe(const actors::host& from, const actors::observation& seen) {
    if (actors::holds_alternative<actors::misbehaved>(seen)) {
      ++out_.misbehaved;
    } else if (const auto* counted = actors::get_if<actors::gradient_counted>(&seen)) {
      ++out_.tasks[counted->stage];
    } else if (const auto* step = actors::get_if<actors::stage_stepped>(&seen)) {
      steps_of_[step->stage][step->after] = {step->before, step->epoch, step->counted};
    } else if (const auto* joined = actors::get_if<actors::stage_joined>(&seen)) {
      join(from.id(), joined->stage);
      out_.downloads += joined->bytes > 0 ? 1 : 0;
      out_.download_bytes += joined->bytes;
    } else if (actors::holds_alternative<actors::stage_left>(seen)) {
      ++out_.moves;
      leave(from.id());
    } else if (const auto* dropped = actors::get_if<actors::gradients_dropped>(&seen)) {
      ++out_.gradients_dropped;
      out_.samples_dropped += dropped->samples;
    } else if (const auto* failed = actors::get_if<actors::stage_task_failed>(&seen)) {
      ++out_.failures[static_cast<std::size_t>(failed->why)];
    } else if (const auto* batch = actors::get_if<actors::batch_trained>(&seen)) {
      out_.hops_repeated += batch->repeated;
      out_.partial_batches += batch->dropped ? 1 : 0;
      loss_sums_[batch->epoch] += batch->loss_sum;
    } else if (const auto* again = actors::get_if<actors::batch_reopened>(&seen)) {
      out_.hops_repeated += again->hops;
      ++out_.batches_reopened;
    }
  }

  const pipeline_swarm& what_;
  pipeline_figures out_;
  std::vector<duration> sample_times_; // by machine
  std::map<actors::peer_id, std::size_t> machine_of_;
  std::map<actors::peer_id, server> serving_;
  duration bound_since_{};
  std::map<std::uint32_t, std::map<actors::state_id, made_step>> steps_of_; // by stage
  std::map<std::uint64_t, double> loss_sums_;                               // by epoch
  // The world ends first, because its hosts report to the members above.
  flat_world world_;
  host_lives lives_;
};

} // namespace

result<pipeline_figures> run_pipeline_swarm(const pipeline_swarm& what) {
  SHOAL_CHECK(what.model != nullptr && what.samples != nullptr &&
                  what.initial.size() == what.model->stages(),
              "a pipeline has a model, its states and samples");
  if (what.hosts < what.model->stages() || what.trainers == 0)
    return failure{fmt::format("pipeline: {} hosts and {} trainers: a pipeline of {} stages needs "
                               "as many hosts, and a trainer",
                               what.hosts, what.trainers, what.model->stages())};
  return pipeline_run(what).run();
}

} // namespace shoal::scenarios
