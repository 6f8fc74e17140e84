// The common parts of all charts: size, time axis, shaded faults, and a text and a table for users who cannot see them.

import * as Plot from "@observablehq/plot";
import { h } from "./dom";
import { seconds, timeUnit } from "./format";
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

export function timeAxis(view: View): { scale: (t: number) => number; label: string; end: number; unit: string } {
  const end = Math.max(view.run.time, 1e-9);
  const { unit, seconds: size } = timeUnit(end);
  const kind = view.run.world === "sim" ? "virtual time" : "time";
  return { scale: (t) => t / size, label: `${kind} (${unit})`, end: end / size, unit };
}

function faultText(f: Fault): string {
  const whom = f.count === 0 ? "" : ` ${f.hosts.slice(0, 4).join(", ")}${f.count > 4 ? ` and ${f.count - 4} more` : ""}`;
  return `${f.action}${whom}\n${seconds(f.begin)}${f.end !== null && f.end > f.begin ? ` to ${seconds(f.end)}` : ""}`;
}

/** Faults behind a time chart: bands of those that last, lines of those that strike. */
export function bands(view: View): Plot.Markish[] {
  const { scale } = timeAxis(view);
  const { spans, instant } = faultsOf(view);
  return [
    Plot.rectX(spans, { x1: (f: Fault) => scale(f.begin), x2: (f: Fault) => scale(f.end ?? view.run.time), fill: "var(--fault)", fillOpacity: 0.1, title: faultText, className: "fault-band" }),
    Plot.ruleX(instant, { x: (f: Fault) => scale(f.begin), stroke: "var(--fault)", strokeOpacity: 0.6, strokeDasharray: "2,3", title: faultText, className: "fault-band" }),
  ];
}

/** The same above rows of pixels, which they would discolour: between y1 and y2, above the first row. */
export function rail(view: View, y1: number, y2: number): Plot.Markish[] {
  const { scale } = timeAxis(view);
  const { spans, instant } = faultsOf(view);
  return [
    Plot.rect(spans, { x1: (f: Fault) => scale(f.begin), x2: (f: Fault) => scale(f.end ?? view.run.time), y1, y2, fill: "var(--fault)", fillOpacity: 0.45, title: faultText, className: "fault-band" }),
    Plot.ruleX(instant, { x: (f: Fault) => scale(f.begin), y1, y2, stroke: "var(--fault)", strokeWidth: 1.5, title: faultText, className: "fault-band" }),
  ];
}

function faultsOf(view: View): { spans: Fault[]; instant: Fault[] } {
  const lasting = view.faults.filter((f) => f.end === null || f.end > f.begin);
  const striking = view.faults.filter((f) => f.end !== null && f.end <= f.begin);
  const once = ["kill", "restart", "join"];
  const instant = [...striking, ...lasting.filter((f) => f.end === null && once.includes(f.action))];
  return { spans: lasting.filter((f) => !(f.end === null && once.includes(f.action))), instant };
}

export interface ChartOptions extends Plot.PlotOptions {
  /** One sentence: what the chart says. */
  says: string;
}

/** A plot of the page's look, as an image with a text. */
export function chart(context: Context, options: ChartOptions): HTMLElement {
  const { says, ...rest } = options;
  const svg = Plot.plot({
    width: context.width,
    height: 260,
    // The axis' label needs room above its highest tick.
    marginTop: 28,
    marginLeft: 52,
    marginRight: 14,
    marginBottom: 38,
    style: { background: "transparent", fontSize: "11.5px", overflow: "visible" },
    ...rest,
    x: { grid: false, labelArrow: "none", labelAnchor: "center", ...rest.x },
    y: { grid: true, labelArrow: "none", ...rest.y },
  }) as SVGSVGElement | HTMLElement;
  const image = svg instanceof SVGSVGElement ? svg : svg.querySelector("svg:last-of-type")!;
  image.setAttribute("role", "img");
  image.setAttribute("aria-label", says);
  return h("div", { class: "plot" }, svg);
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
