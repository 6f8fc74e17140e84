#include "scenarios/stage/churn.hpp"

#include <map>
#include <string>
#include <utility>

#include "netem/trace.hpp"

namespace shoal::scenarios {
namespace {

netem::lifetime drawn_as(const lifetime& from) {
  switch (from.distribution) {
    case distribution_kind::exponential: return {netem::lifetime_kind::exponential, from.mean, 1};
    case distribution_kind::weibull: return {netem::lifetime_kind::weibull, from.mean, from.shape};
    case distribution_kind::always: break;
  }
  return {};
}

duration later(duration a, duration b) { return a > netem::forever - b ? netem::forever : a + b; }

}  // namespace

result<std::vector<std::optional<churned_host>>> plan_churn(const scenario& from, const std::vector<host_spec>& hosts) {
  std::map<std::string, const churn_options*> by_group;
  std::map<std::string, netem::trace> traces;
  for (const peer_group& group : from.peers) {
    const churn_options& churn = group.churn;
    if (churn.trace.empty() && churn.session.distribution == distribution_kind::always) continue;
    by_group[group.name] = &churn;
    if (churn.trace.empty() || traces.contains(churn.trace)) continue;
    auto read = netem::load_trace(churn.trace);
    if (!read) return failure{read.error()};
    traces.emplace(churn.trace, std::move(*read));
  }
  std::vector<std::optional<churned_host>> out(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto found = by_group.find(hosts[i].group);
    if (found == by_group.end()) continue;
    const churn_options& churn = *found->second;
    auto sessions = churn.trace.empty()
                        ? netem::session_source::drawn(from.seed, hosts[i].name, drawn_as(churn.session), drawn_as(churn.gap))
                        : netem::session_source::replayed(traces.at(churn.trace).sessions_of(hosts[i].name));
    out[i] = churned_host{std::move(sessions), hosts[i].start, churn.ending};
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

}  // namespace shoal::scenarios
