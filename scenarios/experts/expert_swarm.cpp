#include "scenarios/experts/expert_swarm.hpp"

#include "actors/dht/dht_node.hpp"
#include "actors/experts/expert_server.hpp"
#include "actors/experts/expert_trainer.hpp"
#include "actors/observe.hpp"
#include "kernels/base/check.hpp"
#include "scenarios/runner/world.hpp"

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

class expert_run {
public:
  explicit expert_run(const expert_swarm& what)
      : what_(what), draws_(stream(what.seed, "experts.deaths")) {
    world_options options;
    options.seed = what.seed;
    options.compute_threads = what.sized != 0 ? 0 : 1;
    options.detection_time = what.detection_time;
    options.on_event = [](const netem::delivered_event&) {};
    in_ = std::make_unique<world>(std::move(options));
    in_->on_observation = [this](const actors::host& from, const actors::observation& seen) {
      observe(from, seen);
    };
    deal();
  }
  ~expert_run() {
    bootstrap_ = nullptr;
    in_.reset();
  }

  expert_figures run() {
    auto& net = in_->net();
    region_ = net.add_region("here");
    netem::path_quality path;
    path.delay = what_.delay;
    net.set_path(region_, region_, path);
    bootstrap_ = start_node(in_->boot(add_machine("directory")));
    for (std::size_t i = 0; i < what_.hosts; ++i) {
      machines_.push_back(add_machine(fmt::format("experts-{}", i)));
      lives_.push_back(stream(what_.seed, "experts.lives", i));
      start_server(i);
    }
    in_->clock().run(expert_settling);
    out_.began = in_->clock().now();
    for (std::size_t i = 0; i < what_.trainers; ++i) start_trainer(i);
    if (what_.lose_share > 0) in_->clock().at(out_.began + what_.lose_at, [this] { lose_some(); });
    in_->clock().run(out_.began + what_.stop_time);
    out_.ended = in_->clock().now();
    for (std::size_t c = 0; c < 4; ++c) out_.bytes += net.traffic_bytes(c);
    out_.bypassed = net.bypassed();
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

  netem::machine_index add_machine(std::string name) {
    return in_->net().add_machine(
        {.name = std::move(name), .region = region_, .up = {what_.rate}, .down = {what_.rate}});
  }

  caf::actor start_node(actors::host& on) {
    actors::dht_config config;
    config.signatures = signatures_;
    if (bootstrap_) config.bootstraps.push_back(bootstrap_);
    return in_->spawn<actors::dht_node>(on, std::move(config));
  }

  /// A host that comes back has no experts at first.
  void start_server(std::size_t i) {
    auto& host = in_->boot(machines_[i]);
    server_of_[in_->index_of(host)] = i;
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
    config.dht = start_node(host);
    in_->spawn<actors::expert_server>(host, std::move(config));
    if (what_.lifetime == duration{}) return;
    const auto index = in_->index_of(host);
    in_->clock().at(in_->clock().now() +
                        from_seconds(lives_[i].exponential(to_seconds(what_.lifetime))),
                    [this, index] { kill(index); });
  }

  void kill(netem::host_index host) {
    if (!in_->net().alive(host)) return;
    const auto i = server_of_.at(host);
    ++out_.deaths;
    const auto peer = in_->host_at(host).id();
    for (auto& [which, holders] : holders_) {
      if (holders.erase(peer) == 0 || !holders.empty()) continue;
      ++out_.experts_orphaned;
      orphaned_[which] = in_->clock().now();
    }
    in_->net().kill(host, netem::kill_scope::machine);
    const auto away = from_seconds(lives_[i].exponential(to_seconds(what_.downtime)));
    in_->clock().at(in_->clock().now() + away, [this, i] { start_server(i); });
  }

  void lose_some() {
    std::vector<netem::host_index> alive;
    for (const auto machine : machines_)
      if (const auto host = in_->net().host_on(machine); host != netem::no_host)
        alive.push_back(host);
    draws_.shuffle(std::span(alive));
    const auto count =
        static_cast<std::size_t>(what_.lose_share * static_cast<double>(alive.size()));
    for (std::size_t i = 0; i < count; ++i) kill(alive[i]);
  }

  void start_trainer(std::size_t i) {
    auto& host = in_->boot(add_machine(fmt::format("trainer-{}", i)));
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
    config.cache.record_lifetime = what_.record_lifetime;
    config.record_lifetime = what_.record_lifetime;
    config.renew = what_.renew;
    if (i == 0) {
      config.held_out = what_.held_out;
      config.evaluate_every = what_.evaluate_every;
    }
    config.share_every = what_.trainers > 1 ? what_.share_every : duration{};
    config.sized = what_.sized;
    config.dht = start_node(host);
    in_->spawn<actors::expert_trainer>(host, std::move(config));
  }

  void observe(const actors::host& from, const actors::observation& seen) {
    const auto now = in_->clock().now();
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
      in_->clock().request_stop();
    }
    if (what_.steps > 0 && out_.steps.size() == what_.steps * what_.trainers)
      in_->clock().request_stop();
  }

  const expert_swarm& what_;
  expert_figures out_;
  rng draws_;
  std::unique_ptr<world> in_;
  std::shared_ptr<actors::signature_cache> signatures_ =
      std::make_shared<actors::signature_cache>(1 << 16);
  netem::region_index region_ = 0;
  caf::actor bootstrap_;
  std::vector<netem::machine_index> machines_;
  std::vector<std::vector<actors::expert_id>> hands_; // experts that a host begins with
  std::vector<rng> lives_;
  std::map<netem::host_index, std::size_t> server_of_;
  std::map<actors::expert_id, std::set<actors::peer_id>> holders_;
  std::map<actors::expert_id, duration> orphaned_; // and when the last holder died
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
