// The engineering challenges of training with volunteers, as section 2 of 'Training Transformers Together' (arXiv:2207.03481)
// lists them. Each has a picture of this run's own figures.

import * as Plot from "@observablehq/plot";
import { chart, colours, type Context, legend, nothing } from "./chart";
import { h } from "./dom";
import { byteUnit, bytes, compact, count, number, percent, seconds } from "./format";
import { type Choices, estimate, shapeOf } from "./memory";
import { groupColours } from "./swarm";
import { share, type View } from "./view";

interface Bar { name: string; value: number; text: string; colour?: string }

/** Bars one below the other, the text behind each. */
function bars(context: Context, says: string, rows: Bar[], log = false): HTMLElement {
  const most = Math.max(...rows.map((r) => r.value)), least = Math.min(...rows.filter((r) => r.value > 0).map((r) => r.value));
  const left = Math.min(context.width * 0.42, 6.4 * Math.max(...rows.map((r) => r.name.length)) + 12);
  return chart(context, {
    says, height: rows.length * 27 + 16, marginLeft: left, marginRight: 82, marginTop: 6, marginBottom: 8,
    x: log ? { axis: null, type: "log", domain: [least / 4, most] } : { axis: null, domain: [0, Math.max(most, 1e-12)] },
    y: { domain: rows.map((r) => r.name), label: null, grid: false, tickSize: 0 },
    marks: [
      Plot.barX(rows, { y: "name", x1: log ? least / 4 : 0, x2: (r: Bar) => Math.max(r.value, log ? least / 4 : 0), fill: (r: Bar) => r.colour ?? "var(--accent)", insetTop: 4, insetBottom: 4, rx: 2, title: (r: Bar) => `${r.name}: ${r.text}` }),
      Plot.text(rows, { y: "name", x: (r: Bar) => Math.max(r.value, log ? least / 4 : 0), text: "text", textAnchor: "start", dx: 6, fill: "var(--ink)" }),
    ],
  });
}

const option = (view: View, name: string): string => new RegExp(`^\\s+${name}: ([^\\n#]+)`, "m").exec(view.scenario)?.[1].trim() ?? "";

function communication(context: Context): Node[] {
  const { view } = context;
  const sent = view.series.bytes_averaging?.at(-1) ?? 0, points = view.rounds.points;
  const rounds = (view.rounds.by_outcome.ok ?? 0) + (view.rounds.by_outcome.partial ?? 0);
  if (sent === 0 || rounds === 0) return [nothing("No round has ended yet, so nothing was averaged.")];
  const members = points.reduce((a, p) => a + p[3], 0) / Math.max(1, points.length);
  const each = sent / rounds / Math.max(1, members), ratio = view.run.compression.ratio;
  const batch = Math.max(1, view.run.target_batch), often = Math.max(1, batch / Math.max(1, members));
  const rows: Bar[] = [];
  const whole = each * (ratio ?? 1);
  if (often > 1) rows.push({ name: "average each sample", value: whole * often, text: bytes(whole * often), colour: "var(--muted)" });
  if (ratio && ratio > 1) rows.push({ name: "large batch, 32 bits", value: whole, text: bytes(whole), colour: "var(--muted)" });
  rows.push({ name: "as this run did", value: each, text: bytes(each), colour: colours.averaging });
  if (ratio === 1) rows.push({ name: "with 8 bits a value", value: each / 4, text: bytes(each / 4), colour: "var(--muted)" });
  const saved = rows[0].value / each;
  return [
    h("p", {}, `A volunteer's line is a hundred times slower than a cluster's network. So the swarm gathers ${count(batch)} samples before it averages${ratio && ratio > 1 ? `, and sends ${number(view.run.compression.bits)} bits a value in place of 32` : ""}. ${saved > 1 ? `That is ${number(saved)} times fewer bytes for each participant than an exchange after every sample.` : ""}`),
    bars(context, `Bytes that each participant sends for ${count(batch)} samples: ${rows.map((r) => `${r.name} ${r.text}`).join(", ")}.`, rows, true),
    h("p", { class: "note" }, `Bytes of one participant for one step of ${count(batch)} samples, on a logarithmic scale. The yellow bar was measured: ${bytes(sent)} in ${count(rounds)} rounds of ${number(members)} members. The others follow from it.`),
  ];
}

function uneven(context: Context): Node[] {
  const { view } = context, tint = groupColours(view);
  const speeds = view.participants.hosts.filter((p) => p.seconds > 0 && p.samples > 0).map((p) => ({ name: p.name, group: p.group, value: p.samples / p.seconds }));
  if (speeds.length === 0) return [nothing("Nobody has contributed yet.")];
  speeds.sort((a, b) => b.value - a.value);
  const step = Math.max(1, Math.ceil(speeds.length / 10)), shown = speeds.filter((_, i) => i % step === 0 || i === speeds.length - 1).slice(0, 12);
  const waits = view.sessions.rows.reduce((a, r) => {
    view.sessions.states.forEach((state, k) => {
      for (let b = 0; b < view.sessions.bins; b++) a[state] = (a[state] ?? 0) + r.hosts * share(r.shares[k], b);
    });
    return a;
  }, {} as Record<string, number>);
  const all = Object.values(waits).reduce((a, b) => a + b, 0);
  const [first, last] = [speeds[0], speeds[speeds.length - 1]];
  return [
    h("p", {}, `The fastest participant, ${first.name}, contributed ${number(first.value / last.value)} times as many samples a second as the slowest, ${last.name}. Each computes as many samples as it can until the batch is full, so nobody waits for the slowest. ${all > 0 ? `${percent((waits.computing ?? 0) / all)} of all time was computing.` : ""}`),
    bars(context, `Samples a second of participants: ${shown.map((r) => `${r.name} ${number(r.value)}`).join(", ")}.`, shown.map((r) => ({ name: r.name, value: r.value, text: `${number(r.value)} /s`, colour: tint.get(r.group) ?? "var(--accent)" }))),
    h("p", { class: "note" }, `Samples in ended rounds, by the second of presence.${step > 1 ? ` ${shown.length} of ${count(speeds.length)} participants, from the fastest to the slowest.` : ""}`),
  ];
}

function memoryCard(context: Context): Node[] {
  const { view } = context, model = shapeOf(view.scenario);
  const peak = view.summary?.peak_rss_bytes ?? null;
  if (model === null) {
    return peak === null
      ? [h("p", {}, "Optimizer states, gradients and activations have to fit into a gaming card, or into a free accelerator."), nothing("The workload of this run has no model with layers, so there is nothing to reckon.")]
      : [h("p", {}, `The workload has no model with layers. The process with all ${count(view.participants.hosts.length + view.participants.more)} hosts took ${bytes(peak)} at most.`),
        bars(context, `Memory: the whole process ${bytes(peak)}.`, [{ name: "all hosts, one process", value: peak, text: bytes(peak) }, { name: "a host, on average", value: peak / Math.max(1, view.participants.hosts.length + view.participants.more), text: bytes(peak / Math.max(1, view.participants.hosts.length + view.participants.more)), colour: "var(--c2)" }])];
  }
  const kinds: [string, Pick<Choices, "optimizer" | "offload" | "checkpointing">][] = [
    ["Adam in 32 bits", { optimizer: "adam", offload: false, checkpointing: false }],
    ["activations recomputed", { optimizer: "adam", offload: false, checkpointing: true }],
    ["and states in 8 bits", { optimizer: "adam-8bit", offload: false, checkpointing: true }],
    ["and states off the device", { optimizer: "adam-8bit", offload: true, checkpointing: true }],
  ];
  const rows = kinds.map(([name, choices], i) => {
    const value = estimate("shoal", { shape: { name: "", ...model.shape }, sharing: model.sharing, precision: "mixed", swarm: false, batch: 1, ...choices }).find((f) => f.name === "gpu")!.value;
    return { name, value, text: bytes(Math.round(value)), colour: i === 0 ? "var(--muted)" : "var(--c2)" };
  });
  return [
    h("p", {}, `A step of this run's model (${model.shape.layers} layers of width ${model.shape.dim}) has to fit into small devices. With activations computed again, and the optimizer's states in 8 bits and off the device, it takes ${number(rows[0].value / rows[3].value)} times less.`),
    bars(context, `Memory of the device for a step: ${rows.map((r) => `${r.name} ${r.text}`).join(", ")}.`, rows),
    h("p", { class: "note" }, "Reckoned by the formulas of the panel 'Memory', for this run's shape and one sample at a time.", peak !== null ? ` The process of this run took ${bytes(peak)} at most.` : ""),
  ];
}

function streaming(context: Context): Node[] {
  const { view } = context, data = view.series.bytes_data ?? [], samples = view.series.samples?.at(-1) ?? 0;
  const sent = data.at(-1) ?? 0;
  if (sent === 0) return [nothing("No data was streamed yet.")];
  const people = Math.max(1, view.participants.hosts.length + view.participants.more);
  const points = view.series.time.map((t, i) => ({ t: t ?? 0, y: data[i] ?? 0 }));
  const { unit, size } = byteUnit(sent), minutes = timeParts(view.run.time);
  return [
    h("p", {}, `No participant downloads the data set. The ${people > 1 ? `${compact(people)} participants` : "participant"} got ${bytes(sent)} in all while they trained, ${bytes(Math.round(sent / people))} each${samples > 0 ? ` and ${bytes(Math.round(sent / samples))} a sample` : ""}. A download of everything would have come before the first step.`),
    chart(context, {
      says: `Bytes of data that were streamed, over time: ${bytes(sent)} at the end.`,
      height: 170, marginLeft: 56,
      x: { label: `time (${minutes.unit})`, domain: [0, view.run.time / minutes.size] },
      y: { label: `streamed (${unit})`, zero: true },
      marks: [
        Plot.areaY(points, { x: (p) => p.t / minutes.size, y1: 0, y2: (p) => p.y / size, fill: colours.computing, fillOpacity: 0.2 }),
        Plot.lineY(points, { x: (p) => p.t / minutes.size, y: (p) => p.y / size, stroke: colours.computing, strokeWidth: 1.6 }),
      ],
    }),
  ];
}

const timeParts = (end: number) => (end > 3 * 3600 ? { unit: "hours", size: 3600 } : end > 180 ? { unit: "minutes", size: 60 } : { unit: "seconds", size: 1 });

function security(context: Context): Node[] {
  const { view } = context, guard = view.guard?.rounds ?? [], cases = view.cases?.rows ?? [];
  const join = view.run.join;
  const keys = join === null || join === undefined ? "" : join.insecure ? "This swarm has no keys: any host may take part. " : "Only hosts with a certificate of the moderator take part, and each message is its sender's. ";
  if (guard.length > 0 || cases.length > 0) {
    const audits = guard.reduce((a, r) => a + r.audits.length, 0), wrong = guard.reduce((a, r) => a + r.audits.filter((x) => x[2] === "wrong").length, 0);
    const banned = new Set([...cases.filter((c) => c.bans.count > 0).map((c) => c.member), ...guard.flatMap((r) => r.verdicts.map(([culprit]) => view.guard!.names[culprit]))]);
    const rows: Bar[] = [
      ...(audits > 0 ? [{ name: "contributions checked", value: audits, text: count(audits) }, { name: "found false", value: wrong, text: count(wrong), colour: "var(--failed)" }] : []),
      { name: "members accused", value: cases.length, text: count(cases.length), colour: "var(--partial)" },
      { name: "members banned", value: banned.size, text: count(banned.size), colour: "var(--failed)" },
    ];
    return [
      h("p", {}, `${keys}Members check each other's work. In this run ${count(banned.size)} ${banned.size === 1 ? "member was" : "members were"} banned with a proof that every other member can check.`),
      bars(context, `What members found out about each other: ${rows.map((r) => `${r.name} ${r.text}`).join(", ")}.`, rows),
    ];
  }
  const p = view.participants, top = p.hosts.slice(0, 8).filter((x) => x.samples > 0);
  const invariants = Object.values(view.summary?.invariants ?? {});
  const checked = invariants.reduce((a, i) => a + i.checked, 0), violated = invariants.reduce((a, i) => a + i.violated, 0);
  if (top.length === 0 || p.samples === 0) return [h("p", {}, keys), nothing("Nobody has contributed yet.")];
  return [
    h("p", {}, `${keys}A stranger's false gradient would spoil the model for all. ${option(view, "aggregator") && option(view, "aggregator") !== "mean" ? `This run averages with '${option(view, "aggregator")}', which bears some of them.` : "This run trusts its members and takes the plain mean, so a member counts by its samples."} ${view.summary ? `${count(checked)} checks from outside found ${violated === 0 ? "no violation" : `${count(violated)} violations`}.` : ""}`),
    bars(context, `How much single members could have spoilt: ${top.map((x) => `${x.name} ${percent(x.samples / p.samples)}`).join(", ")}.`, top.map((x) => ({ name: x.name, value: x.samples / p.samples, text: percent(x.samples / p.samples), colour: "var(--c3)" }))),
    h("p", { class: "note" }, "The share of single members in all samples, the largest first: so much of the mean one of them could have spoilt."),
  ];
}

export function challenges(context: Context): Node[] {
  const columns = context.width > 760 ? 2 : 1, width = Math.floor((context.width - (columns - 1) * 24) / columns);
  const card = (title: string, draw: (context: Context) => Node[]) => h("section", { class: "challenge" }, h("h4", {}, title), ...draw({ ...context, width }));
  return [
    h("p", {}, `Computers at home are unlike a cluster: slow lines, unequal devices, little memory, and nobody knows each other. This is how the run of ${seconds(context.view.summary?.virtual_seconds ?? context.view.run.time)} met each of these, in its own figures.`),
    h("div", { class: "challenges", style: `grid-template-columns: repeat(${columns}, minmax(0, 1fr))` },
      card("Communication", communication), card("Uneven devices", uneven), card("Memory", memoryCard), card("Streaming the data", streaming), card("Security", security)),
    legend([["otherwise", "var(--muted)"], ...context.view.sessions.states.filter((state) => state === "averaging").map((state): [string, string] => ["averaging, as measured", colours[state]])]),
  ];
}
