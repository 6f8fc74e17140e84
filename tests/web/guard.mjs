// The panel of Byzantine-tolerant rounds: distances, audits, accusations and bans, at both widths, beside the same run without a guard.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, picture, run } from "./support.mjs";

fs.writeFileSync(path.join(folder, "liars.yaml"), `
name: liars
description: nine volunteers, two of them attack from step 10
seed: 5
stop_time: 10min
network: {default_delay: 20ms}
devices: {fast: {samples_per_second: 100, jitter: 10%, step_time: 5ms}}
peers:
  home: {count: 7, up: 20Mbit, down: 40Mbit, device: fast}
  loud: {count: 1, up: 20Mbit, down: 40Mbit, device: fast, conduct: {kind: flipped_signs, strength: 10, from_epoch: 10}}
  near: {count: 1, up: 20Mbit, down: 40Mbit, device: fast, conduct: {kind: inner_product_manipulation, strength: 0.1, from_epoch: 10}}
workload: {kind: logistic, parameters: 101}
training: {target_batch: 128, micro_batch: 4, epochs: 60, optimizer: {kind: sgd, learning_rate: 0.5}}
averaging: {min_group_size: 4, matchmaking_time: 2s}
security: {kind: btard, radius: 0.3, duty_time: 10s}
`);
const guarded = await run("run", "liars.yaml", "--out", "guarded", "--no-baseline", "--quiet");
check(guarded.status === 0, `the run failed: ${guarded.err}`);
const plain = await run("run", "liars.yaml", "--set", "security.kind=none", "--set", "security.duty_time=30s", "--out", "plain", "--no-baseline", "--quiet");
check(plain.status === 0, `the run without a guard failed: ${plain.err}`);

const chromium = await browser();
for (const width of [1400, 390]) {
  const page = await chromium.open(`file://${folder}/guarded/report.html`, { viewport: { width, height: 900 } });
  await page.waitForSelector("#panel-guard svg[role=img]");
  await checkCharts(page, ["guard"]);
  await checkWidth(page);
  const text = await page.textContent("#panel-guard");
  for (const said of ["2 bans", "loud-0 at step", "near-0 at step", "lost a case about a gradient", "computed the contribution of"])
    check(text.includes(said), `the panel does not say '${said}'`);
  const labels = await page.$$eval("#panel-guard svg[role=img]", (all) => all.map((svg) => svg.getAttribute("aria-label")));
  check(labels.length === 2 && labels[0].startsWith("Distance of each contribution") && / [23] found a false contribution/.test(labels[1]), `the charts say ${labels.join(" | ")}`);
  const panel = await page.$("#panel-guard");
  await panel.scrollIntoViewIfNeeded();
  await picture(page, `guard-${width}`);
  await page.close();
}
// A run without a guard has no such panel.
const page = await chromium.open(`file://${folder}/plain/report.html`);
check(await page.$eval("#panel-guard", (panel) => panel.hidden), "a run without a guard has the panel");
await finish(chromium);
