// One time axis for all charts over time. They share a cursor and a stretch that is chosen by dragging. A veil covers
// the part that is later than the moment.

import { h } from "./dom";
import { seconds } from "./format";
import { choice, choose, moveTo } from "./moment";

export interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
  width: number;
  height: number;
  /** The ends of the axis in seconds. */
  from: number;
  to: number;
}

/** All frames on the page, also those that come later. */
const frames = document.getElementsByClassName("frame") as HTMLCollectionOf<HTMLElement>;
const dragged = 6;

const percent = (x: number) => `${100 * Math.min(1, Math.max(0, x))}%`;

function eachFrame(run: (frame: HTMLElement, from: number, to: number) => void): void {
  for (const frame of frames) run(frame, Number(frame.dataset.from), Number(frame.dataset.to));
}

function pointAt(t: number | null): void {
  eachFrame((frame, from, to) => {
    const cursor = frame.children[1] as HTMLElement;
    cursor.hidden = t === null || t < from || t > to;
    if (t !== null) cursor.style.left = percent((t - from) / (to - from));
  });
}

function select(a: number, b: number | null): void {
  eachFrame((frame, from, to) => {
    const band = frame.children[2] as HTMLElement;
    band.hidden = b === null;
    if (b === null) return;
    band.style.left = percent((Math.min(a, b) - from) / (to - from));
    band.style.right = percent(1 - (Math.max(a, b) - from) / (to - from));
  });
}

/** Covers what is later than the moment. */
export function veil(): void {
  eachFrame((frame, from, to) => {
    const cover = frame.children[0] as HTMLElement;
    cover.hidden = choice.at === null || choice.at >= to;
    if (choice.at !== null) cover.style.left = percent((choice.at - from) / (to - from));
  });
}

/** Makes `plot` one of the charts with the common axis. A click goes to `click`, or else sets the moment. */
export function onTimeAxis(plot: HTMLElement, frame: Frame, span: [number, number] | null, click?: (t: number, event: PointerEvent) => boolean): void {
  const over = h("div", { class: "frame", "data-from": frame.from, "data-to": frame.to, "aria-hidden": "true",
    style: `left:${percent(frame.left / frame.width)};right:${percent(frame.right / frame.width)};top:${percent(frame.top / frame.height)};bottom:${percent(frame.bottom / frame.height)}` },
    h("div", { class: "veil", hidden: true }), h("div", { class: "cursor", hidden: true }), h("div", { class: "selection", hidden: true }));
  if (span && span[1] > frame.from && span[0] < frame.to)
    over.append(h("div", { class: "chosen-span", style: `left:${percent((span[0] - frame.from) / (frame.to - frame.from))};right:${percent(1 - (span[1] - frame.from) / (frame.to - frame.from))}` }));
  plot.append(over);
  plot.classList.add("over-time");
  const cover = over.children[0] as HTMLElement;
  if (choice.at !== null && choice.at < frame.to) {
    cover.hidden = false;
    cover.style.left = percent((choice.at - frame.from) / (frame.to - frame.from));
  }
  const time = (event: PointerEvent) => {
    const box = over.getBoundingClientRect();
    return frame.from + ((event.clientX - box.left) / Math.max(1, box.width)) * (frame.to - frame.from);
  };
  const clamp = (t: number) => Math.min(frame.to, Math.max(frame.from, t));
  let begun: { x: number; t: number } | null = null, drags = false;
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.target as Element).closest("a,button,input,.fault-name,.opens-peer")) return;
    // Plot would keep a tip open that a press pins.
    event.stopPropagation();
    begun = { x: event.clientX, t: time(event) };
    drags = false;
  }, { capture: true });
  plot.addEventListener("pointermove", (event) => {
    const t = time(event);
    if (begun && Math.abs(event.clientX - begun.x) > dragged && !drags) {
      drags = true;
      plot.setPointerCapture(event.pointerId);
    }
    if (begun && drags) select(clamp(begun.t), clamp(t));
    pointAt(t);
  });
  const end = (event: PointerEvent, good: boolean) => {
    if (!begun) return;
    const [a, b] = [clamp(begun.t), clamp(time(event))], first = begun.t;
    begun = null;
    if (drags) {
      select(0, null);
      drags = false;
      if (good && Math.abs(b - a) > 1e-6 * (frame.to - frame.from)) choose({ range: [Math.min(a, b), Math.max(a, b)] });
    } else if (good && !click?.(first, event) && first >= frame.from && first <= frame.to) moveTo(first);
  };
  plot.addEventListener("pointerup", (event) => end(event, true));
  plot.addEventListener("pointercancel", (event) => end(event, false));
  plot.addEventListener("pointerleave", () => {
    if (!drags) pointAt(null);
  });
  plot.addEventListener("dblclick", (event) => {
    event.preventDefault();
    choose({ range: null });
  });
}

/** The words for a stretch of time. */
export const stretch = (range: [number, number]): string => `${seconds(range[0])} to ${seconds(range[1])}`;
