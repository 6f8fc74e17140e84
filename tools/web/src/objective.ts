// The objective over time and over samples, beside one machine, and the speed at which samples come.

import * as Plot from "@observablehq/plot";
import { asTable, bands, chart, type Context, faultLegend, legend, nothing, timeAxis } from "./chart";
import { choice, h } from "./dom";
import { compact, number, seconds } from "./format";
import type { View } from "./view";

const state = { over: "time" as "time" | "samples", log: false };

interface Point {
  t: number;
  samples: number;
  loss: number;
}

/** Of sizes and durations alone the loss is 0 throughout. */
export const learns = (view: View): boolean => [...(view.series.loss_train ?? []), ...(view.series.loss_held_out ?? [])].some((x) => x !== null && x !== 0);

function losses(view: View, column: "loss_train" | "loss_held_out", changesOnly: boolean): Point[] {
  const { time, samples } = view.series;
  const values = learns(view) ? view.series[column] ?? [] : [];
  const out: Point[] = [];
  let last: number | null = null;
  for (let i = 0; i < values.length; i++) {
    const loss = values[i];
    if (loss === null || (changesOnly && loss === last)) continue;
    last = loss;
    out.push({ t: time[i] ?? 0, samples: samples[i] ?? 0, loss });
  }
  return out;
}

export function objective(context: Context): Node[] {
  const { view, beside } = context;
  const axis = timeAxis(view);
  const overTime = state.over === "time";
  const shown = (all: Point[]) => (overTime ? axis.within(all, (p) => p.t) : all);
  const train = shown(losses(view, "loss_train", false)), heldOut = shown(losses(view, "loss_held_out", true));
  const controls = choice("Objective over", "objective-over", [["time", "over time"], ["samples", "over samples"]] as const, state.over, (value) => {
    state.over = value;
    context.again();
  });
  const x = overTime ? {} : { label: "samples in completed rounds", tickFormat: (v: number) => compact(v) };
  const at = (p: Point) => (overTime ? axis.scale(p.t) : p.samples);
  if (!learns(view)) {
    // Without learning, the chart shows the progress of the run.
    const { time, samples, epoch } = view.series;
    const points = axis.within((time ?? []).map((t, i) => ({ t: t ?? 0, samples: samples[i] ?? 0, epoch: epoch[i] ?? 0 })), (p) => p.t);
    if (points.length === 0) return [nothing("No row of metrics yet.")];
    return [
      chart(context, {
        says: `Samples in completed rounds over time: ${compact(points[points.length - 1].samples)} after ${seconds(view.run.time)}.`,
        time: axis,
        y: { label: "samples in completed rounds", tickFormat: (v: number) => compact(v) },
        marks: [
          ...bands(view),
          // From 0 and not stacked: the last row may be at the time of the one before.
          Plot.areaY(points, { x: (p) => axis.scale(p.t), y1: 0, y2: "samples", fill: "var(--accent)", fillOpacity: 0.12, curve: "step-after" }),
          Plot.lineY(points, { x: (p) => axis.scale(p.t), y: "samples", stroke: "var(--accent)", strokeWidth: 1.8, curve: "step-after" }),
          ...(beside ? [Plot.lineY(beside.series.time.map((t, i) => ({ t: t ?? 0, samples: beside.series.samples[i] ?? 0 })), { x: (p) => axis.scale(p.t), y: "samples", stroke: "var(--beside)", strokeDasharray: "5,4", curve: "step-after" })] : []),
          Plot.tip(points, Plot.pointerX({ x: (p) => axis.scale(p.t), y: "samples", title: (p) => `${seconds(p.t)}\n${compact(p.samples)} samples, epoch ${p.epoch}` })),
        ],
      }),
      legend([["samples in completed rounds", "var(--accent)"], ...(beside ? [["predicted", "var(--beside)"] as [string, string]] : []), ...faultLegend(view)]),
      h("p", { class: "note" }, `Workload “${view.run.workload}” has sizes and durations and no loss: this is how far the swarm has got.`),
      asTable(["time (s)", "epoch", "samples"], () => points.map((p) => [p.t, p.epoch, p.samples])),
    ];
  }
  if (train.length + heldOut.length === 0) return [controls, nothing("No loss is known in this stretch of time.")];
  const loss = view.summary?.loss;
  const rules = [
    { name: "one machine, as many steps", value: loss?.baseline, colour: "var(--baseline)" },
    { name: "table of byte pairs", value: loss?.bigram, colour: "var(--muted)" },
  ].filter((r): r is { name: string; value: number; colour: string } => r.value !== null && r.value !== undefined);
  const trainBeside = beside ? shown(losses(beside, "loss_train", false)) : [], heldOutBeside = beside ? shown(losses(beside, "loss_held_out", true)) : [];
  const last = heldOut[heldOut.length - 1] ?? train[train.length - 1];
  return [
    controls,
    chart(context, {
      says: `Loss ${overTime ? "over time" : "over samples"}: ${number(last.loss)} at the end${loss?.baseline ? `, one machine ${number(loss.baseline)}` : ""}.`,
      height: 320,
      time: overTime ? axis : undefined,
      x,
      y: { label: "loss (nats)", nice: true },
      marks: [
        ...(overTime ? bands(view) : []),
        Plot.ruleY(rules, { y: "value", stroke: "colour", strokeDasharray: "6,4" }),
        // The labels are at the left, where losses are still high. The lower one of two is under its line, so that they never overlap.
        ...rules.map((r) => Plot.text([r], { y: "value", text: (one) => `${one.name} ${number(one.value)}`, frameAnchor: "left", textAnchor: "start", dy: rules.some((other) => other.value > r.value) ? 9 : -8, dx: 6, fill: "colour", stroke: "var(--panel)", strokeWidth: 4 })),
        Plot.lineY(trainBeside, { x: at, y: "loss", stroke: "var(--beside)", strokeWidth: 1.2, strokeDasharray: "2,3" }),
        Plot.lineY(heldOutBeside, { x: at, y: "loss", stroke: "var(--beside)", strokeWidth: 1.6, strokeDasharray: "6,4" }),
        Plot.lineY(train, { x: at, y: "loss", stroke: "var(--accent)", strokeOpacity: 0.55, strokeWidth: 1.2 }),
        Plot.lineY(heldOut, { x: at, y: "loss", stroke: "var(--accent)", strokeWidth: 2.2, marker: heldOut.length < 40 ? "circle" : undefined }),
        Plot.tip([...train, ...heldOut], Plot.pointer({ x: at, y: "loss", title: (p: Point) => `loss ${number(p.loss, 4)}\nat ${seconds(p.t)}\n${compact(p.samples)} samples` })),
      ],
    }),
    legend([["training, mean of a row", "color-mix(in srgb, var(--accent) 55%, transparent)"], ["held out", "var(--accent)"], ...(beside ? [["predicted", "var(--beside)"] as [string, string]] : []), ...(overTime ? faultLegend(view) : [])]),
    asTable(["time (s)", "samples", "training loss"], () => train.map((p) => [p.t, p.samples, p.loss])),
  ];
}

export function speed(context: Context): Node[] {
  const { view, beside } = context;
  const axis = timeAxis(view);
  const of = (v: View) => axis.within(v.series.time.map((t, i) => ({ t: t ?? 0, y: v.series.samples_per_second?.[i] })).filter((p): p is { t: number; y: number } => p.y !== null && p.y !== undefined), (p) => p.t);
  const points = of(view);
  if (points.length === 0) return [nothing("No row of metrics yet.")];
  const mean = points.reduce((a, p) => a + p.y, 0) / points.length;
  // Rounds interrupt computing, so single rows flicker.
  const smooth = (all: { t: number; y: number }[]) => {
    const step = Math.ceil(all.length / 90);
    return Array.from({ length: Math.ceil(all.length / step) }, (_, i) => {
      const part = all.slice(i * step, (i + 1) * step);
      return { t: part[part.length - 1].t, y: part.reduce((a, p) => a + p.y, 0) / part.length };
    });
  };
  const means = smooth(points);
  return [
    chart(context, {
      says: `Samples computed per second, ${number(mean)} on average.`,
      height: 200,
      time: axis,
      y: { label: "samples computed per second", zero: true },
      marks: [
        ...bands(view),
        Plot.areaY(means, { x: (p) => axis.scale(p.t), y1: 0, y2: "y", fill: "var(--computing)", fillOpacity: 0.2 }),
        Plot.lineY(means, { x: (p) => axis.scale(p.t), y: "y", stroke: "var(--computing)", strokeWidth: 1.4 }),
        ...(beside ? [Plot.lineY(smooth(of(beside)), { x: (p) => axis.scale(p.t), y: "y", stroke: "var(--beside)", strokeDasharray: "4,3" })] : []),
        Plot.tip(means, Plot.pointerX({ x: (p) => axis.scale(p.t), y: "y", title: (p) => `${seconds(p.t)}\n${number(p.y)} samples/s` })),
      ],
    }),
    ...(faultLegend(view).length > 0 ? [legend(faultLegend(view))] : []),
    asTable(["time (s)", "samples/s"], () => points.map((p) => [p.t, p.y])),
  ];
}
