// A swarm of processes on ports of this machine, on one page. The page shows its hosts, rounds and
// bytes as one run, live and
// afterwards. The test types the command with which the page says that another host joins.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, picture, run, shoal, start, until } from "./support.mjs";

fs.writeFileSync(path.join(folder, "reef.yaml"), `
name: reef
description: three hosts and the one that has the samples
seed: 5
stop_time: 10min
network: {regions: [eu], default_delay: 1ms, detection_time: 3s}
devices: {laptop: {samples_per_second: 60, jitter: 5%}}
peers: {home: {count: 3, region: eu, up: 50Mbit, down: 50Mbit, device: laptop}}
workload: {kind: logistic, parameters: 2000}
training: {target_batch: 256, micro_batch: 8, epochs: 40, optimizer: {kind: sgd, learning_rate: 0.05}}
averaging: {matchmaking_time: 1s, round_timeout: 30s, sender_timeout: 6s}
record: {metrics_interval: 1s, held_out_every: 4}
`);
const port = (host = "127.0.0.1") => new Promise((done) => {
  const server = net.createServer();
  server.listen(0, host, () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
const [atShard, atHome0, atHome2] = [await port(), await port(), await port()].map((p) => `127.0.0.1:${p}`), atHome1 = `127.0.0.2:${await port("127.0.0.2")}`;
await run("keys", "init", "moderator", "--swarm", "reef");
for (const name of ["shard-0", "home-0", "home-2"]) await run("keys", "admit", name, "--moderator", "moderator", "-o", `keys/${name}`);
const node = (name, at, ...more) => start("node", "reef.yaml", "--name", name, "--keys", `keys/${name}`, "--listen", at, "--pace", "--out", `out/${name}`, "--quiet", ...more);
const begun = (name) => until(`the directory of ${name}`, () => fs.existsSync(path.join(folder, "out", name, "run.yaml")));
const swarm = [node("shard-0", atShard)];
await begun("shard-0");
swarm.push(node("home-0", atHome0, "--join", atShard));
await begun("home-0");

const serves = start("serve", "out", "--listen", "127.0.0.1:0");
const url = await until("its address", () => /http:\S+/.exec(serves.said.out)?.[0]);
const chromium = await browser();
const page = await chromium.open(url);
check((await page.textContent(".state")) === "running", "it does not say that the swarm runs");
check((await page.textContent("h1")) === "reef", "it has another name");
const rows = (panel) => page.$$eval(`#panel-${panel} tbody tr`, (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
const hosts = await until("two hosts", async () => {
  const all = await rows("nodes");
  return all.length === 2 && all;
});
check(hosts.every((row) => row[1] === "running") && hosts[0][4] === atShard, `the hosts are ${JSON.stringify(hosts)}`);

// Another computer, 127.0.0.2 with a folder of its own, follows the text of the page: every command as it stands there.
const second = path.join(folder, "second");
fs.mkdirSync(second);
const commands = (on) => page.$$eval(`#panel-join .command[data-on=${on}] code`, (all) => all.map((code) => code.textContent));
check((await commands("you")).some((line) => line.includes("--name volunteer-1 --group home")), `one more host is told ${await commands("you")}`);
await page.selectOption("#join-as", "home-1");
await page.press("#join-dialled", "Space");
check((await commands("you")).some((line) => line.includes("--outbound-only") && !line.includes("--listen")), `a host behind a router is told ${await commands("you")}`);
await page.press("#join-dialled", "Space");
await page.fill("#join-address", atHome1);
await page.keyboard.press("Tab");
const [version, request, answer, look, join, status] = await commands("you"), [admit] = await commands("moderator");
check(["reef.yaml", "--pace", "--name home-1", `--listen ${atHome1}`, `--join ${atShard}`, "--keys keys/home-1"].every((word) => join.includes(word)), `home-1 is told: ${join}`);
const saved = page.waitForEvent("download");
await page.click("#panel-join a.save");
await (await saved).saveAs(path.join(second, "reef.yaml"));
check(!fs.readFileSync(path.join(second, "reef.yaml"), "utf8").includes("x-run"), "the saved scenario names the host that wrote it");
const shell = { env: { ...process.env, PATH: `${path.dirname(shoal)}:${process.env.PATH}` }, encoding: "utf8" };
const type = (line, cwd) => execFileSync("bash", ["-ec", line], { ...shell, cwd });
check(/\d+\.\d+/.test(type(version, second)), "the program has no version");
type(request, second);
// By mail there, and back.
fs.copyFileSync(path.join(second, "keys/home-1/home-1.csr"), path.join(folder, "home-1.csr"));
type(admit, folder);
fs.cpSync(path.join(folder, "answer-home-1"), path.join(second, "answer-home-1"), { recursive: true });
type(answer, second);
check(type(look, second).includes("can be started with it"), "the keys of the second host are not whole");
swarm.push(spawn("bash", ["-c", `exec ${join} --quiet`], { ...shell, cwd: second, stdio: ["ignore", "ignore", "inherit"] }));
swarm[2].said = { err: "" };
await until("the directory of home-1", () => fs.existsSync(path.join(second, "out/home-1/run.yaml")));
// The page reads directories, as over NFS.
fs.symlinkSync(path.join(second, "out/home-1"), path.join(folder, "out/home-1"));
await until("a third host", async () => (await rows("nodes")).some((row) => row[0] === "home-1" && row[1] === "running"), 90);
await until("the second host to see itself", () => /home-1 +trainer/.test(type(status, second)));
check((await page.inputValue("#join-address")) === atHome1, "news take away what somebody typed");
check(!(await page.$$eval("#join-as option", (all) => all.map((o) => o.textContent))).includes("home-1"), "who is there can join again");
swarm.push(node("home-2", atHome2, "--join", atShard));
await until("all of them in the list of contributions", async () => (await rows("leaderboard")).length === 3, 120);
await until("a round of three", () => page.$$eval("#panel-round-table tbody tr", (all) => all.some((row) => row.children[4]?.textContent === "3")), 120);
await picture(page, "cluster-live-1400");

// The page of one node opens, and closes again.
await page.click("#panel-nodes button >> text=home-1");
await until("the page of one host", async () => (await page.textContent(".what")).includes("what home-1 saw"));
check((await page.$("#panel-nodes")) === null || (await page.isHidden("#panel-nodes")), "the page of a host has the table of hosts");
check((await page.$$eval("#run-picker option", (o) => o.map((x) => x.textContent.trim()))).join() === "out (all hosts),out/home-0,out/shard-0,out/home-1,out/home-2", "the list of runs is another one");
await page.selectOption("#run-picker", "0");
await until("the whole swarm again", () => page.isVisible("#panel-nodes"));

// One is killed and does not say so; the others go on, and end.
check(swarm[3].exitCode === null, "home-2 has ended too early to be killed");
swarm[3].kill("SIGKILL");
for (const one of swarm.slice(0, 3)) await until("the end of a node", () => one.exitCode !== null, 300);
check(swarm.slice(0, 3).every((one) => one.exitCode === 0), `the nodes ended with ${swarm.map((one) => one.exitCode)}: ${swarm.map((one) => one.said.err).join("\n")}`);
await until("its silence", async () => (await rows("nodes")).some((row) => row[0] === "home-2" && row[1] === "silent"), 90);
await until("no more than that", async () => (await page.textContent(".state")) === "unfinished");
const board = await rows("leaderboard");
check(board.length === 3, `the contributions are those of ${board.map((row) => row[1])}`);
await checkCharts(page, ["objective", "speed", "active", "sessions", "bubbles", "losses", "rounds-over-time", "traffic", "traffic-hosts"]);
await checkWidth(page);
await picture(page, "cluster-1400");

// Each round once, with all of its members, and as `shoal compare` counts them.
const compared = JSON.parse((await run("compare", "out", "out", "--json")).out);
const ok = compared.figures.find((f) => f.key === "ok")?.actual;
const tile = async (name) => page.$$eval(".tile", (tiles, n) => tiles.find((t) => t.querySelector("dt").textContent === n).querySelector("b").textContent, name);
const all = ["ok", "partial", "split", "failed"].map((key) => compared.figures.find((f) => f.key === key)?.actual ?? 0).reduce((a, b) => a + b);
check(Number(await tile("rounds")) === all && ok > 10, `the page has ${await tile("rounds")} rounds, compare ${all}, ok ${ok}`);
await page.click("#panel-round-table .choice >> text=slowest");
await page.click("#panel-round-table tbody tr:first-child td:nth-child(4)");
check(/home-\d/.test(await page.textContent("#round-detail")), "a round has no members");

// The same as one file.
const report = await run("report", "out");
check(report.status === 0, `the report failed: ${report.err}`);
const file = await chromium.open(`file://${folder}/out/report.html`);
const tiles = (of) => of.$$eval(".tile b", (every) => every.map((b) => b.textContent));
check(JSON.stringify(await tiles(page)) === JSON.stringify(await tiles(file)), `served ${await tiles(page)}, report ${await tiles(file)}`);
await file.click("#panel-nodes button >> text=home-0");
check((await file.textContent(".what")).includes("what home-0 saw"), "a host's page is not in the report");
for (const [name, viewport, colorScheme] of [["420-light", { width: 420, height: 900 }, "light"], ["1400-dark", { width: 1400, height: 900 }, "dark"], ["420-dark", { width: 420, height: 900 }, "dark"]]) {
  const one = await chromium.open(`file://${folder}/out/report.html`, { viewport, colorScheme });
  await checkWidth(one);
  await picture(one, `cluster-${name}`);
  await one.close();
}
await finish(chromium);
