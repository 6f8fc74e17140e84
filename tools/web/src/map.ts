// The regions of a run as a map, on which a message reaches near regions soon. Hosts are dots in the colour of their state.
// Arcs are the traffic from region to region at the moment, or its mean over the stretch of time.

import { chosenPeers, colours, type Context, legend, nothing, openPeer, stateWords, timeAxis } from "./chart";
import { h } from "./dom";
import { bytes, compact, rate, seconds } from "./format";
import { choice, whenMoved } from "./moment";
import { type Flows, type View, share } from "./view";

type Point = { x: number; y: number };

function regionsOf(view: View): string[] {
  return view.flows?.regions ?? [...new Set(view.run.groups.map((g) => g.region))];
}
export const hasMap = (view: View): boolean => regionsOf(view).length > 1;

const s = <K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>, text?: string): SVGElementTagNameMap[K] => {
  const out = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, String(value));
  if (text !== undefined) out.textContent = text;
  return out;
};

/** Places on a plane whose distances are the delays, as far as a plane allows: stress majorization (Gansner, Koren and
    North, 2004) from a circle, with weights 1 / d². */
export function layout(delays: number[][]): Point[] {
  const n = delays.length;
  const d = (i: number, j: number) => Math.max(1e-6, (delays[i][j] + delays[j][i]) / 2);
  const at: Point[] = delays.map((_, i) => ({ x: Math.cos((2 * Math.PI * i) / n), y: Math.sin((2 * Math.PI * i) / n) }));
  let mean = 0;
  for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) mean += d(i, j) / ((n * (n - 1)) / 2);
  for (const p of at) {
    p.x *= mean;
    p.y *= mean;
  }
  for (let round = 0; round < 200; round++)
    for (let i = 0; i < n; i++) {
      let x = 0, y = 0, weights = 0;
      for (let j = 0; j < n; j++) {
        if (i === j) continue;
        const w = 1 / d(i, j) ** 2, dx = at[i].x - at[j].x, dy = at[i].y - at[j].y, now = Math.max(1e-12, Math.hypot(dx, dy));
        x += w * (at[j].x + (d(i, j) * dx) / now);
        y += w * (at[j].y + (d(i, j) * dy) / now);
        weights += w;
      }
      if (weights > 0) at[i] = { x: x / weights, y: y / weights };
    }
  // The longest way is level, because screens are wide.
  let angle = 0, longest = -1;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) {
      const dx = at[j].x - at[i].x, dy = at[j].y - at[i].y;
      if (Math.hypot(dx, dy) > longest) [longest, angle] = [Math.hypot(dx, dy), Math.atan2(dy, dx)];
    }
  const [cos, sin] = [Math.cos(-angle), Math.sin(-angle)];
  return at.map(({ x, y }) => ({ x: cos * x - sin * y, y: sin * x + cos * y }));
}

/** Bit/s of a pair at a time, or on average between two. */
function rateOf(flows: Flows, pair: Flows["pairs"][0], from: number, to: number): number {
  const first = Math.floor(from / flows.bin), last = Math.max(first, Math.ceil(to / flows.bin) - 1);
  let sum = 0;
  for (let b = first; b <= last; b++) sum += share(pair.line, b);
  return (8 * sum * pair.most) / ((last - first + 1) * flows.bin);
}

export function map(context: Context): Node[] {
  const { view, width } = context, flows = view.flows ?? null;
  const names = regionsOf(view), n = names.length;
  const at = layout(flows?.delays ?? names.map((_, i) => names.map((_, j) => (i === j ? 0 : 1))));
  const by = view.sessions.by;
  const inRegion = names.map((name) => (by === "host" ? view.sessions.rows.filter((r) => r.region === name) : []));
  const crowd = names.map((name) => view.sessions.rows.filter((r) => r.region === name));
  const [left, right] = [Math.min(...at.map((p) => p.x)), Math.max(...at.map((p) => p.x))], [low, high] = [Math.min(...at.map((p) => p.y)), Math.max(...at.map((p) => p.y))];
  // Places in a row need less height than places all around.
  const height = Math.round(Math.min(high - low < 0.25 * (right - left) ? 330 : 460, Math.max(260, width * 0.5)));
  // Dots are as large as their number allows.
  const many = Math.max(1, ...inRegion.map((hosts) => hosts.length));
  const dot = Math.min(10, Math.max(3.5, (Math.min(width / (n + 2), height * 0.36) - 12) / (2.1 * Math.sqrt(many))));
  const radius = inRegion.map((hosts) => (by === "host" ? 12 + dot * 2.1 * Math.sqrt(hosts.length) : 46));
  // The places are scaled to what the largest regions leave of the panel.
  const edge = Math.min(width / 4, Math.max(...radius) + 34);
  const fit = Math.min((width - 2 * edge) / Math.max(right - left, 1e-9), (height - 2 * Math.min(edge, height / 3)) / Math.max(high - low, 1e-9));
  const places = at.map((p) => ({ x: width / 2 + fit * (p.x - (left + right) / 2), y: height / 2 + fit * (p.y - (low + high) / 2) }));
  const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "map" });
  const defs = s("defs", {}), head = s("marker", { id: "map-arrow", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" });
  head.append(s("path", { d: "M0,0L6,3L0,6Z", fill: "var(--accent)" }));
  defs.append(head);
  const arcs = s("g", { class: "arcs" }), single = s("g", { class: "single" }), grounds = s("g", {}), dots = s("g", { class: "hosts" }), labels = s("g", {});
  svg.append(defs, grounds, arcs, single, dots, labels);

  const hostAt = new Map<string, Point & { circle: SVGCircleElement }>();
  const only = chosenPeers(view);
  names.forEach((name, i) => {
    const ground = s("circle", { cx: places[i].x, cy: places[i].y, r: radius[i], fill: "var(--track)", "fill-opacity": 0.5, stroke: "var(--line)" });
    ground.append(s("title", {}, name));
    grounds.append(ground);
    inRegion[i].forEach((row, k) => {
      // A sunflower: equal room for each.
      const r = dot * 2.1 * Math.sqrt(k + 0.3), a = k * 2.399963;
      const p = { x: places[i].x + r * Math.cos(a), y: places[i].y + r * Math.sin(a) };
      const circle = s("circle", { cx: p.x, cy: p.y, r: dot, class: "map-host", "data-host": row.name });
      circle.append(s("title", {}, row.name));
      circle.addEventListener("click", () => openPeer(row.name));
      if (only && !only.has(row.name)) circle.setAttribute("opacity", "0.2");
      dots.append(circle);
      hostAt.set(row.name, { ...p, circle });
    });
    labels.append(s("text", { x: places[i].x, y: places[i].y + radius[i] + 15, "text-anchor": "middle", class: "map-name" }, name));
  });
  const counts = names.map((_, i) => {
    const text = s("text", { x: places[i].x, y: by === "host" ? places[i].y + radius[i] + 29 : places[i].y + 5, "text-anchor": "middle", class: "map-count" });
    labels.append(text);
    return text;
  });

  // The widest arc of all times is the measure, so that widths can be compared from moment to moment.
  const pairs = flows?.pairs ?? [];
  const most = Math.max(1, ...pairs.map((p) => (8 * p.most) / flows!.bin));
  const said = h("p", { class: "note", role: "status" });
  const follow = (moment: number | null) => {
    const { from, to } = timeAxis(view);
    const [a, b] = moment === null ? [from, to] : [moment, moment];
    const bin = Math.min(view.sessions.bins - 1, Math.floor((moment ?? view.run.time) / view.sessions.bin));
    names.forEach((_, i) => {
      let there = 0, below = 0;
      for (const row of crowd[i]) {
        const sum = row.shares.reduce((all, line) => all + share(line, bin), 0);
        there += by === "host" ? Number(sum > 0) : row.hosts * sum;
        // A share below a half of the smallest one that is written is written as none.
        if (by === "group" && sum === 0) below += Math.ceil(row.hosts / 122);
        const mine = hostAt.get(row.name);
        if (!mine) continue;
        let state = "", largest = 0;
        row.shares.forEach((line, k) => {
          if (share(line, bin) > largest) [largest, state] = [share(line, bin), view.sessions.states[k]];
        });
        mine.circle.setAttribute("fill", state ? colours[state] : "var(--panel)");
        mine.circle.setAttribute("stroke", state ? "var(--panel)" : "var(--muted)");
        mine.circle.querySelector("title")!.textContent = `${row.name}: ${state ? stateWords[state] ?? state : "gone"}`;
      }
      counts[i].textContent = there === 0 && below > 0 ? `under ${compact(below)} there` : `${compact(Math.round(there))} there`;
    });
    arcs.replaceChildren();
    single.replaceChildren();
    const moving: { pair: Flows["pairs"][0]; now: number }[] = [];
    for (const pair of pairs) {
      const now = flows!.until !== null && a > flows!.until ? 0 : rateOf(flows!, pair, a, b);
      if (now > 0) moving.push({ pair, now });
    }
    moving.sort((x, y) => x.now - y.now);
    moving.forEach(({ pair, now }, k) => {
      const p = places[pair.from], q = places[pair.to], strength = Math.max(1, 11 * Math.sqrt(now / most));
      const text = `${names[pair.from]} to ${names[pair.to]}: ${rate(now)}${moment === null ? ` on average, ${bytes(pair.bytes)} in the whole run` : ""}`;
      let arc: SVGElement, tx: number, ty: number;
      if (pair.from === pair.to) {
        arc = s("circle", { cx: p.x, cy: p.y, r: radius[pair.from] + 1 + strength / 2, fill: "none", class: "arc" });
        [tx, ty] = [p.x, p.y - radius[pair.from] - strength - 5];
      } else {
        const dx = q.x - p.x, dy = q.y - p.y, length = Math.max(1, Math.hypot(dx, dy));
        // Long ways go around the regions between their ends.
        const bend = Math.min(0.4 * height, 0.2 * length + 8), nx = (-dy / length) * bend, ny = (dx / length) * bend;
        const cut = (r: number) => Math.min(0.45, (r + 3) / length);
        const [f, g] = [cut(radius[pair.from]), cut(radius[pair.to] + 4)];
        arc = s("path", { d: `M${p.x + f * dx + nx * 0.4},${p.y + f * dy + ny * 0.4}Q${(p.x + q.x) / 2 + nx},${(p.y + q.y) / 2 + ny} ${q.x - g * dx + nx * 0.4},${q.y - g * dy + ny * 0.4}`, fill: "none", class: "arc", "marker-end": "url(#map-arrow)" });
        [tx, ty] = [(p.x + q.x) / 2 + nx * 0.8, (p.y + q.y) / 2 + ny * 0.8 + (ny > 0 ? 14 : -6)];
      }
      arc.setAttribute("stroke-width", String(strength));
      arc.append(s("title", {}, text));
      arcs.append(arc);
      if (moving.length - k <= 6) arcs.append(s("text", { x: tx, y: ty, "text-anchor": "middle", class: "map-rate" }, rate(now)));
    });
    let open = 0;
    if (moment !== null)
      for (const round of view.rounds.kept)
        for (const row of round.started <= moment && round.ended >= moment ? round.transfers?.rows ?? [] : []) {
          const p = hostAt.get(row.from), q = hostAt.get(row.to);
          if (!p || !q || row.begun > moment || row.arrives < moment || (only && !only.has(row.from) && !only.has(row.to))) continue;
          open++;
          const line = s("line", { x1: p.x, y1: p.y, x2: q.x, y2: q.y });
          line.append(s("title", {}, `${row.from} to ${row.to}: ${bytes(row.bytes)}, held back by ${row.why || "nothing known"}`));
          single.append(line);
        }
    const sum = moving.reduce((x, m) => x + m.now, 0);
    svg.setAttribute("aria-label", `${n} regions by delay: ${names.map((name, i) => `${name}, ${counts[i].textContent}`).join("; ")}. ${rate(sum)} between hosts${moment === null ? " on average" : ` at ${seconds(moment)}`}.`);
    svg.dataset.rate = String(Math.round(sum));
    said.textContent = (moment === null ? `${rate(sum)} on average ${choice.range ? "in this stretch" : "over the run"}; move the slider below for a moment.` : `At ${seconds(moment)}: ${rate(sum)}${open > 0 ? `; ${open} single transfers of rounds that the page keeps are thin lines` : ""}.`) + (flows === null ? (view.run.world === "cluster" ? " The transfers of a real network are not known." : " No transfers were recorded.") : flows.until !== null ? ` Transfers were recorded until ${seconds(flows.until)}.` : "");
  };
  follow(choice.at);
  whenMoved("map", follow);
  if (n === 0) return [nothing("The scenario has no regions.")];
  return [
    h("div", { class: "plot" }, svg),
    legend([...view.sessions.states.map((state): [string, string] => [stateWords[state] ?? state, colours[state]]), ["bulk between regions", "var(--accent)"]]),
    said,
    h("p", { class: "note" }, flows ? "Distances are the delays of the scenario, as far as a plane allows. " : "", by === "host" ? "A dot opens its participant." : ""),
  ];
}
