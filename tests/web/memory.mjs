// The calculator of the page gives what `shoal memory` gives, for all models and choices. No browser: its module alone, as JavaScript.
// usage: node memory.mjs SHOAL BUILD_FOLDER
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [shoal, build] = process.argv.slice(2);
const work = path.join(build, "web/work"), esbuild = path.join(work, "node_modules/.bin/esbuild");
if (!fs.existsSync(path.join(build, "web/page.html"))) {
  console.log(`SKIPPED: the page was not built: ${build}/web has why`);
  process.exit(0);
}
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "shoal-memory-"));
const bundle = path.join(folder, "memory.mjs");
execFileSync(esbuild, [path.join(work, "src/memory.ts"), "--bundle", "--format=esm", `--outfile=${bundle}`, "--log-level=error"]);
const { estimate, models, optimizers, precisions, shapeOf } = await import(pathToFileURL(bundle));
fs.rmSync(folder, { recursive: true });

// The calculator begins with the model of the run.
const shown = execFileSync(shoal, ["check", "--show", path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../../scenarios/quickstart.yaml")], { encoding: "utf8" });
const same = (found, expected) => {
  if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`the model of the run is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
};
same(shapeOf(shown), { shape: { layers: 2, heads: 4, dim: 96, hidden: 384, context: 64, vocabulary: 256 }, sharing: 0 });
same(shapeOf("seed: 1\nworkload:\n  kind: albert\n  layers: 6\n  heads: 4\n  hidden: 256\n  embedding: 64\n  feed_forward: 1024\n  length: 128\n  vocabulary: 261\ntraining:\n  layers: 9\n"),
  { shape: { layers: 6, heads: 4, dim: 256, hidden: 1024, context: 128, vocabulary: 261 }, sharing: 1 });
same(shapeOf("workload:\n  kind: timing\n  parameters: 3\n"), null);

let compared = 0;
const flags = ["offload", "checkpointing", "swarm"];
models.forEach((shape, i) => {
  // Every model, optimizer, precision and set of flags, but not all of them with each other.
  for (let turn = 0; turn < 8; turn++) {
    const choices = { shape, optimizer: optimizers[(i + turn) % optimizers.length], precision: precisions[(i + turn) % precisions.length], sharing: turn % 3, batch: 1 + turn };
    flags.forEach((flag, bit) => (choices[flag] = ((turn >> bit) & 1) === 1));
    const said = JSON.parse(execFileSync(shoal, ["memory", "--json", "--model", shape.name, "--optimizer", choices.optimizer, "--precision", choices.precision, "--sharing", String(choices.sharing),
      "--batch", String(choices.batch), ...flags.filter((f) => choices[f]).map((f) => `--${f}`)]));
    for (const list of ["seeds", "shoal"]) {
      const here = estimate(list, choices);
      if (here.length !== said[list].length) throw new Error(`${list}: ${here.length} figures, the program has ${said[list].length}`);
      here.forEach((figure, j) => {
        const there = said[list][j];
        // The same operations in the same order: the same bits.
        if (figure.name !== there.name || figure.value !== there.value) throw new Error(`${shape.name}, ${list}: ${figure.name} is ${figure.value}, the program has ${there.name} ${there.value}`);
        compared++;
      });
    }
  }
});
console.log(`${compared} figures are the same`);
