// The stages of a pipeline, with the hosts and the load of each over time, the hosts that hold it, and the moves.

import * as Plot from "@observablehq/plot";
import { asTable, bands, chart, type Context, faultLegend, legend, nothing, palette, timeAxis } from "./chart";
import { h, table, type TableState } from "./dom";
import { count, number, percent, seconds } from "./format";
import type { Stages, View } from "./view";

const state: TableState = { by: -1, down: false };

export const hasStages = (view: View): boolean => (view.stages?.hosts.length ?? 0) > 0;

const colour = (stage: number): string => palette[stage % palette.length];

function hostsOverTime(context: Context): HTMLElement {
  const { view } = context, stages = view.stages!, axis = timeAxis(view);
  const points = stages.hosts.flatMap((row, stage) => axis.within(row.map((hosts, i) => ({ t: (i + 0.5) * stages.bin, hosts, stage })), (p) => p.t));
  const last = stages.hosts.map((row) => row[row.length - 1] ?? 0);
  return chart(context, {
    says: `Hosts of each stage over time: ${last.map((hosts, stage) => `${number(hosts)} in stage ${stage}`).join(", ")} at the end.`,
    height: 220,
    time: axis,
    y: { label: "hosts", zero: true },
    marks: [
      ...bands(view),
      Plot.lineY(points, { x: (p) => axis.scale(p.t), y: "hosts", z: "stage", stroke: (p: { stage: number }) => colour(p.stage), strokeWidth: 1.5 }),
      Plot.tip(points, Plot.pointer({ x: (p: { t: number }) => axis.scale(p.t), y: "hosts", title: (p: { t: number; hosts: number; stage: number }) => `stage ${p.stage}\n${seconds(p.t)}\n${number(p.hosts)} hosts` })),
    ],
  });
}

const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
const isKnown = (load: number | null): load is number => load !== null;
const hasLoads = (stages: Stages): boolean => stages.loads?.some((row) => row.some(isKnown)) ?? false;
const meanLoads = (stages: Stages): number[] => stages.loads!.map((row) => mean(row.filter(isKnown)));

/** The load of a stage at a time, or the last one before; 0 if none is known. */
function loadAt(stages: Stages, stage: number, t: number): number {
  const row = stages.loads![stage] ?? [];
  for (let i = Math.min(row.length - 1, Math.floor(t / stages.bin)); i >= 0; i--) if (row[i] !== null) return row[i]!;
  return 0;
}

/** A line for each stage. An arrow is a move: from the stage that a host has left to the one that it joins. */
function loadOverTime(context: Context): HTMLElement {
  interface Point { t: number; load: number | null; stage: number }
  interface Move { t: number; host: string; from: number; to: number; low: number; high: number }
  const { view } = context, stages = view.stages!, axis = timeAxis(view);
  const points: Point[] = stages.loads!.flatMap((row, stage) => axis.within(row.map((load, i) => ({ t: (i + 0.5) * stages.bin, load, stage })), (p) => p.t));
  const moves: Move[] = stages.moves.filter((m) => m[0] >= axis.from && m[0] <= axis.to).map(([t, host, from, to]) => ({ t, host, from, to, low: loadAt(stages, from, t), high: loadAt(stages, to, t) }));
  const x = (p: { t: number }) => axis.scale(p.t), means = meanLoads(stages);
  return chart(context, {
    says: `Load of each stage over time, as the share of their time that its hosts computed: ${means.map((load, stage) => `${percent(load)} in stage ${stage}`).join(", ")} on average. ${stages.moves.length === 1 ? "One arrow marks a host that moved" : `${count(stages.moves.length)} arrows mark hosts that moved`}.`,
    height: 240,
    time: axis,
    y: { label: "share of the hosts' time", zero: true, tickFormat: percent },
    marks: [
      ...bands(view),
      Plot.lineY(points, { x, y: "load", z: "stage", stroke: (p: Point) => colour(p.stage), strokeWidth: 1.5 }),
      Plot.arrow(moves, { x1: x, x2: x, y1: "low", y2: "high", stroke: (m: Move) => colour(m.to), strokeWidth: 1.5, headLength: 6, className: "stage-moves", title: (m: Move) => `${m.host} moved from stage ${m.from} to stage ${m.to}\n${seconds(m.t)}` }),
      Plot.dot(moves, { x, y: "low", r: 2.5, fill: (m: Move) => colour(m.from), stroke: "var(--panel)" }),
      Plot.tip(points.filter((p) => isKnown(p.load)), Plot.pointer({ x, y: "load", title: (p: Point) => `stage ${p.stage}\n${seconds(p.t)}\n${percent(p.load!)} of its hosts' time${movesBeside(stages, p)}` })),
    ],
  });
}

/** The moves from or to the point's stage near it, as lines of a tip. */
function movesBeside(stages: Stages, at: { t: number; stage: number }): string {
  const near = stages.moves.filter(([t, , from, to]) => Math.abs(t - at.t) <= 2 * stages.bin && (from === at.stage || to === at.stage));
  return near.slice(0, 4).map(([, host, from, to]) => `\n${host} moved from stage ${from} to ${to}`).join("");
}

function loadSentence(stages: Stages): string {
  const loads = meanLoads(stages), least = loads.indexOf(Math.min(...loads)), most = loads.indexOf(Math.max(...loads));
  return `The hosts of stage ${least} computed for ${percent(loads[least])} of their time, the least, and those of stage ${most} for ${percent(loads[most])}, the most.`;
}

/** A column for each stage: the hosts that have held it, the longest at the bottom. */
function columns(context: Context): HTMLElement {
  const { places, hosts } = context.view.stages!, end = Math.max(context.view.run.time, 1e-9);
  const cells = hosts.flatMap((_, stage) => places.filter((p) => p[0] === stage).sort((a, b) => b[2] - a[2]).map(([, name, held, now], i) => ({ stage: `stage ${stage}`, of: stage, name, held, now, y: i })));
  const tallest = Math.max(1, ...cells.map((c) => c.y + 1));
  return chart(context, {
    says: `Who has held each stage: ${hosts.map((_, stage) => `${count(cells.filter((c) => c.of === stage).length)} hosts in stage ${stage}`).join(", ")}.`,
    height: Math.min(520, 80 + 14 * tallest),
    x: { type: "band", domain: hosts.map((_, stage) => `stage ${stage}`), label: null, padding: 0.15 },
    y: { label: null, axis: null, grid: false, domain: [-0.5, tallest - 0.5] },
    marks: [
      Plot.barY(cells, { x: "stage", y1: (c) => c.y - 0.42, y2: (c) => c.y + 0.42, fill: (c: { of: number }) => colour(c.of), fillOpacity: (c: { held: number }) => 0.12 + 0.75 * Math.min(1, c.held / end), stroke: (c: { now: boolean }) => (c.now ? "var(--ink)" : "none"), title: (c: { name: string; held: number; now: boolean }) => `${c.name}\nheld the stage for ${seconds(c.held)}${c.now ? ", and does now" : ""}` }),
    ],
  });
}

export function stagesPanel(context: Context): Node[] {
  const stages = context.view.stages;
  if (!stages || stages.hosts.length === 0) return [nothing("No host holds a stage yet.")];
  const whole = stages.hosts.map((row) => row.reduce((a, b) => a + b, 0) / Math.max(1, row.length));
  const least = whole.indexOf(Math.min(...whole)), most = whole.indexOf(Math.max(...whole));
  return [
    h("p", {}, `${count(stages.hosts.length)} stages. Stage ${least} had ${number(whole[least])} hosts on average, the fewest, and stage ${most} had ${number(whole[most])}, the most. ${stages.moved === 1 ? "One host has" : `${count(stages.moved)} hosts have`} moved from one stage to another.`),
    hostsOverTime(context),
    legend([...stages.hosts.slice(0, palette.length).map((_, stage) => [`stage ${stage}`, colour(stage)] as [string, string]), ...faultLegend(context.view)]),
    ...(hasLoads(stages) ? [h("h4", {}, "Load of each stage"), h("p", {}, `${loadSentence(stages)} An arrow is a host that moved, from the stage that it left to the one that it joined.${stages.moved > stages.moves.length ? ` The latest ${count(stages.moves.length)} moves are marked.` : ""}`), loadOverTime(context)] : []),
    ...(stages.places.length === 0 ? [] : [h("h4", {}, "Who held which stage"), columns(context), h("p", {}, "A bar is a host. The longer the host has held the stage, the darker its bar. A frame marks a host that holds the stage now.")]),
    ...(stages.moves.length === 0 ? [] : [h("h4", {}, "Moves"), table([...stages.moves].reverse(), [
      { title: "when", value: (one) => one[0], number: true, text: (one) => seconds(one[0]) },
      { title: "host", value: (one) => one[1] },
      { title: "from stage", value: (one) => one[2], number: true },
      { title: "to stage", value: (one) => one[3], number: true },
    ], state, context.again, { most: 12, caption: "Moves between stages" })]),
    asTable(["time (s)", ...stages.hosts.map((_, stage) => `stage ${stage}`)], () => (stages.hosts[0] ?? []).map((_, i) => [(i + 0.5) * stages.bin, ...stages.hosts.map((row) => row[i] ?? 0)]), "hosts as a table"),
    ...(hasLoads(stages) ? [asTable(["time (s)", ...stages.loads!.map((_, stage) => `stage ${stage}`)], () => stages.loads![0].map((_, i) => [(i + 0.5) * stages.bin, ...stages.loads!.map((row) => row[i] ?? "–")]), "loads as a table")] : []),
  ];
}
