// The part of the Prometheus operator's PodMonitor (monitoring.coreos.com/v1) that manifests of ours use.
import type { V1LabelSelector, V1ObjectMeta } from "@kubernetes/client-node";

export interface PodMonitor {
  apiVersion: "monitoring.coreos.com/v1";
  kind: "PodMonitor";
  metadata: V1ObjectMeta;
  spec: {
    selector: V1LabelSelector;
    podMetricsEndpoints: { port?: string; interval?: `${number}s` | `${number}m`; path?: string; scheme?: "http" | "https" }[];
    podTargetLabels?: string[];
    jobLabel?: string;
  };
}
