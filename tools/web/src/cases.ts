// The cases: the members that others accused, the proofs, the bans, and what it led to.

import { type Context, nothing } from "./chart";
import { copyable, h, table, type TableState } from "./dom";
import { count, seconds } from "./format";
import type { Case, Reports, View } from "./view";

const state: TableState & { chosen: number } = { by: -1, down: false, chosen: 1 };

const hosts = (n: number) => `${count(n)} host${n === 1 ? "" : "s"}`;
const names = (all: Reports) => `${all.first.slice(0, 6).map(([, name]) => name).join(", ")}${all.count > 6 ? " and more" : ""}`;
const deed = (one: Case) => one.deed || one.accusations[0]?.why || "two signed statements that contradict each other";

/** The events of a case, the earliest first. */
function story(one: Case): [number, string][] {
  const out: [number, string][] = [];
  for (const { why, by } of one.accusations) out.push([by.first[0][0], `${hosts(by.count)} (${names(by)}) accused it: ${why}`]);
  if (one.proven.count > 0) out.push([one.proven.first[0][0], `${hosts(one.proven.count)} (${names(one.proven)}) had both of its signed statements`]);
  for (const [at, name] of one.bans.first) out.push([at, `${name} checked the proof and banned it`]);
  for (const [at, how] of one.rounds.last) out.push([at, `a round with it ended: ${how}`]);
  return out.sort((a, b) => a[0] - b[0]);
}

function details(one: Case, view: View): Node[] {
  const left = one.bans.count - one.bans.first.length;
  return [
    h("h4", {}, `Case ${one.number}: ${one.member}`),
    h("ol", { class: "story" }, story(one).map(([at, text]) => h("li", {}, h("span", { class: "note" }, seconds(at)), " ", text))),
    ...(left > 0 ? [h("p", { class: "note" }, `${hosts(left)} more banned it later.`)] : []),
    h("p", {}, `It led to: ${count(one.rounds.count)} round${one.rounds.count === 1 ? "" : "s"} that did not end well, and bans by ${hosts(one.bans.count)}.`),
    ...(one.proof ? [
      h("p", {}, view.run.world === "cluster" ? "The proof, with which the moderator revokes the member:" : "The proof. A simulation's signatures are stand-ins."),
      copyable(view.run.world === "cluster" ? `shoal keys revoke --moderator MODERATOR --evidence '${one.proof}'` : one.proof),
    ] : [h("p", { class: "note" }, "There is no proof, so nobody banned it.")]),
  ];
}

export const hasCases = (view: View): boolean => (view.cases?.total ?? 0) > 0;

export function cases(context: Context): Node[] {
  const { view } = context, all = view.cases;
  if (!all || all.rows.length === 0) return [nothing("No host accused another one.")];
  const chosen = all.rows.find((one) => one.number === state.chosen) ?? all.rows[0];
  const open = (one: Case) => () => {
    state.chosen = one.number;
    context.again();
  };
  return [
    h("p", {}, `${count(all.total)} member${all.total === 1 ? " was" : "s were"} accused, ${count(all.rows.filter((one) => one.bans.count > 0).length)} banned. `,
      h("small", { class: "note" }, "A ban needs a proof: two signed statements that contradict each other, or a verdict of the group.")),
    table(all.rows, [
      { title: "case", value: (one) => one.number, number: true },
      { title: "member", value: (one) => one.member, text: (one) => h("button", { type: "button", class: "link", "aria-pressed": String(one === chosen), onclick: open(one) }, one.member) },
      { title: "what", value: deed },
      { title: "evidence", value: (one) => (one.proof ? "signed proof" : "word of others") },
      { title: "since", value: (one) => one.begun, number: true, text: (one) => seconds(one.begun) },
      { title: "accused by", value: (one) => Math.max(0, ...one.accusations.map((a) => a.by.count)), number: true },
      { title: "banned by", value: (one) => one.bans.count, number: true },
      { title: "rounds not ok", value: (one) => one.rounds.count, number: true },
    ], state, context.again, { most: 50, caption: "Cases against members" }),
    ...details(chosen, view),
  ];
}
