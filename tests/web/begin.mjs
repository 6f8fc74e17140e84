// `shoal new --from page`: from answers on standard input to a swarm with keys and a page. A friend on another host of the
// loopback follows invite.md as it stands, and joins.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { browser, check, checkWidth, finish, folder, picture, shoal, until } from "./support.mjs";

const shell = { env: { ...process.env, PATH: `${path.dirname(shoal)}:${process.env.PATH}` }, encoding: "utf8", cwd: folder };
/** A port whose successor is free, too. */
const pair = () => new Promise((done) => {
  const first = net.createServer();
  first.listen(0, "127.0.0.1", () => {
    const { port } = first.address(), second = net.createServer();
    const end = (good) => first.close(() => (good ? done(port) : pair().then(done)));
    second.once("error", () => end(false));
    second.listen(port + 1, "127.0.0.1", () => second.close(() => end(true)));
  });
});
const [port, pagePort] = [await pair(), await pair()];
const busy = net.createServer();
const busyPort = await new Promise((done) => busy.listen(0, "127.0.0.1", () => done(busy.address().port)));

// Wrong answers are asked again with a reason; in the end all is as answered.
const answers = ["dancing", "logistic", "nowhere", `127.0.0.1:${busyPort}`, "0.0.0.0:7000", `127.0.0.1:${port}`, "none", "1", "0", "100000", `127.0.0.1:${port}`, `127.0.0.1:${pagePort}`];
const begun = spawn(shoal, ["new", "reef", "--from", "page"], { ...shell, detached: true, stdio: ["pipe", "pipe", "pipe"] });
let said = "";
begun.stdout.on("data", (text) => (said += text));
begun.stderr.on("data", (text) => (said += text));
begun.stdin.end(`${answers.join("\n")}\n`);
process.on("exit", () => {
  try {
    process.kill(-begun.pid, "SIGTERM");
  } catch {
    // The process group has ended.
  }
});
await until("the swarm", () => {
  if (begun.exitCode !== null) throw new Error(`it ended with ${begun.exitCode}: ${said}`);
  return /its page: (\S+)/.test(said);
}, 120);
for (const reason of ["'dancing' is none of", "nowhere", `port ${busyPort} cannot be had`, "friends cannot dial 0.0.0.0", "'none' is no whole number", "'0' is no whole number", "already taken by this swarm"])
  check(said.includes(reason), `no wrong answer got the reason "${reason}": ${said}`);
busy.close();
const home = path.join(folder, "reef");
for (const name of ["reef.yaml", "invite.md", "README.md", "start", "moderator/moderator.key", "keys/home-0/node.crt", "keys/shard-0/node.key"]) check(fs.existsSync(path.join(home, name)), `reef/${name} is missing`);
check((fs.statSync(path.join(home, "moderator/moderator.key")).mode & 0o077) === 0, "others can read the moderator's key");
check(execFileSync(shoal, ["check", "reef/reef.yaml"], shell).length >= 0, "the scenario is wrong");

const chromium = await browser();
const page = await chromium.open(/its page: (\S+)/.exec(said)[1]);
check((await page.textContent("h1")) === "reef", `the page shows ${await page.textContent("h1")}`);
await until("steps", async () => Number((await page.textContent(".tiles")).match(/epoch(\d+)/)?.[1] ?? 0) > 0, 120);

// The friend: every command of invite.md, with a name in place of NAME.
const friend = path.join(folder, "friend"), invite = fs.readFileSync(path.join(home, "invite.md"), "utf8");
fs.mkdirSync(friend);
fs.copyFileSync(path.join(home, "reef.yaml"), path.join(friend, "reef.yaml"));
const commands = (text) => [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map((m) => m[1].trim().replaceAll("NAME", "ada"));
const [version, request, put, node] = commands(invite), [admit] = commands(fs.readFileSync(path.join(home, "README.md"), "utf8"));
const type = (line, cwd) => execFileSync("bash", ["-ec", line], { ...shell, cwd });
type(version, friend);
type(request, friend);
fs.copyFileSync(path.join(friend, "keys/ada/ada.csr"), path.join(home, "ada.csr"));
type(admit, home);
fs.cpSync(path.join(home, "answer-ada"), path.join(friend, "answer-ada"), { recursive: true });
type(put, friend);
check(node.includes("--outbound-only") && node.includes("--group home"), `the friend is told ${node}`);
const joined = spawn("bash", ["-c", `exec ${node} --quiet`], { ...shell, cwd: friend, stdio: ["ignore", "ignore", "pipe"] });
process.on("exit", () => joined.kill("SIGKILL"));
let friendSaid = "";
joined.stderr.on("data", (text) => (friendSaid += text));
const contributed = () => {
  const file = path.join(friend, "out/ada/contribution.txt");
  return fs.existsSync(file) && /samples: ([1-9]\d*)/.exec(fs.readFileSync(file, "utf8"))?.[1];
};
await until("a contribution of the friend", () => {
  if (joined.exitCode !== null && !contributed()) throw new Error(`the friend's node ended with ${joined.exitCode}: ${friendSaid}`);
  return contributed();
}, 120);
await until("the friend on the page", async () => (await page.$$eval("#panel-round-table tbody tr", (rows) => rows.map((row) => row.children[4]?.textContent))).includes("2"), 60);
// The friend writes no directory here and cannot be dialled, and has a row all the same.
const row = (name) => page.$$eval("#panel-nodes tbody tr", (rows, name) => rows.map((row) => [...row.children].map((cell) => cell.textContent)).find((cells) => cells[0] === name), name);
await until("a row of the friend", async () => (await row("ada"))?.[1] === "linked", 60);
check((await row("ada"))[4] === "dials only" && (await row("home-0"))[1] === "running", `the rows are ${await row("ada")} and ${await row("home-0")}`);
await checkWidth(page);
await picture(page, "begun-1400");
await page.close();

// A signal ends this computer's part in good order; the folder is not overwritten by another one.
process.kill(begun.pid, "SIGTERM");
await until("the end", () => begun.exitCode !== null || begun.signalCode !== null, 90);
for (const name of ["shard-0", "home-0"]) check(fs.existsSync(path.join(home, "out", name, "summary.json")), `${name} wrote no summary`);
joined.kill("SIGTERM");
await until("the friend's end", () => joined.exitCode !== null || joined.signalCode !== null, 60);

// The next start finds nobody, and goes on from the last checkpoint.
const steps = JSON.parse(fs.readFileSync(path.join(home, "out/home-0/summary.json"), "utf8")).epochs;
const again = spawn(path.join(home, "start"), [], { ...shell, detached: true, stdio: ["ignore", "pipe", "pipe"] });
let saidAgain = "";
again.stdout.on("data", (text) => (saidAgain += text));
again.stderr.on("data", (text) => (saidAgain += text));
process.on("exit", () => {
  try {
    process.kill(-again.pid, "SIGTERM");
  } catch {
    // The process group has ended.
  }
});
await until("the second start", () => {
  if (again.exitCode !== null) throw new Error(`it ended with ${again.exitCode}: ${saidAgain}`);
  return /its page: (\S+)/.test(saidAgain);
}, 120);
check(saidAgain.includes(`going on from out/home-0/final.ckpt, step ${steps}`), `the second start said: ${saidAgain}`);
check(fs.existsSync(path.join(home, `start-${steps}.ckpt`)) && fs.existsSync(path.join(home, "earlier.1/home-0/summary.json")), "the checkpoint or the first run is missing");
const reached = () => {
  const file = path.join(home, "out/home-0/contribution.txt");
  return fs.existsSync(file) ? Number(/last_epoch: (\d+)/.exec(fs.readFileSync(file, "utf8"))?.[1] ?? 0) : 0;
};
await until("a step after those of the first start", () => reached() > steps, 120);
process.kill(again.pid, "SIGTERM");
await until("the second end", () => again.exitCode !== null || again.signalCode !== null, 90);
const twice = spawn(shoal, ["new", "reef", "--from", "page", "-y"], shell);
let refusal = "";
twice.stderr.on("data", (text) => (refusal += text));
check((await new Promise((done) => twice.on("close", done))) === 1 && refusal.includes("exists"), `a second swarm of the same name: ${refusal}`);
await finish(chromium);
