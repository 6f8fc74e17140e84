// The page of a run that goes on: it moves with the run, and ends with it.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, finish, folder, learning, picture, start, until } from "./support.mjs";

// In real time, so that there is something to watch.
fs.writeFileSync(path.join(folder, "hills.yaml"), learning.replace("stop_time: 2min", "stop_time: 25s"));
const runs = start("run", "hills.yaml", "--world", "emulate", "--no-baseline", "--out", "live", "--dashboard", "127.0.0.1:0", "--quiet");
const url = await until("word of the dashboard", () => /dashboard: (\S+)/.exec(runs.said.err)?.[1]);
const chromium = await browser();
const page = await chromium.open(url);
check((await page.textContent(".state")) === "running", "it does not say that the run goes on");

// How far it is, how long it takes, and the newest events.
const left = await until("the time left", async () => {
  const text = await page.textContent(".live .left");
  return / left$/.test(text) && text;
});
check(/^[\d.]+ %, (\d|less)/.test(left), `the time left is '${left}'`);
const news = () => page.$$eval(".newest li", (all) => all.map((li) => li.textContent));
const first = await until("events", async () => (await news()).length >= 3 && (await news()));
check(first.every((text) => / came$|round of epoch|fault: |: /.test(text)), `the events are ${first}`);
await until("newer events", async () => (await news())[0] !== first[0]);
await page.click(".newest button >> nth=0");
await until("what it opens", async () => (await page.isVisible("#back")) || (await page.$("#time .limits .chip:not(#back)")) !== null);
await page.keyboard.press("Escape");
check((await page.textContent("#time .clock")).startsWith("now"), "the moment of a run that goes on is not now");

const drawn = () => page.$eval("main", (m) => Number(m.dataset.drawn));
const samples = () => page.$$eval(".tile", (tiles) => tiles.find((t) => t.querySelector("dt").textContent === "samples").querySelector("b").textContent);
const line = () => page.$eval("#panel-active svg [aria-label=line] path", (p) => p.getAttribute("d"));
await until("the first line of participants", () => page.$("#panel-active svg [aria-label=line] path"));
const [drawnBefore, samplesBefore, lineBefore] = [await drawn(), await samples(), await line()];
await until("another number of samples", async () => (await samples()) !== samplesBefore);
await until("a longer line", async () => (await line()) !== lineBefore);
check((await drawn()) > drawnBefore, "it is not drawn again");
// A click is not lost when news come between press and release.
const header = page.locator("#panel-leaderboard th button >> nth=0");
await header.scrollIntoViewIfNeeded();
const sorted = () => page.getAttribute("#panel-leaderboard th:nth-child(1)", "aria-sort");
const order = await sorted();
let at = null; // nothing while the table is drawn again
await until("the header's place", async () => (at = await header.boundingBox()) !== null);
await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
await page.mouse.down();
await page.waitForTimeout(800);
await page.mouse.up();
await until("the order of a slow click", async () => (await sorted()) !== order);
// Typed text is not lost when news come.
await page.fill("#panel-leaderboard input[type=search]", "home");
const then = await drawn();
await until("news", async () => (await drawn()) > then + 1);
check((await page.inputValue("#panel-leaderboard input[type=search]")) === "home", "news take away what somebody typed");
await picture(page, "live-1400");

await until("the end", async () => (await page.textContent(".state")) === "ended", 120);
check((await page.$(".live")) === null, "a run that has ended has time left");
await until("the program's end", () => runs.exitCode !== null);
check(runs.exitCode === 0, `the run ended with ${runs.exitCode}: ${runs.said.err}`);
await checkCharts(page, ["objective", "speed", "active", "sessions", "bubbles", "losses", "rounds-over-time", "traffic", "traffic-hosts", "traffic-regions", "links"]);

// The live figures equal those of the directory.
const tiles = (of) => of.$$eval(".tile b", (all) => all.map((b) => b.textContent));
const report = await chromium.open(`file://${folder}/live/report.html`);
check(JSON.stringify(await tiles(page)) === JSON.stringify(await tiles(report)), `live ${await tiles(page)}, report ${await tiles(report)}`);
await finish(chromium);
