// The stretch of time that all charts show, the moment in it, and the participant or round that the page is limited to.
// The page's address has them after '#', so that a link shows the same: #panel-links?time=30-95&at=60&peer=home-1&round=12

export interface Choice {
  /** The shown stretch in seconds of the run; null: all of it. */
  range: [number, number] | null;
  /** The moment in seconds; null: the end, or now. */
  at: number | null;
  peer: string | null;
  /** The number of a round that the page has members of. */
  round: number | null;
}

export const choice: Choice = { range: null, at: null, peer: null, round: null };
/** The part of the page that the address names. */
let place = "";

let chosen = () => {}, moved = () => {};
const light = new Map<string, (at: number | null) => void>();

/** `choose` draws the page anew, `move` follows the moment alone. */
export function whenChosen(choose: () => void, move: () => void): void {
  chosen = choose;
  moved = move;
}

/** `follow` is called when the moment moves, until the panel `id` is drawn again. */
export function whenMoved(id: string, follow: (at: number | null) => void): void {
  light.set(id, follow);
}
export const forgetMoved = (id: string) => light.delete(id);

const short = (t: number) => String(Number(t.toPrecision(8)));

function text(): string {
  const words: string[] = [];
  if (choice.range) words.push(`time=${choice.range.map(short).join("-")}`);
  if (choice.at !== null) words.push(`at=${short(choice.at)}`);
  if (choice.peer !== null) words.push(`peer=${encodeURIComponent(choice.peer)}`);
  if (choice.round !== null) words.push(`round=${choice.round}`);
  return words.length > 0 ? `#${place}?${words.join("&")}` : place ? `#${place}` : "";
}

let saving = 0;
/** Browsers refuse an address that changes a hundred times in some seconds. */
function save(): void {
  if (saving !== 0) return;
  saving = window.setTimeout(() => {
    saving = 0;
    const now = text();
    if (now !== location.hash) history.replaceState(null, "", now || location.pathname + location.search);
  }, 250);
}

/** Reads the address. Returns the place that it names. Anything that is no number or name there counts as absent. */
export function readAddress(): string {
  const [where, rest = ""] = location.hash.replace(/^#/, "").split("?");
  const words = new URLSearchParams(rest);
  const number = (name: string) => {
    const value = Number(words.get(name) ?? NaN);
    return isFinite(value) && value >= 0 ? value : null;
  };
  const ends = /^([\d.]+)-([\d.]+)$/.exec(words.get("time") ?? "");
  const [from, to] = ends ? [Number(ends[1]), Number(ends[2])] : [NaN, NaN];
  choice.range = to > from ? [from, to] : null;
  choice.at = number("at");
  choice.peer = words.get("peer") || null;
  choice.round = number("round");
  place = where;
  return where;
}

export function goTo(id: string): void {
  place = id;
  save();
  document.getElementById(id)?.scrollIntoView({ block: "start" });
}

export function choose(what: Partial<Choice>): void {
  Object.assign(choice, what);
  save();
  chosen();
}

/** Forgets times beyond the end of the run: the address may have any. */
export function fit(end: number): void {
  if (choice.at !== null && choice.at >= end) choice.at = null;
  if (choice.range && choice.range[0] >= end) choice.range = null;
}

export function reset(): void {
  Object.assign(choice, { range: null, at: null, peer: null, round: null });
  save();
}

let due = 0;
export function moveTo(at: number | null): void {
  choice.at = at;
  save();
  if (due !== 0) return;
  due = requestAnimationFrame(() => {
    due = 0;
    moved();
    for (const follow of [...light.values()]) follow(choice.at);
  });
}
