// The bar at the foot of the page. It has play and pause, a slider over the same stretch of time as the charts, and the
// state of the swarm at that moment. Its chips name the choices that limit the page.

import { faultName, timeAxis } from "./chart";
import { fill, h } from "./dom";
import { compact, number, seconds } from "./format";
import { choice, choose, moveTo } from "./moment";
import { veil } from "./time_chart";
import { outcomes, type View } from "./view";

/** A whole stretch is played in so many seconds of the reader's time. */
const playTime = 20;
const steps = 1000;

let view: View | null = null, playing = false, last = 0;
const bar = document.getElementById("time")!;
const play = h("button", { type: "button", id: "play", onclick: () => (playing ? pause() : start()) }, "▶");
const slider = h("input", { type: "range", id: "moment", min: 0, max: steps, step: 1, value: steps, "aria-label": "Moment", oninput: () => {
  pause();
  const { from, to } = timeAxis(view!), at = from + (Number(slider.value) / steps) * (to - from);
  moveTo(Number(slider.value) === steps && to >= view!.run.time ? null : at);
} });
const marks = h("div", { class: "marks", "aria-hidden": "true" });
const clock = h("output", { for: "moment", class: "clock" });
const then = h("span", { class: "then" });
const limits = h("span", { class: "limits" });
const back = h("button", { type: "button", id: "back", class: "chip", onclick: () => {
  pause();
  moveTo(null);
} });

function icon(): void {
  play.textContent = playing ? "❚❚" : "▶";
  play.setAttribute("aria-label", playing ? "Pause" : "Play");
  play.title = `${playing ? "pause" : "play"} (space)`;
}

export function pause(): void {
  if (!playing) return;
  playing = false;
  icon();
}

function start(): void {
  if (!view) return;
  const { from, to } = timeAxis(view);
  if (choice.at === null || choice.at >= to || choice.at < from) moveTo(from);
  playing = true;
  last = performance.now();
  icon();
  requestAnimationFrame(frame);
}

function frame(now: number): void {
  if (!playing || !view) return;
  const { from, to } = timeAxis(view);
  const at = (choice.at ?? from) + ((now - last) / 1000 / playTime) * (to - from);
  last = now;
  if (at >= to) {
    pause();
    moveTo(to >= view.run.time ? null : to);
    return;
  }
  moveTo(at);
  requestAnimationFrame(frame);
}

/** The row of metrics at a time. */
function rowAt(v: View, at: number): string {
  const { time } = v.series;
  let low = 0, high = time.length - 1;
  if (high < 0 || (time[0] ?? 0) > at) return "";
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((time[middle] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  const get = (column: string) => v.series[column]?.[low] ?? null;
  const loss = get("loss_train"), rounds = ["ok", "partial", "split", "failed"].reduce((a, o) => a + (get(`rounds_${o}`) ?? 0), 0);
  return [`${compact(get("peers_alive") ?? 0)} there`, `epoch ${number(get("epoch"))}`, loss ? `training loss ${number(loss)}` : "", `${compact(rounds)} rounds`, `${compact(get("samples") ?? 0)} samples`].filter((x) => x).join(" · ");
}

/** Follows the moment. */
export function followMoment(): void {
  if (!view) return;
  const { from, to } = timeAxis(view), at = choice.at;
  const place = at === null ? 1 : (Math.min(to, Math.max(from, at)) - from) / (to - from);
  slider.value = String(Math.round(steps * place));
  slider.setAttribute("aria-valuetext", seconds(at ?? view.run.time));
  clock.textContent = at === null ? (view.run.state === "running" ? `now, ${seconds(view.run.time)}` : `the end, ${seconds(view.nodes ? view.run.time : view.summary?.virtual_seconds ?? view.run.time)}`) : seconds(at);
  then.textContent = rowAt(view, at ?? Infinity);
  back.hidden = at === null;
  veil();
}

const chip = (text: string, what: Parameters<typeof choose>[0], label: string) => h("button", { type: "button", class: "chip", "aria-label": label, title: label, onclick: () => choose(what) }, text, h("span", { "aria-hidden": "true" }, " ×"));

function zoom(factor: number): void {
  const { from, to } = timeAxis(view!), end = view!.run.time;
  const middle = choice.at !== null && choice.at >= from && choice.at <= to ? choice.at : (from + to) / 2, half = ((to - from) * factor) / 2;
  if (2 * half >= end) return choose({ range: null });
  const first = Math.min(Math.max(0, middle - half), end - 2 * half);
  choose({ range: [first, first + 2 * half] });
}

/** Draws the bar for `v`, whose stretch, faults and rounds may be others than before. */
export function timeBar(v: View): void {
  if (!view) {
    icon();
    fill(bar, play, h("div", { class: "slider-box" }, marks, slider), clock,
      h("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
        h("button", { type: "button", id: "zoom-in", title: "zoom in (+)", "aria-label": "Zoom in", onclick: () => zoom(0.5) }, "+"),
        h("button", { type: "button", id: "zoom-out", title: "zoom out (-)", "aria-label": "Zoom out", onclick: () => zoom(2) }, "−")),
      then, limits);
  }
  view = v;
  const { from, to } = timeAxis(v), at = (t: number) => `${(100 * (t - from)) / (to - from)}%`;
  const inside = (t: number) => t >= from && t <= to;
  fill(marks,
    v.faults.filter((f) => f.begin <= to && (f.end ?? f.begin) >= from).slice(0, 200).map((f) => {
      const begin = Math.max(from, f.begin), end = Math.min(to, f.end ?? f.begin);
      return h("i", { class: "fault", title: faultName(f), style: `left:${at(begin)};width:${(100 * (end - begin)) / (to - from)}%` });
    }),
    v.rounds.points.filter((p) => p[4] !== 0 && inside(p[1])).slice(0, 300).map((p) => h("i", { class: outcomes[p[4]], style: `left:${at(p[1])}` })));
  const round = choice.round === null ? undefined : v.rounds.kept.find((k) => k.number === choice.round);
  fill(limits,
    choice.range && chip(`${seconds(from)} to ${seconds(to)}`, { range: null }, "Show the whole time again"),
    back,
    choice.peer !== null && chip(`only ${choice.peer}`, { peer: null }, `Show all participants again, not only ${choice.peer}`),
    choice.round !== null && chip(round ? `round of epoch ${round.epoch}` : `round ${choice.round}`, { round: null }, "Show all rounds and participants again"));
  back.textContent = v.run.state === "running" ? "back to now" : "back to the end";
  bar.hidden = false;
  followMoment();
}

/** The keys of the whole page, where no control has the focus that needs them. */
addEventListener("keydown", (event) => {
  const on = event.target as Element;
  if (!view || event.ctrlKey || event.metaKey || event.altKey || on.closest("input:not([type=range]),select,textarea,[contenteditable]")) return;
  const { from, to } = timeAxis(view);
  const step = (direction: number) => {
    pause();
    const next = Math.max(from, (choice.at ?? to) + (direction * (to - from)) / 100);
    moveTo(next >= to && to >= view!.run.time ? null : Math.min(to, next));
  };
  const scrolls = on.closest(".table,pre,.strip") !== null;
  if (event.key === " " && !on.closest("button,summary,a,input[type=radio],input[type=checkbox]")) playing ? pause() : start();
  else if (event.key === "ArrowLeft" && !scrolls && !on.closest("input")) step(event.shiftKey ? -10 : -1);
  else if (event.key === "ArrowRight" && !scrolls && !on.closest("input")) step(event.shiftKey ? 10 : 1);
  else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") zoom(2);
  else if (event.key === "Escape" && (choice.range || choice.at !== null || choice.peer !== null || choice.round !== null)) {
    pause();
    choose({ range: null, at: null, peer: null, round: null });
  } else return;
  event.preventDefault();
});
