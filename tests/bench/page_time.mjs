// Seconds from opening a report until everything in it is drawn, and seconds that the page's thread computed.
//   node page_time.mjs REPORT
import path from "node:path";
const { chromium } = await import(`${process.env.SHOAL_PLAYWRIGHT}/index.mjs`);
const browser = await chromium.launch({ executablePath: process.env.SHOAL_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
await page.goto(`file://${path.resolve(process.argv[2])}`, { timeout: 120_000 });
await page.waitForSelector("main[data-drawn]", { timeout: 120_000 });
// After the frame in which it is on the screen.
const drawn = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done((performance.now() / 1000).toFixed(3)), 0))));
const { metrics } = await session.send("Performance.getMetrics");
console.log(drawn, metrics.find((one) => one.name === "TaskDuration").value.toFixed(3));
await browser.close();
