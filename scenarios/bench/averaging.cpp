#include "scenarios/bench/averaging.hpp"

#include "actors/averaging/averager.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/dht/messages.hpp"
#include "actors/observe.hpp"
#include "kernels/balanced_shares.hpp"
#include "kernels/part_boundaries.hpp"
#include "scenarios/runner/world.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace shoal::scenarios {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_at_once =
    256; // peers whose groups run side by side, where groups are given: they fit the caches
constexpr auto joining_gap = 10ms; // between two nodes that join the DHT

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Answers nobody: only the actor that asks a DHT node needs an address to be answered at.
class joiner final : public actors::protocol_actor {
public:
  joiner(caf::actor_config& config, actors::host& on, std::size_t& ready)
      : protocol_actor(config, on), ready_(ready) {}
  caf::behavior make_behavior() override {
    return {[this](const actors::found&) {
      ++ready_;
      quit();
    }};
  }

private:
  std::size_t& ready_;
};

/// Thrown where peers never end their round. The caller reports it as a defect.
struct round_without_end {
  std::size_t missing = 0, awaited = 0;
};

class bench {
public:
  explicit bench(const averaging_bench& what)
      : what_(what), strategy_(*what.strategy), swarm_(what.swarm()) {
    world_options options;
    options.seed = what.seed;
    options.compute_threads = 1;
    options.on_event = [this](const netem::delivered_event& event) {
      if (event.kind == netem::event_kind::message) ++out_.messages;
    };
    in_ = std::make_unique<world>(std::move(options));
    in_->on_observation = [this](const actors::host&, const actors::observation& seen) {
      if (actors::holds_alternative<actors::misbehaved>(seen)) ++out_.misbehaved;
    };
  }
  ~bench() {
    everyone_.reset();
    averagers_.clear();
    nodes_.clear();
    in_.reset();
  }

  averaging_figures run() {
    const auto begun = std::chrono::steady_clock::now();
    if (build()) {
      out_.build_seconds = seconds_since(begun);
      for (unsigned r = 0; r < what_.restarts && !out_.stopped; ++r) restart(r);
    }
    out_.wall_seconds = seconds_since(begun);
    out_.bypassed = in_->net().bypassed();
    theory();
    return std::move(out_);
  }

private:
  bool proceed(const std::string& doing, double share = 0) {
    if (what_.progress && !what_.progress({doing, share})) out_.stopped = true;
    return !out_.stopped;
  }

  bool build() {
    auto& net = in_->net();
    region_ = net.add_region("here");
    netem::path_quality path;
    path.delay = what_.delay;
    net.set_path(region_, region_, path);
    const bool dht = strategy_.by_groups() && what_.assignment == group_assignment::dht;
    auto everyone = std::make_shared<std::vector<caf::actor>>();
    everyone->reserve(what_.peers);
    everyone_ = everyone;
    values_.resize(what_.peers);
    std::size_t ready = 0;
    auto draws = stream(what_.seed, "bootstraps");
    actors::dht_config options;
    options.signatures = std::make_shared<actors::signature_cache>(16 * what_.peers);
    for (std::size_t i = 0; i < what_.peers; ++i) {
      auto& host = in_->boot(net.add_machine({.name = fmt::format("p-{}", i),
                                              .region = region_,
                                              .up = {what_.rate},
                                              .down = {what_.rate}}));
      hosts_.push_back(in_->index_of(host));
      if (dht) {
        options.bootstraps.clear();
        for (int b = 0; b < 3 && i > 0; ++b)
          options.bootstraps.push_back(nodes_[draws.below(nodes_.size())]);
        nodes_.push_back(in_->spawn<actors::dht_node>(host, options));
        auto asks = in_->spawn<joiner>(host, ready);
        tell(i, nodes_.back(), actors::lookup{"ready", asks, 0});
        in_->clock().run(in_->clock().now() + joining_gap);
      }
      everyone->push_back(in_->spawn_by(host, [&](caf::actor_system& system) {
        return strategy_.spawn(system, host, config_for(i));
      }));
      if (i % 1024 == 0 && !proceed(fmt::format("{} of {} peers", i, what_.peers))) return false;
    }
    for (auto until = in_->clock().now() + 10min;
         dht && ready < what_.peers && in_->clock().now() < until;)
      in_->clock().run(in_->clock().now() + 1s);
    in_->clock().settle();
    return true;
  }

  actors::averager_config config_for(std::size_t i) {
    actors::averager_config out;
    out.index = static_cast<std::uint32_t>(i);
    out.everyone = everyone_;
    if (!nodes_.empty()) out.dht = nodes_.back();
    // Waits adapt; these are their bounds. Everything that a member sends, and gets, twice: a long
    // vector takes its time.
    const auto exchange = from_seconds(4 * 32 * static_cast<double>(what_.vector) / what_.rate);
    out.round.aggregator = actors::aggregators().find(what_.aggregator);
    out.round.matchmaking_time = 5s;
    out.round.sender_timeout = 5s + exchange;
    out.round.round_timeout = 60s + 2 * exchange;
    out.round.poll_interval = 250ms;
    if (strategy_.by_groups())
      out.round.group_size = static_cast<std::uint32_t>(strategy_.largest_group(swarm_));
    if (strategy_.needs_everybody) out.round.min_group_size = out.round.group_size;
    out.reduces = reduces(i);
    out.on_made = [this](std::uint32_t index, const actors::averager& made) {
      if (averagers_.size() <= index) averagers_.resize(index + 1);
      averagers_[index] = &made;
    };
    out.on_done = [this](std::uint32_t, const actors::averaging_done& done) {
      ++(done.outcome == actors::outcome::ok        ? out_.ok
         : done.outcome == actors::outcome::partial ? out_.partial
                                                    : out_.failed);
      last_done_ = in_->clock().now();
      if (++done_ == awaited_) in_->clock().request_stop();
    };
    return out;
  }
  bool reduces(std::size_t peer) const { return !strategy_.server || *strategy_.server == peer; }

  template <class Message>
  void tell(std::size_t peer, const caf::actor& whom, Message message) {
    in_->clock().as_host(hosts_[peer], [&] { caf::anon_send(whom, std::move(message)); });
  }

  /// Runs until all that were started are done. False: some never were.
  bool wait() {
    const auto until = in_->clock().now() + 1h;
    while (done_ < awaited_ && in_->clock().now() < until) {
      const auto before = in_->clock().now();
      in_->clock().run(until);
      if (in_->clock().now() == before && done_ < awaited_) break;
    }
    return done_ >= awaited_;
  }

  void restart(unsigned number) {
    averaging_curve curve;
    auto values = stream(what_.seed, "values", number);
    for (std::size_t i = 0; i < what_.peers; ++i) {
      std::vector<float> mine(what_.vector);
      values.for_each_normal(mine.size(),
                             [&](std::size_t j, double z) { mine[j] = static_cast<float>(z); });
      tell(i, (*everyone_)[i], actors::hold_values{payload{std::move(mine)}});
    }
    in_->clock().settle();
    if (strategy_.by_groups()) plan_ = strategy_.plan(swarm_, number);
    away_ = stream(what_.seed, "away", number);
    const auto mean = measure(curve, {});
    double seconds = 0;
    const auto bytes_before = bytes_sent();
    const auto note = [&] {
      curve.seconds.push_back(seconds);
      curve.bytes.push_back(static_cast<double>(bytes_sent() - bytes_before) /
                            static_cast<double>(what_.peers));
    };
    note();
    for (unsigned t = 1; t <= what_.rounds; ++t) {
      if (t > what_.at_least && curve.distortion.back() < what_.stop_at) break;
      seconds += round(number, t);
      measure(curve, mean);
      note();
      if (!proceed(fmt::format("restart {} of {}, round {}: {:.1e}", number + 1, what_.restarts, t,
                               curve.distortion.back()),
                   (number + static_cast<double>(t) / what_.rounds) / what_.restarts))
        break;
    }
    out_.restarts.push_back(std::move(curve));
  }

  /// Returns how long it took.
  double round(unsigned restart, unsigned t) {
    const auto number = std::uint64_t{restart} * (what_.rounds + 1) + t;
    std::vector<bool> here(what_.peers, true);
    if (what_.failure > 0)
      for (std::size_t i = 0; i < what_.peers; ++i) here[i] = away_.uniform() >= what_.failure;
    std::vector<actors::averaging_round> begins(what_.peers);
    for (std::size_t i = 0; i < what_.peers; ++i) {
      begins[i].number = number;
      begins[i].available = here[i];
    }
    if (strategy_.by_groups()) {
      const auto meeting = plan_(t);
      SHOAL_CHECK(meeting.size() == what_.peers, "a plan has a group for each peer");
      std::vector<std::uint32_t> size(
          meeting.empty() ? 1 : *std::max_element(meeting.begin(), meeting.end()) + 1);
      for (auto group : meeting) ++size[group];
      std::vector<actors::state_id> name(size.size());
      for (std::size_t group = 0; group < name.size(); ++group)
        name[group] = actors::id128::from(
            hasher{}.add(std::string_view{"bench"}).add(number).add(std::uint64_t{group}).finish());
      for (std::size_t i = 0; i < what_.peers; ++i) {
        begins[i].meeting = name[meeting[i]];
        begins[i].wanted = size[meeting[i]];
      }
      if (what_.assignment == group_assignment::given) return given_round(begins, meeting);
    }
    return start(begins, 0, what_.peers, {});
  }

  /// Starts those of `order` (all, if it is empty) from `first` on; those that are away hear of it,
  /// too.
  double start(std::vector<actors::averaging_round>& begins, std::size_t first, std::size_t last,
               const std::vector<std::uint32_t>& order) {
    done_ = awaited_ = 0;
    const auto begun = last_done_ = in_->clock().now();
    for (auto at = first; at < last; ++at)
      awaited_ += begins[order.empty() ? at : order[at]].available ? 1 : 0;
    for (auto at = first; at < last; ++at) {
      const auto i = order.empty() ? at : order[at];
      tell(i, (*everyone_)[i], std::move(begins[i]));
    }
    if (!wait()) throw round_without_end{awaited_ - done_, awaited_};
    in_->clock().settle();
    return to_seconds(last_done_ - begun);
  }

  /// Groups of one round share no host and no line: that they run in batches changes nothing but
  /// the memory.
  double given_round(std::vector<actors::averaging_round>& begins,
                     const std::vector<std::uint32_t>& meeting) {
    std::vector<std::uint32_t> order(what_.peers);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return meeting[a] < meeting[b]; });
    double longest = 0;
    std::size_t first = 0;
    for (std::size_t at = 0; at < order.size();) {
      std::size_t end = at;
      while (end < order.size() && meeting[order[end]] == meeting[order[at]]) ++end;
      if (end - first > most_at_once && at > first) {
        longest = std::max(longest, start(begins, first, at, order));
        first = at;
      }
      if (in_vain(begins, order, at, end)) {
        // The members wait for the missing ones until `max_wait` is over.
        for (auto i = at; i < end; ++i) begins[order[i]].available = false;
        longest = std::max(longest, to_seconds(config_for(0).round.matchmaking_time));
      }
      auto group = group_of(begins, order, at, end);
      for (auto i = at; i < end; ++i) begins[order[i]].group = group;
      at = end;
    }
    return std::max(longest, start(begins, first, order.size(), order));
  }

  /// Whether a group, the peers order[from, to), lacks a member without which it averages nothing.
  bool in_vain(const std::vector<actors::averaging_round>& begins,
               const std::vector<std::uint32_t>& order, std::size_t from, std::size_t to) const {
    bool some_away = false, has_server = false;
    for (auto at = from; at < to; ++at) {
      const bool available = begins[order[at]].available;
      some_away = some_away || !available;
      has_server = has_server || (available && reduces(order[at]));
    }
    return (strategy_.needs_everybody && some_away) || (strategy_.server && !has_server);
  }

  std::shared_ptr<const actors::group_begun>
  group_of(const std::vector<actors::averaging_round>& begins,
           const std::vector<std::uint32_t>& order, std::size_t from, std::size_t to) {
    auto out = std::make_shared<actors::group_begun>();
    out->epoch = begins[order[from]].number;
    out->state = out->group = begins[order[from]].meeting;
    std::vector<double> rates;
    for (auto at = from; at < to; ++at) { // ascending ids: order is stable
      const auto i = order[at];
      if (!begins[i].available) continue;
      out->members.push_back({in_->host_at(hosts_[i]).id(),
                              (*everyone_)[i],
                              1,
                              reduces(i) ? static_cast<std::uint64_t>(what_.rate) : 0,
                              {},
                              2,
                              1,
                              {}});
      rates.push_back(reduces(i) ? 1 : 0);
    }
    if (!rates.empty())
      out->boundaries = kernels::part_boundaries(what_.vector, kernels::balanced_shares(rates));
    return out;
  }

  std::uint64_t bytes_sent() const {
    std::uint64_t out = 0;
    for (std::size_t c = 0; c < 4; ++c) out += in_->net().traffic_bytes(c);
    return out;
  }

  /// Adds a point to the curve. Returns the mean of the peers' values.
  std::vector<double> measure(averaging_curve& curve, const std::vector<double>& initial_mean) {
    const auto n = static_cast<double>(what_.peers), v = static_cast<double>(what_.vector);
    std::vector<double> mean(what_.vector);
    for (const auto* peer : averagers_) {
      const auto values = peer->values().floats();
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += values[k];
    }
    for (auto& x : mean) x /= n;
    double distortion = 0, from_mean = 0;
    for (const auto* peer : averagers_) {
      const auto values = peer->values().floats();
      for (std::size_t k = 0; k < mean.size(); ++k)
        distortion += (values[k] - mean[k]) * (values[k] - mean[k]);
    }
    distortion /= n * v;
    if (initial_mean.empty()) {
      curve.initial = distortion;
    } else {
      for (std::size_t k = 0; k < mean.size(); ++k)
        from_mean += (mean[k] - initial_mean[k]) * (mean[k] - initial_mean[k]) / v;
    }
    const double scale = curve.initial > 0 ? curve.initial : 1;
    curve.distortion.push_back(distortion / scale);
    curve.from_mean.push_back(from_mean / scale);
    return mean;
  }

  void theory() {
    if (!strategy_.theory) return;
    std::size_t longest = 0, rounds = 0;
    for (const auto& r : out_.restarts) {
      longest = std::max(longest, r.distortion.size());
      rounds += r.distortion.size() - 1;
    }
    for (std::size_t t = 0; t < longest; ++t) {
      const auto done =
          static_cast<double>(t) * static_cast<double>(out_.ok) / static_cast<double>(rounds);
      if (const auto expected = strategy_.theory(swarm_, t, done)) out_.theory.push_back(*expected);
    }
  }

  const averaging_bench& what_;
  const actors::averaging_strategy& strategy_;
  const actors::averaging_swarm swarm_;
  averaging_figures out_;
  std::unique_ptr<world> in_;
  netem::region_index region_ = 0;
  std::vector<netem::host_index> hosts_;
  std::vector<caf::actor> nodes_;
  std::shared_ptr<const std::vector<caf::actor>> everyone_;
  std::vector<const actors::averager*> averagers_;
  std::vector<payload> values_;
  actors::meeting_plan plan_;
  rng away_{0};
  std::size_t done_ = 0, awaited_ = 0;
  duration last_done_{};
};

} // namespace

std::optional<unsigned> averaging_curve::rounds_to(double level) const {
  for (std::size_t t = 0; t < distortion.size(); ++t)
    if (distortion[t] < level) return static_cast<unsigned>(t);
  return std::nullopt;
}

double averaging_figures::mean_rounds_to(double level, unsigned limit) const {
  double sum = 0;
  for (const auto& r : restarts) sum += r.rounds_to(level).value_or(limit);
  return sum / static_cast<double>(restarts.size());
}

std::size_t averaging_figures::reached(double level) const {
  return static_cast<std::size_t>(
      std::count_if(restarts.begin(), restarts.end(),
                    [&](const auto& r) { return r.rounds_to(level).has_value(); }));
}

result<averaging_figures> run_averaging_bench(const averaging_bench& what) {
  if (what.peers < 1) return failure{"a swarm has at least one peer"};
  if (what.vector < 1) return failure{"a vector has at least one value"};
  if (!(what.failure >= 0 && what.failure < 1))
    return failure{"the probability of failure is at least 0 and less than 1"};
  if (actors::aggregators().find(what.aggregator) == nullptr)
    return failure{fmt::format("unknown aggregator '{}'", what.aggregator)};
  if (what.restarts < 1 || what.rounds < 1) return failure{"at least one round and one restart"};
  if (what.strategy->uses_group_size && what.group_size < 2)
    return failure{"a group has at least two peers"};
  try {
    return bench(what).run();
  } catch (const round_without_end& e) {
    return failure{fmt::format("a defect of Shoal: {} of {} peers never ended their round; seed {}",
                               e.missing, e.awaited, what.seed)};
  }
}

} // namespace shoal::scenarios
