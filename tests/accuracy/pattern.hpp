// Patterns of transfers for which other programs know the times: see README.md here.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "netem/transport.hpp"

namespace shoal::accuracy {

struct pattern_host {
  std::string name;
  double up = 0, down = 0;   ///< bits/s
  duration delay{};          ///< of its access line, one way
};

struct pattern_flow {
  std::size_t from = 0, to = 0;
  std::uint64_t bytes = 0;   ///< of payload
  duration start{};
};

struct pattern {
  std::vector<pattern_host> hosts;
  std::vector<pattern_flow> flows;
};

/// Throws std::runtime_error naming the line.
inline pattern read_pattern(std::istream& in) {
  pattern out;
  std::map<std::string, std::size_t> index;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string kind, a, b;
    if (!(words >> kind)) continue;
    std::int64_t ns = 0;
    if (kind == "host") {
      pattern_host host;
      words >> host.name >> host.up >> host.down >> ns;
      host.delay = duration{ns};
      index[host.name] = out.hosts.size();
      out.hosts.push_back(host);
    } else if (kind == "flow") {
      pattern_flow flow;
      words >> a >> b >> flow.bytes >> ns;
      flow.start = duration{ns};
      if (!index.contains(a) || !index.contains(b)) throw std::runtime_error("unknown host in line " + std::to_string(number));
      flow.from = index.at(a);
      flow.to = index.at(b);
      out.flows.push_back(flow);
    } else {
      words.setstate(std::ios::failbit);
    }
    if (!words) throw std::runtime_error("cannot read line " + std::to_string(number));
  }
  return out;
}

/// When each flow's last byte arrives, in seconds, as `model` has it.
inline std::vector<double> run_pattern(const pattern& what, netem::transfer_model model, const netem::tcp_options& tcp) {
  netem::transport net(model, tcp);
  std::vector<netem::link_id> up, down;
  for (const auto& host : what.hosts) {
    up.push_back(net.add_link(host.up));
    down.push_back(net.add_link(host.down));
  }
  std::vector<std::size_t> order(what.flows.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return what.flows[a].start < what.flows[b].start; });
  std::vector<double> ends(what.flows.size());
  std::vector<netem::finished_transfer> done;
  auto take = [&] {
    for (const auto& f : done) {
      const auto& flow = what.flows[f.tag];
      const auto delay = what.hosts[flow.from].delay + what.hosts[flow.to].delay;
      ends[f.tag] = to_seconds(f.at + (net.delay_follows() ? delay : duration{}));
    }
    done.clear();
  };
  for (const auto i : order) {
    const auto& flow = what.flows[i];
    net.advance(flow.start, done);
    const netem::link_id path[] = {up[flow.from], down[flow.to]};
    const netem::link_id back[] = {up[flow.to], down[flow.from]};
    netem::transfer_request request;
    request.path = path;
    request.way_back = back;
    request.delay = what.hosts[flow.from].delay + what.hosts[flow.to].delay;
    request.round_trip = 2 * request.delay;
    // 40 bytes of TCP/IP header and, of a real packet, 12 of timestamps are with each 1448 bytes.
    request.bytes = flow.bytes + 52 * ((flow.bytes + 1447) / 1448);
    if (model != netem::transfer_model::tcp) request.bytes = flow.bytes;
    request.tag = i;
    net.start(request, flow.start);
  }
  while (const auto next = net.next_event()) net.advance(*next, done);
  take();
  return ends;
}

}  // namespace shoal::accuracy
