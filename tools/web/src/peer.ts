// The panel of one participant, or of one group of a large run, with its contribution, its time and its rounds.

import { type Context, faultName, nothing, showTime, stateWords, timeAxis } from "./chart";
import { h } from "./dom";
import { bytes, count, number, percent, rate, seconds, words } from "./format";
import { choice, choose } from "./moment";
import { openRound, outcomeBadge } from "./rounds";
import { share, type View } from "./view";

export const hasPeer = (_view: View): boolean => choice.peer !== null;

const fact = (name: string, value: string | null, more = "") => h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, value ?? "–", more && h("small", {}, ` ${more}`)));

export function peerPanel(context: Context): Node[] {
  const { view } = context, name = choice.peer ?? "";
  const p = view.participants, host = p.hosts.find((x) => x.name === name), group = p.groups.find((x) => x.name === name);
  const row = view.sessions.rows.find((r) => r.name === name);
  const back = h("button", { type: "button", class: "copy", onclick: () => choose({ peer: null }) }, "show all participants");
  const mine = host ?? group;
  if (!mine && !row) return [h("div", { class: "detail-head" }, h("h4", {}, name), back), nothing(p.more > 0 ? "The page keeps the 200 participants with the most samples. This one is not among them." : "The run has no participant of this name.")];
  const kind = view.run.groups.find((g) => g.name === (host?.group ?? row?.group ?? name));
  const axis = timeAxis(view), inside = (t: number) => t >= axis.from && t <= axis.to;
  const spent = row ? view.sessions.states.map((state, k) => {
    let sum = 0;
    for (let b = 0; b < view.sessions.bins; b++) sum += share(row.shares[k], b);
    return { state, of: sum };
  }).sort((a, b) => b.of - a.of) : [];
  const all = spent.reduce((a, s) => a + s.of, 0);
  const rounds = view.rounds.kept.filter((k) => k.ends.some((e) => e[0] === name)).sort((a, b) => b.number - a.number);
  const lines = (view.links?.rows ?? []).filter((l) => l.name.endsWith(` of ${name}`));
  const events: { at: number; text: string }[] = [
    ...view.sessions.ends.filter((e) => e[0] === name).map((e) => ({ at: e[1], text: words(e[2]) })),
    ...view.faults.filter((f) => f.hosts.includes(name)).map((f) => ({ at: f.begin, text: `fault: ${faultName({ ...f, count: 0 })}${f.end !== null && f.end > f.begin ? ` for ${seconds(f.end - f.begin)}` : ""}` })),
    ...(view.cases?.rows ?? []).filter((c) => c.member === name).map((c) => ({ at: c.begun, text: `accused: ${c.deed || c.accusations[0]?.why || "two contradicting statements"}` })),
  ].filter((e) => inside(e.at)).sort((a, b) => a.at - b.at);
  const reached = mine && p.samples > 0 ? mine.samples / p.samples : 0;
  const rank = host ? p.hosts.indexOf(host) + 1 : 0;
  return [
    h("div", { class: "detail-head" }, h("h4", {}, name), host && h("span", { class: `state ${host.alive ? "running" : ""}` }, host.alive ? "there" : "gone"), group && h("span", { class: "state" }, `a group of ${count(group.hosts)}`), back),
    h("dl", { class: "facts" },
      mine ? fact("samples", count(mine.samples), `${percent(reached)} of all${rank > 0 ? `, place ${rank}` : ""}`) : "",
      mine ? fact("rounds", count(mine.rounds)) : "",
      mine ? fact("there for", seconds(mine.seconds), host && host.lives > 1 ? `in ${host.lives} sessions` : "") : "",
      mine && mine.loss !== null && mine.loss !== 0 ? fact("mean training loss", number(mine.loss)) : "",
      mine ? fact("sent", bytes(mine.sent)) : "",
      fact("group, region", `${host?.group ?? row?.group ?? name}, ${host?.region ?? row?.region ?? ""}`),
      kind ? fact("device", kind.device || "–", `${number(kind.samples_per_second)} samples/s`) : "",
      kind && kind.up > 0 ? fact("line", `${rate(kind.up)} up, ${rate(kind.down)} down`, lines.length > 0 ? lines.map((l) => `${l.name.split(" ")[0]} ${percent(l.mean)} used`).join(", ") : "") : "",
      all > 0 ? fact("its time", spent.filter((s) => s.of / all > 0.005).map((s) => `${stateWords[s.state]} ${percent(s.of / all)}`).join(", ")) : ""),
    ...(events.length > 0 ? [h("ol", { class: "story" }, events.slice(0, 40).map((e) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => showTime(e.at, e.at) }, seconds(e.at)), ` ${e.text}`)), events.length > 40 && h("li", { class: "note" }, `and ${events.length - 40} more`))] : []),
    ...(rounds.length > 0 ? [h("p", {}, `Rounds with it that the page keeps (${count(rounds.length)}): `, ...rounds.slice(0, 24).flatMap((k) => [h("button", { type: "button", class: "link round-link", onclick: () => openRound(k.number) }, `${k.epoch}`), k.outcome === "ok" ? " " : outcomeBadge(k.ends.find((e) => e[0] === name)?.[1] ?? k.outcome), " "]))] : []),
    h("p", { class: "note" }, "The sessions, contributions, losses, rounds and lines below are limited to it. Escape shows all again."),
  ];
}
