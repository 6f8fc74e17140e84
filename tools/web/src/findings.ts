// The conclusions of a run, in a few sentences on top of the page. Each one leads to its panel.

import { h } from "./dom";
import { count, percent, rate, words } from "./format";
import { share, type View } from "./view";

export interface Finding {
  text: string;
  /** The panel that shows it. */
  panel: string;
}

/** The share of the hosts' time in each state, the largest first. */
function timeByState(view: View): { state: string; of: number }[] {
  const { states, rows, bins } = view.sessions;
  const sums = states.map((_, state) => {
    let sum = 0;
    for (const row of rows) for (let bin = 0; bin < bins; bin++) sum += row.hosts * share(row.shares[state], bin);
    return sum;
  });
  const all = sums.reduce((a, b) => a + b, 0);
  return all === 0 ? [] : states.map((state, i) => ({ state, of: sums[i] / all })).sort((a, b) => b.of - a.of);
}

/** What held back the transfers of the rounds that the page keeps, as shares of that time, the largest first. */
function limits(view: View): { why: string; of: number }[] {
  const sums = new Map<string, number>();
  for (const round of view.rounds.kept)
    for (const row of round.transfers?.rows ?? [])
      if (row.why !== "") sums.set(row.why, (sums.get(row.why) ?? 0) + row.held);
  const all = [...sums.values()].reduce((a, b) => a + b, 0);
  return all === 0 ? [] : [...sums].map(([why, seconds]) => ({ why, of: seconds / all })).sort((a, b) => b.of - a.of);
}

export function findings(view: View): Finding[] {
  const out: Finding[] = [];
  const [most, next] = timeByState(view);
  if (most) {
    const called = (s: string) => (s === "downloading" ? "out of sync" : s);
    out.push({ panel: "sessions", text: `${percent(most.of)} of the hosts' time is ${called(most.state)}${next && next.of >= 0.005 ? `, ${percent(next.of)} is ${called(next.state)}` : ""}` });
  }
  const [limit] = limits(view);
  if (limit) out.push({ panel: "round-table", text: `${/^(up|down)link/.test(limit.why) ? "the " : ""}${words(limit.why)} holds transfers back most: ${percent(limit.of)} of their time in the rounds below` });
  const fullest = view.links?.rows[0];
  if (fullest) out.push({ panel: "links", text: `the fullest line is the ${fullest.name}: ${rate(fullest.rate)}, ${percent(fullest.mean)} used` });
  const bad = view.rounds.total - (view.rounds.by_outcome.ok ?? 0);
  if (bad > 0) {
    const [reason] = Object.entries(view.rounds.by_reason).filter(([name]) => name !== "none").sort((a, b) => b[1] - a[1]);
    out.push({ panel: "reasons", text: `${count(bad)} of ${count(view.rounds.total)} rounds ${bad === 1 ? "was" : "were"} not ok${reason ? `, most often: ${words(reason[0])}` : ""}` });
  }
  return out;
}

export function findingsList(view: View): HTMLElement | null {
  const all = findings(view);
  if (all.length === 0) return null;
  return h("ul", { class: "findings", "aria-label": "Findings" }, all.map((f) => h("li", {}, h("a", { href: `#panel-${f.panel}` }, f.text))));
}
