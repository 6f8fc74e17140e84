// The panel of a pipeline's stages: hosts by stage, columns of hosts, and moves, at both widths.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, picture, run } from "./support.mjs";

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
for (const [file, width] of [["piped/report.html", 1400], ["piped/report.html", 390], ["again.html", 1400]]) {
  const page = await chromium.open(`file://${folder}/${file}`, { viewport: { width, height: 900 } });
  await page.waitForSelector("#panel-stages svg[role=img]");
  await checkCharts(page, ["stages"]);
  await checkWidth(page);
  const text = await page.textContent("#panel-stages");
  check(/3 stages\. Stage \d had [\d.]+ hosts on average, the fewest/.test(text), `the panel says '${text.slice(0, 200)}'`);
  check(/[1-9]\d* hosts? ha(s|ve) moved|One host has moved/.test(text), "the panel has no moves");
  const labels = await page.$$eval("#panel-stages svg[role=img]", (all) => all.map((svg) => svg.getAttribute("aria-label")));
  check(labels.length === 2 && labels[0].startsWith("Hosts of each stage over time") && labels[1].startsWith("Who has held each stage"), `the charts say ${labels.join(" | ")}`);
  said.push(labels.join());
  const panel = await page.$("#panel-stages");
  await panel.scrollIntoViewIfNeeded();
  await picture(page, `stages-${width}`);
  await page.close();
}
check(said[0] === said[2], `the page of the directory says '${said[2]}', and that of the run '${said[0]}'`);
await finish(chromium);
