#include "scenarios/promote/deployment.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {

namespace {

constexpr std::string_view manifests =
    R"~(# The swarm '@NAME@' on Kubernetes: a pod for each node. Written by 'shoal promote', to be read and changed.
#   kubectl apply -f @NAME@.yaml
# before that: an image of the Containerfile at `image`, and@SECRETNOTE@
apiVersion: v1
kind: ConfigMap
metadata:
  name: shoal-@NAME@
  labels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
data:
  # Pod N of the StatefulSet is the Nth of these.
  nodes: |
@NODES@
  scenario.yaml: |
@SCENARIO@---
# Headless: each pod has a name of its own, which others dial.
apiVersion: v1
kind: Service
metadata:
  name: shoal-@NAME@
  labels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
spec:
  clusterIP: None
  # Nodes find each other before they are ready.
  publishNotReadyAddresses: true
  selector: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
  ports:
    - {name: swarm, port: 7000, targetPort: swarm}
    - {name: metrics, port: 9464, targetPort: metrics}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: shoal-@NAME@
  labels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
spec:
  serviceName: shoal-@NAME@
  replicas: @COUNT@
  podManagementPolicy: Parallel
  selector:
    matchLabels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
  template:
    metadata:
      labels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
    spec:
      # SIGTERM: a node ends its round, hands back its samples and takes its records out.
      terminationGracePeriodSeconds: @GRACE@
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
      containers:
        - name: node
          image: shoal:latest
          command: [/bin/sh, -c]
          args:
            - |
              name=$(sed -n "$((${HOSTNAME##*-} + 1))p" /etc/shoal/nodes)
@COPYKEYS@
              exec shoal node --scenario /etc/shoal/scenario.yaml --name "$name" @KEYS@ --listen 0.0.0.0:7000 \
                --advertise "$HOSTNAME.shoal-@NAME@:7000" --join shoal-@NAME@-0.shoal-@NAME@:7000 --join shoal-@NAME@-1.shoal-@NAME@:7000@PACE@ \
                --metrics 0.0.0.0:9464 --quiet --out "/var/lib/shoal/$name-$(date -u +%Y%m%dT%H%M%SZ)"
          ports:
            - {name: swarm, containerPort: 7000}
            - {name: metrics, containerPort: 9464}
          readinessProbe:
            httpGet: {path: /metrics, port: metrics}
          resources:
            requests: {cpu: "@CORES@", memory: @MEMORY@Mi}
            limits: {memory: @LIMIT@Mi}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts:
            - {name: scenario, mountPath: /etc/shoal, readOnly: true}
            - {name: state, mountPath: /var/lib/shoal}@KEYMOUNT@
      volumes:
        - name: scenario
          configMap: {name: shoal-@NAME@}@KEYVOLUME@
  volumeClaimTemplates:
    - metadata: {name: state}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 10Gi}}
---
# For the Prometheus operator; leave it out where there is none.
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: shoal-@NAME@
  labels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
spec:
  selector:
    matchLabels: {app.kubernetes.io/name: shoal, app.kubernetes.io/instance: @NAME@}
  podMetricsEndpoints:
    - {port: metrics, interval: 15s}
)~";

constexpr std::string_view containerfile =
    R"~(# Shoal and what it needs of Debian. Build it in a clone of Shoal:
#   podman build -t shoal:latest -f Containerfile .
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build git ca-certificates
COPY . /src
RUN cd /src && ./shoal --version

FROM debian:12
COPY --from=build /src/tools/bootstrap/packages_run.txt /tmp/
# The libraries come with their -dev packages: smaller lists would have to be kept by hand.
RUN apt-get update && apt-get install -y --no-install-recommends $(sed 's/#.*//' /tmp/packages_run.txt) && rm -rf /var/lib/apt/lists/* /tmp/*
COPY --from=build /src/build/release/bin/shoal /usr/local/bin/
COPY --from=build /src/build/release/bin/libshoal_torch.so /usr/local/lib/shoal/
COPY --from=build /src/build/release/web/page.html /usr/local/share/shoal/
USER 10001
ENTRYPOINT ["shoal"]
)~";

std::string indented(const std::string& text, int columns) {
  std::string out;
  const std::string indent(static_cast<std::size_t>(columns), ' ');
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (end > at) out += indent + text.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
  return out;
}

} // namespace

std::vector<deployed_file> kubernetes_files(const deployment& what,
                                            const std::string& scenario_yaml) {
  std::string names;
  for (const auto& host : what.hosts) names += host.name + "\n";
  const auto nodes = indented(names, 4);
  const auto memory = std::max<std::uint64_t>(3 * what.memory_bytes / 2 >> 20, 256);
  // Others can read a mounted Secret, but only the node may read its key. So the pod's script
  // copies the key into a private folder.
  const std::string copies =
      "              mkdir -p -m 0700 /tmp/keys && for file in node.key node.crt swarm.crt "
      "revoked.crl; do\n"
      "                install -m 0600 \"/etc/shoal-keys/$name.$file\" \"/tmp/keys/$file\"\n"
      "              done";
  return {
      {what.name + ".yaml",
       filled(manifests,
              {{"NAME", what.name},
               {"NODES", nodes.substr(0, nodes.size() - 1)},
               {"SCENARIO", indented(scenario_yaml, 4)},
               {"COUNT", std::to_string(what.hosts.size())},
               {"GRACE", fmt::format("{:.0f}", 30 + 4 * what.detection_seconds)},
               {"PACE", what.pace ? " --pace" : ""},
               {"CORES", std::to_string(what.needs_cores)},
               {"MEMORY", std::to_string(memory)},
               {"LIMIT", std::to_string(2 * memory)},
               {"SECRETNOTE",
                what.insecure
                    ? " nothing else: anybody may take part, and read along."
                    : fmt::format(" the keys of each folder keys/NODE.\n"
                                  "#   kubectl create secret generic shoal-{}-keys $(for d in "
                                  "keys/*; do for f in $d/*; do "
                                  "echo --from-file=$(basename $d).$(basename $f)=$f; done; done)",
                                  what.name)},
               {"COPYKEYS", what.insecure ? "              # without keys" : copies},
               {"KEYS", what.insecure ? "--insecure" : "--keys /tmp/keys"},
               {"KEYMOUNT",
                what.insecure
                    ? ""
                    : "\n            - {name: keys, mountPath: /etc/shoal-keys, readOnly: true}"},
               {"KEYVOLUME",
                what.insecure
                    ? ""
                    : fmt::format(
                          "\n        - name: keys\n          secret: {{secretName: shoal-{}-keys}}",
                          what.name)}})},
      {"Containerfile", std::string(containerfile)}};
}

} // namespace shoal::scenarios
