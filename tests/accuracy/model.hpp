// Runs a pattern in Shoal's transfer models.
#pragma once

#include "netem/transport.hpp"
#include "tests/accuracy/pattern.hpp"

#include <algorithm>
#include <vector>

namespace shoal::accuracy {

inline duration delay_of(const pattern& what, const flow& f) {
  return duration{what.hosts[f.from].delay_ns + what.hosts[f.to].delay_ns};
}

/// The arrival of each flow's last byte in `model`, in seconds.
inline std::vector<double> run_pattern(const pattern& what, netem::transfer_model model,
                                       const netem::tcp_options& tcp) {
  netem::transport net(model, tcp);
  std::vector<netem::link_id> up, down;
  for (const auto& host : what.hosts) {
    up.push_back(net.add_link(static_cast<double>(host.up_bits_per_second)));
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
  for (const auto i : order) {
    const auto& flow = what.flows[i];
    net.advance(duration{flow.start_ns}, done);
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
  while (const auto next = net.next_event()) net.advance(*next, done);
  take();
  return ends;
}

} // namespace shoal::accuracy
