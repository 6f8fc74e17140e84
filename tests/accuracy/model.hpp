// Runs a pattern in Shoal's transfer models.
#pragma once

#include "netem/transport.hpp"
#include "tests/accuracy/pattern.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::accuracy {

inline duration delay_of(const pattern& what, const flow& f) {
  return duration{what.hosts[f.from].delay_ns + what.hosts[f.to].delay_ns};
}

/// Small messages from one host to another, at equal intervals while flows last.
struct probing {
  std::size_t from = 0, to = 0;
  duration every{};
  std::vector<std::pair<duration, duration>> delays; ///< when sent, and for how long under way
};

/// The arrival of each flow's last byte in `model`, in seconds. With `host_queues`, the uplinks
/// push back.
inline std::vector<double> run_pattern(const pattern& what, netem::transfer_model model,
                                       const netem::tcp_options& tcp, bool host_queues = false,
                                       probing* probe = nullptr) {
  netem::transport net(model, tcp);
  std::vector<netem::link_id> up, down;
  for (const auto& host : what.hosts) {
    up.push_back(net.add_link(static_cast<double>(host.up_bits_per_second),
                              host_queues ? netem::link_queue{{}, 0, true} : tcp.queue));
    down.push_back(net.add_link(static_cast<double>(host.down_bits_per_second)));
  }
  std::vector<std::size_t> order(what.flows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return what.flows[a].start_ns < what.flows[b].start_ns; });
  std::vector<double> ends(what.flows.size());
  std::vector<netem::finished_transfer> done;
  auto take = [&] {
    for (const auto& f : done) {
      const auto& flow = what.flows[f.tag];
      const auto delay = delay_of(what, flow);
      ends[f.tag] = to_seconds(f.at + (net.delay_follows() ? delay : duration{}));
    }
    done.clear();
  };
  const auto advance = [&](duration until) {
    if (probe != nullptr && probe->every > duration{})
      for (auto at = probe->every * static_cast<std::int64_t>(probe->delays.size()); at < until;
           at += probe->every) {
        net.advance(at, done);
        const auto delay = delay_of(what, {probe->from, probe->to});
        probe->delays.emplace_back(at, delay + net.queueing_delay(up[probe->from], at) +
                                           net.queueing_delay(down[probe->to], at));
      }
    net.advance(until, done);
  };
  for (const auto i : order) {
    const auto& flow = what.flows[i];
    advance(duration{flow.start_ns});
    const netem::link_id path[] = {up[flow.from], down[flow.to]};
    const netem::link_id back[] = {up[flow.to], down[flow.from]};
    netem::transfer_request request;
    request.path = path;
    request.way_back = back;
    request.delay = delay_of(what, flow);
    request.round_trip = 2 * request.delay;
    // Each 1448 bytes have 40 bytes of TCP/IP header and, in a real packet, 12 bytes of timestamps.
    request.bytes = flow.bytes + 52 * ((flow.bytes + 1447) / 1448);
    if (model != netem::transfer_model::tcp) request.bytes = flow.bytes;
    request.tag = i;
    net.start(request, duration{flow.start_ns});
  }
  while (const auto next = net.next_event()) advance(*next);
  take();
  return ends;
}

} // namespace shoal::accuracy
