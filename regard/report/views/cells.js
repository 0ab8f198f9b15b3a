// The text coloured by one unit, and a passage on which the feature that the unit follows varies.
import { chooser, diverging, make, moveAmong, textOf } from "regard/base";

const signed = (value) => (value >= 0 ? "+" : "−") + Math.abs(value).toFixed(2);
const paint = (span, value) => {
  span.style.background = diverging(value);
  span.style.color = Math.abs(value) > 0.72 ? "#fff" : "inherit";
};

// Tokens that are no part of the panel's text: coloured, pointed at, reached by arrow keys.
const drawTokens = (label, tokens, values, follows) => {
  const spans = tokens.map((token, i) => {
    const said = signed(values[i]) + (follows.length ? `, feature ${follows[i].toFixed(2)}` : "");
    const span = make("span", { class: "token", tabindex: i ? -1 : 0, role: "img", "data-tip": said,
      "aria-label": `${token.trim() || "space"}: ${said}` }, token.replace(/\n/g, "⏎\n"));
    paint(span, values[i]);
    if (follows.length) span.style.borderBottom = `3px solid rgba(28,30,33,${0.9 * follows[i]})`;
    return span;
  });
  const root = make("div", { class: "looktext celltext", role: "group", "aria-label": label }, ...spans);
  root.addEventListener("keydown", (event) => moveAmong(spans, event));
  return root;
};

export const draw = (root, view, page) => {
  const { kind, cells } = view.data;
  const place = make("div");
  const show = (i) => {
    const cell = cells[i];
    const found = cell.r === null ? `${cell.unit} moves, and follows none of the features.`
      : `${cell.unit} · r = ${signed(cell.r)} where it was not chosen` + (cell.found === null ? "" : ` (${signed(cell.found)} where it was)`);
    const parts = [make("p", { class: "which" }, found)];
    const places = (page.spans ?? []).flatMap((span, t) => (span ? [t] : []));
    if (cell.own.length && cell.own.length === places.length) {
      const valueAt = new Map(places.map((t, k) => [t, cell.own[k]]));
      const { root: own } = textOf(page, {
        label: `The text, coloured by ${cell.unit}`,
        paint: (span, t) => { if (valueAt.has(t)) paint(span, valueAt.get(t)); },
        tip: (t) => (valueAt.has(t) ? signed(valueAt.get(t)) : ""),
      });
      own.classList.add("celltext");
      parts.push(make("p", { class: "small" }, "on this text"), own);
    } else if (cell.own.length) {
      parts.push(make("p", { class: "small" }, "on this text"), drawTokens("The text", cell.ownTokens, cell.own, []));
    }
    parts.push(make("p", { class: "small" }, cell.r === null ? "on a passage" : `on a passage where “${cell.feature}” varies`),
      drawTokens(`A passage, coloured by ${cell.unit}`, cell.tokens, cell.values, cell.follows));
    place.replaceChildren(...parts);
  };
  const scale = make("p", { class: "scale", "aria-hidden": true }, "−1 ",
    ...Array.from({ length: 21 }, (_, k) => make("i", { style: `background:${diverging((k - 10) / 10)}` })), " +1");
  const names = cells.map((cell) => (cell.r === null ? cell.feature : `${cell.feature} ${signed(cell.r)}`));
  root.append(chooser(`${kind}s by feature`, names, 0, show), scale, place);
  show(0);
};
