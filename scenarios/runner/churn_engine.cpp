#include "scenarios/runner/churn_engine.hpp"

#include "netem/trace_formats.hpp"
#include "scenarios/schema/churn_traces.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace shoal::scenarios {
namespace {

duration times(duration value, double factor) {
  const double seconds = to_seconds(value) * factor;
  return seconds < 9e9 ? std::max(from_seconds(seconds), duration(1)) : netem::forever;
}

netem::lifetime drawn_as(const lifetime_options& from) {
  netem::lifetime out;
  out.at_most = from.at_most > duration::zero() ? from.at_most : netem::forever;
  out.mean = from.mean;
  out.shape = from.shape;
  switch (from.distribution) {
  case distribution_kind::always:
    return {};
  case distribution_kind::exponential:
    out.kind = netem::lifetime_kind::exponential;
    break;
  case distribution_kind::weibull:
    out.kind = netem::lifetime_kind::weibull;
    if (from.scale > duration::zero())
      out.mean = times(from.scale, 1 / netem::weibull_scale(1, from.shape));
    break;
  case distribution_kind::log_normal:
    out.kind = netem::lifetime_kind::log_normal;
    out.shape = from.sigma;
    if (from.median > duration::zero())
      out.mean = times(from.median, netem::log_normal_mean(from.sigma));
    break;
  case distribution_kind::gamma:
    out.kind = netem::lifetime_kind::gamma;
    if (from.scale > duration::zero()) out.mean = times(from.scale, from.shape);
    break;
  case distribution_kind::hyperexponential:
    out.kind = netem::lifetime_kind::hyperexponential;
    for (const lifetime_phase& phase : from.phases)
      out.phases.push_back({phase.weight, phase.mean});
    break;
  }
  return out;
}

/// Returns the daily rhythm of a host whose time 0 is `start`. The scenario's time begins at
/// midnight UTC.
netem::daily_rhythm rhythm_of(const diurnal_options& from, duration start) {
  return {from.amplitude, (from.peak - from.time_zone.ahead - start) % duration(24h)};
}

duration later(duration a, duration b) {
  return a > netem::forever - b ? netem::forever : a + b;
}

} // namespace

result<std::vector<std::optional<churned_host>>> plan_churn(const scenario& from,
                                                            const std::vector<host_spec>& hosts,
                                                            const branch_point* branches) {
  const run_seed seed(from.seed, branches);
  std::map<std::string, const peer_group*> by_group;
  for (const peer_group& group : from.peers)
    if (churns(group.churn)) by_group[group.name] = &group;
  std::vector<std::optional<churned_host>> out(hosts.size());

  // Each host of a group with a trace replays one peer of the trace.
  std::map<std::string, netem::session_source> played; // key: host name
  for (const trace_use& use : trace_uses(from, ".")) {
    const auto read = netem::load_traces(use.files, use.how);
    if (!read) return failure{read.error()};
    std::size_t next = 0;
    for (const peer_group* group : use.groups) {
      const churn_options& churn = group->churn;
      const netem::trace window = netem::windowed(*read, {churn.offset, churn.speed, churn.loop});
      for (std::uint64_t i = 0; i < group->count; ++i, ++next) {
        const std::string host = host_name(*group, i);
        auto sessions = use.by_name || next >= window.peers().size()
                            ? window.sessions_of(use.by_name ? host : "")
                            : window.peers()[next].sessions;
        played.emplace(host, netem::session_source::replayed(std::move(sessions), window.loop()));
      }
    }
  }

  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto found = by_group.find(hosts[i].group);
    if (found == by_group.end()) continue;
    const churn_options& churn = found->second->churn;
    const duration start = hosts[i].start;
    auto sessions = churn.trace.empty()
                        ? netem::session_source::drawn(
                              seed, hosts[i].name, drawn_as(churn.session), drawn_as(churn.gap),
                              {churn.stationary, rhythm_of(churn.diurnal, start)})
                        : std::move(played.at(hosts[i].name));
    if (churn.outages.every.distribution != distribution_kind::always)
      sessions = std::move(sessions).interrupted(
          seed, hosts[i].group, hosts[i].name,
          {drawn_as(churn.outages.every), drawn_as(churn.outages.lasting), churn.outages.share},
          start);
    out[i] = churned_host{std::move(sessions), start, churn.ending};
  }
  return out;
}

void churn_engine::add(machine_index machine, churned_host host) {
  hosts_.push_back({machine, std::move(host), {}});
  plan_start(hosts_.size() - 1);
}

void churn_engine::plan_start(std::size_t index) {
  state& host = hosts_[index];
  const auto next = host.how.sessions.next();
  if (!next) return;
  host.end = later(next->end, host.how.offset);
  const duration start = later(next->start, host.how.offset);
  if (start != netem::forever) world_.at(start, [this, index] { begin(index); });
}

void churn_engine::begin(std::size_t index) {
  if (stopped_) return;
  const state& host = hosts_[index];
  if (!world_.running(host.machine)) {
    ++started_;
    world_.start(host.machine);
  }
  if (host.end != netem::forever) world_.at(host.end, [this, index] { finish(index); });
}

void churn_engine::finish(std::size_t index) {
  if (stopped_) return;
  const state& host = hosts_[index];
  if (world_.running(host.machine)) {
    ++ended_;
    world_.kill(host.machine, host.how.ending);
  }
  plan_start(index);
}

} // namespace shoal::scenarios
