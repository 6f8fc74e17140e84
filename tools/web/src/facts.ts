// The facts of a run, the commands that repeat it, its difference from the prediction, and its scenario.

import * as Plot from "@observablehq/plot";
import { chart, type Context, nothing } from "./chart";
import { copyable, fill, h, search } from "./dom";
import { bytes, count, number, percent, seconds } from "./format";

const fact = (name: string, value: string | Node | null, more = "") => h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, value ?? "–", more && h("small", {}, more)));

export function provenance({ view }: Context): Node[] {
  const { run, summary } = view;
  const hash = (x: string | null | undefined) => (x ? h("code", { class: "hash", tabindex: 0 }, x) : null);
  return [
    h("p", {}, "Save the scenario below as ", h("code", {}, "run.yaml"), ", or take that of the run directory", run.world === "cluster" ? ". The prediction, by simulation:" : ":"),
    copyable(run.world === "cluster" ? `${run.command} --world sim --out predicted` : run.command),
    ...(run.world === "sim" ? [h("p", { class: "note" }, "The same version gives the same event hash on any machine. In the run directory: ", h("code", {}, "shoal replay DIR"), " runs it again and compares.")] : []),
    h("dl", { class: "facts" },
      fact("seed", String(run.seed)), fact("world", run.world), fact("shoal", run.shoal || "–", run.build && ` build ${run.build}`),
      fact("computed in", summary ? seconds(summary.wall_seconds) : "–", summary ? ` ${bytes(summary.peak_rss_bytes)} of memory` : ""),
      fact("event hash", hash(summary?.event_hash)), fact("state hash", hash(summary?.state_hash)),
      run.data_digest && fact("data digest", hash(run.data_digest)), run.node && fact("node", run.node)),
    ...(summary ? [h("h4", {}, "Invariants of every run"),
      h("ul", { class: "checks" }, Object.entries(summary.invariants).map(([name, c]) =>
        h("li", { class: c.violated > 0 ? "bad" : c.checked > 0 ? "good" : "none" }, h("span", { "aria-hidden": "true" }, c.violated > 0 ? "✗" : c.checked > 0 ? "✓" : "·"), ` ${name.replace(/_/g, " ")} `,
          h("small", {}, c.violated > 0 ? `violated ${count(c.violated)} times: ${c.first_violation ?? ""}` : c.checked > 0 ? `${count(c.checked)} times` : "not checked"))))] : []),
  ];
}

const yamlState = { filter: "" };

export function scenario(context: Context): Node[] {
  const lines = context.view.scenario.replace(/\n$/, "").split("\n");
  const box = h("pre", { class: "yaml", tabindex: 0, "aria-label": "The resolved scenario" });
  const said = h("p", { class: "note", role: "status" });
  const show = () => {
    const wanted = yamlState.filter.toLowerCase();
    if (wanted === "") {
      fill(box, lines.map((line) => h("span", { class: "line" }, line + "\n")));
      said.textContent = `${lines.length} lines, every default filled in.`;
      return;
    }
    // A line that matches the search is shown with the keys above it.
    const depth = (line: string) => line.length - line.trimStart().length;
    const parents: number[] = [];
    const shown = new Set<number>();
    let found = 0;
    lines.forEach((line, i) => {
      while (parents.length > 0 && depth(lines[parents[parents.length - 1]]) >= depth(line)) parents.pop();
      if (line.toLowerCase().includes(wanted)) {
        found++;
        for (const p of parents) shown.add(p);
        shown.add(i);
      }
      parents.push(i);
    });
    fill(box, [...shown].sort((a, b) => a - b).map((i) => {
      const at = lines[i].toLowerCase().indexOf(wanted);
      return h("span", { class: "line" }, ...(at < 0 ? [lines[i]] : [lines[i].slice(0, at), h("mark", {}, lines[i].slice(at, at + wanted.length)), lines[i].slice(at + wanted.length)]), "\n");
    }));
    said.textContent = `${found} of ${lines.length} lines`;
  };
  show();
  return [h("div", { class: "controls" }, search("Search the scenario", yamlState.filter, (v) => {
    yamlState.filter = v;
    show();
  })), said, box];
}

export function comparison(context: Context): Node[] {
  const c = context.view.comparison;
  if (!c) return [nothing("Give two runs to compare: shoal serve PREDICTED ACTUAL.")];
  if ("error" in c) return [nothing(String(c.error))];
  const figures = c.figures.filter((f) => f.predicted !== null || f.actual !== null);
  const judged = figures.filter((f) => f.error !== null);
  const most = Math.max(0.12, ...judged.map((f) => Math.min(1, Math.abs(f.error!))));
  const text = (f: (typeof figures)[0], v: number | null) => (f.unit === "seconds" ? seconds(v) : f.unit === "bytes" && v !== null ? bytes(v) : number(v));
  return [
    h("p", {}, "Predicted: ", h("code", {}, c.predicted.path), ", actual: ", h("code", {}, c.actual.path), "."),
    chart(context, {
      says: `How far figures were from their prediction: ${judged.filter((f) => f.tolerance !== null).map((f) => `${f.name} ${percent(f.error!)}`).join(", ")}.`,
      height: judged.length * 20 + 50,
      marginLeft: Math.min(190, context.width * 0.4),
      marginRight: 30,
      x: { label: "actual against predicted (%)", domain: [-100 * most, 100 * most], clamp: true, grid: true },
      y: { domain: judged.map((f) => `${f.section}: ${f.name}`), label: null, grid: false, tickSize: 0 },
      marks: [
        Plot.barX(judged.filter((f) => f.tolerance !== null), { y: (f) => `${f.section}: ${f.name}`, x1: (f) => -100 * f.tolerance!, x2: (f) => 100 * f.tolerance!, fill: "var(--ok)", fillOpacity: 0.16 }),
        Plot.ruleX([0], { stroke: "var(--muted)" }),
        Plot.dot(judged, { y: (f) => `${f.section}: ${f.name}`, x: (f) => 100 * f.error!, r: 4.5, fill: (f) => (f.tolerance === null ? "var(--muted)" : Math.abs(f.error!) <= f.tolerance ? "var(--ok)" : "var(--failed)"), title: (f) => `${f.name}: predicted ${text(f, f.predicted)}, actual ${text(f, f.actual)}` }),
      ],
    }),
    h("div", { class: "table", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, ["", "", "predicted", "actual", "off by", "allowed"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, figures.map((f) => h("tr", {}, h("td", {}, f.section), h("td", {}, f.name), h("td", { class: "n" }, text(f, f.predicted)), h("td", { class: "n" }, text(f, f.actual)),
        h("td", { class: `n ${f.tolerance === null || f.error === null ? "" : Math.abs(f.error) <= f.tolerance ? "good" : "bad"}` }, f.error === null ? "–" : `${f.error > 0 ? "+" : ""}${percent(f.error)}`.replace("+-", "−")),
        h("td", { class: "n" }, f.tolerance === null ? "" : percent(f.tolerance))))))),
  ];
}
