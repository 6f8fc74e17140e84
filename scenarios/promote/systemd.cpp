#include "scenarios/promote/deployment.hpp"
#include "scenarios/promote/node_service.hpp"

#include <fmt/format.h>

#include <cmath>

namespace shoal::scenarios {

namespace {

constexpr std::string_view installer = R"~(#!/bin/sh
# Run as root on a host: ./install NODE. Puts that node's unit and the scenario in their places; starts nothing.
set -eu
cd "$(dirname "$0")"
node=${1:?usage: ./install NODE}
unit=shoal-@NAME@-$node.service
[ -f "$unit" ] || { echo "there is no $unit here" >&2; exit 1; }
id shoal >/dev/null 2>&1 || useradd --system --home-dir /var/lib/shoal --shell /usr/sbin/nologin shoal
install -d -m 0755 /etc/shoal/@NAME@
install -m 0644 scenario.yaml /etc/shoal/@NAME@/
install -m 0644 "$unit" /etc/systemd/system/
systemctl daemon-reload
echo "next: the node's keys go to /etc/shoal/@NAME@/keys, owned by shoal, mode 0700; then: systemctl enable --now $unit"
)~";

} // namespace

std::vector<deployed_file> systemd_files(const deployment& what) {
  std::vector<deployed_file> out;
  const auto memory =
      std::max<std::uint64_t>(2 * what.memory_bytes, std::uint64_t{512} << 20) >> 20;
  for (const auto& host : what.hosts)
    out.push_back(
        {fmt::format("shoal-{}-{}.service", what.name, host.name),
         filled(node_service(),
                {{"NODE", host.name},
                 {"NAME", what.name},
                 {"PROGRAM", what.program},
                 {"KEYS", what.insecure ? "--insecure"
                                        : fmt::format("--keys /etc/shoal/{}/keys", what.name)},
                 {"OPTIONS", node_options_of(what, host)},
                 {"STOP", fmt::format("{:.0f}s", 30 + 4 * what.detection_seconds)},
                 // twice the prediction, as an upper bound
                 {"MEMORY", fmt::format("{}M", memory)}})});
  out.push_back({"install", filled(installer, {{"NAME", what.name}}), true});
  return out;
}

} // namespace shoal::scenarios
