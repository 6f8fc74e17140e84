// The common parts of all charts: size, time axis, shaded faults, and a text and a table for users who cannot see them.

import * as Plot from "@observablehq/plot";
import { h } from "./dom";
import { seconds, timeUnit } from "./format";
import { choice, choose, goTo, moveTo } from "./moment";
import { onTimeAxis } from "./time_chart";
import type { Fault, View } from "./view";

export interface Context {
  view: View;
  /** The run that it is shown beside: the first of several. */
  beside: View | null;
  width: number;
  again: () => void;
}

export const colours = {
  ok: "var(--ok)",
  partial: "var(--partial)",
  split: "var(--split)",
  failed: "var(--failed)",
  joining: "var(--joining)",
  computing: "var(--computing)",
  averaging: "var(--averaging)",
  downloading: "var(--downloading)",
} as Record<string, string>;

/** What sessions call their states in words. */
export const stateWords: Record<string, string> = { joining: "joining", computing: "computing", averaging: "averaging", downloading: "out of sync" };

/** Of groups, kinds, participants: eight that people with any eyes tell apart. */
export const palette = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)", "var(--c7)"];

export interface TimeAxis {
  /** From seconds of the run to the unit of the axis. */
  scale: (t: number) => number;
  label: string;
  /** The ends of the axis in its unit, and in seconds. */
  domain: [number, number];
  from: number;
  to: number;
  /** `items` within the axis, and one on each side, so that lines go on to the edge. */
  within: <T>(items: T[], time: (item: T) => number) => T[];
}

/** The axis of all charts over time: the whole run, or the stretch that was chosen. */
export function timeAxis(view: View): TimeAxis {
  const end = Math.max(view.run.time, 1e-9);
  let [from, to] = choice.range ?? [0, end];
  if (from >= end || to <= from) [from, to] = [0, end];
  to = Math.min(to, end);
  const span = to - from, kind = view.run.world === "sim" ? "virtual time" : "time";
  // A short stretch late in a run counts from a round number of seconds, so that its ticks stay short.
  const zoomed = span < to / 20;
  const { unit, seconds: size } = timeUnit(zoomed ? span : to);
  const step = size === 1 ? 60 : size, base = zoomed ? Math.floor(from / step) * step : 0;
  const scale = (t: number) => (t - base) / size;
  return {
    scale, from, to,
    domain: [scale(from), scale(to)],
    label: `${kind} (${unit}${base > 0 ? ` after ${seconds(base)}` : ""})`,
    within: (items, time) => {
      if (!choice.range) return items;
      const first = items.findIndex((item) => time(item) >= from);
      if (first < 0) return items.slice(-1);
      let last = first;
      while (last < items.length && time(items[last]) <= to) last++;
      return items.slice(Math.max(0, first - 1), last + 1);
    },
  };
}

/** What a fault does to whom, in a few words. */
export function faultName(f: Fault): string {
  const whom = f.count === 0 ? "" : f.count === 1 ? ` ${f.hosts[0] ?? ""}` : ` ${f.count} hosts`;
  return `${f.action.replace(/_/g, " ")}${whom}`;
}

function faultText(f: Fault): string {
  const whom = f.count === 0 ? "" : ` ${f.hosts.slice(0, 4).join(", ")}${f.count > 4 ? ` and ${f.count - 4} more` : ""}`;
  return `${f.action}${whom}\n${seconds(f.begin)}${f.end !== null && f.end > f.begin ? ` to ${seconds(f.end)}` : ""}`;
}

/** Faults behind a time chart: bands of those that last, lines of those that strike. */
export function bands(view: View): Plot.Markish[] {
  const axis = timeAxis(view), { scale } = axis;
  const { spans, instant } = faultsOf(view);
  const first = (f: Fault) => scale(Math.max(axis.from, f.begin));
  return [
    Plot.rectX(spans, { x1: first, x2: (f: Fault) => scale(Math.min(axis.to, f.end ?? view.run.time)), fill: "var(--fault)", fillOpacity: 0.1, title: faultText, className: "fault-band" }),
    Plot.ruleX(instant, { x: (f: Fault) => scale(f.begin), stroke: "var(--fault)", strokeOpacity: 0.6, strokeDasharray: "2,3", title: faultText, className: "fault-band" }),
    faultNames(axis, [...spans, ...instant].sort((a, b) => a.begin - b.begin)),
  ];
}

/** The names of faults at the top of a chart, as many as have room beside each other. A click goes to the fault. */
function faultNames(axis: TimeAxis, faults: Fault[]): Plot.Markish {
  return ((_index: unknown, scales: Record<string, (v: number) => number>, _channels: unknown, size: { width: number; marginRight: number; marginTop: number }) => {
    const group = document.createElementNS("http://www.w3.org/2000/svg", "g");
    group.setAttribute("aria-label", "fault names");
    let free = -Infinity;
    for (const f of faults) {
      if ((f.end ?? Infinity) < axis.from || f.begin > axis.to) continue;
      const x = scales.x(axis.scale(Math.max(axis.from, f.begin))) + 3, name = faultName(f);
      const wide = 5.6 * name.length;
      if (x < free || x + wide > size.width - size.marginRight + 8) continue;
      free = x + wide + 6;
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      text.textContent = name;
      text.setAttribute("x", String(x));
      text.setAttribute("y", String(size.marginTop + 8));
      text.setAttribute("class", "fault-name");
      text.addEventListener("click", () => goToFault(f));
      group.append(text);
    }
    return group;
  }) as unknown as Plot.Markish;
}

/** Shows the time of a fault: a little before it, and what followed. */
export function goToFault(f: Fault): void {
  showTime(f.begin, f.end !== null && f.end > f.begin ? f.end : f.begin);
}

/** Sets the moment to `begin`, and zooms out as far as it takes to see all until `end`. */
export function showTime(begin: number, end: number): void {
  if (choice.range && (begin < choice.range[0] || end > choice.range[1])) {
    const span = Math.max(choice.range[1] - choice.range[0], 1.5 * (end - begin));
    const from = Math.max(0, begin - span / 4);
    choose({ range: [from, from + span], at: begin });
  } else moveTo(begin);
}

/** The same above rows of pixels, which they would discolour: between y1 and y2, above the first row. */
export function rail(view: View, y1: number, y2: number): Plot.Markish[] {
  const axis = timeAxis(view), { scale } = axis;
  const { spans, instant } = faultsOf(view);
  return [
    Plot.rect(spans, { x1: (f: Fault) => scale(Math.max(axis.from, f.begin)), x2: (f: Fault) => scale(Math.min(axis.to, f.end ?? view.run.time)), y1, y2, fill: "var(--fault)", fillOpacity: 0.45, title: faultText, className: "fault-band" }),
    Plot.ruleX(instant, { x: (f: Fault) => scale(f.begin), y1, y2, stroke: "var(--fault)", strokeWidth: 1.5, title: faultText, className: "fault-band" }),
  ];
}

function faultsOf(view: View): { spans: Fault[]; instant: Fault[] } {
  const lasting = view.faults.filter((f) => f.end === null || f.end > f.begin);
  const striking = view.faults.filter((f) => f.end !== null && f.end <= f.begin);
  const once = ["kill", "restart", "join"];
  const instant = [...striking, ...lasting.filter((f) => f.end === null && once.includes(f.action))];
  // Marks outside of the axis would stand beside the chart.
  const { from, to } = timeAxis(view);
  return {
    spans: lasting.filter((f) => !(f.end === null && once.includes(f.action)) && f.begin < to && (f.end ?? Infinity) > from),
    instant: instant.filter((f) => f.begin >= from && f.begin <= to),
  };
}

export interface ChartOptions extends Plot.PlotOptions {
  /** One sentence: what the chart says. */
  says: string;
  /** A chart over time, with the axis that all of them share. */
  time?: TimeAxis;
  /** What a click at a time does in place of setting the moment; false: nothing. */
  click?: (t: number, event: PointerEvent) => boolean;
}

/** A plot of the page's look, as an image with a text. */
export function chart(context: Context, options: ChartOptions): HTMLElement {
  const { says, time: axis, click, ...rest } = options;
  const all = {
    width: context.width,
    height: 260,
    // The axis' label needs room above its highest tick.
    marginTop: 28,
    marginLeft: 52,
    marginRight: 14,
    marginBottom: 38,
    style: { background: "transparent", fontSize: "11.5px", overflow: "visible" },
    ...rest,
    x: { grid: false, labelArrow: "none", labelAnchor: "center", ...(axis ? { label: axis.label, domain: axis.domain } : {}), ...rest.x },
    y: { grid: true, labelArrow: "none", ...rest.y },
  } as const;
  const svg = Plot.plot(all as Plot.PlotOptions) as SVGSVGElement | HTMLElement;
  const image = svg instanceof SVGSVGElement ? svg : svg.querySelector<SVGSVGElement>("svg:last-of-type")!;
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", says);
  const out = h("div", { class: "plot" }, svg);
  openNames(image, context.view);
  if (axis) {
    const { marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom, width, height } = all;
    clip(image, left, top, width - left - right, height - top - bottom);
    onTimeAxis(out, { left, right, top, bottom, width, height, from: axis.from, to: axis.to }, chosenSpan(context.view), click);
  }
  return out;
}

const namesOf = new WeakMap<View["participants"], Set<string>>();
/** Names of participants in a chart open their panels, also in the name of a line. */
function openNames(svg: SVGSVGElement, view: View): void {
  let names = namesOf.get(view.participants);
  if (!names) namesOf.set(view.participants, (names = new Set([...view.participants.hosts, ...view.participants.groups].map((p) => p.name))));
  for (const text of svg.querySelectorAll("text")) {
    // A text may have a title in it.
    const name = (text.firstChild instanceof Text ? text.firstChild.data : "").replace(/^(up|down)link of | ×.*$/g, "");
    if (!names.has(name)) continue;
    text.classList.add("opens-peer");
    text.addEventListener("click", () => openPeer(name));
  }
}

let clips = 0;
/** Cuts marks off at the frame, but for axes and texts. */
function clip(svg: SVGSVGElement, x: number, y: number, width: number, height: number): void {
  const id = `clip-${++clips}`, path = document.createElementNS("http://www.w3.org/2000/svg", "clipPath");
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x: x - 1, y: 0, width: width + 2, height: y + height + 1 })) rect.setAttribute(name, String(value));
  path.id = id;
  path.append(rect);
  for (const mark of svg.children)
    if (!/axis|grid|tick|tip|text|fault names/.test(mark.getAttribute("aria-label") ?? "") && mark.tagName !== "style") mark.setAttribute("clip-path", `url(#${id})`);
  svg.append(path);
}

/** From the beginning of the chosen round to its end. */
export function chosenSpan(view: View): [number, number] | null {
  const round = choice.round === null ? undefined : view.rounds.kept.find((k) => k.number === choice.round);
  return round ? [round.started, round.ended] : null;
}

/** The members of the chosen round, or the chosen participant; null: nobody is chosen. */
export function chosenPeers(view: View): Set<string> | null {
  if (choice.peer !== null) return new Set([choice.peer]);
  const round = choice.round === null ? undefined : view.rounds.kept.find((k) => k.number === choice.round);
  return round && round.ends.length > 0 ? new Set(round.ends.map(([name]) => name)) : null;
}

/** A name that opens the panel of its participant. */
export function peerButton(name: string): HTMLElement {
  return h("button", { type: "button", class: "link name", onclick: (event: Event) => {
    event.stopPropagation();
    openPeer(name);
  } }, name);
}

export function openPeer(name: string): void {
  choose({ peer: name, round: null });
  goTo("panel-peer");
}

/** The same as a table, folded. `rows` are made when it is opened. */
export function asTable(head: string[], rows: () => (string | number)[][], summary = "as a table"): HTMLElement {
  const details = h("details", { class: "as-table" }, h("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const all = rows();
    const step = Math.max(1, Math.ceil(all.length / 200));
    const shown = all.filter((_, i) => i % step === 0 || i === all.length - 1);
    details.append(h("div", { class: "table", tabindex: 0 }, h("table", {},
      h("thead", {}, h("tr", {}, head.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, shown.map((row) => h("tr", {}, row.map((cell) => h("td", { class: typeof cell === "number" ? "n" : "" }, typeof cell === "number" ? String(Number(cell.toPrecision(6))) : cell))))))));
  });
  return details;
}

export function legend(entries: [string, string][]): HTMLElement {
  return h("ul", { class: "legend" }, entries.map(([name, colour]) => h("li", {}, h("span", { class: "swatch", style: `background:${colour}`, "aria-hidden": "true" }), name)));
}

/** Legend entry for the bands, where there are faults. */
export const faultLegend = (view: View): [string, string][] => (view.faults.length > 0 ? [["fault", "color-mix(in srgb, var(--fault) 30%, transparent)"]] : []);

export const nothing = (why: string): HTMLElement => h("p", { class: "nothing" }, why);

const known = new Map<string, [number, number, number]>();
/** Before drawing: light and dark have other colours. */
export const forgetColours = () => known.clear();

/** A colour of the style sheet as red, green, blue, for pixels. To find it out is dear: the browser brings its styles up to date first. */
export function rgb(name: string): [number, number, number] {
  const before = known.get(name);
  if (before) return before;
  const probe = h("span", { style: `color:${name}` });
  document.body.append(probe);
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g)!.slice(0, 3).map(Number);
  probe.remove();
  known.set(name, parts as [number, number, number]);
  return parts as [number, number, number];
}

/** Pixels as a mark that covers a part of a plot, in its units. */
export function pixels(width: number, height: number, paint: (data: Uint8ClampedArray) => void, x: [number, number], y: [number, number]): Plot.Markish {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, width);
  canvas.height = Math.max(1, height);
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  paint(image.data);
  context.putImageData(image, 0, 0);
  const url = canvas.toDataURL();
  return ((_index: unknown, scales: Record<string, (v: number) => number>) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", "image");
    const left = scales.x(x[0]), right = scales.x(x[1]);
    for (const [name, value] of Object.entries({ href: url, x: left, y: Math.min(scales.y(y[0]), scales.y(y[1])), width: Math.max(0, right - left), height: Math.abs(scales.y(y[1]) - scales.y(y[0])), preserveAspectRatio: "none" }))
      element.setAttribute(name, String(value));
    element.setAttribute("style", "image-rendering: pixelated");
    return element;
  }) as unknown as Plot.Markish;
}

/** Many dots as one mark: lines of no length with round ends. An element for each of hundreds takes longer than all else on the page. */
export function dots(points: { x: number; y: number }[], colour: string, radius: number): Plot.Markish {
  return ((_index: unknown, scales: Record<string, (v: number) => number>) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
    element.setAttribute("d", points.map((p) => `M${scales.x(p.x).toFixed(1)},${scales.y(p.y).toFixed(1)}h0`).join(""));
    element.setAttribute("style", `fill: none; stroke: ${colour}; stroke-width: ${2 * radius}; stroke-linecap: round`);
    return element;
  }) as unknown as Plot.Markish;
}
