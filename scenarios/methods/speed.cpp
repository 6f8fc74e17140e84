#include "scenarios/methods/speed.hpp"

#include "kernels/averaging_plan.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/layout.hpp"
#include "scenarios/methods/method.hpp"
#include "scenarios/roles/role.hpp"
#include "scenarios/workloads/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace shoal::scenarios {

namespace {

// The round trips of a round without its transfers, besides one wait of `min_refresh`. Hosts see by
// the DHT that the batch is full, and find each other, and a certificate passes. The number was
// measured over delays from 1 to 100 ms and 8 to 32 hosts (results/swarm/plan.md).
constexpr double round_trips_of_round = 8.5;

/// The mean before `at_most`, in seconds; infinity: no end.
double mean_of(const lifetime_options& what) {
  const double median = to_seconds(what.median), scale = to_seconds(what.scale);
  if (what.distribution == distribution_kind::always)
    return std::numeric_limits<double>::infinity();
  if (what.distribution == distribution_kind::hyperexponential) {
    double weights = 0, sum = 0;
    for (const auto& phase : what.phases) {
      weights += phase.weight;
      sum += phase.weight * to_seconds(phase.mean);
    }
    return weights > 0 ? sum / weights : 0;
  }
  if (median > 0) return median * std::exp(what.sigma * what.sigma / 2);
  if (scale > 0)
    return what.distribution == distribution_kind::gamma ? scale * what.shape
                                                         : scale * std::tgamma(1 + 1 / what.shape);
  return to_seconds(what.mean);
}

/// The share of its time in which a host of the group is there.
double presence_of(const peer_group& group) {
  const double session = mean_of(group.churn.session), gap = mean_of(group.churn.gap);
  if (!std::isfinite(session) || !std::isfinite(gap) || session + gap <= 0) return 1;
  return session / (session + gap);
}

/// Bytes of a vector with the codec, for each byte of floats.
double codec_ratio(const scenario& what, kernels::codec which) {
  constexpr std::size_t some = 1 << 20;
  if (which == kernels::codec::top_k) return 2 * what.averaging.top_k_fraction;
  return static_cast<double>(kernels::encoded_bytes(which, some)) / (sizeof(float) * some);
}

/// The name of the group whose line takes longest with these shares.
std::string slowest_line(std::span<const host_speed> hosts,
                         std::span<const kernels::averaging_peer> peers,
                         const std::vector<double>& shares) {
  double senders = 0, receivers = 0, longest = 0;
  for (const auto& peer : peers) {
    senders += peer.contributes ? 1 : 0;
    receivers += peer.receives ? 1 : 0;
  }
  std::string out;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto& peer = peers[i];
    const double c = peer.contributes ? 1 : 0, r = peer.receives ? 1 : 0, w = shares[i];
    const double up = (c * (1 - w) + (receivers - r) * w) / peer.up,
                 down = ((senders - c) * w + r * (1 - w)) / peer.down;
    if (std::max(up, down) <= longest * (1 + 1e-9)) continue;
    longest = std::max(up, down);
    out = fmt::format("{} of {}", up >= down ? "uplinks" : "downlinks", hosts[i].group);
  }
  return out;
}

bool trains(const host_speed& host) {
  return host.role == nullptr || host.role->trains;
}

/// The group that gives the most samples.
std::string strongest_group(std::span<const host_speed> hosts) {
  std::map<std::string, double> by_group;
  for (const auto& host : hosts)
    if (trains(host)) by_group[host.group] += host.samples_per_second;
  const auto most = std::max_element(by_group.begin(), by_group.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == by_group.end() ? "" : most->first;
}

} // namespace

std::string rough_time(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", 1000 * seconds);
  if (seconds < 600) return fmt::format("{:.3g} s", seconds);
  if (seconds < 36000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

std::vector<host_speed> speeds_of(const scenario& what) {
  std::map<std::string, const peer_group*> groups;
  for (const auto& group : what.peers) groups[group.name] = &group;
  std::vector<host_speed> out;
  for (const auto& host : expand_hosts(what)) {
    if (host.absent) continue;
    const auto& group = *groups.at(host.group);
    const auto shared = static_cast<double>(std::max<std::uint64_t>(group.hosts_per_line, 1));
    host_speed one;
    one.group = host.group;
    one.role = host.role;
    one.up = host.up.bits_per_second / shared;
    one.down = host.down.bits_per_second / shared;
    one.reachable = host.nat == netem::nat_class::open;
    if (const auto device = what.devices.find(host.device);
        device != what.devices.end() && trains(one)) {
      one.samples_per_second = device->second.samples_per_second * presence_of(group);
      one.step_seconds = to_seconds(device->second.step_time);
    }
    out.push_back(std::move(one));
  }
  return out;
}

double round_trip_of(const scenario& what) {
  const auto& network = what.network;
  std::map<std::string, double> hosts; // by region
  double access = 0, count = 0;
  for (const auto& host : expand_hosts(what)) {
    hosts[host.region.empty() ? network.regions.front() : host.region] += 1;
    access += to_seconds(host.access.delay);
    count += 1;
  }
  if (count == 0) return 2 * to_seconds(network.default_delay);
  double delays = 0;
  for (const auto& [from, a] : hosts)
    for (const auto& [to, b] : hosts) {
      auto delay = network.default_delay;
      for (const auto& link : network.links)
        if ((link.from == from && link.to == to) || (link.from == to && link.to == from))
          delay = link.path.delay;
      delays += a * b * to_seconds(delay);
    }
  return 2 * (delays / (count * count) + 2 * access / count);
}

result<averaging_time> averaging_time_of(const scenario& what, std::span<const host_speed> hosts,
                                         std::uint64_t values) {
  averaging_time out;
  out.protocol = to_seconds(what.training.min_refresh) + round_trips_of_round * round_trip_of(what);
  if (hosts.size() < 2) return out;
  std::vector<kernels::averaging_peer> peers;
  peers.reserve(hosts.size());
  for (const auto& host : hosts)
    peers.push_back({host.up, host.down, trains(host), trains(host), host.reachable});
  const auto plan = kernels::fill_lines(peers);
  if (!plan) return failure{plan.error()};
  const auto& options = what.averaging;
  const auto back = options.means_compression.value_or(
      options.compression == kernels::codec::top_k ? kernels::codec::none : options.compression);
  const double ratio = (codec_ratio(what, options.compression) + codec_ratio(what, back)) / 2;
  auto shares = plan->shares;
  double seconds_per_bit = plan->seconds_per_bit;
  if (options.split == actors::part_split::equal) {
    double reducers = 0;
    for (const auto& host : hosts) reducers += host.reachable ? 1 : 0;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      shares[i] = hosts[i].reachable ? 1 / reducers : 0;
    seconds_per_bit = kernels::seconds_per_bit(peers, {}, shares);
  }
  out.lines = seconds_per_bit * ratio * 8 * sizeof(float) * static_cast<double>(values);
  out.slowest = slowest_line(hosts, peers, shares);
  const double limit = to_seconds(options.round_timeout);
  if (out.lines > limit)
    return failure{fmt::format("a round takes {} on the {}, and averaging.round_timeout is {}",
                               rough_time(out.lines), out.slowest, rough_time(limit))};
  return out;
}

namespace {

std::uint64_t values_in(const scenario& what) {
  return kernels::end_of(what.workload.definition().tensors(what.workload));
}

} // namespace

result<speed_prediction> speed_of_common_steps(const scenario& what, std::uint64_t batch,
                                               bool overlaps) {
  const auto hosts = speeds_of(what);
  double rate = 0, step = 0;
  for (const auto& host : hosts) {
    rate += host.samples_per_second;
    step = std::max(step, host.step_seconds);
  }
  if (rate <= 0) return failure{"no host computes"};
  const auto averaging = averaging_time_of(what, hosts, values_in(what));
  if (!averaging) return failure{averaging.error()};
  const double computing = static_cast<double>(batch) / rate;
  const double rest = averaging->total() + step;
  const double epoch =
      overlaps ? std::max(computing + averaging->protocol / 2, rest) : computing + rest;
  speed_prediction out;
  out.samples_per_second = static_cast<double>(batch) / epoch;
  out.reason =
      fmt::format("a batch takes {}: {} of computing{}, {} of averaging, {} to meet and to step",
                  rough_time(epoch), rough_time(computing), overlaps ? ", meanwhile" : "",
                  rough_time(averaging->lines), rough_time(averaging->protocol + step));
  if (computing >= (overlaps ? rest : averaging->lines) && computing >= averaging->protocol + step)
    out.limit = "computing of " + strongest_group(hosts);
  else if (averaging->lines >= averaging->protocol + step)
    out.limit = averaging->slowest;
  else
    out.limit = "meeting for each batch";
  return out;
}

result<speed_prediction> speed_of_local_steps(const scenario& what, double samples,
                                              std::uint64_t group, std::uint64_t staleness) {
  const auto hosts = speeds_of(what);
  const auto micro_batch = static_cast<double>(what.training.micro_batch);
  double rate = 0, computing = 0, step = 0;
  for (const auto& host : hosts) {
    if (host.samples_per_second <= 0) continue;
    computing += host.samples_per_second;
    rate += micro_batch / (micro_batch / host.samples_per_second + host.step_seconds);
    step = std::max(step, host.step_seconds);
  }
  if (rate <= 0) return failure{"no host computes"};
  // The group of the slowest lines.
  auto slow = hosts;
  std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) {
    return std::min(a.up, a.down) < std::min(b.up, b.down);
  });
  slow.resize(std::min<std::size_t>(slow.size(), group));
  const auto averaging = averaging_time_of(what, slow, values_in(what));
  if (!averaging) return failure{averaging.error()};
  const double apart = samples / rate;
  // A peer applies the average between two of its jobs.
  const double busy = samples / (apart + step);
  const double longest = averaging->total() + step;
  const double most = samples * static_cast<double>(1 + staleness) / longest;
  speed_prediction out;
  out.samples_per_second = std::min(busy, most);
  out.reason =
      fmt::format("{} of computing between two rounds, in which {} of averaging pass; "
                  "steps of each peer's own take {:.0f} % of the time",
                  rough_time(apart), rough_time(averaging->total()), 100 * (1 - rate / computing));
  out.limit = most < busy              ? averaging->slowest
              : rate < 0.7 * computing ? "optimizer steps of " + strongest_group(hosts)
                                       : "computing of " + strongest_group(hosts);
  return out;
}

double samples_between_rounds(const scenario& what) {
  const auto traits = traits_of(what);
  if (traits.target_batch) return static_cast<double>(*traits.target_batch);
  const auto steps = what.training.method.definition().steps_of_machine;
  return static_cast<double>(traits.baseline_batch * (steps ? steps(what, 1) : 1));
}

} // namespace shoal::scenarios
