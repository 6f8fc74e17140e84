// Writes the objects of a manifest as TypeScript, each with the type of its kind. So tsc reports
// wrong keys and values.
// usage: to_typescript.mjs MANIFEST.yaml OUT.ts
import { readFileSync, writeFileSync } from "node:fs";
import { loadAll } from "js-yaml";

const types = {
  "v1/ConfigMap": "k8s.V1ConfigMap",
  "v1/Service": "k8s.V1Service",
  "apps/v1/StatefulSet": "k8s.V1StatefulSet",
  "monitoring.coreos.com/v1/PodMonitor": "PodMonitor",
};
const [from, to] = process.argv.slice(2);
let out = 'import type * as k8s from "@kubernetes/client-node";\nimport type { PodMonitor } from "./pod_monitor.js";\n';
const kinds = [];
for (const [index, object] of loadAll(readFileSync(from, "utf8")).entries()) {
  const kind = `${object.apiVersion}/${object.kind}`;
  if (!(kind in types)) throw new Error(`no type is known of ${kind}`);
  kinds.push(object.kind);
  out += `export const object${index}: ${types[kind]} = ${JSON.stringify(object, null, 2)};\n`;
}
writeFileSync(to, out);
console.log(kinds.join(" "));
