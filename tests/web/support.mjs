// Chromium with a watch on it: whatever a page says in its console or asks another machine for is a failure.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export const [shoal, pictures] = [process.env.SHOAL_PROGRAM, process.env.SHOAL_PICTURES];
const { chromium } = await import(`${process.env.SHOAL_PLAYWRIGHT}/index.mjs`);

export const folder = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-web-"));
let failed = 0;
const children = [];

export function check(holds, what) {
  if (holds) return;
  failed++;
  console.error(`FAILED: ${what}`);
}

/** Waits until `holds()` is true; the time is only a limit. */
export async function until(what, holds, seconds = 60) {
  const end = Date.now() + 1000 * seconds;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Runs the program. Returns its status and what it said. */
export function run(...args) {
  const child = start(...args);
  return new Promise((done) => child.on("close", (status) => done({ status, out: child.said.out, err: child.said.err })));
}

export function start(...args) {
  const child = spawn(shoal, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  child.said = { out: "", err: "" };
  child.stdout.on("data", (text) => (child.said.out += text));
  child.stderr.on("data", (text) => (child.said.err += text));
  children.push(child);
  return child;
}

export async function browser(options = {}) {
  const instance = await chromium.launch({ executablePath: process.env.SHOAL_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  const open = async (url, { waitFor = "main[data-drawn]", ...more } = {}) => {
    const page = await instance.newPage({ viewport: { width: 1400, height: 900 }, ...options, ...more });
    const own = url.startsWith("http") ? new URL(url).origin : null;
    page.on("console", (message) => check(message.type() !== "error" && message.type() !== "warning", `the console says: ${message.text()}`));
    page.on("pageerror", (error) => check(false, `the page throws: ${error.stack}`));
    page.on("request", (request) => {
      const to = request.url();
      check(to.startsWith("data:") || to.startsWith("file:") || (own !== null && to.startsWith(own)), `a request leaves: ${to}`);
    });
    await page.goto(url);
    await page.waitForSelector(waitFor, { timeout: 120_000 });
    return page;
  };
  return { open, close: () => instance.close() };
}

/** Every chart has marks with a size, and a text for those who do not see it. */
export async function checkCharts(page, expected) {
  const charts = await page.evaluate(() =>
    [...document.querySelectorAll("article:not([hidden])")].map((article) => ({
      id: article.id.replace("panel-", ""),
      nothing: article.querySelector(".nothing")?.textContent ?? null,
      labels: [...article.querySelectorAll("svg[role=img]")].map((svg) => svg.getAttribute("aria-label")),
      marks: [...article.querySelectorAll("svg[role=img]")].map((svg) =>
        [...svg.querySelectorAll("path,rect,circle,image")].filter((mark) => {
          const box = mark.getBBox?.();
          return box && (box.width > 0 || box.height > 0) && !mark.closest("[aria-label$=tick],[aria-label$=grid]");
        }).length),
    })));
  for (const id of expected) {
    const chart = charts.find((c) => c.id === id);
    check(chart !== undefined, `there is no panel ${id}`);
    if (chart === undefined) continue;
    check(chart.nothing === null, `panel ${id} has no data: ${chart.nothing}`);
    check(chart.marks.length > 0 && chart.marks.every((n) => n > 0), `a chart of panel ${id} is empty: ${JSON.stringify(chart.marks)}`);
    check(chart.labels.every((label) => label && label.length > 10), `a chart of panel ${id} has no text`);
  }
  return charts;
}

/** Nothing is wider than the window. */
export async function checkWidth(page) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(over <= 0, `the page is ${over} pixels wider than the window`);
}

export async function picture(page, name) {
  fs.mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true });
}

export async function finish(browser) {
  await browser?.close();
  for (const child of children) if (child.exitCode === null) child.kill("SIGTERM");
  fs.rmSync(folder, { recursive: true, force: true });
  console.log(failed === 0 ? "all is well" : `${failed} checks failed`);
  process.exit(failed === 0 ? 0 : 1);
}

export const weather = path.join(process.env.SHOAL_SOURCE, "scenarios/stress/bad-weather.yaml");

/** Convex, so that there is a loss without libtorch. */
export const learning = `
name: hills
description: ten peers walk down a logistic hill, two are lost
seed: 5
stop_time: 2min
network: {regions: [eu, us], default_delay: 40ms}
devices: {laptop: {samples_per_second: 40, jitter: 10%, step_time: 10ms}, desktop: {samples_per_second: 90, jitter: 5%, step_time: 5ms}}
peers:
  home: {count: 6, region: eu, up: 10Mbit, down: 50Mbit, device: laptop, start_spacing: 1s}
  office: {count: 4, region: us, up: 40Mbit, down: 50Mbit, device: desktop}
workload: {kind: logistic, parameters: 3000}
training: {target_batch: 512, micro_batch: 8, optimizer: {kind: sgd, learning_rate: 0.05}}
averaging: {matchmaking_time: 2s, round_timeout: 30s, sender_timeout: 6s, compression: float16}
faults:
  - {kill: process, select: "home-*", on: all_reduce.half_sent, nth: 30}
  - {restart: machine, select: office-1, at: 40s, downtime: 20s}
  - {throttle: up, select: "home-*", at: 1min, duration: 20s, mode: all, factor: 30%}
record: {metrics_interval: 1s, held_out_every: 4}
`;
