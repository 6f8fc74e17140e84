// The things that went wrong, and the newest events of a run that goes on, as lists to click.

import { type Context, faultName, nothing, openPeer, peerButton, showTime } from "./chart";
import { choice as switchOf, h, table, type TableState } from "./dom";
import { compact, count, seconds, words } from "./format";
import { choice } from "./moment";
import { openRound, outcomeBadge } from "./rounds";
import type { View } from "./view";

interface Happening {
  at: number;
  kind: "fault" | "round" | "lost" | "case" | "came" | "left";
  what: string;
  who: string[];
  outcome?: string;
  open: () => void;
}

const lostReasons = new Set(["left", "ended", "run_ended", "drained", ""]);

/** Faults, rounds that were not ok, hosts that were lost, and accusations, the newest first. */
export function failures(view: View): Happening[] {
  const out: Happening[] = [];
  for (const f of view.faults) out.push({ at: f.begin, kind: "fault", what: faultName({ ...f, count: 0 }), who: f.hosts, open: () => showTime(f.begin, f.end ?? f.begin) });
  for (const k of view.rounds.kept)
    if (k.outcome !== "ok") {
      const bad = k.ends.filter((e) => e[1] !== "ok").map((e) => e[0]);
      out.push({ at: k.ended, kind: "round", what: `round of epoch ${count(k.epoch)}: ${words(k.reason === "none" ? k.outcome : k.reason)}`, who: bad, outcome: k.outcome, open: () => {
        showTime(k.started, k.ended);
        openRound(k.number);
      } });
    }
  for (const [name, at, why] of view.sessions.ends)
    if (!lostReasons.has(why)) out.push({ at, kind: "lost", what: words(why), who: [name], open: () => {
      showTime(at, at);
      openPeer(name);
    } });
  for (const c of view.cases?.rows ?? []) out.push({ at: c.begun, kind: "case", what: `accused: ${c.deed || c.accusations[0]?.why || "two contradicting statements"}`, who: [c.member], open: () => {
    showTime(c.begun, c.begun);
    document.getElementById("panel-cases")?.scrollIntoView({ block: "start" });
  } });
  return out.sort((a, b) => b.at - a.at);
}

const kindWords: Record<Happening["kind"], string> = { fault: "fault", round: "round", lost: "host lost", case: "accusation", came: "came", left: "left" };
const state: TableState & { kind: "" | "fault" | "round" | "lost" | "case" } = { by: -1, down: false, kind: "" };

export function failureList(context: Context): Node[] {
  const { view } = context, all = failures(view);
  if (all.length === 0) return [h("p", { class: "good" }, "Nothing went wrong so far: no fault, no lost host, and every round was ok.")];
  const kinds = (["fault", "round", "lost", "case"] as const).filter((k) => all.some((x) => x.kind === k));
  if (state.kind !== "" && !kinds.includes(state.kind)) state.kind = "";
  const rows = all.filter((x) => (state.kind === "" || x.kind === state.kind) && (choice.peer === null || x.who.includes(choice.peer)) && (!choice.range || (x.at >= choice.range[0] && x.at <= choice.range[1])));
  const names = (x: Happening) => `${x.who.slice(0, 3).join(", ")}${x.who.length > 3 ? ` and ${x.who.length - 3} more` : ""}`;
  return [
    h("div", { class: "controls" }, switchOf("Which failures", "failures-kind", [["", `all ${compact(all.length)}`], ...kinds.map((k) => [k, `${kindWords[k]} ${compact(all.filter((x) => x.kind === k).length)}`])] as [typeof state.kind, string][], state.kind, (kind) => {
      state.kind = kind;
      context.again();
    })),
    rows.length === 0 ? nothing("None of them is in this stretch of time, or of this participant.") : table(rows, [
      { title: "at", value: (x) => x.at, number: true, text: (x) => h("button", { type: "button", class: "link", onclick: x.open }, seconds(x.at)) },
      { title: "", value: (x) => x.kind, text: (x) => (x.outcome ? outcomeBadge(x.outcome) : h("span", { class: "kind" }, kindWords[x.kind])) },
      { title: "what", value: (x) => x.what },
      { title: "who", value: names, text: (x) => h("span", {}, x.who.slice(0, 3).flatMap((name, i) => [i > 0 ? ", " : "", peerButton(name)]), x.who.length > 3 ? ` and ${x.who.length - 3} more` : "") },
    ], state, context.again, {
      most: 80, caption: "What went wrong",
      row: (x, tr) => {
        tr.classList.add("opens");
        tr.addEventListener("click", (e) => {
          if (!(e.target as Element).closest("button")) x.open();
        });
      },
    }),
    h("p", { class: "note" }, "A click sets the moment, and opens the round or the participant. The page keeps the first 500 faults and the last 80 rounds that were not ok."),
  ];
}

/** The newest events, for a run that goes on. */
export function newest(view: View, most: number): { at: number; text: string; open: () => void }[] {
  const out: { at: number; text: string; open: () => void }[] = [];
  for (const [at, name, why] of view.latest ?? []) out.push({ at, text: why === "" ? `${name} came` : `${name}: ${words(why)}`, open: () => openPeer(name) });
  for (const k of view.rounds.kept) out.push({ at: k.ended, text: `round of epoch ${count(k.epoch)}: ${k.outcome}${k.reason === "none" ? "" : `, ${words(k.reason)}`}, ${k.members} members in ${seconds(k.ended - k.started)}`, open: () => openRound(k.number) });
  for (const f of view.faults) out.push({ at: f.begin, text: `fault: ${faultName(f)}`, open: () => showTime(f.begin, f.begin) });
  return out.sort((a, b) => b.at - a.at).slice(0, most);
}

/** How much of a run is done, and since when the page knows how much. */
const seen: { clock: number; done: number }[] = [];

/** The share of the planned epochs, or of the time at which the run stops at the latest. */
export function doneShare(view: View): number | null {
  const { run, series } = view, epoch = series.epoch?.at(-1) ?? 0;
  const parts = [run.epochs_planned > 0 ? epoch / run.epochs_planned : 0, run.stop_time > 0 ? run.time / run.stop_time : 0];
  const most = Math.max(...parts);
  return most > 0 ? Math.min(1, most) : null;
}

/** Call it once for each piece of news. Seconds of the reader's clock until the end; null: not known yet. */
export function timeLeft(view: View, clock: number): number | null {
  const done = doneShare(view);
  if (done === null || view.run.state !== "running") return null;
  if (seen.length > 0 && seen[seen.length - 1].done > done) seen.length = 0; // another run
  if (seen.length === 0 || clock > seen[seen.length - 1].clock + 0.2) seen.push({ clock, done });
  while (seen.length > 2 && clock - seen[0].clock > 60) seen.shift();
  const first = seen[0], spent = clock - first.clock;
  if (spent < 2 || done - first.done <= 0) return null;
  return ((1 - done) * spent) / (done - first.done);
}
