// The present peers, the states in which they spend their time, and their contributions.

import * as Plot from "@observablehq/plot";
import { packSiblings, ticks } from "d3";
import { asTable, bands, chart, chosenPeers, colours, type Context, dots, faultLegend, legend, nothing, openPeer, palette, peerButton, pixels, rail, rgb, stateWords, timeAxis } from "./chart";
import { choice as switchOf, h, search, table, type TableState } from "./dom";
import { bytes, compact, count, number, percent, seconds } from "./format";
import { choice, whenMoved } from "./moment";
import { share, type View } from "./view";

export function groupColours(view: View): Map<string, string> {
  const names = view.run.groups.filter((g) => g.count > 0).map((g) => g.name);
  for (const p of view.participants.groups) if (!names.includes(p.name)) names.push(p.name);
  return new Map(names.map((name, i) => [name, palette[i % palette.length]]));
}

export function active(context: Context): Node[] {
  const { view, beside } = context;
  const axis = timeAxis(view);
  const { time, peers_alive, peers_in_sync } = view.series;
  const points = axis.within(time.map((t, i) => ({ t: t ?? 0, alive: peers_alive[i] ?? 0, sync: peers_in_sync[i] ?? 0 })), (p) => p.t);
  if (points.length === 0) return [nothing("No row of metrics yet.")];
  const most = Math.max(...points.map((p) => p.alive));
  return [
    chart(context, {
      says: `Active participants over time: at most ${most}, ${points[points.length - 1].alive} at the end.`,
      height: 220,
      time: axis,
      y: { label: "participants", zero: true, ticks: ticks(0, most, 5).filter(Number.isInteger), tickFormat: (v: number) => compact(v) },
      marks: [
        ...bands(view),
        Plot.areaY(points, { x: (p) => axis.scale(p.t), y1: 0, y2: "sync", fill: "var(--computing)", fillOpacity: 0.28, curve: "step-after" }),
        Plot.lineY(points, { x: (p) => axis.scale(p.t), y: "alive", stroke: "var(--ink)", strokeWidth: 1.5, curve: "step-after" }),
        ...(beside ? [Plot.lineY(beside.series.time.map((t, i) => ({ t: t ?? 0, y: beside.series.peers_alive[i] ?? 0 })), { x: (p) => axis.scale(p.t), y: "y", stroke: "var(--beside)", strokeDasharray: "4,3", curve: "step-after" })] : []),
        Plot.tip(points, Plot.pointerX({ x: (p) => axis.scale(p.t), y: "alive", title: (p) => `${seconds(p.t)}\n${p.alive} there, ${p.sync} in sync` })),
      ],
    }),
    legend([["there", "var(--ink)"], ["in sync", "color-mix(in srgb, var(--computing) 40%, transparent)"], ...(beside ? [["predicted", "var(--beside)"] as [string, string]] : []), ...faultLegend(view)]),
    asTable(["time (s)", "there", "in sync"], () => points.map((p) => [p.t, p.alive, p.sync])),
  ];
}

const sessionState = { filter: "", group: "" };

export function sessions(context: Context): Node[] {
  const { view } = context;
  const s = view.sessions;
  if (s.rows.length === 0) return [nothing(view.run.notes.length > 0 ? "The run's files do not say which peers were present." : "No peer has joined yet.")];
  const axis = timeAxis(view);
  const groups = [...new Set(s.rows.map((r) => r.group))];
  if (!groups.includes(sessionState.group)) sessionState.group = "";
  const only = chosenPeers(view), known = only !== null && s.rows.some((r) => only.has(r.name));
  const rows = s.rows.filter((r) => r.name.includes(sessionState.filter) && (sessionState.group === "" || r.group === sessionState.group) && (!known || only!.has(r.name)));
  const controls = h("div", { class: "controls" },
    search(s.by === "host" ? "Find a peer" : "Find a group", sessionState.filter, (value) => {
      sessionState.filter = value;
      context.again();
    }),
    groups.length > 1 && s.by === "host" && h("label", { class: "select" }, h("span", { class: "unseen" }, "Group"),
      h("select", { onchange: (e: Event) => {
        sessionState.group = (e.target as HTMLSelectElement).value;
        context.again();
      } }, h("option", { value: "" }, "all groups"), groups.map((g) => h("option", { value: g, selected: g === sessionState.group }, g)))));
  const keys = [...s.states.map((n): [string, string] => [stateWords[n] ?? n, colours[n]]), ["gone", "var(--track)"] as [string, string], ...faultLegend(view)];
  if (rows.length === 0) return [controls, nothing("No peer has this name.")];

  const height = Math.max(s.by === "group" ? 46 : 5, Math.min(s.by === "group" ? 90 : 18, Math.floor(520 / rows.length)));
  const lines = Math.max(4, Math.min(48, height * 2));
  const paints = s.states.map((n) => rgb(colours[n])), track = rgb("var(--track)");
  // The order is from the bottom up: first the most frequent states, then those that interrupt them.
  const order = ["computing", "averaging", "downloading", "joining"].map((n) => s.states.indexOf(n)).filter((i) => i >= 0);
  const gap = height > 8 ? Math.round(lines * 0.12) : 0;
  const paint = (data: Uint8ClampedArray) => {
    rows.forEach((row, r) => {
      for (let bin = 0; bin < s.bins; bin++) {
        let filled = 0;
        const put = (until: number, c: [number, number, number], alpha: number) => {
          for (; filled < until; filled++) {
            const y = (r + 1) * lines - 1 - filled - (gap >> 1);
            const at = 4 * (y * s.bins + bin);
            data[at] = c[0];
            data[at + 1] = c[1];
            data[at + 2] = c[2];
            data[at + 3] = alpha;
          }
        };
        let sum = 0;
        for (const k of order) {
          sum += share(row.shares[k], bin);
          put(Math.round(Math.min(1, sum) * (lines - gap)), paints[k], 255);
        }
        put(lines - gap, track, 255);
      }
    });
  };
  const width = context.width;
  const left = Math.min(130, Math.max(40, ...rows.map((r) => 7 * (r.name.length + (s.by === "group" ? 2 + compact(r.hosts).length : 0)) + 12)));
  const labelled = Math.max(1, Math.ceil(13 / height));
  const ends = s.ends.filter(([name]) => rows.some((r) => r.name === name));
  const at = new Map(rows.map((r, i) => [r.name, i]));
  const svg: HTMLElement = chart({ ...context, width }, {
    says: `${rows.length} ${s.by === "host" ? "peers" : "groups"}: how the time of each was spent, from ${s.states.map((n) => stateWords[n]).join(", ")} to gone.`,
    height: rows.length * height + 54,
    marginLeft: left,
    marginTop: 14,
    time: axis,
    y: { domain: [0, rows.length], reverse: true, grid: false, label: null, ticks: [], range: [rows.length * height + 15, 15] },
    marks: [
      pixels(s.bins, rows.length * lines, paint, [axis.scale(0), axis.scale(s.bins * s.bin)], [0, rows.length]),
      ...rail(view, -9 / height, -3 / height),
      Plot.text(rows.filter((_, i) => i % labelled === 0), { frameAnchor: "left", y: (r) => at.get(r.name)! + 0.5, className: "row-name", text: (r) => (s.by === "group" ? `${r.name} ×${compact(r.hosts)}` : r.name), textAnchor: "end", dx: -6, fill: "var(--ink)" }),
      ...(height > 6 ? [true, false].map((left) => dots(ends.filter((e) => (e[2] === "left") === left && e[1] >= axis.from && e[1] <= axis.to).map((e) => ({ x: axis.scale(e[1]), y: at.get(e[0])! + 0.5 })), left ? "var(--muted)" : "var(--failed)", 2.2)) : []),
    ],
  });
  const tip = h("div", { class: "tip", hidden: true });
  const say = (event: PointerEvent) => {
    const box = svg.getBoundingClientRect(), factor = width / (svg.querySelector("svg")!.getBoundingClientRect().width || width);
    const px = (event.clientX - box.left) * factor, py = (event.clientY - box.top) * factor;
    const t = axis.from + ((px - left) / (width - left - 14)) * (axis.to - axis.from), r = Math.floor((py - 15) / height);
    const bin = Math.floor(t / s.bin);
    if (r < 0 || r >= rows.length || bin < 0 || bin >= s.bins || px < left) {
      tip.hidden = true;
      return;
    }
    const parts = s.states.map((n, k) => [stateWords[n], share(rows[r].shares[k], bin)] as const).filter(([, v]) => v > 0);
    const end = ends.find((e) => e[0] === rows[r].name && Math.abs(e[1] - t) < 1.5 * s.bin);
    tip.hidden = false;
    tip.textContent = `${rows[r].name}, ${seconds(bin * s.bin)}: ${end ? `${end[2].replace(/_/g, " ")} at ${seconds(end[1])}; ` : ""}${parts.length === 0 ? "gone" : parts.map(([n, v]) => (v > 0.985 ? n : `${n} ${percent(v)}`)).join(", ")}`;
    tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - 200)}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  };
  svg.addEventListener("pointermove", say);
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  svg.append(tip);
  return [
    controls,
    legend(keys),
    svg,
    h("p", { class: "note" }, s.by === "group" ? "The height is the share of a group's hosts in each state." : "Where states change within a pixel, the height of a colour is its share of the time. Dots: red was killed, grey left."),
    asTable([s.by, ...s.states.map((n) => `${stateWords[n]}, share of all time`)], () => rows.map((r) => [r.name, ...r.shares.map((line) => {
      let sum = 0;
      for (let b = 0; b < s.bins; b++) sum += share(line, b);
      return Math.round((1000 * sum) / Math.max(1, s.bins)) / 1000;
    })])),
  ];
}

const boardState: TableState & { filter: string } = { by: 3, down: true, filter: "" };

export function leaderboard(context: Context): Node[] {
  const p = context.view.participants, only = chosenPeers(context.view);
  if (p.hosts.length === 0) return [nothing("No peer has joined yet.")];
  const rows = p.hosts.map((x, i) => ({ ...x, rank: i + 1, sent: x.sent })).filter((x) => `${x.name} ${x.group} ${x.region}`.includes(boardState.filter) && (!only || only.has(x.name) || only.has(x.group)));
  const most = Math.max(1, ...p.hosts.map((x) => x.samples));
  const tint = groupColours(context.view);
  return [
    h("div", { class: "controls" }, search("Find a participant, group or region", boardState.filter, (value) => {
      boardState.filter = value;
      context.again();
    })),
    table(rows, [
      { title: "", value: (r) => r.rank, number: true },
      { title: "participant", value: (r) => r.name, text: (r) => h("span", {}, h("span", { class: `status ${r.alive ? "here" : "gone"}`, title: r.alive ? "there" : "gone" }, h("span", { class: "unseen" }, r.alive ? "there" : "gone")), peerButton(r.name)) },
      { title: "region", value: (r) => r.region },
      { title: "samples", value: (r) => r.samples, number: true, text: (r) => h("span", { class: "bar", style: `--share:${r.samples / most};--tint:${tint.get(r.group) ?? "var(--accent)"}` }, compact(r.samples)) },
      { title: "share", value: (r) => r.samples, number: true, text: (r) => (p.samples > 0 ? percent(r.samples / p.samples) : "–") },
      { title: "rounds", value: (r) => r.rounds, number: true, text: (r) => count(r.rounds) },
      { title: "time", value: (r) => r.seconds, number: true, text: (r) => seconds(r.seconds) },
      { title: "sessions", value: (r) => r.lives, number: true },
      { title: "loss", value: (r) => r.loss, number: true, text: (r) => (r.loss === 0 ? "–" : number(r.loss)) },
      { title: "sent", value: (r) => r.sent, number: true, text: (r) => bytes(r.sent) },
    ], boardState, context.again, { most: 60, caption: "Contributions of participants" }),
    ...(p.more > 0 ? [h("p", { class: "note" }, `Of ${count(p.more + p.hosts.length)} participants the ${p.hosts.length} with the most samples are listed.`)] : []),
  ];
}

const bubbleState = { by: "samples" as "samples" | "time" };

interface Bubble { name: string; group: string; value: number; r: number; x: number; y: number; alive: boolean }

/** How much each participant had contributed, and whether it was there, at time `t`. */
function swarmAt(view: View, t: number | null): (name: string) => { samples: number | null; seconds: number | null; state: string | null } {
  const { sessions, growth } = view;
  const rows = new Map(sessions.rows.map((r) => [r.name, r])), grown = new Map((growth?.rows ?? []).map((g) => [g.name, g.samples]));
  return (name) => {
    const row = rows.get(name), samples = grown.get(name);
    const bin = t === null ? sessions.bins - 1 : Math.min(sessions.bins - 1, Math.floor(t / sessions.bin));
    let seconds = 0, state: string | null = null, most = 0;
    if (row) {
      for (let b = 0; b <= bin; b++) {
        const part = b === bin && t !== null ? t / sessions.bin - b : 1;
        for (const line of row.shares) seconds += row.hosts * share(line, b) * sessions.bin * Math.min(1, part);
      }
      row.shares.forEach((line, k) => {
        if (share(line, bin) > most) [most, state] = [share(line, bin), sessions.states[k]];
      });
    }
    // Samples count when their round ends, and a bin that is not over counts in part.
    let sum = 0;
    if (samples && growth)
      samples.forEach((n, b) => (sum += n * (t === null ? 1 : Math.min(1, Math.max(0, t / growth.bin - b)))));
    return { samples: samples ? Math.round(sum) : null, seconds: row ? seconds : null, state };
  };
}

export function bubbles(context: Context): Node[] {
  const { view } = context;
  const p = view.participants;
  const value = (x: { samples: number; seconds: number }) => (bubbleState.by === "samples" ? x.samples : x.seconds);
  const tint = groupColours(view);
  const grouped = view.sessions.by === "group" && choice.at !== null;
  // Beyond the listed hosts, groups stand for their members. In a large run the page knows moments of groups only.
  const rest = p.more === 0 ? [] : p.groups.map((g) => {
    const listed = p.hosts.filter((x) => x.group === g.name);
    const n = g.hosts - listed.length;
    return { name: `${count(n)} more of ${g.name}`, group: g.name, alive: g.alive > 0, samples: g.samples - listed.reduce((a, x) => a + x.samples, 0), seconds: g.seconds - listed.reduce((a, x) => a + x.seconds, 0), n };
  }).filter((x) => x.n > 0);
  const who = grouped ? p.groups.map((g) => ({ ...g, group: g.name, alive: g.alive > 0 })) : [...p.hosts, ...rest];
  const all: Bubble[] = who.filter((x) => value(x) > 0).map((x) => ({ name: x.name, group: x.group, value: value(x), r: 0, x: 0, y: 0, alive: x.alive }));
  const controls = switchOf("Size of the bubbles", "bubbles-by", [["samples", "by samples"], ["time", "by time"]] as const, bubbleState.by, (v) => {
    bubbleState.by = v;
    context.again();
  });
  if (all.length === 0) return [controls, nothing("No contribution yet.")];
  const sum = all.reduce((a, b) => a + b.value, 0), width = context.width, height = Math.min(420, Math.max(260, width * 0.7));
  for (const b of all) b.r = Math.max(1.5, Math.sqrt(b.value / sum) * Math.min(width, height) * 0.42) + 1.5;
  packSiblings(all.sort((a, b) => b.value - a.value));
  const reach = Math.max(...all.map((b) => Math.hypot(b.x, b.y) + b.r));
  const k = Math.min(width, height) / 2 / reach;
  for (const b of all) {
    b.x = width / 2 + k * b.x;
    b.y = height / 2 + k * b.y;
    b.r = Math.max(1, k * (b.r - 1.5));
  }
  const plot = chart(context, {
    says: `One bubble for each of ${all.length} ${grouped ? "groups" : "participants"}, the larger the more ${bubbleState.by === "samples" ? "samples it contributed" : "time it was there"}. Largest: ${all.slice(0, 3).map((b) => b.name).join(", ")}.`,
    height,
    marginLeft: 0, marginRight: 0, marginTop: 0, marginBottom: 0,
    x: { axis: null, domain: [0, width], range: [0, width] },
    y: { axis: null, grid: false, domain: [0, height], range: [0, height] },
    marks: [
      Plot.dot(all, { x: "x", y: "y", r: { value: (b: Bubble) => b.r, scale: null } as never, fill: (b: Bubble) => tint.get(b.group) ?? "var(--accent)", stroke: (b: Bubble) => tint.get(b.group) ?? "var(--accent)", title: "name", className: "bubble" }),
      Plot.text(all.filter((b) => b.r > 3.4 * b.name.length), { x: "x", y: "y", text: "name", fill: (b: Bubble) => (b.alive ? "var(--on-tint)" : "var(--ink)"), pointerEvents: "none" }),
    ],
  });
  // Plot draws large dots first, as `all` is sorted.
  const circles = [...plot.querySelectorAll<SVGCircleElement>(".bubble circle")], labels = [...plot.querySelectorAll<SVGTextElement>("[aria-label=text] text")];
  const only = chosenPeers(view), said = h("p", { class: "note", role: "status" });
  circles.forEach((circle, i) => {
    circle.addEventListener("click", () => openPeer(p.hosts.some((x) => x.name === all[i].name) || grouped ? all[i].name : all[i].group));
  });
  /** The swarm as it was: what each had done by then is its size, and who was not there is pale. */
  const follow = (at: number | null) => {
    const then = swarmAt(view, at);
    let there = 0, done = 0;
    all.forEach((b, i) => {
      const now = then(b.name), by = bubbleState.by === "samples" ? now.samples : now.seconds;
      const part = at === null || by === null ? 1 : Math.min(1, by / b.value), here = at === null || now.seconds === null ? b.alive : now.state !== null;
      there += here ? 1 : 0;
      done += at === null || by === null ? b.value : by;
      const circle = circles[i];
      circle.setAttribute("r", String(Math.max(part > 0 || here ? 1.5 : 0, b.r * Math.sqrt(part))));
      circle.setAttribute("fill-opacity", only && !only.has(b.name) && !only.has(b.group) ? "0.1" : here ? "0.85" : "0.3");
      const size = at === null || part > 0.3 ? "" : "none";
      const label = labels.find((text) => text.textContent === b.name);
      if (label) label.style.display = size;
      const title = circle.querySelector("title");
      if (title) title.textContent = `${b.name}\n${bubbleState.by === "samples" ? `${count(at === null || by === null ? b.value : by)} samples` : `${seconds(at === null || by === null ? b.value : by)} there`}${at !== null && now.state ? `\n${stateWords[now.state] ?? now.state}` : ""}`;
    });
    plot.dataset.sum = String(Math.round(done));
    said.textContent = `${at === null ? "" : `At ${seconds(at)}: `}${count(there)} of ${count(all.length)} ${grouped ? "groups" : "bubbles"} there, ${bubbleState.by === "samples" ? `${count(Math.round(done))} samples` : `${seconds(done)} in all`}. A bubble opens its participant.`;
  };
  follow(choice.at);
  whenMoved("bubbles", (at) => {
    // Groups take the place of hosts as soon as there is a moment, and the other way.
    if (view.sessions.by === "group" && grouped !== (at !== null)) context.again();
    else follow(at);
  });
  return [
    controls,
    plot,
    legend([...[...tint].filter(([g]) => all.some((b) => b.group === g)), ["pale: gone", "var(--track)"]]),
    said,
  ];
}

const lossState = { filter: "" };

export function lossByParticipant(context: Context): Node[] {
  const { view } = context;
  const p = view.participants;
  if (p.losses.length === 0 || p.losses.every((l) => l.bins.every(([, loss]) => loss === 0))) return [nothing(view.run.workload === "timing" ? "Workload “timing” has no loss." : "No loss yet.")];
  const axis = timeAxis(view);
  const tint = groupColours(view);
  const group = new Map(p.hosts.map((x) => [x.name, x.group]));
  const points = p.losses.flatMap((l) => axis.within(l.bins.map(([bin, loss]) => ({ name: l.name, t: Math.min(view.run.time, (bin + 0.5) * p.loss_bin), loss })), (q) => q.t));
  const chosen = lossState.filter === "" ? chosenPeers(view) : new Set(p.losses.map((l) => l.name).filter((n) => n.includes(lossState.filter)));
  const colour = (name: string) => tint.get(group.get(name) ?? name) ?? "var(--accent)";
  return [
    h("div", { class: "controls" }, search("Highlight a participant", lossState.filter, (value) => {
      lossState.filter = value;
      context.again();
    })),
    chart(context, {
      says: `Training loss of ${p.losses.length} participants over time.`,
      time: axis,
      y: { label: "training loss (nats)", nice: true },
      marks: [
        ...bands(view),
        Plot.lineY(points, { x: (q) => axis.scale(q.t), y: "loss", z: "name", stroke: (q) => (chosen && !chosen.has(q.name) ? "var(--muted)" : colour(q.name)), strokeOpacity: chosen ? 0.25 : 0.6, strokeWidth: 1.1 }),
        Plot.lineY(chosen ? points.filter((q) => chosen.has(q.name)) : [], { x: (q) => axis.scale(q.t), y: "loss", z: "name", stroke: (q) => colour(q.name), strokeWidth: 2.2 }),
        Plot.tip(points, Plot.pointer({ x: (q) => axis.scale(q.t), y: "loss", title: (q) => `${q.name}\nloss ${number(q.loss)} about ${seconds(q.t)}` })),
      ],
    }),
    legend([...tint].filter(([g]) => p.losses.some((l) => (group.get(l.name) ?? l.name) === g))),
    asTable(["participant", "time (s)", "loss"], () => points.map((q) => [q.name, q.t, q.loss])),
  ];
}
