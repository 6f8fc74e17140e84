// The panel of a pipeline's stages: hosts and load by stage, columns of hosts, and moves, at both widths and live.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, picture, run, start, until } from "./support.mjs";

fs.writeFileSync(path.join(folder, "stages.yaml"), `
name: stages
description: twelve hosts hold three stages, and hosts move to the stage that lacks them
seed: 3
stop_time: 30min
network: {default_delay: 20ms}
devices: {fast: {samples_per_second: 20, jitter: 10%}}
peers:
  holder: {count: 12, role: stage, up: 50Mbit, down: 50Mbit, device: fast, churn: {session: {distribution: exponential, mean: 4min}, gap: {distribution: exponential, mean: 10s}}}
  driver: {count: 2, up: 50Mbit, down: 50Mbit, device: fast}
workload: {kind: timing, parameters: 30000, activation_size: 4KiB}
training: {method: pipeline, stages: 3, target_batch: 96, micro_batch: 4, epochs: 40, rebalance_every: 20s}
`);
const piped = await run("run", "stages.yaml", "--out", "piped", "--no-baseline", "--quiet");
check(piped.status === 0, `the run failed: ${piped.err}`);
// The page made from the directory says the same as the one that the run wrote.
const again = await run("report", "piped", "--out", "again.html");
check(again.status === 0, `the report failed: ${again.err}`);

const chromium = await browser();
const said = [];
for (const [file, width, colorScheme] of [["piped/report.html", 1400, "light"], ["piped/report.html", 390, "dark"], ["again.html", 1400, "dark"]]) {
  const page = await chromium.open(`file://${folder}/${file}`, { viewport: { width, height: 900 }, colorScheme });
  await page.waitForSelector("#panel-stages svg[role=img]");
  await checkCharts(page, ["stages"]);
  await checkWidth(page);
  const text = await page.textContent("#panel-stages");
  check(/3 stages\. Stage \d had [\d.]+ hosts on average, the fewest/.test(text), `the panel says '${text.slice(0, 200)}'`);
  check(/[1-9]\d* hosts? ha(s|ve) moved|One host has moved/.test(text), "the panel has no moves");
  const labels = await page.$$eval("#panel-stages svg[role=img]", (all) => all.map((svg) => svg.getAttribute("aria-label")));
  check(labels.length === 3 && labels[0].startsWith("Hosts of each stage over time") && labels[1].startsWith("Load of each stage over time") && labels[2].startsWith("Who has held each stage"), `the charts say ${labels.join(" | ")}`);
  const shares = [...labels[1].matchAll(/([\d.]+) % in stage/g)].map((found) => Number(found[1]));
  check(shares.length === 3 && shares.every((one) => one > 1 && one < 100), `the loads are ${labels[1]}`);
  check(/The hosts of stage \d computed for [\d.]+ % of their time, the least/.test(text), "no sentence has the loads");
  // A line for each stage, and an arrow for each move.
  const load = page.locator("#panel-stages svg[role=img]").nth(1), moves = Number(text.match(/(\d+|One) hosts? ha(?:s|ve) moved/)[1].replace("One", "1"));
  check((await load.locator("[aria-label=line] path").count()) === 3, "not each stage has a line of its load");
  check((await load.locator("[aria-label=arrow] path").count()) === moves, `${await load.locator("[aria-label=arrow] path").count()} arrows mark ${moves} moves`);
  check((await load.locator("[aria-label=arrow] path title").first().textContent()).includes("moved from stage"), "an arrow does not say who moved");
  // The chart has the cursor of all charts over time.
  const frame = page.locator("#panel-stages .plot.over-time .frame");
  check((await frame.count()) === 2, "not both charts over time have the common axis");
  await load.scrollIntoViewIfNeeded();
  await load.hover({ position: { x: 0.6 * width - 60, y: 120 } });
  check(await frame.first().locator(".cursor").isVisible(), "the chart of hosts has no cursor at the time in the chart of loads");
  said.push(labels.join());
  const panel = await page.$("#panel-stages");
  await panel.scrollIntoViewIfNeeded();
  await picture(page, `stages-${width}`);
  await page.close();
}
check(said[0] === said[2], `the page of the directory says '${said[2]}', and that of the run '${said[0]}'`);

// A run that goes on tells its loads, too.
const live = start("run", "stages.yaml", "--world", "emulate", "--set", "training.epochs=0", "--set", "training.min_refresh=500ms", "--set", "training.max_refresh=2s", "--set", "training.record_lifetime=6s", "--dashboard", "127.0.0.1:0", "--no-baseline", "--quiet");
const address = await until("word of the dashboard", () => /dashboard: (\S+)/.exec(live.said.err)?.[1]);
const page = await chromium.open(address);
await page.waitForSelector("#panel-stages [aria-label^='Load of each stage over time']", { timeout: 120_000 });
await until("a load of a run that goes on", async () => /[1-9]\d* % in stage 0/.test(await page.getAttribute("#panel-stages [aria-label^='Load of each stage over time']", "aria-label")));
await page.close();
await finish(chromium);
