// A swarm of real hosts: the list of its hosts, and the commands with which another host joins.

import { type Context, nothing } from "./chart";
import { copyable, h, search, table, type TableState } from "./dom";
import { bytes, compact, count, number, seconds } from "./format";
import type { View } from "./view";

const joinState = { host: "", address: "0.0.0.0:7000" };

/** Hosts of the scenario that are not there, and groups for those that it does not name. */
function places(view: View): { free: string[]; groups: string[] } {
  const join = view.run.join!, taken = new Set(join.taken);
  const named = [...view.run.groups.flatMap((g) => Array.from({ length: Math.min(g.count, 64) }, (_, i) => `${g.name}-${i}`)), ...Array.from({ length: join.shards }, (_, i) => `shard-${i}`)];
  return { free: named.filter((name) => !taken.has(name)), groups: view.run.groups.map((g) => g.name) };
}

export function join(context: Context): Node[] {
  const { view } = context, how = view.run.join;
  if (!how) return [nothing("The run does not say how.")];
  const { free, groups } = places(view);
  // A host that joins a running swarm needs a name of its own. A host that restarts the swarm takes one of the scenario's names.
  const choices = [...groups.map((g) => `one more like ${g}`), ...free];
  if (!choices.includes(joinState.host)) joinState.host = choices[0] ?? "";
  const group = groups.find((g) => joinState.host === `one more like ${g}`);
  const name = group ? "NAME" : joinState.host;
  const keys = how.insecure ? "--insecure" : `--keys keys/${name}`;
  const line = [how.command, `--name ${name}`, group ? `--group ${group}` : "", `--listen ${joinState.address}`, ...how.dial.map((at) => `--join ${at}`), keys, `--out out/${name}`].filter((word) => word !== "").join(" ");
  const change = (set: () => void) => {
    set();
    context.again();
  };
  return [
    h("div", { class: "controls" },
      h("label", { class: "select" }, h("span", {}, "as"), h("select", { onchange: (e: Event) => change(() => (joinState.host = (e.target as HTMLSelectElement).value)) },
        choices.map((c) => h("option", { value: c, selected: c === joinState.host }, c)))),
      h("label", { class: "select" }, h("span", {}, "which others dial at"), h("input", { type: "text", class: "address", spellcheck: "false", value: joinState.address, onchange: (e: Event) => change(() => (joinState.address = (e.target as HTMLInputElement).value.replace(/[^\w.:[\]-]/g, "") || "0.0.0.0:7000")) }))),
    ...(how.insecure ? [] : [h("p", {}, "The moderator lets it in", group ? ", under a name of its own instead of NAME:" : ":"), copyable(`shoal keys admit ${name} --moderator MODERATOR -o keys/${name}`)]),
    h("p", {}, how.insecure ? `Type there${group ? ", with a name of its own instead of NAME" : ""}:` : "Then, on its host:"),
    copyable(line),
    h("p", { class: "note" }, how.dial.length === 0 ? "No host here can be dialled: name one that can with --join HOST:PORT. " : "",
      how.insecure ? "Any host may take part and read everything. " : "", "A host that cannot be dialled itself takes --outbound-only in place of --listen. Keys and refusals: docs/cluster.md."),
  ];
}

const nodeState: TableState & { filter: string } = { by: -1, down: false, filter: "" };
const stateText: Record<string, string> = { running: "running", ended: "ended", interrupted: "left", silent: "silent" };

export function nodes(context: Context, show: (directory: string) => (() => void) | null): Node[] {
  const all = context.view.nodes ?? [];
  const rows = all.filter((n) => `${n.name} ${n.group} ${n.region} ${n.address} ${n.state}`.includes(nodeState.filter));
  const there = all.filter((n) => n.state === "running").length;
  return [
    h("p", {}, there > 0 ? `${count(there)} of ${count(all.length)} run. ` : `${count(all.length)} ${all.length === 1 ? "host has" : "hosts have"} been there. `, h("small", { class: "note" }, "A row for each life of a host; a name opens what that host saw itself.")),
    ...(all.length > 8 ? [h("div", { class: "controls" }, search("Find a host, group, address or state", nodeState.filter, (value) => {
      nodeState.filter = value;
      context.again();
    }))] : []),
    table(rows, [
      { title: "host", value: (n) => n.name, text: (n) => {
        const open = show(n.directory);
        return h("span", {}, h("span", { class: `status ${n.state === "running" ? "here" : "gone"}` }), open ? h("button", { type: "button", class: "link", onclick: open }, n.name) : n.name);
      } },
      { title: "state", value: (n) => stateText[n.state] ?? n.state, text: (n) => h("span", { class: n.state === "silent" ? "bad" : "", title: n.state === "silent" ? "the host writes no more, and did not announce that it leaves" : "" }, stateText[n.state] ?? n.state) },
      { title: "like", value: (n) => n.group },
      { title: "region", value: (n) => n.region },
      { title: "address", value: (n) => n.address || "dials only" },
      { title: "came", value: (n) => n.began, number: true, text: (n) => seconds(n.began) },
      { title: "last sign", value: (n) => n.last, number: true, text: (n) => seconds(n.last) },
      { title: "epoch", value: (n) => n.epoch, number: true, text: (n) => (n.group === "shard" ? "–" : count(n.epoch)) },
      { title: "rounds", value: (n) => n.rounds + n.not_ok, number: true, text: (n) => (n.rounds + n.not_ok === 0 ? "–" : n.not_ok === 0 ? count(n.rounds) : `${count(n.rounds + n.not_ok)}, ${count(n.not_ok)} not ok`) },
      { title: "samples", value: (n) => n.samples, number: true, text: (n) => (n.samples === 0 ? "–" : compact(n.samples)) },
      { title: "samples/s", value: (n) => n.rate, number: true, text: (n) => (n.samples === 0 ? "–" : number(n.rate)) },
      { title: "sent", value: (n) => n.sent, number: true, text: (n) => bytes(n.sent) },
    ], nodeState, context.again, { most: 100, caption: "Hosts of the cluster" }),
  ];
}
