// The page: reads the data embedded in a report, or follows the program that serves it, and keeps the panels up to date.

import { calculator } from "./calculator";
import { cases, hasCases } from "./cases";
import { challenges } from "./challenges";
import { type Context, forgetColours, nothing } from "./chart";
import { join, nodes } from "./cluster";
import { choice as switchOf, fill, h } from "./dom";
import { comparison, provenance, scenario } from "./facts";
import { expertsPanel, hasExperts } from "./experts";
import { findingsList } from "./findings";
import { compact, number, percent, seconds } from "./format";
import { guardPanel, hasGuard } from "./guard";
import { doneShare, failureList, newest, timeLeft } from "./happenings";
import { hasMap, map } from "./map";
import { fit, forgetMoved, goTo, readAddress, reset, whenChosen } from "./moment";
import { compression, links, trafficByHost, trafficByRegion, trafficOverTime } from "./network";
import { learns, objective, speed } from "./objective";
import { hasPeer, peerPanel } from "./peer";
import { hasPictures, picturesPanel } from "./pictures";
import { roundsOverTime, roundTable, whyRoundsFail } from "./rounds";
import { hasStages, stagesPanel } from "./stages";
import { active, bubbles, leaderboard, lossByParticipant, sessions } from "./swarm";
import { followMoment, pause, timeBar } from "./time_bar";
import type { View } from "./view";

interface Panel {
  id: string;
  title: string;
  draw: (context: Context) => Node[];
  /** Whether this run has such a thing at all. */
  when?: (view: View) => boolean;
  half?: boolean;
}

interface Part {
  id: string;
  title: string;
  panels: Panel[];
}

const parts: Part[] = [
  { id: "progress", title: "Progress", panels: [
    { id: "objective", title: "Objective", draw: objective },
    { id: "pictures", title: "What the model draws", draw: picturesPanel, when: hasPictures },
    { id: "speed", title: "Speed", draw: speed, half: true },
    { id: "active", title: "Active participants", draw: active, half: true },
    { id: "comparison", title: "Predicted and actual", draw: comparison, when: (v) => v.comparison !== undefined },
    { id: "nodes", title: "Host by host", draw: (context) => nodes(context, pageOf), when: (v) => v.nodes !== undefined },
    { id: "join", title: "How to join", draw: join, when: (v) => v.run.join !== null },
  ] },
  { id: "people", title: "Participants", panels: [
    { id: "peer", title: "One participant", draw: peerPanel, when: hasPeer },
    { id: "sessions", title: "Sessions", draw: sessions },
    { id: "stages", title: "Stages of the model", draw: stagesPanel, when: hasStages },
    { id: "experts", title: "Experts of the model", draw: expertsPanel, when: hasExperts },
    { id: "map", title: "Where they are, and what they send", draw: map, when: hasMap },
    { id: "leaderboard", title: "Contributions", draw: leaderboard },
    { id: "cases", title: "Who did what", draw: cases, when: hasCases },
    { id: "guard", title: "Members check each other", draw: guardPanel, when: hasGuard },
    { id: "bubbles", title: "Everybody at a glance", draw: bubbles, half: true },
    { id: "losses", title: "Loss by participant", draw: lossByParticipant, half: true },
  ] },
  { id: "rounds", title: "Rounds", panels: [
    { id: "rounds-over-time", title: "How long rounds took", draw: roundsOverTime },
    { id: "round-table", title: "Round by round", draw: roundTable },
    { id: "reasons", title: "Why rounds were not ok", draw: whyRoundsFail },
    { id: "failures", title: "What went wrong", draw: failureList },
  ] },
  { id: "network", title: "Network", panels: [
    { id: "traffic", title: "Traffic by kind", draw: trafficOverTime },
    { id: "traffic-hosts", title: "Traffic by host", draw: trafficByHost, half: true },
    { id: "traffic-regions", title: "Traffic by region", draw: trafficByRegion, half: true },
    { id: "links", title: "How full the lines were", draw: links },
    { id: "compression", title: "Compression", draw: compression },
  ] },
  { id: "challenges", title: "Challenges", panels: [{ id: "engineering", title: "How the swarm met them", draw: challenges }] },
  { id: "memory", title: "Memory", panels: [{ id: "calculator", title: "Memory of training a model", draw: calculator }] },
  { id: "about", title: "The run", panels: [
    { id: "provenance", title: "How to repeat it", draw: provenance },
    { id: "scenario", title: "Scenario", draw: scenario },
  ] },
];

/** Which run it is: beside which other one it is drawn, and of which cluster it is what one host saw. */
interface Place {
  title: string;
  beside: number | null;
  of: number | null;
}

interface Loaded extends Place {
  sections: Partial<View>;
  events: EventSource | null;
  over: boolean;
  lost: boolean;
}

const runs: Loaded[] = [];
let chosen = 0;
let theme = "";
const top_ = document.getElementById("top")!, bar = document.getElementById("bar")!, main = document.getElementById("main")!;

const loaded = (place: Place, sections: Partial<View> = {}): Loaded => ({ ...place, sections, events: null, over: false, lost: false });
/** The first that is held against a prediction; without any, the first. */
const firstToShow = (): number => Math.max(0, runs.findIndex((r) => r.beside !== null));

function show(index: number): void {
  chosen = index;
  // A stretch or a participant of one run means nothing in another one.
  pause();
  reset();
  followChosen();
  drawAll();
  // The screen shows the previous run until this one has arrived.
  const state = top_.querySelector(".state");
  if (drawn !== chosen && state) state.textContent = "loading";
  window.scrollTo({ top: 0 });
}

whenChosen(() => drawAll(), followMoment);

/** Links within the page keep the rest of the address. */
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.("a[href^='#']");
  if (!link || link.classList.contains("skip")) return;
  event.preventDefault();
  goTo(link.getAttribute("href")!.slice(1));
});
addEventListener("hashchange", () => {
  const where = readAddress();
  drawAll();
  if (where) document.getElementById(where)?.scrollIntoView({ block: "start" });
});

/** What opens the page of the host that wrote `directory`, if there is one. */
function pageOf(directory: string): (() => void) | null {
  const index = runs.findIndex((r) => r.title === directory);
  return index < 0 ? null : () => show(index);
}

const isWhole = (sections: Partial<View>): sections is View => sections.run !== undefined && sections.series !== undefined && sections.sessions !== undefined;

// -- header -----------------------------------------------------------------

function tiles(v: View): HTMLElement {
  const s = v.series, at = (column: string) => s[column]?.at(-1) ?? null;
  const lastKnown = (column: string) => [...(s[column] ?? [])].reverse().find((x) => x !== null) ?? null;
  const ok = at("rounds_ok") ?? 0, partial = at("rounds_partial") ?? 0, split = at("rounds_split") ?? 0, failed = at("rounds_failed") ?? 0;
  const all = ok + partial + split + failed;
  const loss = learns(v) ? v.summary?.loss.final ?? lastKnown("loss_held_out") ?? lastKnown("loss_train") : null;
  const epoch = v.summary?.epochs ?? at("epoch") ?? 0;
  const tile = (name: string, value: string, more: string, tone = "") => h("div", { class: `tile ${tone}` }, h("dt", {}, name), h("dd", {}, h("b", {}, value), h("small", {}, more)));
  const planned = v.run.epochs_planned;
  const violations = at("invariant_violations") ?? 0;
  // The terminal's summary has the same time; the last row of metrics may be a little later.
  // The summary of a cluster is that of one life of one host.
  const time = v.nodes ? v.run.time : v.summary?.virtual_seconds ?? v.run.time;
  return h("dl", { class: "tiles" },
    loss !== null && tile("loss", number(loss, 4), v.summary?.loss.baseline ? `one machine ${number(v.summary.loss.baseline, 4)}` : v.summary?.loss.first ? `from ${number(v.summary.loss.first, 4)}` : "so far"),
    tile("epoch", number(epoch), planned > 0 ? `of ${number(planned)}` : "", ""),
    tile("samples", compact(v.summary?.samples ?? at("samples") ?? 0), time > 0 ? `${number((v.summary?.samples ?? at("samples") ?? 0) / time)} trained a second` : ""),
    tile("participants", number(at("peers_alive") ?? 0), `${number(at("peers_joined") ?? 0)} came, ${number(at("peers_left") ?? 0)} left`),
    tile("rounds", number(all), all === 0 ? "none yet" : ok === all ? "all ok" : `${[[partial, "partial"], [split, "split"], [failed, "failed"]].filter(([n]) => n).map(([n, w]) => `${n} ${w}`).join(", ")}`, failed + split > 0.02 * all ? "warn" : ""),
    tile(v.run.world === "sim" ? "virtual time" : "time", seconds(time), v.summary ? `computed in ${seconds(v.summary.wall_seconds)}` : v.run.stop_time > 0 && v.run.epochs_planned === 0 ? `${percent(Math.min(1, v.run.time / v.run.stop_time))} of it` : ""),
    violations > 0 && tile("invariants", number(violations), "violated", "bad"));
}

/** How far the run is, how long it takes at the pace of the last minute, and the newest events. */
function liveBox(v: View): HTMLElement {
  const done = doneShare(v), left = timeLeft(v, performance.now() / 1000);
  return h("div", { class: "live" },
    done !== null && h("div", { class: "live-done" },
      h("progress", { max: 1, value: done, "aria-label": "How far the run is" }),
      h("span", { class: "left" }, `${percent(done)}${left !== null ? `, ${left < 1 ? "less than a second" : seconds(left)} left` : ", the time left is not known yet"}`)),
    h("ol", { class: "newest", "aria-label": "Newest events" }, newest(v, 6).map((e) => h("li", {}, h("button", { type: "button", class: "link", onclick: e.open }, seconds(e.at)), ` ${e.text}`))));
}

function header(): void {
  const run = runs[chosen];
  const v = run.sections as View;
  const words: Record<string, string> = { running: "running", ended: "ended", interrupted: "interrupted", unfinished: "unfinished" };
  const state = run.lost ? "connection lost" : words[v.run.state] ?? v.run.state;
  document.title = `${v.run.name} · Shoal`;
  const picker = runs.length > 1 && h("label", { class: "select" }, h("span", {}, "run"), h("select", {
    id: "run-picker",
    onchange: (e: Event) => show(Number((e.target as HTMLSelectElement).value)),
  }, runs.map((r, i) => h("option", { value: i, selected: i === chosen }, `${r.of !== null ? "\u2003" : ""}${r.title}${runs.some((other) => other.beside === i) ? " (predicted)" : runs.some((other) => other.of === i) ? " (all hosts)" : ""}`))));
  const looks = switchOf("Colours", "theme", [["", "auto"], ["light", "light"], ["dark", "dark"]] as const, theme as "" | "light" | "dark", (value) => {
    theme = value;
    if (value === "") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    drawAll();
  });
  const focused = document.activeElement?.id, radio = document.activeElement instanceof HTMLInputElement && document.activeElement.name === "theme";
  fill(top_,
    h("div", { class: "bar-top" }, h("a", { class: "brand", href: "#top" }, "shoal"), picker, looks),
    h("div", { class: "title" },
      h("h1", {}, v.run.name || run.title), h("span", { class: `state ${run.lost ? "lost" : v.run.state}`, role: "status" }, state),
      h("span", { class: "what" }, `${v.run.node ? `what ${v.run.node} saw, ` : ""}world ${v.run.world}, seed ${v.run.seed}, ${v.run.method.replace(/_/g, " ") || ""}`)),
    v.run.description && h("p", { class: "description" }, v.run.description),
    ...v.run.notes.map((n) => h("p", { class: "note warn" }, n)),
    tiles(v),
    v.run.state === "running" && liveBox(v),
    findingsList(v));
  if (bar.childNodes.length === 0) fill(bar, h("nav", { "aria-label": "Parts of the page" }, parts.map((p) => h("a", { href: `#${p.id}`, "data-part": p.id }, p.title))));
  timeBar(v);
  if (focused) document.getElementById(focused)?.focus();
  else if (radio) top_.querySelector<HTMLInputElement>("input[name=theme]:checked")?.focus();
}

// -- panels -----------------------------------------------------------------

const bodies = new Map<string, HTMLElement>();

function build(): void {
  main.replaceChildren(...parts.map((part) => h("section", { id: part.id, "aria-labelledby": `${part.id}-title` }, h("h2", { id: `${part.id}-title` }, part.title),
    h("div", { class: "panels" }, part.panels.map((panel) => {
      const body = h("div", { class: "body" });
      bodies.set(panel.id, body);
      return h("article", { id: `panel-${panel.id}`, class: panel.half ? "half" : "", "aria-labelledby": `${panel.id}-title` }, h("h3", { id: `${panel.id}-title` }, panel.title), body);
    })))));
  for (const article of main.querySelectorAll("article")) sight.observe(article);
  for (const section of main.querySelectorAll("section[id]")) inSight.observe(section);
}

/** Where the focus is within a panel, so that it can go there again. */
function focusPath(body: HTMLElement): (() => void) | null {
  const element = document.activeElement;
  if (!(element instanceof HTMLElement) || !body.contains(element)) return null;
  const selector = "input,select,button,[tabindex],summary,a";
  const index = [...body.querySelectorAll(selector)].indexOf(element);
  const selection = element instanceof HTMLInputElement && element.type === "search" ? element.selectionStart : null;
  return () => {
    const again = body.querySelectorAll<HTMLElement>(selector)[index];
    again?.focus({ preventScroll: true });
    if (selection !== null && again instanceof HTMLInputElement) again.setSelectionRange(selection, selection);
  };
}

/** Panels that wait for their turn, with their widths: those of a page that is drawn anew, and those out of sight while news come. */
const waiting = new Map<Panel, { width: number; anew: boolean }>();
/** News need not reach at once what nobody sees. */
const outOfSight = 4000;
let turn = 0, counted = true;

/** Draws what is on the screen, and has the rest follow when there is time, a panel at a time: one that is drawn anew at once, news of what is out of sight later. What the browser
    lays out for is asked of all of them before the first one changes: asked in between, it lays out the page for each. */
function drawPanels(anew: boolean): void {
  const view = runs[chosen].sections;
  if (!isWhole(view)) return;
  const shown = parts.flatMap((part) => part.panels).filter((panel) => {
    const article = bodies.get(panel.id)!.parentElement!;
    article.hidden = panel.when !== undefined && !panel.when(view);
    return !article.hidden;
  });
  forgetColours();
  const places = shown.map((panel) => {
    const body = bodies.get(panel.id)!, { top, bottom } = body.getBoundingClientRect();
    return { width: body.clientWidth, near: top < 1.5 * innerHeight && bottom > -0.5 * innerHeight, empty: body.childNodes.length === 0 };
  });
  // Panels that were never drawn have no height yet, so only the first ones are at their places.
  let height = 0;
  shown.forEach((panel, i) => {
    const { width, near, empty } = places[i];
    if (near && height < 1.5 * innerHeight) {
      waiting.delete(panel);
      draw(panel, width, anew);
      if (empty) height += 330;
    } else waiting.set(panel, { width, anew: anew || waiting.get(panel)?.anew === true });
  });
  if (anew || runs[chosen].over) counted = false;
  else main.dataset.drawn = String(Number(main.dataset.drawn ?? 0) + 1);
  // Panels that already wait do not wait longer because of more news.
  if (counted && turn !== 0) return;
  clearTimeout(turn);
  turn = window.setTimeout(drawWaiting, counted ? outOfSight : 0);
}

/** A click is lost if its element is replaced between press and release, so news wait for the release. A press on a
    scroll bar has none, so they wait no longer than a second. */
let pressedAt = -Infinity;
const pressed = (): boolean => performance.now() - pressedAt < 1000;
addEventListener("pointerdown", () => (pressedAt = performance.now()), true);
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => (pressedAt = -Infinity), true);
const untilReleased = 50;

/** Draws those that wait for as long as a screen takes to show a picture, and leaves the others for the next time. */
function drawWaiting(): void {
  const until = performance.now() + 30;
  turn = 0;
  if (pressed()) {
    turn = window.setTimeout(drawWaiting, untilReleased);
    return;
  }
  for (const [panel, { width, anew }] of waiting) {
    waiting.delete(panel);
    if (!bodies.get(panel.id)!.parentElement!.hidden) draw(panel, width, anew);
    if (performance.now() > until) break;
  }
  if (waiting.size > 0) turn = window.setTimeout(drawWaiting, 0);
  else if (!counted) {
    counted = true;
    main.dataset.drawn = String(Number(main.dataset.drawn ?? 0) + 1);
  }
}

/** What comes into sight has the newest. */
const sight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen)
    for (const [panel, { width, anew }] of waiting)
      if (isIntersecting && target.id === `panel-${panel.id}`) {
        waiting.delete(panel);
        draw(panel, width, anew);
      }
}, { rootMargin: "30%" });

function draw(panel: Panel, available: number, anew: boolean): void {
  const view = runs[chosen].sections;
  const body = bodies.get(panel.id)!;
  if (!isWhole(view)) return;
  const beside = runs[chosen].beside, first = beside === null ? null : runs[beside].sections;
  // The user reads the panel's table, so the panel stays unchanged until the table is folded.
  if (body.querySelector("details[open]") && !anew) return;
  const width = Math.max(280, Math.floor(available));
  const focus = focusPath(body);
  const again = () => draw(panel, body.clientWidth, true);
  let nodes: Node[];
  try {
    forgetMoved(panel.id);
    nodes = panel.draw({ view, beside: first && isWhole(first) ? first : null, width, again });
  } catch (error) {
    console.error(panel.id, error);
    nodes = [nothing("This could not be drawn.")];
  }
  if (nodes.length === body.childNodes.length && nodes.every((node, i) => node === body.childNodes[i])) return;
  const folds = () => [...body.querySelectorAll("details")];
  const open = folds().map((fold) => fold.open);
  body.replaceChildren(...nodes);
  // A draw that was due when the user opened a table does not fold it again.
  folds().forEach((fold, i) => { fold.open ||= open[i] ?? false; });
  focus?.();
}

/** The run that is on the screen; -1: none yet. */
let drawn = -1;

function drawAll(): void {
  if (runs.length === 0 || !isWhole(runs[chosen].sections)) return;
  if (bodies.size === 0) build();
  fit(Math.max((runs[chosen].sections as View).run.time, 1e-9));
  drawn = chosen;
  header();
  drawPanels(true);
}

let due = 0;
/** Draws soon, once for all that came meanwhile; not while nobody looks. */
function drawSoon(): void {
  if (due !== 0) return;
  due = requestAnimationFrame(() => {
    due = 0;
    if (!isWhole(runs[chosen].sections)) return;
    if (pressed()) return void setTimeout(drawSoon, untilReleased);
    if (drawn !== chosen) return drawAll();
    header();
    drawPanels(false);
  });
}

// -- data -------------------------------------------------------------------

function follow(index: number): void {
  const run = runs[index];
  if (run.events !== null || run.over) return;
  const events = (run.events = new EventSource(`runs/${index}/events`));
  events.onmessage = (event) => {
    const news = JSON.parse(event.data) as { sections: Partial<View>; done: boolean };
    Object.assign(run.sections, news.sections);
    run.lost = false;
    if (news.done) {
      events.close();
      run.events = null;
      run.over = true;
    }
    if (news.sections.nodes?.some((n) => !runs.some((r) => r.title === n.directory))) void findRuns();
    if (index === chosen || index === runs[chosen].beside) drawSoon();
  };
  events.onerror = () => {
    // An EventSource connects again by itself.
    run.lost = true;
    if (index === chosen && bodies.size > 0) header();
  };
}

/** Follows what is shown and nothing else: a browser has few connections to one server, and a cluster may have many hosts. */
function followChosen(): void {
  if (embedded) return;
  const wanted = [chosen, runs[chosen].beside].filter((i) => i !== null);
  runs.forEach((run, i) => {
    if (wanted.includes(i)) return follow(i);
    run.events?.close();
    run.events = null;
  });
}

/** Which runs there are; those that are known stay where they are. */
async function findRuns(): Promise<void> {
  const places = (await (await fetch("runs")).json()) as Place[];
  for (const place of places.slice(runs.length)) runs.push(loaded(place));
}

let embedded = false;

/** Panels above the one that the address names have their height when all are drawn. */
function goToPlace(): void {
  const where = location.hash.replace(/^#/, "").split("?")[0];
  if (where === "") return;
  const go = () => document.getElementById(where)?.scrollIntoView({ block: "start", behavior: "instant" });
  go();
  new MutationObserver((_, observer) => {
    observer.disconnect();
    go();
  }).observe(main, { attributes: true, attributeFilter: ["data-drawn"] });
}

/** The part that is on the screen is marked in the bar. */
const inSight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) bar.querySelector(`[data-part=${target.id}]`)?.classList.toggle("here", isIntersecting);
}, { rootMargin: "-30% 0px -60% 0px" });

async function start(): Promise<void> {
  const data = JSON.parse(document.getElementById("shoal-data")!.textContent ?? "null") as { runs: (Place & { sections: View })[] } | null;
  if (data !== null) {
    embedded = true;
    for (const { sections, ...place } of data.runs) runs.push(loaded(place, sections));
    chosen = firstToShow();
    readAddress();
    drawAll();
    goToPlace();
    return;
  }
  await findRuns();
  chosen = firstToShow();
  readAddress();
  followChosen();
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(resizing);
  resizing = window.setTimeout(drawAll, 120);
});
let resizing = 0;
addEventListener("beforeprint", () => {
  for (const [panel, { width, anew }] of waiting) draw(panel, width, anew);
  waiting.clear();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());

start().catch((error: unknown) => {
  fill(main, h("p", { class: "waiting" }, `There is nothing to show: ${error instanceof Error ? error.message : String(error)}`));
});
