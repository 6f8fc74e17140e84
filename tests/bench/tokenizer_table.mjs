// Compares Shoal's tokenizers with the official library, in turns on one thread: equal tokens, then MB/s.
// usage: node tokenizer_table.mjs PROGRAM TOKENIZER.json FILE [PASSES]
//   PROGRAM: tokenizer_speed; the library is npm's `tokenizers`, looked for from the folder where node starts.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

process.env.RAYON_NUM_THREADS = "1";
process.env.TOKENIZERS_PARALLELISM = "false";
const [program, path, file, passes = "7"] = process.argv.slice(2);
const { Tokenizer } = createRequire(join(process.cwd(), "x.js"))("tokenizers");
const official = Tokenizer.fromFile(path);
const text = readFileSync(file, "utf8");
const lines = text.split("\n");
const bytes = Buffer.byteLength(text);

const ours = spawn(program, [path, file], { stdio: ["pipe", "pipe", "inherit"] });
const answers = createInterface({ input: ours.stdout })[Symbol.asyncIterator]();
await answers.next(); // the number of bytes

async function shoal() {
  ours.stdin.write("\n");
  const [seconds, tokens] = (await answers.next()).value.split(" ").map(Number);
  return { seconds, tokens };
}
async function library() {
  const begin = process.hrtime.bigint();
  let tokens = 0;
  for (const line of lines) {
    if (line === "") continue;
    tokens += (await official.encode(line, null, { addSpecialTokens: false })).getLength();
  }
  return { seconds: Number(process.hrtime.bigint() - begin) / 1e9, tokens };
}

const speed = { shoal: [], library: [] };
for (let pass = 0; pass < Number(passes) + 1; pass++) {
  const a = await shoal();
  const b = await library();
  if (a.tokens !== b.tokens) console.log(`tokens differ: ${a.tokens} and ${b.tokens}`);
  if (pass === 0) continue; // both warm their caches
  speed.shoal.push(bytes / 1e6 / a.seconds);
  speed.library.push(bytes / 1e6 / b.seconds);
}
ours.stdin.end();
const sorted = (of) => [...of].sort((a, b) => a - b);
const show = (of) => {
  const all = sorted(of);
  return `${all[all.length >> 1].toFixed(2)} (${all[0].toFixed(2)} to ${all.at(-1).toFixed(2)})`;
};
console.log(`shoal    ${show(speed.shoal)} MB/s`);
console.log(`library  ${show(speed.library)} MB/s`);
console.log(`ratio    ${show(speed.shoal.map((each, i) => each / speed.library[i]))}`);
