#include "scenarios/experts/expert_swarm.hpp"

#include "actors/experts/expert_server.hpp"
#include "actors/experts/expert_trainer.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/runner/flat_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace shoal::scenarios {

namespace {

constexpr auto expert_settling =
    std::chrono::seconds(40); // the servers find each other and send copies
constexpr const char* model = "mixture";

world_options expert_world(const expert_swarm& what) {
  world_options out;
  out.seed = what.seed;
  out.compute_threads = what.sized != 0 ? 0 : 1;
  out.detection_time = what.detection_time;
  out.on_event = [](const netem::delivered_event&) {};
  return out;
}

class expert_run {
public:
  explicit expert_run(const expert_swarm& what)
      : what_(what), draws_(stream(what.seed, "experts.deaths")),
        world_(expert_world(what), {what.delay, what.rate}),
        lives_(
            world_.in(),
            {what.seed, "experts.lives", what.lifetime, what.downtime, netem::kill_scope::machine},
            [this](std::size_t i, actors::host& host) { start_server(i, host); },
            [this](std::size_t, netem::host_index host) { died(host); }) {
    world_.in().on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    deal();
  }

  expert_figures run() {
    auto& clock = world_.clock();
    world_.open();
    for (std::size_t i = 0; i < what_.hosts; ++i)
      lives_.add(world_.add_machine(fmt::format("experts-{}", i)));
    clock.run(expert_settling);
    out_.began = clock.now();
    for (std::size_t i = 0; i < what_.trainers; ++i) start_trainer(i);
    if (what_.lose_share > 0) clock.at(out_.began + what_.lose_at, [this] { lose_some(); });
    clock.run(out_.began + what_.stop_time);
    out_.ended = clock.now();
    out_.bytes = world_.bytes();
    out_.bypassed = world_.net().bypassed();
    for (const auto& [which, holders] : holders_) out_.experts_missing += holders.empty() ? 1 : 0;
    return std::move(out_);
  }

private:
  /// Deals the experts of all layers to the hosts in a random order.
  void deal() {
    std::vector<actors::expert_id> all;
    const auto& shape = what_.net->shape();
    for (std::uint32_t l = 0; l < shape.layers; ++l)
      for (actors::expert_place at(shape.grid.size());;) {
        all.push_back({l, at});
        auto d = at.size();
        while (d > 0 && ++at[d - 1] == shape.grid[d - 1]) at[--d] = 0;
        if (d == 0) break;
      }
    out_.experts = all.size();
    stream(what_.seed, "experts.deal").shuffle(std::span(all));
    hands_.resize(what_.hosts);
    for (std::size_t i = 0; i < all.size(); ++i) hands_[i % what_.hosts].push_back(all[i]);
  }

  /// A host that comes back has no experts at first.
  void start_server(std::size_t i, actors::host& host) {
    actors::expert_server_config config;
    config.model = model;
    config.block = what_.block;
    config.layers = static_cast<std::uint32_t>(what_.net->shape().layers);
    config.grid = what_.net->shape().grid;
    config.experts = std::exchange(hands_[i], {});
    config.seed = what_.seed;
    config.optimizer = what_.optimizer;
    config.batch_time = what_.batch_time;
    config.row_time = what_.row_time;
    config.most_staleness = what_.most_staleness;
    config.copies = what_.copies;
    config.copy_every = what_.copy_every;
    config.renew = what_.renew;
    config.record_lifetime = what_.record_lifetime;
    config.sized = what_.sized;
    config.copy_bytes = what_.copy_bytes;
    config.dht = world_.start_node(host);
    world_.in().spawn<actors::expert_server>(host, std::move(config));
  }

  void died(netem::host_index host) {
    ++out_.deaths;
    const auto peer = world_.in().peer_id_of(host);
    for (auto& [which, holders] : holders_) {
      if (holders.erase(peer) == 0 || !holders.empty()) continue;
      ++out_.experts_orphaned;
      orphaned_[which] = world_.clock().now();
    }
  }

  void lose_some() {
    std::vector<netem::host_index> alive;
    for (const auto machine : lives_.machines())
      if (const auto host = world_.net().host_on(machine); host != netem::no_host)
        alive.push_back(host);
    draws_.shuffle(std::span(alive));
    const auto count =
        static_cast<std::size_t>(what_.lose_share * static_cast<double>(alive.size()));
    for (std::size_t i = 0; i < count; ++i) lives_.kill(alive[i]);
  }

  void start_trainer(std::size_t i) {
    auto& host = world_.in().boot(world_.add_machine(fmt::format("trainer-{}", i)));
    actors::expert_trainer_config config;
    config.model = model;
    config.net = what_.net;
    config.seed = what_.seed; // all trunks begin alike
    config.optimizer = what_.optimizer;
    config.samples = [this, i](std::uint64_t step) { return what_.samples(i, step); };
    config.steps = what_.steps;
    config.search = what_.search;
    config.step_time = what_.step_time;
    config.timeout = what_.timeout;
    config.cache.hosts.record_lifetime = what_.record_lifetime;
    config.record_lifetime = what_.record_lifetime;
    config.renew = what_.renew;
    if (i == 0) {
      config.held_out = what_.held_out;
      config.evaluate_every = what_.evaluate_every;
    }
    config.share_every = what_.trainers > 1 ? what_.share_every : duration{};
    config.sized = what_.sized;
    config.dht = world_.start_node(host);
    world_.in().spawn<actors::expert_trainer>(host, std::move(config));
  }

  void observe(const actors::host& from, const actors::observation& seen) {
    const auto now = world_.clock().now();
    if (actors::holds_alternative<actors::misbehaved>(seen)) {
      ++out_.misbehaved;
    } else if (const auto* held = actors::get_if<actors::expert_held>(&seen)) {
      holders_[held->which].insert(from.id());
      if (!held->revived) return;
      ++out_.experts_revived;
      if (const auto orphan = orphaned_.find(held->which); orphan != orphaned_.end()) {
        out_.recovery_seconds.push_back(to_seconds(now - orphan->second));
        orphaned_.erase(orphan);
      }
    } else if (const auto* gone = actors::get_if<actors::expert_given_up>(&seen)) {
      ++out_.given_up;
      holders_[gone->which].erase(from.id());
    } else if (const auto* batch = actors::get_if<actors::expert_batch_done>(&seen)) {
      if (!batch->backward) return;
      ++out_.backward_batches;
      out_.backward_requests += batch->requests;
      out_.staleness_sum += batch->staleness;
    } else if (actors::holds_alternative<actors::expert_repeat_answered>(seen)) {
      ++out_.repeats;
    } else if (const auto* judged = actors::get_if<actors::expert_evaluated>(&seen)) {
      out_.evaluations.push_back(
          {now - out_.began, judged->step, judged->loss,
           static_cast<double>(judged->right) / static_cast<double>(judged->rows)});
    } else if (const auto* step = actors::get_if<actors::expert_step>(&seen)) {
      count(*step, now);
    }
  }

  void count(const actors::expert_step& step, duration now) {
    out_.steps.push_back({now - out_.began, step.loss, to_seconds(step.time)});
    out_.calls += step.calls;
    out_.calls_lost += step.lost;
    out_.rows_unanswered += step.unanswered;
    out_.steps_unanswered += step.unanswered > 0 ? 1 : 0;
    out_.look_ups += step.look_ups;
    out_.look_up_seconds.push_back(to_seconds(step.look_up_time));
    if (what_.proceed && !what_.proceed(out_.steps.size())) {
      out_.stopped = true;
      world_.clock().request_stop();
    }
    if (what_.steps > 0 && out_.steps.size() == what_.steps * what_.trainers)
      world_.clock().request_stop();
  }

  const expert_swarm& what_;
  expert_figures out_;
  rng draws_;
  std::vector<std::vector<actors::expert_id>> hands_; // experts that a host begins with
  std::map<actors::expert_id, std::set<actors::peer_id>> holders_;
  std::map<actors::expert_id, duration> orphaned_; // and when the last holder died
  // The world ends first, because its hosts report to the members above.
  flat_world world_;
  host_lives lives_;
};

} // namespace

result<expert_figures> run_expert_swarm(const expert_swarm& what) {
  SHOAL_CHECK(what.net != nullptr && what.block != nullptr && what.samples != nullptr,
              "a swarm has a network and samples");
  if (what.hosts == 0 || what.trainers == 0)
    return failure{"experts: at least one host and one trainer are needed"};
  return expert_run(what).run();
}

} // namespace shoal::scenarios
