// The memory calculator: the choices of the user, and the memory that these take.

import type { Context } from "./chart";
import { h } from "./dom";
import { number, seconds } from "./format";
import { type Choices, estimate, type Figure, models, optimizers, precisions, type Shape, shapeOf } from "./memory";

const own = "own shape", ofRun = "this run's model";
const choices: Choices = { shape: { ...models.find((m) => m.name === "gpt2-l")! }, optimizer: "adam", precision: "mixed", offload: false, checkpointing: true, swarm: false, sharing: 0, batch: 1 };

const gib = 2 ** 30;
const memory = (bytes: number) => (bytes >= gib / 16 || bytes === 0 ? `${(bytes / gib).toFixed(2)} GiB` : `${(1024 * bytes / gib).toFixed(2)} MiB`);
const isTotal = (f: Figure) => f.name === "gpu" || f.name === "ram";
const text = (f: Figure) => (f.unit === "bytes" ? memory(f.value) : f.unit === "seconds" ? seconds(f.value) : number(f.value, 4));

const sizes: { of: keyof Omit<Shape, "name">; text: string; least: number; most: number; step: number }[] = [
  { of: "layers", text: "L: layers", least: 1, most: 128, step: 1 },
  { of: "dim", text: "d: width", least: 16, most: 16384, step: 16 },
  { of: "context", text: "s: context", least: 16, most: 8192, step: 16 },
  { of: "heads", text: "a: heads", least: 1, most: 128, step: 1 },
  { of: "hidden", text: "h: inner width", least: 16, most: 65536, step: 16 },
  { of: "vocabulary", text: "V: vocabulary", least: 256, most: 131072, step: 1 },
];

function outcome(title: string, figures: Figure[]): HTMLElement {
  const total = (name: string) => figures.find((f) => f.name === name)!.value;
  return h("div", {}, h("h4", {}, title),
    h("p", { class: "totals" }, h("b", {}, memory(total("gpu"))), " GPU ", h("b", {}, memory(total("ram"))), " RAM"),
    h("div", { class: "table", tabindex: 0, role: "group", "aria-label": title }, h("table", {},
      h("thead", {}, h("tr", {}, ["figure", "value", "formula"].map((t) => h("th", { scope: "col", class: t === "value" ? "n" : "" }, t)))),
      h("tbody", {}, figures.filter((f) => f.value !== 0 || isTotal(f)).map((f) => h("tr", { class: isTotal(f) ? "chosen" : "" },
        h("th", { scope: "row" }, f.name.replace(/_/g, " ")), h("td", { class: "n" }, text(f)), h("td", { class: "formula" }, h("code", {}, f.formula), f.what && h("small", {}, f.what))))))));
}

const results = h("div", { class: "estimates", "aria-live": "off" });
const said = h("p", { class: "unseen", role: "status" });

function show(): void {
  const seeds = estimate("seeds", choices), ours = estimate("shoal", choices);
  results.replaceChildren(outcome("The seeds' calculator", seeds), outcome("Shoal's own", ours));
  said.textContent = `The seeds' calculator: ${memory(seeds.find((f) => f.name === "gpu")!.value)}; Shoal's own: ${memory(ours.find((f) => f.name === "gpu")!.value)} of GPU memory.`;
}

const pick = (label: string, id: string, options: string[], chosen: string, set: (value: string) => void) =>
  h("label", { class: "select" }, label, h("select", { id, onchange: (e: Event) => {
    set((e.target as HTMLSelectElement).value);
    show();
  } }, options.map((o) => h("option", { value: o, selected: o === chosen }, o))));

const tick = (label: string, of: "offload" | "checkpointing" | "swarm") =>
  h("label", { class: "select" }, h("input", { id: `memory-${of}`, type: "checkbox", checked: choices[of], onchange: (e: Event) => {
    choices[of] = (e.target as HTMLInputElement).checked;
    show();
  } }), label);

function slider(label: string, id: string, least: number, most: number, step: number, value: number, set: (value: number) => void) {
  const output = h("output", { for: id }, String(value));
  const input = h("input", { id, type: "range", min: least, max: most, step, value, oninput: () => {
    set(input.valueAsNumber);
    output.textContent = input.value;
    show();
  } });
  return { element: h("label", { class: "slider" }, h("span", {}, label), input, output), put: (v: number) => {
    input.valueAsNumber = v;
    output.textContent = String(v);
  }, most: (v: number) => {
    input.max = String(v);
    output.textContent = input.value;
  } };
}

function build(known: boolean): HTMLElement {
  const sharing = slider("G: groups of shared layers (0: none)", "memory-sharing", 0, choices.shape.layers, 1, choices.sharing, (v) => (choices.sharing = v));
  const layersChanged = () => {
    choices.sharing = Math.min(choices.sharing, choices.shape.layers);
    sharing.most(choices.shape.layers);
  };
  const sliders = sizes.map((size) => slider(size.text, `memory-${size.of}`, size.least, size.most, size.step, choices.shape[size.of], (v) => {
    choices.shape[size.of] = v;
    choices.shape.name = own;
    model.querySelector("select")!.value = own;
    layersChanged();
  }));
  const model = pick("model", "memory-model", [...models.map((m) => m.name), own], choices.shape.name, (name) => {
    const known = models.find((m) => m.name === name);
    if (!known) return;
    choices.shape = { ...known };
    sizes.forEach((size, i) => sliders[i].put(known[size.of]));
    layersChanged();
  });
  const batch = slider("n: samples at once", "memory-batch", 1, 64, 1, choices.batch, (v) => (choices.batch = v));
  show();
  return h("div", {},
    h("p", { class: "note" }, "The memory of training, by the calculator of Training Transformers Together and by Shoal's own estimate (docs/memory.md). The same on the command line: ",
      h("code", {}, "shoal memory"), known ? "" : ". The run's workload has no layers, so this begins with gpt2-l", ". Figures that are 0 are left out; N and Z, GPUs and stage of ZeRO, are 1 and 0 here."),
    h("div", { class: "controls" }, model, pick("optimizer", "memory-optimizer", optimizers, choices.optimizer, (v) => (choices.optimizer = v)),
      pick("precision", "memory-precision", precisions, choices.precision, (v) => (choices.precision = v)),
      tick("C: gradient checkpointing", "checkpointing"), tick("F: offload", "offload"), tick("S: a peer of a swarm", "swarm")),
    h("div", { class: "sliders" }, sharing.element, batch.element, ...sliders.map((s) => s.element)), said, results);
}

let built: HTMLElement | null = null;

/** Begins with the model of the run. One element for good: who moves a slider is not disturbed by what the run does meanwhile. */
export function calculator({ view }: Context): Node[] {
  if (built === null) {
    const shape = shapeOf(view.scenario);
    if (shape !== null) {
      models.unshift({ ...shape.shape, name: ofRun });
      choices.shape = { ...models[0] };
      choices.sharing = shape.sharing;
    }
    built = build(shape !== null);
  }
  return [built];
}
