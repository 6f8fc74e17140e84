// The rounds of security.kind btard: distances of contributions, audits, accusations and bans.

import * as Plot from "@observablehq/plot";
import { asTable, chart, type Context, dots, legend, nothing } from "./chart";
import { h, table, type TableState } from "./dom";
import { count, number, seconds } from "./format";
import type { Guard, GuardedRound, View } from "./view";

const state: TableState = { by: -1, down: false };

export const hasGuard = (view: View): boolean => (view.guard?.rounds.length ?? 0) > 0;

interface Event {
  epoch: number;
  at: number;
  kind: "audit" | "accusation" | "verdict";
  text: string;
  /** False for audits that found nothing. Those are in the chart. */
  tells: boolean;
}

/** One line for each thing that happened, the earliest first. */
function events(guard: Guard): Event[] {
  const name = (i: number) => guard.names[i];
  const result: Record<string, string> = { right: "found it right", wrong: "found it false", "": "has not reported yet" };
  return guard.rounds.flatMap((r) => [
    ...r.audits.map(([validator, target, found]): Event => ({ epoch: r.epoch, at: r.at, kind: "audit", tells: found === "wrong", text: `${name(validator)} computed the contribution of ${name(target)} again and ${result[found]}` })),
    ...r.accusations.map(([accuser, accused, what]): Event => ({ epoch: r.epoch, at: r.at, kind: "accusation", tells: true, text: `${name(accuser)} accused ${name(accused)} of a false ${what}` })),
    ...r.verdicts.map(([culprit, what]): Event => ({ epoch: r.epoch, at: r.at, kind: "verdict", tells: true, text: `${name(culprit)} lost a case about a ${what}, and is banned` })),
  ]);
}

const ofKind = (all: Event[], kind: Event["kind"]) => all.filter((one) => one.kind === kind).length;

/** How far each contribution lay from the result, step by step. Those of members that were banned stand out. */
function distanceChart(context: Context, guard: Guard, banned: Map<number, number>): HTMLElement {
  const points = guard.rounds.flatMap((r) => r.distances.filter(([, d]) => d !== null && d > 0).map(([member, d]) => ({ x: r.epoch, y: d as number, member })));
  if (points.length === 0) return nothing("No distances are known yet.");
  const others = points.filter((p) => !banned.has(p.member)), theirs = points.filter((p) => banned.has(p.member));
  const verdicts = guard.rounds.filter((r) => r.verdicts.length > 0).map((r) => ({ epoch: r.epoch, text: r.verdicts.map(([culprit]) => guard.names[culprit]).join(", ") }));
  return chart(context, {
    says: `Distance of each contribution from the result by step: ${count(points.length)} contributions, of which ${count(theirs.length)} are of members that were banned.`,
    x: { label: "step", domain: [Math.min(...points.map((p) => p.x)), Math.max(...points.map((p) => p.x)) + 1] },
    y: { label: "distance from the result", type: "log", ticks: 5, tickFormat: (v: number) => number(v), domain: [Math.min(...points.map((p) => p.y)), Math.max(...points.map((p) => p.y))] },
    marks: [
      Plot.ruleX(verdicts, { x: "epoch", stroke: "var(--failed)", strokeOpacity: 0.5, strokeDasharray: "2,3", title: (v) => `step ${v.epoch}: ${v.text} banned` }),
      dots(others, "var(--accent)", 1.6),
      dots(theirs, "var(--failed)", 2.2),
      Plot.tip(points, Plot.pointer({ x: "x", y: "y", title: (p) => `${guard.names[p.member]}\nstep ${p.x}\n${number(p.y)} from the result` })),
    ],
  });
}

/** Who audited whom: a dot for each audit at (step, target), with the validator in its text. */
function auditChart(context: Context, guard: Guard): HTMLElement {
  const audits = guard.rounds.flatMap((r) => r.audits.map(([validator, target, found]) => ({ epoch: r.epoch, target: guard.names[target], validator: guard.names[validator], found })));
  if (audits.length === 0) return nothing("No audit yet.");
  const names = [...guard.names].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const verdicts = guard.rounds.flatMap((r) => r.verdicts.map(([culprit]) => ({ epoch: r.epoch, target: guard.names[culprit] })));
  return chart(context, {
    says: `Audits by step and target: ${count(audits.length)}, of which ${count(audits.filter((a) => a.found === "wrong").length)} found a false contribution.`,
    height: Math.max(160, 60 + 15 * Math.min(names.length, 40)),
    marginLeft: 86,
    x: { label: "step" },
    y: { label: null, domain: names.slice(0, 40), grid: true },
    marks: [
      Plot.dot(audits.filter((a) => a.found !== "wrong"), { x: "epoch", y: "target", r: 2.5, fill: "var(--ok)", fillOpacity: (a: { found: string }) => (a.found === "" ? 0.3 : 0.9) }),
      Plot.dot(audits.filter((a) => a.found === "wrong"), { x: "epoch", y: "target", r: 4, symbol: "times", stroke: "var(--failed)", strokeWidth: 2 }),
      Plot.dot(verdicts, { x: "epoch", y: "target", r: 7, stroke: "var(--failed)", fill: "none" }),
      Plot.tip(audits, Plot.pointer({ x: "epoch", y: "target", title: (a) => `step ${a.epoch}: ${a.validator} audited ${a.target}\n${a.found === "" ? "no report yet" : `found it ${a.found === "wrong" ? "false" : "right"}`}` })),
    ],
  });
}

export function guardPanel(context: Context): Node[] {
  const guard = context.view.guard;
  if (!guard || guard.rounds.length === 0) return [nothing("No round with a guard yet.")];
  const all = events(guard), banned = new Map<number, number>();
  for (const r of guard.rounds) for (const [culprit] of r.verdicts) if (!banned.has(culprit)) banned.set(culprit, r.epoch);
  const last = guard.rounds.reduce((a: GuardedRound, b) => (b.epoch > a.epoch ? b : a));
  const bans = [...banned].map(([member, epoch]) => `${guard.names[member]} at step ${epoch}`).join(", ");
  return [
    h("p", {}, `Step ${count(last.epoch)}: ${count(last.committed)} members committed to their contributions. So far ${count(ofKind(all, "audit"))} audits, ${count(ofKind(all, "accusation"))} accusations and ${count(banned.size)} bans${bans ? `: ${bans}` : ""}.`),
    h("h4", {}, "How far each contribution lay from the result"),
    distanceChart(context, guard, banned),
    legend([["members that stay", "var(--accent)"], ["members that were banned", "var(--failed)"]]),
    h("h4", {}, "Audits: who was computed again"),
    auditChart(context, guard),
    legend([["found right", "var(--ok)"], ["found false (cross), and banned (ring)", "var(--failed)"]]),
    h("h4", {}, "What happened"),
    ...(all.some((one) => one.tells) ? [] : [nothing("No audit found a false contribution, and nobody accused anybody.")]),
    table(all.filter((one) => one.tells).reverse(), [
      { title: "step", value: (one) => one.epoch, number: true },
      { title: "what", value: (one) => one.text },
      { title: "known since", value: (one) => one.at, number: true, text: (one) => seconds(one.at) },
    ], state, context.again, { most: 12, caption: "False contributions, accusations and verdicts" }),
    asTable(["step", "member", "distance"], () => guard.rounds.flatMap((r) => r.distances.map(([member, d]) => [r.epoch, guard.names[member], d ?? NaN])), "distances as a table"),
  ];
}
