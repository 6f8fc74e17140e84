// One time axis for all charts: cursor, zoom, address, the slider with play and pause, the map, and what a click limits the page to.
// The figures at a moment are held against the files of the run.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, learning, picture, run, until, weather } from "./support.mjs";

fs.writeFileSync(path.join(folder, "hills.yaml"), learning);
const done = await run("run", "hills.yaml", "--out", "hills", "--no-baseline", "--quiet");
check(done.status === 0, `the run failed: ${done.err}`);
const tables = await run("export", "hills", "--csv", "tables");
check(tables.status === 0, `the export failed: ${tables.err}`);
const csv = (name) => {
  const [head, ...lines] = fs.readFileSync(path.join(folder, name), "utf8").trim().split("\n").map((line) => line.split(","));
  return lines.map((line) => Object.fromEntries(head.map((key, i) => [key, line[i]])));
};
const contributions = csv("hills/contributions.csv"), transfers = csv("tables/transfers.csv");

const chromium = await browser();
const url = `file://${folder}/hills/report.html`;
const page = await chromium.open(url);
const settled = async (what) => {
  const before = await page.$eval("main", (m) => Number(m.dataset.drawn));
  await what();
  await until("all panels", () => page.$eval("main", (m, n) => Number(m.dataset.drawn) > n, before));
};
const hash = () => page.evaluate(() => location.hash);
const frames = () => page.$$eval("article:not([hidden]) .frame", (all) => all.map((f) => ({ from: Number(f.dataset.from), to: Number(f.dataset.to) })));
const overTime = ["objective", "speed", "active", "sessions", "losses", "rounds-over-time", "traffic", "links"];
for (const id of overTime) check((await page.$(`#panel-${id} .frame`)) !== null, `panel ${id} has not the common axis`);
const whole = (await frames())[0];
check(whole.from === 0 && Math.abs(whole.to - 120) < 2, `the axis goes from ${whole.from} to ${whole.to}`);
check(await page.$("#panel-map svg.map") !== null, "a run with two regions has no map");

// A cursor that all charts share.
const middle = async (id, share) => {
  const frame = await page.$(`#panel-${id} .frame`);
  await frame.scrollIntoViewIfNeeded();
  const box = await frame.boundingBox();
  return { x: box.x + share * box.width, y: box.y + box.height / 2 };
};
const over = await middle("speed", 0.4);
await page.mouse.move(over.x, over.y);
const cursors = await page.$$eval("article:not([hidden]) .frame .cursor", (all) => all.map((c) => (c.hidden ? null : c.style.left)));
check(cursors.length >= overTime.length && cursors.every((left) => left !== null && Math.abs(parseFloat(left) - 40) < 1), `the cursors stand at ${cursors}`);

// A stretch is chosen by dragging: all charts have it, the address has it, and a double click takes it back.
const drag = async (id, a, b) => {
  const from = await middle(id, a), to = await middle(id, b);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, from.y);
  await page.mouse.move(to.x, to.y);
  await page.mouse.up();
};
await settled(() => drag("active", 0.25, 0.5));
let all = await frames();
check(all.every((f) => Math.abs(f.from - 30) < 1.5 && Math.abs(f.to - 60) < 1.5), `after a drag the axes are ${JSON.stringify(all)}`);
await until("the address", async () => /[?&]time=/.test(await hash()));
check((await page.textContent("#time .limits")).includes("to 1 min"), `the bar says ${await page.textContent("#time .limits")}`);
await checkCharts(page, overTime);
// Marks end at the frame.
const beyond = await page.$$eval("article:not([hidden]) .over-time svg[role=img]", (all) => all.filter((svg) => [...svg.querySelectorAll("[aria-label=line]")].some((g) => !g.hasAttribute("clip-path"))).length);
check(beyond === 0, `${beyond} charts draw lines beyond their frame`);
await picture(page, "zoom-1400");
// The same address shows the same.
const again = await chromium.open(`${url}${await hash()}&peer=home-2&at=45`);
check((await again.textContent("#time .limits")).includes("only home-2"), "the address does not limit the page to a participant");
check(Math.abs((await again.$eval("#panel-speed .frame", (f) => Number(f.dataset.from))) - 30) < 1.5, "the address does not set the stretch");
check((await again.textContent("#time .clock")) === "45 s", `the address sets the moment to ${await again.textContent("#time .clock")}`);
check((await again.textContent("#panel-peer h4")) === "home-2", "the participant of the address has no panel");
await again.close();
for (const wrong of ["#time=9-3", "#?time=x-y&at=-4&peer=&round=z", "#?peer=%3Cb%3Enobody", "#?at=1e99&time=400-500&round=12345678", "#nowhere"]) {
  const odd = await chromium.open(`${url}${wrong}`);
  check((await odd.$$("#panel-objective svg[role=img]")).length === 1, `${wrong} breaks the page`);
  await odd.close();
}
await settled(async () => {
  const at = await middle("speed", 0.5);
  await page.mouse.dblclick(at.x, at.y);
});
all = await frames();
check(all.every((f) => f.from === 0), "a double click does not show the whole time again");

// A moment: the slider, by keyboard.
await page.focus("#moment");
await page.keyboard.press("Home");
await until("the beginning", async () => (await page.textContent("#time .clock")) === "0 s");
const setTo = (share) => page.$eval("#moment", (slider, value) => {
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
}, 1000 * share);
for (const share of [0.3, 0.55, 0.8]) {
  await setTo(share);
  await page.waitForTimeout(350); // the table follows five times a second
  const at = share * whole.to, view = await page.evaluate(() => JSON.parse(document.getElementById("shoal-data").textContent).runs[0].sections);
  // Bubbles have all samples of rounds that had ended. A bin that is under way counts in part.
  const sum = await page.$eval("#panel-bubbles .plot", (plot) => Number(plot.dataset.sum));
  const until_ = (t) => contributions.filter((c) => Number(c.time ?? c.time_s) <= t).reduce((a, c) => a + Number(c.samples), 0);
  check(sum >= until_(at - view.growth.bin) && sum <= until_(at + view.growth.bin), `at ${at} s the bubbles have ${sum} samples, the file ${until_(at)}`);
  // The table has rounds that had ended, and begins with the newest of them.
  const ended = await page.$$eval("#panel-round-table tbody tr", (rows) => rows.map((row) => row.children[6].textContent));
  const seconds = (text) => (/(?:(\d+) min )?([\d.]+) s/.exec(text) ?? []).slice(1).reduce((a, x, i) => a + (i === 0 ? 60 : 1) * Number(x ?? 0), 0);
  const kept = view.rounds.kept.filter((k) => k.ended <= at);
  check(ended.length > 0 && ended.every((t) => seconds(t) <= at + 0.6), `at ${at} s the table has rounds that ended at ${ended}`);
  check(Math.abs(seconds(ended[0]) - Math.max(...kept.map((k) => k.ended))) < 0.6, `at ${at} s the newest round ended at ${ended[0]}`);
  // The map has the rate between all hosts that the run's own file has.
  const rate = await page.$eval("#panel-map svg.map", (svg) => Number(svg.dataset.rate));
  const bin = view.flows.bin, first = Math.floor(at / bin) * bin;
  const truth = transfers.filter((t) => !(t.cut === "true" || t.cut === "1")).reduce((a, t) => {
    const [from, to] = [Number(t.begun_s), Number(t.left_s)];
    return a + (to > from ? (Math.max(0, Math.min(to, first + bin) - Math.max(from, first)) / (to - from)) * 8 * Number(t.bytes) : from >= first && from < first + bin ? 8 * Number(t.bytes) : 0);
  }, 0) / bin;
  const most = Math.max(...view.flows.pairs.map((p) => (8 * p.most) / bin));
  check(Math.abs(rate - truth) <= (most / 61) * view.flows.pairs.length, `at ${at} s the map has ${rate} bit/s, the file ${truth}`);
  // Charts cover what is later.
  const veil = await page.$eval("#panel-objective .veil", (v) => [v.hidden, parseFloat(v.style.left)]);
  check(!veil[0] && Math.abs(veil[1] - 100 * share) < 0.6, `at ${at} s the veil of the objective is ${veil}`);
}
await picture(page, "moment-1400");

// Space plays and pauses, arrows step, wherever the focus is not in a control that needs them.
await page.evaluate(() => document.activeElement?.blur());
await page.keyboard.press("Space");
check((await page.getAttribute("#play", "aria-label")) === "Pause", "space does not play");
const radius = () => page.$$eval("#panel-bubbles .bubble circle", (all) => all.reduce((a, c) => a + Number(c.getAttribute("r")) ** 2, 0));
const [before, clockBefore] = [await radius(), await page.textContent("#time .clock")];
await until("the moment to move", async () => (await page.textContent("#time .clock")) !== clockBefore);
await until("the bubbles to grow", async () => (await radius()) > before);
await page.keyboard.press("Space");
check((await page.getAttribute("#play", "aria-label")) === "Play", "space does not pause");
const stopped = await page.textContent("#time .clock");
await page.waitForTimeout(200);
check((await page.textContent("#time .clock")) === stopped, "it plays on after the pause");
await page.keyboard.press("ArrowLeft");
await until("a step back", async () => (await page.textContent("#time .clock")) !== stopped);
await page.keyboard.press("+");
await until("a closer look", async () => (await frames()).every((f) => f.to - f.from < 0.6 * whole.to));
await page.keyboard.press("Escape");
await until("all again", async () => !(await page.isVisible("#back")) && (await page.$("#time .limits .chip:not(#back)")) === null);
// Text in a search box is text.
await page.focus("#panel-leaderboard input[type=search]");
await page.keyboard.type("a +");
check((await page.inputValue("#panel-leaderboard input[type=search]")) === "a +" && !(await page.isVisible("#back")), "keys in a search box move the page");
await page.fill("#panel-leaderboard input[type=search]", "");

// A name opens its participant, and limits the rest.
await page.click("#panel-leaderboard tbody button >> text=home-1");
check((await page.textContent("#panel-peer h4")) === "home-1" && (await page.isVisible("#panel-peer")), "a name opens nothing");
const rowNames = () => page.$$eval("#panel-sessions .row-name .opens-peer", (all) => all.map((t) => t.textContent));
await until("its session alone", async () => (await rowNames()).join() === "home-1");
check((await page.$$eval("#panel-round-table tbody tr", (rows) => rows.length)) > 0, "the rounds of a participant are gone");
const mine = contributions.filter((c) => (c.host ?? c.peer ?? c.name) === "home-1").reduce((a, c) => a + Number(c.samples), 0);
check((await page.textContent("#panel-peer .facts")).includes(mine.toLocaleString("en")), `its panel has not its ${mine} samples: ${await page.textContent("#panel-peer .facts")}`);
const lineNames = () => page.$$eval("#panel-links svg text", (all) => all.map((t) => t.firstChild?.data ?? "").filter((t) => / of /.test(t)));
await until("its lines alone", async () => (await lineNames()).every((t) => t.endsWith(" of home-1")) && (await lineNames()).length >= 1);
await picture(page, "peer-1400");
await page.click("#time .chip:not(#back)");
await until("everybody again", async () => (await rowNames()).length === 10);
// So does a bubble, a dot of the map, and a row of the sessions.
for (const [what, selector] of [["a bubble", "#panel-bubbles .bubble circle"], ["a dot of the map", "#panel-map .map-host"], ["a row of the sessions", "#panel-sessions .row-name .opens-peer"]]) {
  await page.locator(selector).nth(2).scrollIntoViewIfNeeded();
  await page.locator(selector).nth(2).click();
  await until(`${what} to open a participant`, () => page.isVisible("#panel-peer"));
  await page.keyboard.press("Escape");
  await until("everybody again", async () => !(await page.isVisible("#panel-peer")));
}
// A round limits the page to its members.
await page.click("#panel-round-table .choice >> text=slowest");
await page.click("#panel-round-table tbody tr:first-child td:nth-child(4)");
const members = Number(await page.textContent("#panel-round-table tbody tr.chosen td:nth-child(5)"));
await until("its members", async () => (await rowNames()).length === members);
check((await page.$$("#panel-speed .chosen-span")).length === 1, "the round is not marked in the other charts");
await settled(() => page.click("#round-detail button >> text=show its time in all charts"));
check((await frames()).every((f) => f.to - f.from < 30), "its time does not fill the charts");
await page.keyboard.press("Escape");

// Failures: a list, names in the charts, and marks at the slider.
await until("the faults' names", async () => (await page.$$eval("#panel-objective .fault-name", (all) => all.map((t) => t.textContent))).some((t) => /throttle/.test(t)));
const failures = await page.$$eval("#panel-failures tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
check(failures.some((f) => f[1] === "fault") && failures.some((f) => f[1] === "host lost"), `the failures are ${JSON.stringify(failures.slice(0, 6))}`);
check((await page.$$(".marks .fault")).length >= 3, "the slider shows no faults");
const lost = await page.$("#panel-failures tbody tr:has-text('host lost')");
await lost.click();
await until("who was lost", () => page.isVisible("#panel-peer"));
check(await page.isVisible("#back"), "a failure sets no moment");
await settled(() => page.keyboard.press("Escape"));
await page.click("#panel-objective .fault-name");
await until("the fault's moment", () => page.isVisible("#back"));
const killed = csv("hills/peers.csv").filter((p) => p.reason === "process_killed").map((p) => Number(p.ended_s)).sort((a, b) => a - b)[0];
const clock = await page.textContent("#time .clock");
check(/^[0-9.]+ s$/.test(clock) && Math.abs(Number.parseFloat(clock) - killed) < 0.6, `the first fault is at ${clock}, and the host died at ${killed} s`);
await page.click("#back");
await until("the end again", async () => (await page.textContent("#time .clock")).startsWith("the end"));
await page.keyboard.press("Escape");

// The bar of sections and the bar of time stay.
await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight / 2));
await page.waitForTimeout(200);
const places = await page.evaluate(() => [document.getElementById("bar").getBoundingClientRect().top, innerHeight - document.getElementById("time").getBoundingClientRect().bottom]);
check(Math.abs(places[0]) < 1 && Math.abs(places[1]) < 1, `the bars are ${places} from the edges`);
await page.click("nav a >> text=Network");
await until("the part", () => page.evaluate(() => Math.abs(document.getElementById("network").getBoundingClientRect().top) < 120));

// The challenges have a picture each, of this run's figures.
const cards = await page.$$eval(".challenge", (all) => all.map((c) => ({ title: c.querySelector("h4").textContent, charts: c.querySelectorAll("svg[role=img]").length, nothing: c.querySelectorAll(".nothing").length })));
check(cards.length === 5 && cards.every((c) => c.charts === 1 && c.nothing === 0), `the challenges are ${JSON.stringify(cards)}`);
await page.close();

// A narrow screen, light and dark; a stormy run with many faults and failed rounds.
const stormy = await run("run", weather, "--out", "weather", "--until", "6min", "--quiet");
check(stormy.status === 0, `the run failed: ${stormy.err}`);
for (const [width, colorScheme] of [[390, "light"], [390, "dark"], [1400, "dark"]]) {
  const one = await chromium.open(`file://${folder}/weather/report.html#?at=200`, { viewport: { width, height: 844 }, colorScheme });
  await checkWidth(one);
  const wide = await one.$$eval("#time > *, nav, .challenge, .live", (all) => all.filter((e) => e.getBoundingClientRect().right > innerWidth + 1).length);
  check(wide === 0, `${wide} parts are wider than ${width} pixels`);
  check((await one.$$eval("#panel-failures tbody tr", (rows) => rows.length)) > 10, "the storm has no failures");
  await picture(one, `moment-${width}-${colorScheme}`);
  await one.close();
}
await finish(chromium);
