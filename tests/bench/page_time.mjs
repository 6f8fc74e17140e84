// Seconds from opening a report until everything in it is drawn.
//   node page_time.mjs REPORT
import path from "node:path";
const { chromium } = await import(`${process.env.SHOAL_PLAYWRIGHT}/index.mjs`);
const browser = await chromium.launch({ executablePath: process.env.SHOAL_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
await page.goto(`file://${path.resolve(process.argv[2])}`);
await page.waitForSelector("main[data-drawn]");
// After the frame in which it is on the screen.
console.log(await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done((performance.now() / 1000).toFixed(3)), 0)))));
await browser.close();
