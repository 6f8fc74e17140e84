// report.html from a disk: every chart has data, filters and clicks work, nothing is asked of anybody; at both widths, light and dark.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkCharts, checkWidth, finish, folder, learning, picture, run, weather } from "./support.mjs";

fs.writeFileSync(path.join(folder, "hills.yaml"), learning);
const done = await run("run", "hills.yaml", "--out", "hills", "--no-baseline", "--quiet");
check(done.status === 0, `the run failed: ${done.err}`);
const stormy = await run("run", weather, "--out", "weather", "--until", "12min", "--quiet");
check(stormy.status === 0, `the run failed: ${stormy.err}`);
const chromium = await browser();

const always = ["objective", "speed", "active", "sessions", "bubbles", "rounds-over-time", "traffic", "traffic-hosts", "traffic-regions", "links"];
const page = await chromium.open(`file://${folder}/hills/report.html`);
await checkCharts(page, [...always, "losses"]);
await checkWidth(page);
await picture(page, "hills-1400-light");
check((await page.title()).startsWith("hills"), "the title does not say which run it is");

// The findings say what the run's phases say, and each leads to its panel.
const tables = await run("export", "hills", "--csv", "tables");
check(tables.status === 0, `the export failed: ${tables.err}`);
const phases = fs.readFileSync(path.join(folder, "tables/phases.csv"), "utf8").trim().split("\n").map((line) => line.split(","));
const column = (name) => phases[0].indexOf(name);
const spent = {};
for (const line of phases.slice(1)) spent[line[column("phase")]] = (spent[line[column("phase")]] ?? 0) + Number(line[column("end_s")]) - Number(line[column("begin_s")]);
const [state, time] = Object.entries(spent).sort((a, b) => b[1] - a[1])[0];
const found = await page.$$eval(".findings a", (all) => all.map((a) => ({ text: a.textContent, to: a.getAttribute("href") })));
check(found.length >= 2, `there are ${found.length} findings`);
const said = /^([\d.]+) % of the hosts' time is (\w+)/.exec(found[0].text);
const truth = (100 * time) / Object.values(spent).reduce((a, b) => a + b, 0);
check(said?.[2] === state && Math.abs(Number(said[1]) - truth) < 1.5, `'${found[0].text}', but ${state} takes ${truth} %`);
check(found.some((f) => /^the fullest line is the (up|down)link of /.test(f.text)), `no finding about lines: ${JSON.stringify(found)}`);
for (const f of found) check((await page.$(f.to)) !== null, `${f.to} is not there`);
// Times and sizes are those of the terminal.
const terminal = await run("run", "hills.yaml", "--no-baseline", "--quiet");
const tile = await page.$eval(".tiles", (dl) => dl.textContent);
const virtual = /time +(.+) virtual/.exec(terminal.out)[1], averaging = /averaging ([\d.]+ \w+)/.exec(terminal.out)[1];
check(tile.includes(virtual), `the terminal says ${virtual}, the page ${tile}`);
check((await page.textContent("#panel-traffic .legend")).includes(`averaging ${averaging}`), `the terminal says averaging ${averaging}, the page ${await page.textContent("#panel-traffic .legend")}`);

// The objective over samples is another chart than over time.
const shape = () => page.$eval("#panel-objective svg [aria-label=line] path", (p) => p.getAttribute("d"));
const overTime = await shape();
await page.click("text=over samples");
check((await shape()) !== overTime, "'over samples' changes nothing");

// A filter of sessions, of the leaderboard, of the scenario.
await page.fill("#panel-sessions input[type=search]", "home-1");
check((await page.$$eval("#panel-sessions svg text", (t) => t.map((x) => x.textContent))).includes("home-1"), "the filter of sessions loses its peer");
check(!(await page.$$eval("#panel-sessions svg text", (t) => t.map((x) => x.textContent))).includes("office-0"), "the filter of sessions keeps others");
check(await page.evaluate(() => document.activeElement?.matches("#panel-sessions input")), "the filter loses the focus while somebody types");
const everybody = await page.$$eval("#panel-leaderboard tbody tr", (rows) => rows.length);
await page.fill("#panel-leaderboard input[type=search]", "office");
const office = await page.$$eval("#panel-leaderboard tbody tr", (rows) => rows.length);
check(everybody === 10 && office === 4, `the leaderboard has ${everybody} rows, ${office} of office`);
await page.fill("#panel-scenario input[type=search]", "target_batch");
check((await page.textContent("#panel-scenario mark")) === "target_batch", "the search in the scenario finds nothing");
check((await page.textContent("#panel-scenario pre")).startsWith("training:"), "what is found in the scenario stands under no key");

// Sorting, by keyboard.
await page.focus("#panel-leaderboard th:nth-child(2) button");
await page.keyboard.press("Enter");
check((await page.getAttribute("#panel-leaderboard th:nth-child(2)", "aria-sort")) === "ascending", "Enter does not sort");

await page.click("#panel-objective details.as-table summary");
// The table is made when it is opened.
const sixth = page.waitForSelector("#panel-objective details table tbody tr:nth-child(6)", { state: "attached", timeout: 10000 });
check(await sixth.then(() => true, () => false), "the objective has no table");

// The memory calculator: a slider, a box and a choice change what is said, and each figure has a formula.
const totals = () => page.$$eval("#panel-calculator .totals", (lines) => lines.map((line) => line.textContent).join());
const gpt2l = await totals();
check(gpt2l.startsWith("11.79 GiB GPU"), `gpt2-l with checkpointing is said to take ${gpt2l}`);
await page.focus("#memory-layers");
await page.keyboard.press("ArrowRight");
check((await totals()) !== gpt2l, "a slider changes no figure");
check((await page.inputValue("#memory-model")) === "own shape", "a shape that was changed has a model's name");
check(await page.evaluate(() => document.activeElement?.id === "memory-layers"), "a slider loses the focus while somebody moves it");
await page.selectOption("#memory-model", "gpt2-xl");
await page.selectOption("#memory-optimizer", "adam-8bit");
// A click may miss a box that the page is still scrolling into view.
await page.press("#memory-offload", "Space");
check(await page.isChecked("#memory-offload"), "the space bar does not tick a box");
check((await totals()).startsWith("9.04 GiB GPU 5.79 GiB RAM"), `gpt2-xl in 8 bits, offloaded, is said to take ${await totals()}`);
await page.evaluate(() => {
  const sharing = document.getElementById("memory-sharing");
  sharing.value = 1;
  sharing.dispatchEvent(new Event("input"));
});
check((await totals()).startsWith("0.97 GiB GPU 0.41 GiB RAM"), `with shared layers it is said to take ${await totals()}`);
check((await page.$$eval("#panel-calculator tbody code", (all) => all.filter((c) => c.textContent.length > 2).length)) > 25, "figures lack their formulas");
check((await page.$$eval("#panel-calculator input, #panel-calculator select", (all) => all.every((one) => one.labels.length === 1))), "a control has no label");
await checkWidth(page);
await picture(page, "calculator-1400-light");

// Rounds that went wrong say why.
const storm = await chromium.open(`file://${folder}/weather/report.html`);
await checkCharts(storm, [...always, "reasons"]);
const ofStorm = await storm.$$eval(".findings a", (all) => all.map((a) => a.textContent));
for (const kind of [/holds transfers back most: [\d.]+ %/, /rounds were not ok, most often: /]) check(ofStorm.some((text) => kind.test(text)), `no finding like ${kind}: ${ofStorm.join("; ")}`);
await storm.click("#panel-round-table .choice >> text=not ok");
const reason = await storm.textContent("#panel-round-table tbody tr:first-child td:nth-child(3)");
check(reason !== "–" && reason.length > 3, "a round that was not ok has no reason");
await storm.focus("#panel-round-table tbody tr:first-child button");
await storm.keyboard.press("Enter");
check((await storm.textContent("#round-detail")).includes(reason), "the detail does not say why");
check((await storm.$$eval("#panel-objective .fault-band rect, #panel-objective .fault-band line", (x) => x.length)) > 3, "faults are not shaded");
await picture(storm, "weather-1400-light");

// A click on a round shows its transfers and what held them back.
await storm.click("#panel-round-table .choice >> text=slowest");
await storm.click("#panel-round-table tbody tr:first-child td:nth-child(4)");
await storm.waitForSelector("#round-detail .transfer-bar rect");
const bars = await storm.$$eval("#round-detail .transfer-bar rect", (all) => all.length);
check(bars > 10, `the round has ${bars} transfers`);
check(/uplink|downlink|slow start|window|delay|loss/.test(await storm.textContent("#round-detail")), "no transfer says what held it back");
await picture(storm, "round-1400-light");

for (const [name, viewport] of [["1400", { width: 1400, height: 900 }], ["420", { width: 420, height: 900 }]])
  for (const colorScheme of ["light", "dark"]) {
    const one = await chromium.open(`file://${folder}/weather/report.html`, { viewport, colorScheme });
    await checkCharts(one, always);
    await checkWidth(one);
    await picture(one, `weather-${name}-${colorScheme}`);
    const dark = await one.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0] < 80);
    check(dark === (colorScheme === "dark"), `it is not ${colorScheme}`);
    await one.close();
  }
await finish(chromium);
