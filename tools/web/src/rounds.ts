// Rounds: their durations, number, outcomes and reasons, and one chosen round with its transfers.

import * as Plot from "@observablehq/plot";
import { asTable, bands, chart, colours, type Context, faultLegend, legend, nothing, palette, peerButton, timeAxis } from "./chart";
import { choice as switchOf, h, search, table, type TableState } from "./dom";
import { choice, choose, whenMoved } from "./moment";
import { bytes, count, number, seconds, words } from "./format";
import { type KeptRound, outcomes } from "./view";

const state = { table: { by: -1, down: false } as TableState, show: "last" as "last" | "slowest" | "wrong", filter: "" };

let waits = 0;
/** A table that follows a moving moment is drawn five times a second at most. */
function soon(again: () => void): void {
  if (waits !== 0) return;
  waits = window.setTimeout(() => {
    waits = 0;
    again();
  }, 200);
}

/** What the reasons mean, as actors/reasons.hpp has it. */
const reasons: Record<string, string> = {
  sender_lost: "a member died before it had delivered all of its parts",
  sender_timeout: "a member delivered nothing for sender_timeout",
  reducer_lost: "a reducer died and too few members were left to reduce its part again",
  reducer_timeout: "a reducer delivered nothing until round_timeout",
  leader_lost: "the leader died before the round began",
  group_too_small: "fewer than min_group_size members came in matchmaking_time",
  matchmaking_timeout: "no leader accepted the peer in time",
  group_closed: "the leader's round had begun without the peer",
  out_of_sync: "the peer's state is not that of the leading branch",
  member_declined: "a member had gone to another group before this one began",
  bad_message: "a member sent a message that no correct member sends",
  cancelled: "the owner gave the round up",
  no_reducer: "no member of the group can be reached by the others",
  no_majority: "less than half of the members were left to agree on the result",
  not_finite: "the peer's own values hold NaN or infinity, which no codec takes",
  busy: "a donor serves as many downloads as it will",
  donors_lost: "all donors of the state are gone or silent",
  too_slow: "steps are taken faster than this peer's line brings them",
};

/** The numbers of the rounds with this member, as far as members are kept. */
export function roundsWith(kept: KeptRound[], peer: string): Set<number> {
  return new Set(kept.filter((k) => k.ends.some(([name]) => name === peer)).map((k) => k.number));
}

/** Limits the page to a round, and shows its transfers. */
export function openRound(n: number): void {
  choose({ round: n, peer: null });
  document.getElementById("round-detail")?.scrollIntoView({ block: "nearest" });
}

export function outcomeBadge(outcome: string): HTMLElement {
  return h("span", { class: `badge ${outcome}` }, outcome);
}

export function roundsOverTime(context: Context): Node[] {
  const { view } = context;
  const r = view.rounds;
  if (r.total === 0) {
    const { time, rounds_ok } = view.series;
    if (!time?.length || (rounds_ok[rounds_ok.length - 1] ?? 0) === 0) return [nothing("No round has ended yet.")];
  }
  if (r.points.length === 0) return [nothing("Single rounds were not recorded; the figures above count them.")];
  const axis = timeAxis(view);
  const kept = new Set(r.kept.map((k) => k.number)), only = choice.peer === null ? null : roundsWith(view.rounds.kept, choice.peer);
  const points = r.points.map(([n, ended, took, members, outcome, reason]) => ({ n, ended, took, members, outcome: outcomes[outcome], reason }))
    .filter((p) => p.ended >= axis.from && p.ended <= axis.to && (!only || only.has(p.n)));
  if (points.length === 0) return [nothing(only ? `No round with ${choice.peer} in this stretch of time is known.` : "No round ended in this stretch of time.")];
  const range = points.map((p) => p.took).filter((t) => t > 0);
  const logarithmic = range.length > 0 && Math.max(...range) / Math.max(1e-9, Math.min(...range)) > 60;
  const element: HTMLElement = chart(context, {
    says: `Duration of ${count(r.total)} rounds over time: ${outcomes.map((o) => `${r.by_outcome[o]} ${o}`).join(", ")}.`,
    height: 260,
    time: axis,
    click: () => {
      const value = (element.querySelector("svg") as SVGSVGElement & { value?: { n: number } }).value;
      if (!value || !kept.has(value.n)) return false;
      openRound(value.n);
      return true;
    },
    y: { label: "duration (s)", type: logarithmic ? "log" : "linear", zero: !logarithmic, nice: true, tickFormat: logarithmic ? "~s" : undefined },
    color: { domain: outcomes, range: outcomes.map((o) => colours[o]) },
    marks: [
      ...bands(view),
      Plot.dot(points.filter((p) => p.outcome === "ok"), { x: (p) => axis.scale(p.ended), y: (p) => (logarithmic ? Math.max(p.took, 1e-3) : p.took), r: points.length > 800 ? 1.6 : 2.6, fill: "outcome", fillOpacity: 0.55 }),
      Plot.dot(points.filter((p) => p.outcome !== "ok"), { x: (p) => axis.scale(p.ended), y: (p) => (logarithmic ? Math.max(p.took, 1e-3) : p.took), r: 4, symbol: "diamond2", fill: "outcome", fillOpacity: 0.85, stroke: "var(--panel)", strokeWidth: 0.6 }),
      Plot.tip(points, Plot.pointer({ x: (p) => axis.scale(p.ended), y: (p) => (logarithmic ? Math.max(p.took, 1e-3) : p.took), title: (p) => `${p.outcome}${p.reason === "none" ? "" : `: ${words(p.reason)}`}\n${seconds(p.took)}, ${p.members} members\nended at ${seconds(p.ended)}${kept.has(p.n) ? "\nclick for its transfers" : ""}` })),
    ],
  });
  return [
    legend([...outcomes.filter((o) => r.by_outcome[o] > 0).map((o): [string, string] => [`${o} ${count(r.by_outcome[o])}`, colours[o]]), ...faultLegend(view)]),
    element,
    ...(r.points_left_out ? [h("p", { class: "note" }, "There are too many rounds to draw. The chart prefers the failed ones.")] : []),
    asTable(["ended (s)", "duration (s)", "members", "outcome", "reason"], () => points.map((p) => [p.ended, p.took, p.members, p.outcome, p.reason])),
  ];
}

export function whyRoundsFail(context: Context): Node[] {
  const { view } = context;
  const all = view.summary?.rounds.by_reason ?? view.rounds.by_reason;
  const rows = Object.entries(all).map(([reason, n]) => ({ reason, n })).filter((r) => r.n > 0).sort((a, b) => b.n - a.n);
  const out: Node[] = [];
  if (rows.length === 0) out.push(h("p", { class: "good" }, "Every round so far was ok: no member's data was lost."));
  else
    out.push(chart(context, {
      says: `Reasons for rounds that were not ok: ${rows.map((r) => `${r.n} ${r.reason}`).join(", ")}.`,
      height: 30 * rows.length + 62,
      marginLeft: Math.min(150, 8 * Math.max(...rows.map((r) => r.reason.length)) + 10),
      marginRight: 46,
      x: { label: "rounds, and attempts at one", grid: true, zero: true, tickFormat: (v: number) => (Number.isInteger(v) ? count(v) : "") },
      y: { label: null, grid: false, domain: rows.map((r) => r.reason), tickFormat: words },
      marks: [
        Plot.barX(rows, { y: "reason", x: "n", fill: "var(--failed)", fillOpacity: 0.75, insetTop: 4, insetBottom: 4, title: (r) => `${words(r.reason)}: ${count(r.n)}${reasons[r.reason] ? `\n${reasons[r.reason]}` : ""}` }),
        Plot.text(rows, { y: "reason", x: "n", text: (r) => count(r.n), textAnchor: "start", dx: 5, fill: "var(--ink)" }),
      ],
    }));
  const attempts = view.rounds.attempts;
  if (attempts.length > 0)
    out.push(asTable(["epoch", "reason", "first", "last", "times"], () => attempts.slice(-100).map((a) => [a.epoch, words(a.reason), seconds(a.first), seconds(a.last), a.count]), `attempts that formed no group (${attempts.length})`));
  return out;
}

export function roundTable(context: Context): Node[] {
  const { view } = context;
  const all = view.rounds.kept;
  if (all.length === 0) return [nothing("No single round is known.")];
  // At a moment the newest rounds are those before it.
  const axis = timeAxis(view), until = choice.at ?? Infinity;
  const kept = all.filter((k) => k.ended <= until && (!choice.range || (k.ended >= axis.from && k.ended <= axis.to)) && (choice.peer === null || k.ends.some(([name]) => name === choice.peer)));
  const chosenRound = all.find((k) => k.number === choice.round);
  whenMoved("round-table", (at) => {
    const limit = at ?? Infinity;
    if (all.some((k) => k.ended > Math.min(until, limit) && k.ended <= Math.max(until, limit))) soon(context.again);
  });
  const took = (k: KeptRound) => k.ended - k.started;
  const lists = {
    last: [...kept].sort((a, b) => b.number - a.number).slice(0, 30),
    slowest: [...kept].sort((a, b) => took(b) - took(a)).slice(0, 30),
    wrong: kept.filter((k) => k.outcome !== "ok").sort((a, b) => b.number - a.number),
  };
  const rows = lists[state.show].filter((k) => `${k.epoch} ${k.outcome} ${words(k.reason)} ${k.reason} ${k.ends.map((e) => e[0]).join(" ")}`.includes(state.filter));
  const most = Math.max(...all.map(took), 1e-9);
  const open = (k: KeptRound) => {
    choose({ round: choice.round === k.number ? null : k.number, peer: null });
  };
  const chosen = chosenRound;
  return [
    h("div", { class: "controls" },
      switchOf("Which rounds", "rounds-show", [["last", "last"], ["slowest", "slowest"], ["wrong", `not ok (${lists.wrong.length})`]] as const, state.show, (v) => {
        state.show = v;
        state.table = { by: -1, down: false };
        context.again();
      }),
      search("Find an epoch, reason or member", state.filter, (v) => {
        state.filter = v;
        context.again();
      })),
    table(rows, [
      { title: "epoch", value: (k) => k.epoch, number: true, text: (k) => h("button", { type: "button", class: "link", "aria-expanded": String(k.number === choice.round), onclick: () => open(k) }, k.epoch) },
      { title: "outcome", value: (k) => k.outcome, text: (k) => outcomeBadge(k.outcome) },
      { title: "reason", value: (k) => k.reason, text: (k) => (k.reason === "none" ? "–" : words(k.reason)) },
      { title: "duration", value: took, number: true, text: (k) => h("span", { class: "bar", style: `--share:${took(k) / most};--tint:${colours[k.outcome]}` }, seconds(took(k))) },
      { title: "members", value: (k) => k.members, number: true },
      { title: "samples", value: (k) => k.samples, number: true, text: (k) => count(k.samples) },
      { title: "ended", value: (k) => k.ended, number: true, text: (k) => seconds(k.ended) },
      { title: "held back by", value: (k) => bottleneck(k), text: (k) => bottleneck(k) ?? "–" },
    ], state.table, context.again, {
      most: 30, caption: "Rounds",
      row: (k, tr) => {
        tr.classList.toggle("chosen", k.number === choice.round);
        tr.addEventListener("click", (e) => {
          if (!(e.target as Element).closest("button")) open(k);
        });
      },
    }),
    h("div", { id: "round-detail", "aria-live": "polite" }, chosen ? detail(context, chosen) : h("p", { class: "note" }, view.run.world === "cluster" ? "Choose a round to see its members, and how it ended for each." : "Choose a round to see its transfers, and what held each of them back.")),
  ];
}

/** What held back the transfer that came last: without it the round would have ended earlier. */
function bottleneck(k: KeptRound): string | null {
  return k.transfers?.rows[0]?.why || null;
}

function detail(context: Context, k: KeptRound): Node[] {
  const t = k.transfers;
  const failedEnds = k.ends.filter((e) => e[1] !== "ok");
  const head = h("div", { class: "detail-head" },
    h("h4", {}, `Round of epoch ${k.epoch}`), outcomeBadge(k.outcome),
    h("p", {}, k.reason === "none" ? "" : `${words(k.reason)}${reasons[k.reason] ? `: ${reasons[k.reason]}` : ""}. `,
      `${k.members} members, ${count(k.samples)} samples, ${seconds(k.ended - k.started)} from ${seconds(k.started)} on.`,
      k.ends.length < k.members ? ` ${k.members - k.ends.length} of them never said how it ended.` : ""),
    k.ends.length > 0 && h("p", { class: "note" }, "Members: ", ...k.ends.slice(0, 24).map((e) => e[0]).sort((a, b) => a.localeCompare(b, "en", { numeric: true })).flatMap((name, i) => [i > 0 ? ", " : "", peerButton(name)]), k.members > Math.min(24, k.ends.length) ? ` and ${k.members - Math.min(24, k.ends.length)} more.` : "."),
    h("p", {}, h("button", { type: "button", class: "copy", onclick: () => {
      const margin = Math.max(0.02, 0.25 * (k.ended - k.started));
      choose({ range: [Math.max(0, k.started - margin), k.ended + margin], at: null });
    } }, "show its time in all charts")),
    failedEnds.length > 0 && h("p", {}, "Not ok for ", failedEnds.slice(0, 12).map((e, i) => h("span", {}, i > 0 ? ", " : "", h("b", {}, e[0]), ` (${e[1]}${e[2] === "none" ? "" : `: ${words(e[2])}`})`)), failedEnds.length > 12 ? ` and ${failedEnds.length - 12} more` : ""));
  if (t === null) return [head, h("p", { class: "note" }, context.view.run.world === "cluster" ? "The waits of single transfers are known in simulation and emulation, not on a real network." : "Transfers were not recorded (record.transfers is 0).")];
  if (t.rows.length === 0) return [head, h("p", { class: "note" }, context.view.rounds.transfers_until !== null && k.ended > context.view.rounds.transfers_until ? `The transfers of this round were not recorded. The first ones are, as many as record.transfers says, and those ended at ${seconds(context.view.rounds.transfers_until)}.` : "No transfer of bulk between its members took place within it.")];
  const rows = t.rows.map((r, i) => ({ ...r, key: `${i}`, label: `${r.from} → ${r.to}` }));
  const limits = [...new Set(rows.map((r) => kind(r.why)))];
  const colour = new Map(limits.map((l, i) => [l, palette[i % palette.length]]));
  const wide = context.width > 560;
  const start = k.started;
  const domain = [Math.min(0, ...rows.map((r) => r.begun - start)), Math.max(k.ended - start, ...rows.map((r) => r.arrives - start))];
  return [
    head,
    legend(limits.map((l) => [l === "" ? "not known" : l, colour.get(l)!])),
    chart(context, {
      says: `Timeline of ${rows.length} transfers, the last to arrive first; the first, ${rows[0].label}, was held back by ${rows[0].why}.`,
      height: Math.max(90, rows.length * 15 + 46),
      marginLeft: wide ? 190 : 118,
      marginRight: wide ? 190 : 14,
      x: { label: "seconds since the round began", domain, grid: true },
      y: { domain: rows.map((r) => r.key), label: null, grid: false, tickFormat: (key: string) => shorten(`${rows[+key].from} → ${rows[+key].to}`, wide ? 30 : 18), tickSize: 0 },
      marks: [
        Plot.barX(rows, { y: "key", x1: (r) => r.begun - start, x2: (r) => r.arrives - start, fill: (r) => colour.get(kind(r.why))!, fillOpacity: (r) => (r.type.startsWith("reduced") ? 0.5 : 0.9), insetTop: 2, insetBottom: 2, rx: 2, className: "transfer-bar", title: (r) => `${r.label}: ${words(r.type)}, ${bytes(r.bytes)}${r.count > 1 ? ` in ${r.count} pieces` : ""}\nfrom ${seconds(r.begun - start)} to ${seconds(r.arrives - start)}\nheld back by ${r.why || "nothing known"} for ${seconds(r.held)}${r.waited > 0 ? `\nwaited behind others ${seconds(r.waited)} in all` : ""}${r.cut > 0 ? `\n${r.cut} cut off` : ""}` }),
        Plot.ruleX([k.ended - start], { stroke: "var(--muted)", strokeDasharray: "3,3" }),
        ...(wide ? [Plot.text(rows, { y: "key", x: () => domain[1], text: (r) => shorten(r.cut > 0 ? `cut off` : r.why, 30), textAnchor: "start", dx: 8, fill: "var(--muted)" })] : []),
      ],
    }),
    h("p", { class: "note" }, `${count(t.count)} transfers, ${bytes(t.bytes)} in all; those of one pair and kind are one bar.${t.rows_in_all > rows.length ? ` The ${rows.length} that arrived last of ${t.rows_in_all} are drawn.` : ""} Pale bars carry results back. More: `, h("code", {}, `shoal explain DIR --flow ${rows[0].number}`)),
    asTable(["from", "to", "kind", "bytes", "begun (s)", "arrives (s)", "held back by", "for (s)"], () => rows.map((r) => [r.from, r.to, r.type, r.bytes, Number(number(r.begun - start, 4)), Number(number(r.arrives - start, 4)), r.why, r.held])),
  ];
}

const shorten = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** 'uplink of home-3' is an uplink, whosever. */
function kind(why: string): string {
  if (why.startsWith("uplink of")) return "an uplink";
  if (why.startsWith("downlink of")) return "a downlink";
  if (why.startsWith("processor of")) return "a processor";
  return why;
}
