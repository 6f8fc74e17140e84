// The panel of a mixture's experts: a grid by use, hosts, copies and deaths, at both widths and at a moment.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, picture, run, until } from "./support.mjs";

const text = path.join(folder, "text.txt");
fs.writeFileSync(text, "The shoal swims through a cold sea. ".repeat(1500));
fs.writeFileSync(path.join(folder, "experts.yaml"), `
name: experts
description: six hosts hold thirty-two experts, and two die
seed: 2
stop_time: 4min
network: {default_delay: 20ms}
devices: {laptop: {samples_per_second: 8, jitter: 10%}}
workload: {kind: mixture, layers: 2, heads: 2, dim: 8, context: 16, expert_layers: 2, grid: 4x4, chosen: 2}
data: {files: ['${text}']}
training: {method: experts, target_batch: 32, micro_batch: 8, epochs: 30, copy_every: 3s, record_lifetime: 20s}
peers:
  holder: {count: 6, role: expert, up: 50Mbit, down: 50Mbit, device: laptop}
  trainer: {count: 2, up: 50Mbit, down: 50Mbit, device: laptop}
faults:
  - {kill: machine, select: holder-0, at: 25s}
  - {kill: machine, select: holder-1, at: 25s}
record: {held_out_every: 0}
`);
const mixed = await run("run", "experts.yaml", "--out", "mixed", "--no-baseline", "--quiet");
check(mixed.status === 0, `the run failed: ${mixed.err}`);
// The page made from the directory says the same as the one that the run wrote.
const again = await run("report", "mixed", "--out", "again.html");
check(again.status === 0, `the report failed: ${again.err}`);

const chromium = await browser();
const said = [];
for (const [file, width] of [["mixed/report.html", 1400], ["mixed/report.html", 390], ["again.html", 1400]]) {
  const page = await chromium.open(`file://${folder}/${file}`, { viewport: { width, height: 900 } });
  await page.waitForSelector("#panel-experts svg[role=img]");
  await checkCharts(page, ["experts"]);
  await checkWidth(page);
  const words = await page.textContent("#panel-experts .body > p:first-child");
  check(/32 experts in 2 layers\. [1-9]\d* times a host died with an expert, and [1-9]\d* times a copy revived one, after [\d.]+ s in the median/.test(words), `the panel says '${words}'`);
  const cells = await page.$$eval("#panel-experts rect[data-expert]", (all) => all.map((box) => `${box.dataset.expert} ${box.dataset.state} ${box.getAttribute("fill-opacity")}`));
  check(cells.length === 32, `there are ${cells.length} cells`);
  check(cells.some((cell) => cell.includes("revived")), "no expert was revived");
  said.push(words + cells.join());
  await page.click("#panel-experts rect[data-expert='0.1.2']");
  const detail = await page.textContent("#panel-experts .expert-detail");
  check(/^0\.1\.2: holder-\d since .*steps, .*requests/.test(detail), `the expert says '${detail}'`);
  await page.press("#panel-experts svg", "ArrowRight");
  check((await page.textContent("#panel-experts .expert-detail")).startsWith("0.1.3: "), "an arrow key does not move on");
  // A moment between the deaths and the first revival: nobody holds the experts of both hosts.
  const before = await page.textContent("#panel-experts .body > p:nth-child(2)");
  await page.evaluate(() => (location.hash = "#panel-experts?at=27"));
  const at = await until("the moment", async () => {
    const now = await page.textContent("#panel-experts .body > p:nth-child(2)");
    return now !== before && now;
  });
  check(/^At 27(\.0)? s: [\d,]+ rows in .*\. Nobody holds [1-9]\d* of 32/.test(at), `the moment says '${at}'`);
  const nobody = await page.$$eval("#panel-experts rect[data-state=nobody]", (all) => all.length);
  check(nobody >= 4 && at.includes(`Nobody holds ${nobody} of`), `${nobody} cells are without a host, and the text says '${at}'`);
  await picture(page, `experts-${width}`);
  await page.close();
}
check(said[0] === said[2], `the page of the directory says '${said[2]}', and that of the run '${said[0]}'`);
await finish(chromium);
