// The pictures of docs/page.md, from runs that anybody can repeat. No test; it writes into docs/pictures:
//   tests/web/in_chromium build/release/bin/shoal build/release pictures.mjs
import fs from "node:fs";
import path from "node:path";
import { browser, check, finish, folder, learning, run, start, until } from "./support.mjs";

const source = process.env.SHOAL_SOURCE, to = path.join(source, "docs/pictures");
const chromium = await browser();
const sizes = [["1400", { width: 1400, height: 1000 }], ["390", { width: 390, height: 844 }]];
/** At both widths, with the panel at the top of the window. */
async function shoot(name, url, place, before = async () => {}) {
  for (const [size, viewport] of sizes) {
    const page = await chromium.open(url, { viewport });
    await before(page);
    await page.evaluate((id) => id && document.getElementById(id).scrollIntoView({ block: "start", behavior: "instant" }), place);
    await page.waitForTimeout(700);
    // Panels above may have got their height only now.
    await page.evaluate((id) => id && document.getElementById(id).scrollIntoView({ block: "start", behavior: "instant" }), place);
    await page.waitForTimeout(300);
    const file = path.join(to, `page-${name}-${size}.png`);
    await page.screenshot({ path: file });
    check(fs.statSync(file).size <= 300 * 1024, `${file} has ${fs.statSync(file).size} bytes`);
    await page.close();
  }
}

const kept = process.env.SHOAL_QUICKSTART;
const quick = kept ?? path.join(folder, "quickstart");
if (!kept) check((await run("run", path.join(source, "scenarios/quickstart.yaml"), "--out", quick, "--quiet")).status === 0, "quickstart failed");
const report = `file://${quick}/report.html`;
await shoot("file", report, null);
await shoot("moment", `${report}#?at=250`, "people");
await shoot("challenges", report, "challenges");

// A pipeline whose hosts come, go and move.
check((await run("run", path.join(source, "scenarios/swarm/volunteers.yaml"), "--out", "piped", "--no-baseline", "--quiet")).status === 0, "the pipeline failed");
await shoot("stages", `file://${folder}/piped/report.html`, "panel-stages");

// A thousand experts, a tenth of whose hosts die at once.
fs.writeFileSync(path.join(folder, "experts.yaml"), `
name: thousand_experts
seed: 1
stop_time: 5min
workload: {kind: mixture, layers: 1, heads: 2, dim: 8, context: 16, experts: transformer, grid: 32x32, chosen: 4}
data: {files: [/usr/share/common-licenses/*]}
training: {method: experts, target_batch: 32, micro_batch: 4, epochs: 1000, copy_every: 1min, max_refresh: 20s, record_lifetime: 2min}
network: {default_delay: 25ms}
devices: {laptop: {samples_per_second: 1}}
peers:
  holder: {count: 256, role: expert, up: 100Mbit, down: 100Mbit, device: laptop}
  trainer: {count: 4, up: 100Mbit, down: 100Mbit, device: laptop}
faults:
  - {kill: machine, select: "holder-*", mode: fixed-percent, value: 10%, at: 2min}
record: {held_out_every: 100}
`);
check((await run("run", "experts.yaml", "--out", "experts", "--no-baseline", "--quiet")).status === 0, "the experts failed");
await shoot("experts", `file://${folder}/experts/report.html`, "panel-experts", (page) => page.click("#panel-experts rect[data-expert='0.3.5']"));

fs.writeFileSync(path.join(folder, "hills.yaml"), learning);
const live = start("run", "hills.yaml", "--world", "emulate", "--no-baseline", "--dashboard", "127.0.0.1:0", "--quiet");
const url = await until("word of the dashboard", () => /dashboard: (\S+)/.exec(live.said.err)?.[1]);
await new Promise((done) => setTimeout(done, 35_000));
await shoot("live", url, null, (page) => until("the time left", async () => / left$/.test(await page.textContent(".live .left")) && !(await page.textContent(".live .left")).includes("not known")));
live.kill("SIGINT");

// A swarm with friends, whose page says how to join.
const begun = start("new", "reef", "--from", "page", "--yes", "--no-start", "--workload", "logistic", "--page", "127.0.0.1:7480", "--address", "127.0.0.1:7470");
await until("the folder", () => begun.exitCode !== null);
const swarm = start("node", "reef/reef.yaml", "--pace", "--name", "shard-0", "--keys", "reef/keys/shard-0", "--listen", "127.0.0.1:7470", "--out", "out/shard-0", "--quiet");
const member = start("node", "reef/reef.yaml", "--pace", "--name", "home-0", "--keys", "reef/keys/home-0", "--listen", "127.0.0.1:7471", "--join", "127.0.0.1:7470", "--out", "out/home-0", "--quiet");
await until("both hosts", () => ["shard-0", "home-0"].every((name) => fs.existsSync(path.join(folder, "out", name, "run.yaml"))));
const served = start("serve", "out", "--listen", "127.0.0.1:0");
const join = await until("its address", () => /http:\S+/.exec(served.said.out)?.[0]);
await shoot("join", join, "panel-join");
for (const one of [swarm, member, served]) one.kill("SIGTERM");
await finish(chromium);
