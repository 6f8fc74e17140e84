// The experts of a mixture as a grid for each layer. A cell shows an expert's host, its use, and the steps that no copy has.

import { asTable, type Context, legend, nothing, openPeer, palette, timeAxis } from "./chart";
import { h } from "./dom";
import { count, number, seconds } from "./format";
import { choice, choose, whenMoved } from "./moment";
import { type Expert, type Experts, share, type View } from "./view";

export const hasExperts = (view: View): boolean => (view.experts?.experts.length ?? 0) > 0;

/** The expert that was clicked; it stays when the page is drawn anew. */
let picked = "";

const s = <K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>): SVGElementTagNameMap[K] => {
  const out = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, String(value));
  return out;
};

const nameOf = (one: Expert): string => one.place.join(".");
const groupOf = (host: string): string => host.replace(/-\d+$/, "");
const value = (experts: Experts, one: Expert, line: 0 | 1 | 2, bin: number): number => share(one.lines[line], bin) ** 2 * experts.most[line];

/** The hold at a time: the latest of those that had begun and were not over. */
function holdAt(one: Expert, at: number): Expert["holds"][0] | undefined {
  return [...one.holds].reverse().find(([from, to]) => from <= at && (to === null || to > at));
}

interface State {
  rows: number;
  unsaved: number;
  steps: number;
  hold: Expert["holds"][0] | undefined;
}

interface Moment {
  at: number;
  first: number;
  last: number;
  whole: boolean;
  says: string;
}

/** Seconds that count as now in a run that goes on, or two bins if these are longer. */
const newest = 10;

/** The bins that a moment means. Without one: the chosen stretch, or the newest bins of a run that goes on. */
function momentOf(view: View, at: number | null): Moment {
  const { bin, experts } = view.experts!, bins = Math.max(1, experts[0].lines[0].length), clamp = (n: number) => Math.max(0, Math.min(bins - 1, n));
  if (at !== null) {
    const n = clamp(Math.floor(at / bin));
    return { at, first: n, last: n, whole: false, says: `At ${seconds(at)}` };
  }
  const { from, to } = timeAxis(view);
  if (view.run.state === "running" && !choice.range) return { at: view.run.time, first: clamp(Math.min(bins - 2, bins - Math.ceil(newest / bin))), last: bins - 1, whole: false, says: "Now" };
  const last = clamp(Math.ceil(to / bin) - 1);
  return { at: to, first: clamp(Math.floor(from / bin)), last, whole: !choice.range, says: choice.range ? "In this stretch" : "Over the run" };
}

function stateOf(view: View, one: Expert, moment: Moment): State {
  const all = view.experts!;
  let rows = 0;
  if (moment.whole) rows = one.rows;
  else for (let bin = moment.first; bin <= moment.last; bin++) rows += value(all, one, 0, bin);
  const atEnd = moment.last >= one.lines[0].length - 1;
  return {
    rows,
    unsaved: atEnd ? Math.max(0, one.steps - one.copied) : value(all, one, 2, moment.last),
    steps: atEnd ? one.steps : value(all, one, 1, moment.last),
    hold: holdAt(one, Math.min(moment.at, view.run.time)),
  };
}

/** How long ago the freshest copy was made, as far as the bins tell; null: no copy of its steps is known. */
function ageOfCopy(all: Experts, one: Expert, moment: Moment): number | null {
  for (let bin = moment.last; bin > 0; bin--) {
    const here = all.most[1] * share(one.lines[1], bin) ** 2, unsaved = value(all, one, 2, bin), before = value(all, one, 2, bin - 1);
    if (here > 0 && (unsaved === 0 || unsaved < before)) return Math.max(0, moment.at - (bin + 1) * all.bin);
  }
  return null;
}

/** Times without a host that ended with a revival. */
export function recoveries(experts: Expert[]): number[] {
  return experts.flatMap((one) => one.holds.flatMap(([from, , , revived], i) => {
    const before = one.holds[i - 1];
    return revived && before && before[4] && before[1] !== null ? [from - before[1]] : [];
  }));
}

const median = (all: number[]): number => [...all].sort((a, b) => a - b)[Math.floor((all.length - 1) / 2)];

interface Cell {
  one: Expert;
  box: SVGRectElement;
  foot: SVGRectElement;
  column: number;
  row: number;
}

/** Columns and rows of a layer's grid: rows are the first coordinate, columns the others. A line of experts wraps. */
function layout(experts: Expert[]): { columns: number; rows: number; of: (one: Expert) => [number, number] } {
  const sizes = experts[0].place.slice(1).map((_, d) => 1 + Math.max(...experts.map((one) => one.place[d + 1])));
  if (sizes.length === 1) {
    const columns = Math.ceil(Math.sqrt(sizes[0]));
    return { columns, rows: Math.ceil(sizes[0] / columns), of: (one) => [one.place[1] % columns, Math.floor(one.place[1] / columns)] };
  }
  const columns = sizes.slice(1).reduce((all, size) => all * size, 1);
  return { columns, rows: sizes[0], of: (one) => [one.place.slice(2).reduce((at, x, d) => at * sizes[d + 1] + x, 0), one.place[1]] };
}

export function expertsPanel(context: Context): Node[] {
  const { view, width } = context, all = view.experts;
  if (!all || all.experts.length === 0) return [nothing("No host holds an expert yet.")];
  const groups = [...new Set([...view.run.groups.filter((g) => g.role === "expert").map((g) => g.name), ...all.hosts.map(groupOf)])];
  const colour = (host: string) => palette[groups.indexOf(groupOf(host)) % palette.length];
  const layers = [...new Set(all.experts.map((one) => one.place[0]))].map((layer) => ({ layer, experts: all.experts.filter((one) => one.place[0] === layer) }));

  const detail = h("p", { class: "expert-detail", role: "status" });
  let moment = momentOf(view, choice.at);
  const tell = (one: Expert | undefined) => {
    if (!one) {
      detail.replaceChildren("Move over an expert, or choose one with a click or the arrow keys, to see who holds it.");
      return;
    }
    const now = stateOf(view, one, moment), age = ageOfCopy(all, one, moment), exact = moment.last >= one.lines[0].length - 1;
    const steps = `${exact ? "" : "about "}${count(Math.round(now.steps))} steps`;
    const copy = now.unsaved < 0.5 ? "a copy has all of them" : `${exact ? "" : "about "}${count(Math.max(1, Math.round(now.unsaved)))} of them in no copy${age === null ? "" : `, the last copy ${seconds(age)} old`}`;
    const host = now.hold ? all.hosts[now.hold[2]] : null;
    const left = one.holds.filter(([, to]) => to !== null && to <= moment.at).at(-1);
    detail.replaceChildren(
      h("b", {}, nameOf(one)), ": ",
      ...(host ? [h("button", { type: "button", class: "link", onclick: () => openPeer(host) }, host), ` since ${seconds(now.hold![0])}${now.hold![3] ? `, revived at ${count(now.hold![5])} steps` : ""}`] : [`nobody holds it${left ? `, since ${seconds(left[1]!)}` : ""}`]),
      `. ${steps}, ${copy}. ${count(Math.round(now.rows))} rows ${moment.whole ? "in the run" : "then"}. In the run: ${count(one.requests)} requests, ${one.deaths === 1 ? "one host" : `${count(one.deaths)} hosts`} died with it, revived ${one.revivals === 1 ? "once" : `${count(one.revivals)} times`}.`);
  };

  const cells: Cell[] = [], pictures: { svg: SVGSVGElement; experts: Expert[]; layer: number; columns: number; rows: number; size: number; cells: Cell[] }[] = [];
  const frame = s("rect", { fill: "none", stroke: "var(--ink)", "stroke-width": 2, "pointer-events": "none", class: "expert-picked" });
  const pick = (one: Expert) => {
    picked = nameOf(one);
    const place = pictures.find((p) => p.layer === one.place[0])!, cell = place.cells.find((c) => c.one === one)!;
    for (const [name, v] of Object.entries({ x: cell.column * place.size, y: cell.row * place.size, width: place.size, height: place.size })) frame.setAttribute(name, String(v));
    place.svg.append(frame);
    tell(one);
  };
  for (const { layer, experts } of layers) {
    const { columns, rows, of } = layout(experts);
    const wide = layers.length > 1 && columns * 8 < width / 2 ? width / 2 - 16 : width - 4;
    const size = Math.max(5, Math.min(22, Math.floor(Math.min(wide / columns, Math.max(260, 620) / rows))));
    const svg = s("svg", { width: columns * size, height: rows * size, viewBox: `0 0 ${columns * size} ${rows * size}`, role: "img", tabindex: 0, class: "experts" });
    const own: Cell[] = experts.map((one) => {
      const [column, row] = of(one), gap = size > 7 ? 1 : 0.5;
      const box = s("rect", { x: column * size + gap / 2, y: row * size + gap / 2, width: size - gap, height: size - gap, rx: size > 12 ? 2 : 0, "data-expert": nameOf(one) });
      const foot = s("rect", { x: column * size + gap, y: (row + 1) * size - gap - Math.max(1, size / 5), height: Math.max(1, size / 5), width: 0, fill: "var(--fault)", "pointer-events": "none" });
      svg.append(box, foot);
      return { one, box, foot, column, row };
    });
    const at = (event: MouseEvent): Expert | undefined => {
      const place = svg.getBoundingClientRect(), x = Math.floor(((event.clientX - place.left) / place.width) * columns), y = Math.floor(((event.clientY - place.top) / place.height) * rows);
      return own.find((c) => c.column === x && c.row === y)?.one;
    };
    svg.addEventListener("pointermove", (event) => {
      const one = at(event);
      if (one && event.pointerType === "mouse") tell(one);
    });
    svg.addEventListener("pointerleave", () => tell(all.experts.find((one) => nameOf(one) === picked)));
    svg.addEventListener("click", (event) => {
      const one = at(event);
      if (one) pick(one);
    });
    svg.addEventListener("keydown", (event) => {
      const step = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, [number, number]>)[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const from = own.find((c) => nameOf(c.one) === picked);
      const next = from ? own.find((c) => c.column === from.column + step[0] && c.row === from.row + step[1]) : own[0];
      if (next) pick(next.one);
    });
    cells.push(...own);
    pictures.push({ svg, experts, layer, columns, rows, size, cells: own });
  }

  const said = h("p", { role: "status" });
  const follow = (to: number | null) => {
    moment = momentOf(view, to);
    const states = new Map(cells.map((cell) => [cell.one, stateOf(view, cell.one, moment)]));
    const most = Math.max(1e-9, ...[...states.values()].map((one) => one.rows)), mostUnsaved = Math.max(1, all.most[2]);
    let orphans = 0;
    for (const { one, box, foot } of cells) {
      const now = states.get(one)!, host = now.hold ? all.hosts[now.hold[2]] : null;
      if (!host) orphans++;
      box.setAttribute("fill", host ? colour(host) : "var(--panel)");
      box.setAttribute("fill-opacity", host ? String(0.1 + 0.9 * Math.sqrt(now.rows / most)) : "1");
      box.setAttribute("stroke", !host ? "var(--failed)" : now.hold![3] ? "var(--averaging)" : "none");
      box.setAttribute("data-state", !host ? "nobody" : now.hold![3] ? "revived" : "held");
      box.setAttribute("stroke-width", host ? "1.5" : "1");
      const whole = Number(box.getAttribute("width"));
      foot.setAttribute("width", String(now.unsaved < 0.5 ? 0 : Math.max(1, whole * Math.min(1, Math.sqrt(now.unsaved / mostUnsaved)))));
    }
    const rows = [...states.values()].reduce((sum, one) => sum + one.rows, 0);
    const idle = [...states.values()].filter((one) => one.rows < 0.5).length;
    said.textContent = `${moment.says}: ${count(Math.round(rows))} rows${moment.whole ? "" : ` in ${seconds((moment.last - moment.first + 1) * all.bin)}`}. ${orphans === 0 ? "All experts have a host" : `Nobody holds ${count(orphans)} of ${count(cells.length)}`}${idle > 0 ? `, and ${count(idle)} computed nothing` : ""}.`;
    for (const { svg, experts, layer } of pictures) {
      const here = experts.filter((one) => !states.get(one)!.hold).length;
      svg.setAttribute("aria-label", `Layer ${layer}: ${count(experts.length)} experts, ${count(experts.length - here)} with a host; ${moment.says.toLowerCase()}.`);
    }
    tell(all.experts.find((one) => nameOf(one) === picked));
  };
  follow(choice.at);
  whenMoved("experts", follow);
  const again = all.experts.find((one) => nameOf(one) === picked);
  if (again) pick(again);

  const back = recoveries(all.experts), died = all.experts.reduce((sum, one) => sum + one.deaths, 0), revived = all.experts.reduce((sum, one) => sum + one.revivals, 0);
  const first = all.experts.flatMap((one) => one.holds.filter((hold) => hold[4]).map((hold) => hold[1]!)).sort((a, b) => a - b)[0];
  return [
    h("p", {}, `${count(all.experts.length)} experts in ${layers.length === 1 ? "one layer" : `${count(layers.length)} layers`}. ${died === 0 ? "No host died with one." : `${count(died)} times a host died with an expert, and ${count(revived)} times a copy revived one${back.length > 0 ? `, after ${number(median(back))} s in the median` : ""}. `}`,
      died > 0 && first !== undefined && h("button", { type: "button", class: "link", onclick: () => choose({ at: first }) }, "See the first death.")),
    said,
    h("div", { class: "expert-layers" }, pictures.map(({ svg, layer }) => h("figure", {}, layers.length > 1 && h("figcaption", {}, `layer ${layer}`), h("div", { class: "plot", tabindex: -1 }, svg)))),
    legend([...groups.map((group): [string, string] => [`held by ${group}`, palette[groups.indexOf(group) % palette.length]]), ["revived from a copy (frame)", "var(--averaging)"], ["nobody holds it (frame)", "var(--failed)"], ["steps that no copy has (foot)", "var(--fault)"]]),
    detail,
    h("p", { class: "note" }, `The stronger the colour, the more rows an expert computes. ${layers.some(({ experts }) => experts[0].place.length > 2) ? "A row of the picture is the first coordinate." : ""}`),
    asTable(["expert", "host", "rows", "requests", "steps", "in a copy", "hosts that died", "revivals"], () => all.experts.map((one) => {
      const hold = holdAt(one, view.run.time);
      return [nameOf(one), hold ? all.hosts[hold[2]] : "nobody", one.rows, one.requests, one.steps, one.copied, one.deaths, one.revivals];
    }), "experts as a table"),
  ];
}
