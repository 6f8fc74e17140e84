// sweep.html from a disk: small multiples with data, and a table with a row for each point. It
// makes no request. Both widths, light and dark.
import fs from "node:fs";
import path from "node:path";
import { browser, check, checkWidth, finish, folder, picture, run } from "./support.mjs";

fs.writeFileSync(path.join(folder, "small.yaml"), `
name: small
stop_time: 2min
network: {default_delay: 30ms}
devices: {laptop: {samples_per_second: 20, jitter: 10%}}
peers: {home: {count: 6, up: 10Mbit, down: 50Mbit, device: laptop}}
workload: {kind: timing, parameters: 200000, sample_size: 1KiB}
training: {target_batch: 128, micro_batch: 8, epochs: 3}
averaging: {matchmaking_time: 2s, compression: float16}
`);
const swept = await run("sweep", "small.yaml", "--vary", "peers.home.up=2Mbit,5Mbit,20Mbit", "--vary", "averaging.split=adaptive,equal", "--seeds", "3", "-j", "2", "--out", "small.sweep", "--quiet");
check(swept.status === 0, `the sweep failed: ${swept.err}`);
const chromium = await browser();
const url = `file://${folder}/small.sweep/sweep.html`;

for (const [name, viewport] of [["1400", { width: 1400, height: 900 }], ["420", { width: 420, height: 900 }]])
  for (const colorScheme of ["light", "dark"]) {
    const page = await chromium.open(url, { viewport, colorScheme, waitFor: "table" });
    const panels = await page.$$eval("figure svg", (all) => all.map((svg) => ({
      says: svg.getAttribute("aria-label"),
      role: svg.getAttribute("role"),
      curves: [...svg.querySelectorAll("polyline")].map((line) => line.points.length),
      dots: svg.querySelectorAll("circle").length,
      bands: svg.querySelectorAll("polygon").length,
      // Every text lies within the picture.
      outside: [...svg.querySelectorAll("text")].filter((text) => {
        const box = text.getBoundingClientRect(), all = svg.getBoundingClientRect();
        return box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1;
      }).map((text) => text.textContent),
      ticks: [...svg.querySelectorAll("text[text-anchor=end]")].map((text) => text.textContent),
      crossed: (() => {
        const boxes = [...svg.querySelectorAll("text")].filter((t) => !t.getAttribute("transform")).map((t) => [t.textContent, t.getBoundingClientRect()]);
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2).map(([b]) => `${a} / ${b}`));
      })(),
    })));
    check(panels.length >= 3, `${panels.length} panels`);
    for (const panel of panels) {
      check(panel.role === "img" && panel.says?.length > 3, `panel ${panel.says} has no text`);
      check(panel.curves.length === 2 && panel.curves.every((n) => n === 3), `panel ${panel.says} has curves of ${panel.curves} points, not two of 3`);
      check(panel.dots === 6, `panel ${panel.says} has ${panel.dots} points, not 6`);
      check(panel.bands === 2, `panel ${panel.says} has ${panel.bands} confidence bands, not 2`);
      check(panel.ticks.length >= 2 && new Set(panel.ticks).size === panel.ticks.length, `panel ${panel.says}: ticks that cannot be told apart: ${panel.ticks}`);
      check(panel.outside.length === 0, `panel ${panel.says}: text leaves the picture: ${panel.outside}`);
      check(panel.crossed.length === 0, `panel ${panel.says}: texts lie on each other: ${panel.crossed}`);
    }
    const rows = await page.$$eval("table tr", (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    check(rows.length === 7, `the table has ${rows.length} rows, not a head and 6 points`);
    check(rows[1].slice(0, 3).join() === "2Mbit,adaptive,3", `the first row is ${rows[1]}`);
    check(rows.slice(1).every((row) => row.length === rows[0].length && row.some((cell) => cell.includes("±"))), "a row lacks its intervals");
    check((await page.textContent("ul")).includes("averaging.split=equal"), "the legend does not say which curve is which");
    await checkWidth(page);
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0] < 80);
    check(dark === (colorScheme === "dark"), `it is not ${colorScheme}`);
    // The ink of a chart against its card.
    const contrast = await page.evaluate(() => {
      const light = (colour) => {
        const [r, g, b] = colour.match(/\d+/g).map((c) => (Number(c) / 255 <= 0.03928 ? Number(c) / 255 / 12.92 : ((Number(c) / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const text = light(getComputedStyle(document.querySelector("svg text")).fill), back = light(getComputedStyle(document.querySelector("svg .back")).fill);
      return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    });
    check(contrast >= 4.5, `text of charts has a contrast of ${contrast}`);
    await picture(page, `sweep-${name}-${colorScheme}`);
    await page.close();
  }
await finish(chromium);
