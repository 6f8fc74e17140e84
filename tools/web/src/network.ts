// The traffic by kind, host and region, and the load of the lines.

import * as Plot from "@observablehq/plot";
import { asTable, bands, chart, chosenPeers, type Context, faultLegend, legend, nothing, pixels, rail, rgb, timeAxis } from "./chart";
import { h, search } from "./dom";
import { bytes, byteUnit, count, number, percent, rate, seconds, words } from "./format";
import { share } from "./view";

const kinds = ["averaging", "data", "state", "control"];
const kindColours: Record<string, string> = { averaging: "var(--averaging)", data: "var(--computing)", state: "var(--downloading)", control: "var(--joining)" };

export function trafficOverTime(context: Context): Node[] {
  const { view } = context;
  const axis = timeAxis(view);
  const { time } = view.series;
  if (!time || time.length < 2) return [nothing("No two rows of metrics yet.")];
  const shown = axis.within(time.map((t, i) => ({ t: t ?? 0, i })), (row) => row.t);
  if (shown.length < 2) return [nothing("Fewer than two rows of metrics are in this stretch of time.")];
  // The chart shows the rates of a hundred stretches, because rows of single seconds flicker.
  const step = Math.max(1, Math.ceil(shown.length / 120));
  const rows: { t: number; t2: number; kind: string; rate: number }[] = [];
  for (let i = step; i < shown.length + step - 1; i += step) {
    const a = shown[i - step].i, b = shown[Math.min(i, shown.length - 1)].i;
    const dt = (time[b] ?? 0) - (time[a] ?? 0);
    if (dt <= 0) continue;
    for (const kind of kinds) {
      const column = view.series[`bytes_${kind}`];
      rows.push({ t: time[a] ?? 0, t2: time[b] ?? 0, kind, rate: (8 * ((column[b] ?? 0) - (column[a] ?? 0))) / dt });
    }
  }
  const most = Math.max(...rows.map((r) => r.rate), 1);
  const [unit, size] = most > 1e9 ? ["Gbit/s", 1e9] : most > 1e6 ? ["Mbit/s", 1e6] : ["kbit/s", 1e3];
  const totals = kinds.map((k) => ({ kind: k, total: view.series[`bytes_${k}`].at(-1) ?? 0 }));
  return [
    legend([...totals.map((t): [string, string] => [`${t.kind} ${bytes(t.total)}`, kindColours[t.kind]]), ...faultLegend(view)]),
    chart(context, {
      says: `Traffic by kind over time: ${totals.map((t) => `${bytes(t.total)} ${t.kind}`).join(", ")}.`,
      height: 230,
      time: axis,
      y: { label: unit as string },
      color: { domain: kinds, range: kinds.map((k) => kindColours[k]) },
      marks: [
        Plot.rectY(rows, { x1: (r) => axis.scale(r.t), x2: (r) => axis.scale(r.t2), y: (r) => r.rate / (size as number), fill: "kind", order: kinds, fillOpacity: 0.85, title: (r) => `${r.kind}: ${rate(r.rate)}\n${seconds(r.t)} to ${seconds(r.t2)}` }),
        ...bands(view),
      ],
    }),
    asTable(["from (s)", "to (s)", "kind", "bit/s"], () => rows.map((r) => [r.t, r.t2, r.kind, r.rate])),
  ];
}

const hostState = { filter: "" };

export function trafficByHost(context: Context): Node[] {
  const t = context.view.traffic;
  if (t === null || t.hosts.length === 0) return [nothing("The traffic of each host is known when the run has ended.")];
  const only = chosenPeers(context.view);
  const hosts = t.hosts.filter((x) => x.name.includes(hostState.filter) && (!only || only.has(x.name) || only.has(x.group))).slice(0, 30);
  const rows = hosts.flatMap((x) => kinds.map((kind) => ({ name: x.name, kind, bytes: x.bytes[t.kinds.indexOf(kind)] })));
  const most = Math.max(1, ...hosts.map((x) => x.bytes.reduce((a, b) => a + b, 0)));
  const { unit, size } = byteUnit(most);
  return [
    h("div", { class: "controls" }, search("Find a host", hostState.filter, (v) => {
      hostState.filter = v;
      context.again();
    })),
    hosts.length === 0 ? nothing("No host has this name.") : chart(context, {
      says: `Bytes sent by host: most by ${hosts[0].name}.`,
      height: hosts.length * 19 + 46,
      marginLeft: Math.min(130, 7 * Math.max(...hosts.map((x) => x.name.length)) + 14),
      x: { label: `sent (${unit})`, grid: true },
      y: { domain: hosts.map((x) => x.name), label: null, grid: false, tickSize: 0 },
      color: { domain: kinds, range: kinds.map((k) => kindColours[k]) },
      marks: [Plot.barX(rows, Plot.stackX({ order: kinds }, { y: "name", x: (r) => r.bytes / size, fill: "kind", insetTop: 2, insetBottom: 2, title: (r: { name: string; kind: string; bytes: number }) => `${r.name}: ${bytes(r.bytes)} ${r.kind}` }))],
    }),
    legend(kinds.map((k) => [k, kindColours[k]])),
    ...(t.more > 0 || t.hosts.length > 30 ? [h("p", { class: "note" }, `The 30 hosts that sent most of ${count(t.hosts.length + t.more)}.`)] : []),
    asTable(["host", ...t.kinds], () => t.hosts.map((x) => [x.name, ...x.bytes])),
  ];
}

export function trafficByRegion(context: Context): Node[] {
  const t = context.view.traffic;
  if (t === null || t.regions.length === 0) return [nothing("The traffic between regions is known when the run has ended.")];
  const sum = (x: number[]) => x.reduce((a, b) => a + b, 0);
  const names = [...new Set(t.regions.flatMap((r) => [r.from, r.to]))];
  const most = Math.max(...t.regions.map((r) => sum(r.bytes)));
  const left = Math.min(130, 7 * Math.max(...names.map((n) => n.length)) + 24);
  const width = Math.min(context.width, left + 40 + names.length * 110);
  return [
    chart({ ...context, width }, {
      says: `Bytes from region to region: ${t.regions.slice(0, 6).map((r) => `${bytes(sum(r.bytes))} from ${r.from} to ${r.to}`).join(", ")}.`,
      height: 60 + names.length * 46,
      marginLeft: left,
      x: { domain: names, label: "to", axis: "top", tickSize: 0 },
      y: { domain: names, label: "from", grid: false, tickSize: 0, labelAnchor: "top" },
      marginTop: 40,
      marginBottom: 8,
      marks: [
        Plot.cell(t.regions, { x: "to", y: "from", fill: "var(--accent)", fillOpacity: (r) => 0.12 + 0.78 * Math.sqrt(sum(r.bytes) / most), inset: 1.5, rx: 4, title: (r) => `${r.from} to ${r.to}: ${bytes(sum(r.bytes))}\n${t.kinds.map((k, i) => `${k} ${bytes(r.bytes[i])}`).join("\n")}` }),
        Plot.text(t.regions, { x: "to", y: "from", text: (r) => bytes(sum(r.bytes)), fill: (r) => (sum(r.bytes) / most > 0.35 ? "var(--on-tint)" : "var(--ink)") }),
      ],
    }),
    asTable(["from", "to", ...t.kinds], () => t.regions.map((r) => [r.from, r.to, ...r.bytes])),
  ];
}

const linkState = { filter: "" };

export function links(context: Context): Node[] {
  const { view } = context;
  const l = view.links;
  if (l === null || l.rows.length === 0) return [nothing(view.run.world === "cluster" ? "How full the lines were is known in simulation and emulation. For a real network, the chart above shows the traffic of each host." : "How full lines were is reckoned from transfers, and none were recorded (record.transfers).")];
  const only = chosenPeers(view);
  const rows = l.rows.filter((r) => r.name.includes(linkState.filter) && (!only || only.has(r.name.replace(/^.* of /, "")))).slice(0, 40);
  const axis = timeAxis(view);
  const low = rgb("var(--track)"), mid = rgb("var(--heat-mid)"), high = rgb("var(--heat-high)");
  const mix = (a: number, b: number, k: number) => a + (b - a) * k;
  const paint = (data: Uint8ClampedArray) => rows.forEach((row, r) => {
    for (let bin = 0; bin < l.bins; bin++)
      for (const line of [0, 1, 2]) {
        const u = share(row.use, bin), at = 4 * ((r * 4 + line) * l.bins + bin);
        for (let c = 0; c < 3; c++) data[at + c] = u < 0.5 ? mix(low[c], mid[c], 2 * u) : mix(mid[c], high[c], 2 * u - 1);
        data[at + 3] = 255;
      }
  });
  const left = Math.min(170, 6.6 * Math.max(0, ...rows.map((r) => r.name.length)) + 14);
  const height = 17;
  return [
    h("div", { class: "controls" }, search("Find a line", linkState.filter, (v) => {
      linkState.filter = v;
      context.again();
    })),
    rows.length === 0 ? nothing(only ? "No line of the chosen participants is known." : "No line has this name.") : chart(context, {
      says: `How full ${rows.length} lines were over time; the fullest, ${rows[0].name}, ${percent(rows[0].mean)} on average.`,
      height: rows.length * height + 58,
      marginLeft: left,
      marginRight: 56,
      marginTop: 14,
      time: axis,
      y: { domain: [0, rows.length], range: [15, rows.length * height + 15], grid: false, label: null, ticks: [] },
      marks: [
        pixels(l.bins, rows.length * 4, paint, [axis.scale(0), axis.scale(l.bins * l.bin)], [0, rows.length]),
        ...(l.until === null ? rail(view, -9 / height, -3 / height) : []),
        Plot.text(rows, { frameAnchor: "left", y: (_, i) => i + 0.5, text: "name", textAnchor: "end", dx: -6, fill: "var(--ink)", title: (r) => `${r.name}: ${rate(r.rate)}` }),
        Plot.text(rows, { frameAnchor: "right", y: (_, i) => i + 0.5, text: (r) => percent(r.mean), textAnchor: "start", dx: 7, fill: "var(--muted)" }),
      ],
    }),
    legend([["idle", "var(--track)"], ["half", "var(--heat-mid)"], ["full", "var(--heat-high)"], ...faultLegend(view)]),
    h("p", { class: "note" }, `Bulk alone, as a share of what the scenario says of the line; the number is the mean.${l.until !== null ? ` Until ${seconds(l.until)}: later transfers were not recorded (record.transfers).` : ""}${l.more + l.rows.length > rows.length && linkState.filter === "" && !only ? ` The ${rows.length} fullest of ${l.more + l.rows.length}.` : ""}`),
    asTable(["line", "bit/s", "mean share"], () => l.rows.map((r) => [r.name, r.rate, r.mean])),
  ];
}

export function compression(context: Context): Node[] {
  const { run, series, rounds } = context.view;
  const c = run.compression;
  const averaging = series.bytes_averaging?.at(-1) ?? 0;
  // In an all-reduce each of P members sends all values except its own part, and gets as many back.
  const sent = rounds.kept.length > 0 && run.parameters > 0 ? { pairs: (rounds.by_outcome.ok ?? 0) + (rounds.by_outcome.partial ?? 0) } : null;
  const fact = (name: string, value: string, more = "") => h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));
  return [
    h("dl", { class: "facts" },
      fact("contributions", words(c.codec), c.bits ? ` ${number(c.bits)} bits a value` : ""),
      fact("results", words(c.means), c.means_bits ? ` ${number(c.means_bits)} bits a value` : ""),
      fact("compression ratio", c.ratio ? `${number(c.ratio)} : 1` : "depends on the fraction kept", " there and back, against 32 bits"),
      fact("averaging sent", bytes(averaging), sent && sent.pairs > 0 ? ` ${bytes(averaging / sent.pairs)} a round` : ""),
      c.ratio && c.ratio > 1 && averaging > 0 ? fact("saved", bytes(averaging * (c.ratio - 1)), " less than with 32-bit floats") : ""),
  ];
}
