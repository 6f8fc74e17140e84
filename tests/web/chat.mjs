// The page with a chat box: a text comes with the chain of its servers.
import { browser, check, checkWidth, finish, picture, start, until } from "./support.mjs";

const serves = start("chat", "random", "--http", "127.0.0.1:0");
const url = await until("its address", () => /http:\S+\//.exec(serves.said.err)?.[0]);
const chromium = await browser();
const page = await chromium.open(url, { waitFor: "#model" });
await until("the model's name", async () => (await page.textContent("#model")) === "random");
const written = () => page.$eval("body", (body) => body.dataset.done);
await page.fill("#tokens", "120");
await page.fill("#temperature", "1");
await page.click("#go");
await until("the end of the text", written);
check((await page.textContent("#text")).length > 60, "the text is short");
check((await page.$$eval("#chain li", (all) => all.map((one) => one.textContent)).then((all) => all.join())) === "server-0layers 0:1,server-1layers 1:3,server-2layers 3:5", "the chain has not the three servers");
check((await page.textContent("#rate")).includes("tokens/s"), "there is no rate");
check((await page.textContent("#news")).includes("layers 0:1 on server-0"), "the news have no route");
await checkWidth(page);
await picture(page, "chat-1400");
// The same seed writes the same text.
const before = await page.textContent("#text");
await page.evaluate(() => delete document.body.dataset.done);
await page.click("#go");
await until("the end of the second text", written);
check((await page.textContent("#text")) === before, "the same seed writes another text");
await finish(chromium);
