// Elements without a framework.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** h("p", {class: "x", onclick: f}, "text", child) */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: (Child | Child[])[]): HTMLElementTagNameMap[K] {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") out.addEventListener(name.slice(2), value as EventListener);
    else out.setAttribute(name, value === true ? "" : String(value));
  }
  out.append(...children.flat().filter((c): c is Node | string | number => c !== null && c !== undefined && c !== false).map((c) => (typeof c === "number" ? String(c) : c)));
  return out;
}

/** Replaces what is in `into`, but only what is another: focus and selection stay where nothing changes. */
export function fill(into: Element, ...children: (Child | Child[])[]): void {
  into.replaceChildren(...children.flat().filter((c): c is Node | string => c !== null && c !== undefined && c !== false && typeof c !== "number"));
}

export interface Column<Row> {
  title: string;
  value: (row: Row) => number | string | null;
  text?: (row: Row) => string | Node;
  number?: boolean;
}

/** A table whose columns sort. It remembers how between two calls with the same `state`. */
export interface TableState {
  by: number;
  down: boolean;
}
export function table<Row>(rows: Row[], columns: Column<Row>[], state: TableState, again: () => void, options: { most?: number; row?: (row: Row, tr: HTMLTableRowElement) => void; caption: string }): HTMLElement {
  const sorted = state.by < 0 ? rows : [...rows].sort((a, b) => {
    const x = columns[state.by].value(a), y = columns[state.by].value(b);
    const order = x === y ? 0 : x === null ? 1 : y === null ? -1 : x < y ? -1 : 1;
    return x === null || y === null ? order : state.down ? -order : order;
  });
  const most = options.most ?? 100;
  const head = h("tr", {}, columns.map((c, i) =>
    h("th", { scope: "col", class: c.number ? "n" : "", "aria-sort": state.by === i ? (state.down ? "descending" : "ascending") : "none" },
      h("button", {
        type: "button",
        onclick: () => {
          state.down = state.by === i ? !state.down : !!c.number;
          state.by = i;
          again();
        },
      }, c.title, h("span", { "aria-hidden": "true", class: "arrow" }, state.by === i ? (state.down ? "▾" : "▴") : "")))));
  const body = h("tbody", {}, sorted.slice(0, most).map((row) => {
    const tr = h("tr", {}, columns.map((c) => h("td", { class: c.number ? "n" : "" }, c.text ? c.text(row) : (c.value(row) ?? "–"))));
    options.row?.(row, tr);
    return tr;
  }));
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": options.caption },
    h("table", {}, h("caption", { class: "unseen" }, options.caption), h("thead", {}, head), body),
    sorted.length > most && h("p", { class: "note" }, `and ${sorted.length - most} more`));
}

/** Radio buttons that look like one switch. */
export function choice<T extends string>(label: string, name: string, options: readonly (readonly [T, string])[], chosen: T, set: (value: T) => void): HTMLElement {
  return h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, label), options.map(([value, text]) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => set(value) }), h("span", {}, text))));
}

export function search(label: string, value: string, set: (value: string) => void): HTMLElement {
  return h("label", { class: "search" }, h("span", { class: "unseen" }, label),
    h("input", { type: "search", placeholder: label, value, oninput: (e: InputEvent) => set((e.target as HTMLInputElement).value) }));
}

export function copyable(text: string): HTMLElement {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}` }, "copy");
  button.addEventListener("click", () => {
    const done = () => {
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    };
    const byHand = () => {
      // A page from a disk cannot write to the clipboard. The user can copy the selected text.
      const range = document.createRange();
      range.selectNodeContents(code);
      const selection = getSelection();
      selection?.removeAllRanges();
      selection?.addRange(range);
      button.textContent = "selected";
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  });
  const code = h("code", { tabindex: 0 }, text);
  return h("div", { class: "command" }, code, button);
}
