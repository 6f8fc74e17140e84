// The memory that training a model takes, by the formulas of `shoal memory`. memory.json is the output of
// `shoal memory --list --json`.

import model from "./memory.json";

export interface Shape {
  name: string;
  layers: number;
  heads: number;
  dim: number;
  hidden: number;
  context: number;
  vocabulary: number;
}

export interface Choices {
  shape: Shape;
  optimizer: string;
  precision: string;
  offload: boolean;
  checkpointing: boolean;
  swarm: boolean;
  sharing: number;
  batch: number;
}

export interface Figure {
  name: string;
  unit: string;
  formula: string;
  what: string;
  value: number;
}

export const models: Shape[] = model.models;
export const optimizers: string[] = model.optimizers.map((o) => o.name);
export const precisions: string[] = model.precisions.map((p) => p.name);

type Values = Record<string, number>;

/** The value of a formula; kernels/formula.hpp says what one is. The page may not make code of text, so it is read here, too. */
export function evaluate(formula: string, values: Values): number {
  const words = formula.match(/[A-Za-z_][A-Za-z_0-9]*|[0-9.]+|[^ ]/g) ?? [];
  let at = 0;
  const take = (word: string) => words[at] === word && ++at > 0;
  const need = (word: string) => {
    if (!take(word)) throw new Error(`${formula}: '${word}' is missing`);
  };
  const sum = (): number => {
    let value = product();
    for (;;) {
      if (take("+")) value += product();
      else if (take("-")) value -= product();
      else return value;
    }
  };
  const product = (): number => {
    let value = factor();
    for (;;) {
      if (take("*")) value *= factor();
      else if (take("/")) value /= factor();
      else return value;
    }
  };
  const factor = (): number => {
    if (take("(")) {
      const value = sum();
      need(")");
      return value;
    }
    const word = words[at++] ?? "the end";
    if (/^[0-9]/.test(word)) return Number(word);
    if (!take("(")) {
      if (!(word in values)) throw new Error(`${formula}: ${word} has no value`);
      return values[word];
    }
    const given = [sum()];
    while (take(",")) given.push(sum());
    need(")");
    if (word === "if") return given[0] > 0 ? given[1] : given[2];
    if (word === "max") return Math.max(...given);
    if (word === "ceil") return Math.ceil(given[0]);
    throw new Error(`${formula}: there is no function ${word}`);
  };
  const value = sum();
  if (at !== words.length) throw new Error(`${formula}: it goes on after its end`);
  return value;
}

function inputs(c: Choices): Values {
  const { name: _, ...optimizer } = model.optimizers.find((o) => o.name === c.optimizer)!;
  const { name: __, ...precision } = model.precisions.find((p) => p.name === c.precision)!;
  return {
    n: c.batch, s: c.shape.context, d: c.shape.dim, L: c.shape.layers, a: c.shape.heads, h: c.shape.hidden, V: c.shape.vocabulary, G: c.sharing,
    N: 1, Z: 0, C: Number(c.checkpointing), F: Number(c.offload), S: Number(c.swarm), ...optimizer, ...precision, blockwise: Number(optimizer.blockwise),
  };
}

export function estimate(of: "seeds" | "shoal", choices: Choices): Figure[] {
  const values = inputs(choices);
  return model[of].map((one) => {
    values[one.name] = evaluate(one.formula, values);
    return { ...one, value: values[one.name] };
  });
}

/** The layers of a scenario's model, from the text of run.yaml, where every option has its value. Null: its workload has none. */
export function shapeOf(runYaml: string): { shape: Omit<Shape, "name">; sharing: number } | null {
  const lines = runYaml.split("\n"), at = lines.indexOf("workload:");
  const options: Record<string, string> = {};
  if (at >= 0)
    for (const line of lines.slice(at + 1)) {
      const [, key, value] = /^ {2}(\w+): (.*)$/.exec(line) ?? [];
      if (key) options[key] = value;
      else if (/^\S/.test(line)) break;
    }
  const n = (key: string) => Number(options[key]);
  const shape = options.kind === "transformer" ? { layers: n("layers"), heads: n("heads"), dim: n("dim"), hidden: 4 * n("dim"), context: n("context"), vocabulary: 256 }
    : options.kind === "albert" ? { layers: n("layers"), heads: n("heads"), dim: n("hidden"), hidden: n("feed_forward"), context: n("length"), vocabulary: n("vocabulary") }
    : null;
  // All layers of an ALBERT are one.
  return shape !== null && Object.values(shape).every((v) => v > 0) ? { shape, sharing: options.kind === "albert" ? 1 : 0 } : null;
}
