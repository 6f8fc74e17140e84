// A swarm of real hosts: the list of its hosts, and the commands with which another host joins.

import { type Context, nothing } from "./chart";
import { copyable, h, search, table, type TableState } from "./dom";
import { bytes, compact, count, number, rate, seconds } from "./format";
import type { Node_, View } from "./view";

const joinState = { as: "", name: "", dialled: true, address: "0.0.0.0:7000", moderator: "moderator" };

/** Hosts of the scenario that are not there, and groups for those that it does not name. */
function places(view: View): { free: string[]; groups: string[] } {
  const join = view.run.join!, taken = new Set(join.taken);
  const named = [...view.run.groups.flatMap((g) => Array.from({ length: Math.min(g.count, 64) }, (_, i) => `${g.name}-${i}`)), ...Array.from({ length: join.shards }, (_, i) => `shard-${i}`)];
  return { free: named.filter((name) => !taken.has(name)), groups: view.run.groups.map((g) => g.name) };
}

/** The scenario as the others have it, without the facts of the host that wrote it. */
const scenarioOf = (view: View): string => view.scenario.replace(/^x-run:.*\n?(?:[ }].*\n?)*/m, "");

/** A name that is free, for a host that has not been given one. */
function freeName(view: View): string {
  const taken = new Set([...view.run.join!.taken, ...(view.nodes ?? []).map((n) => n.name)]);
  for (let i = 1; ; i++) if (!taken.has(`volunteer-${i}`)) return `volunteer-${i}`;
}

export function join(context: Context): Node[] {
  const { view } = context, how = view.run.join;
  if (!how) return [nothing("The run does not say how.")];
  const { free, groups } = places(view);
  // A host that joins a running swarm needs a name of its own. A host that restarts the swarm takes one of the scenario's names.
  const choices = [...groups.map((g) => `one more like ${g}`), ...free];
  if (!choices.includes(joinState.as)) joinState.as = choices[0] ?? "";
  const group = groups.find((g) => joinState.as === `one more like ${g}`);
  if (joinState.name === "") joinState.name = freeName(view);
  const name = group ? joinState.name : joinState.as, file = `${view.run.name.replace(/[^\w.-]/g, "-") || "swarm"}.yaml`;
  const flags = /(?: --(?:shape|pace))*$/.exec(how.command)?.[0] ?? "";
  const dial = how.dial.length > 0 ? how.dial : ["HOST:PORT"];
  const node = [`shoal node ${file}${flags}`, `--name ${name}`, group ? `--group ${group}` : "", joinState.dialled ? `--listen ${joinState.address}` : "--outbound-only",
    ...dial.map((at) => `--join ${at}`), how.insecure ? "--insecure" : `--keys keys/${name}`, `--out out/${name}`].filter((word) => word !== "").join(" ");
  const change = (set: () => void) => {
    set();
    context.again();
  };
  const value = (e: Event) => (e.target as HTMLInputElement).value;
  const input = (label: string, id: string, now: string, allowed: RegExp, otherwise: string, set: (text: string) => void) =>
    h("label", { class: "select" }, h("span", {}, label), h("input", { type: "text", id, class: "address", spellcheck: "false", autocapitalize: "off", value: now, onchange: (e: Event) => change(() => set(value(e).replace(allowed, "") || otherwise)) }));
  const on = (who: "you" | "moderator", command: string) => {
    const out = copyable(command);
    out.dataset.on = who;
    return out;
  };
  let count = 0;
  const step = (text: string) => h("p", { class: "step" }, `${++count}. ${text}`);
  return [
    h("div", { class: "controls" },
      h("label", { class: "select" }, h("span", {}, "take part as"), h("select", { id: "join-as", onchange: (e: Event) => change(() => (joinState.as = value(e))) },
        choices.map((c) => h("option", { value: c, selected: c === joinState.as }, c)))),
      group ? input("called", "join-name", joinState.name, /[^\w.-]/g, freeName(view), (text) => (joinState.name = text)) : "",
      h("label", { class: "select" }, h("input", { type: "checkbox", id: "join-dialled", checked: joinState.dialled, onchange: () => change(() => (joinState.dialled = !joinState.dialled)) }), h("span", {}, "others can reach this computer")),
      joinState.dialled ? input("at", "join-address", joinState.address, /[^\w.:[\]-]/g, "0.0.0.0:7000", (text) => (joinState.address = text)) : "",
      how.insecure ? "" : input("folder of the moderator", "join-moderator", joinState.moderator, /[^\w./-]/g, "moderator", (text) => (joinState.moderator = text))),
    step("Install Shoal: the package and the sources are two ways (docs/install.md). This prints its version:"),
    on("you", "shoal version"),
    step("Save the scenario, which all computers of the swarm have alike, into an empty folder:"),
    h("p", {}, h("a", { class: "save", download: file, href: `data:text/yaml;charset=utf-8,${encodeURIComponent(scenarioOf(view))}` }, `save ${file}`)),
    ...(how.insecure ? [] : [
      step("In that folder, make a key. It stays on this computer:"),
      on("you", `shoal keys request ${name} -o keys/${name}`),
      step(`Send keys/${name}/${name}.csr to the moderator, by mail or chat. It is no secret. The moderator knows you, and types:`),
      on("moderator", `shoal keys admit ${name}.csr --moderator ${joinState.moderator} -o answer-${name}`),
      step(`The moderator sends the files of answer-${name} back. Put them beside your key, and look whether all is there:`),
      on("you", `cp answer-${name}/* keys/${name}/`),
      on("you", `shoal keys show keys/${name}`),
    ]),
    step("Take part. Ctrl-C leaves in good order, and the same command comes back:"),
    on("you", node),
    step("In another terminal, see yourself among the others:"),
    on("you", `shoal status --join ${dial[0]} ${how.insecure ? "--insecure" : `--keys keys/${name}`}`),
    h("p", { class: "note" }, how.dial.length === 0 ? "No host here can be dialled: name one that can in place of HOST:PORT. " : "",
      how.insecure ? "Any host may take part and read everything. " : "", `It computes as the group ${group ?? joinState.as.replace(/-\d+$/, "")} does${group ? ` (${number(view.run.groups.find((g) => g.name === group)?.samples_per_second)} samples/s, ${rate(view.run.groups.find((g) => g.name === group)?.up ?? 0)} up)` : ""}; --uplink says what your line really carries. Refusals and their reasons: docs/cluster.md.`),
  ];
}

const nodeState: TableState & { filter: string } = { by: -1, down: false, filter: "" };
const stateText: Record<string, string> = { running: "running", ended: "ended", interrupted: "left", silent: "silent", linked: "linked" };
const stateTitle: Record<string, string> = { silent: "the host writes no more, and did not announce that it leaves", linked: "other hosts have links with it; it cannot be dialled, so only it has its figures" };
const isThere = (n: Node_): boolean => n.state === "running" || n.state === "linked";

export function nodes(context: Context, show: (directory: string) => (() => void) | null): Node[] {
  const all = context.view.nodes ?? [];
  const rows = all.filter((n) => `${n.name} ${n.group} ${n.region} ${n.address} ${n.state}`.includes(nodeState.filter));
  const there = all.filter(isThere).length;
  return [
    h("p", {}, there > 0 ? `${count(there)} of ${count(all.length)} run. ` : `${count(all.length)} ${all.length === 1 ? "host has" : "hosts have"} been there. `, h("small", { class: "note" }, "A row for each life of a host; a name opens what that host saw itself.")),
    ...(all.length > 8 ? [h("div", { class: "controls" }, search("Find a host, group, address or state", nodeState.filter, (value) => {
      nodeState.filter = value;
      context.again();
    }))] : []),
    table(rows, [
      { title: "host", value: (n) => n.name, text: (n) => {
        const open = show(n.directory);
        return h("span", {}, h("span", { class: `status ${isThere(n) ? "here" : "gone"}` }), open ? h("button", { type: "button", class: "link", onclick: open }, n.name) : n.name);
      } },
      { title: "state", value: (n) => stateText[n.state] ?? n.state, text: (n) => h("span", { class: n.state === "silent" ? "bad" : "", title: stateTitle[n.state] ?? "" }, stateText[n.state] ?? n.state) },
      { title: "like", value: (n) => n.group },
      { title: "region", value: (n) => n.region },
      { title: "address", value: (n) => n.address || "dials only" },
      { title: "came", value: (n) => n.began, number: true, text: (n) => seconds(n.began) },
      { title: "last sign", value: (n) => n.last, number: true, text: (n) => seconds(n.last) },
      { title: "epoch", value: (n) => n.epoch, number: true, text: (n) => (n.group === "shard" || n.state === "linked" ? "–" : count(n.epoch)) },
      { title: "rounds", value: (n) => n.rounds + n.not_ok, number: true, text: (n) => (n.rounds + n.not_ok === 0 ? "–" : n.not_ok === 0 ? count(n.rounds) : `${count(n.rounds + n.not_ok)}, ${count(n.not_ok)} not ok`) },
      { title: "samples", value: (n) => n.samples, number: true, text: (n) => (n.samples === 0 ? "–" : compact(n.samples)) },
      { title: "samples/s", value: (n) => n.rate, number: true, text: (n) => (n.samples === 0 ? "–" : number(n.rate)) },
      { title: "sent", value: (n) => n.sent, number: true, text: (n) => (n.state === "linked" ? "–" : bytes(n.sent)) },
    ], nodeState, context.again, { most: 100, caption: "Hosts of the cluster" }),
  ];
}
