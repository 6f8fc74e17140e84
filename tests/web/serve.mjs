// Several runs: chosen from a list, one beside the other; one that was killed; one that grows.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, finish, folder, learning, picture, run, start, until } from "./support.mjs";

fs.writeFileSync(path.join(folder, "hills.yaml"), learning);
await run("run", "hills.yaml", "--out", "predicted", "--no-baseline", "--quiet");
await run("run", "hills.yaml", "--out", "actual", "--no-baseline", "--quiet", "--set", "network.default_delay=90ms");
// As a process that was killed leaves them.
fs.cpSync(path.join(folder, "actual"), path.join(folder, "killed"), { recursive: true });
for (const name of ["metrics.csv", "epochs.csv", "contributions.csv", "events.jsonl.zst", "transfers.jsonl.zst"]) {
  const whole = fs.readFileSync(path.join(folder, "killed", name));
  fs.writeFileSync(path.join(folder, "killed", `${name}.partial`), whole.subarray(0, Math.floor(whole.length * 0.7)));
  fs.rmSync(path.join(folder, "killed", name));
}
for (const name of ["summary.json", "peers.csv", "traffic.csv", "report.html"]) fs.rmSync(path.join(folder, "killed", name));

const serves = start("serve", "predicted", "actual", "killed", "--listen", "127.0.0.1:0");
const url = await until("its address", () => /http:\S+/.exec(serves.said.out)?.[0]);
const chromium = await browser();
const page = await chromium.open(url);
check((await page.$$eval("#run-picker option", (o) => o.length)) === 3, "not all runs are in the list");
await page.waitForSelector("#panel-comparison svg");
await checkCharts(page, ["objective", "comparison", "sessions"]);
check((await page.textContent("#panel-comparison")).includes("round"), "the comparison has no figures");
check((await page.$$eval('#panel-objective path[stroke-dasharray], #panel-objective [stroke-dasharray] path', (p) => p.length)) > 0, "the prediction is not drawn beside");
await picture(page, "serve-1400");
const drawn = () => page.$eval("main", (m) => Number(m.dataset.drawn));
const before = await drawn();
await page.selectOption("#run-picker", "2");
await until("a killed run to say so", async () => (await page.textContent(".state")) === "unfinished");
await until("all of it", async () => (await drawn()) > before);
await checkCharts(page, ["objective", "active", "sessions", "rounds-over-time"]);
await picture(page, "killed-1400");
await finish(chromium);
