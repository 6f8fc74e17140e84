#include "scenarios/promote/deployment.hpp"

#include <fmt/format.h>

#include <cmath>

namespace shoal::scenarios {

namespace {

constexpr std::string_view unit = R"~([Unit]
Description=Shoal node @NODE@ of @NAME@
Documentation=man:systemd.service(5)
Wants=network-online.target
After=network-online.target
# A node that cannot start is not tried for ever.
StartLimitIntervalSec=10min
StartLimitBurst=5

[Service]
User=shoal
Group=shoal
StateDirectory=shoal/@NAME@
StateDirectoryMode=0700
WorkingDirectory=%S/shoal/@NAME@
# Each life of a node has a run directory of its own; shoal compare joins them.
ExecStart=/bin/sh -c 'exec @PROGRAM@ node --scenario /etc/shoal/@NAME@/scenario.yaml @KEYS@ @OPTIONS@ --quiet --out out/@NODE@-$$(date -u +%%Y%%m%%dT%%H%%M%%SZ)'
# SIGTERM: it ends its round, hands back its samples and takes its records out, and ends with 130.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=@STOP@
SuccessExitStatus=130
Restart=on-failure
RestartSec=5
MemoryMax=@MEMORY@
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
LockPersonality=yes
CapabilityBoundingSet=

[Install]
WantedBy=multi-user.target
)~";

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
    out.push_back({fmt::format("shoal-{}-{}.service", what.name, host.name),
                   filled(unit, {{"NODE", host.name},
                                 {"NAME", what.name},
                                 {"PROGRAM", what.program},
                                 {"KEYS", what.insecure ? "--insecure"
                                                        : fmt::format("--keys /etc/shoal/{}/keys",
                                                                      what.name)},
                                 {"OPTIONS", node_options_of(what, host)},
                                 {"STOP", fmt::format("{:.0f}s", 30 + 4 * what.detection_seconds)},
                                 // twice the prediction, as an upper bound
                                 {"MEMORY", fmt::format("{}M", memory)}})});
  out.push_back({"install", filled(installer, {{"NAME", what.name}}), true});
  return out;
}

} // namespace shoal::scenarios
