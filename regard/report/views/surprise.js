// The text coloured by what each token cost.
import { make, paintOver, percent, showSpaces, textOf } from "regard/base";

export const draw = (root, view, page) => {
  const { bits, alternatives } = view.data;
  const own = bits.filter((_, t) => page.spans[t]).sort((a, b) => a - b);
  const top = Math.max(2, own[Math.floor(0.95 * (own.length - 1))] ?? 2);
  const detail = make("div", { class: "detail", "aria-live": "polite" });
  const { root: text } = textOf(page, {
    label: "The text, coloured by surprise",
    paint: (span, t) => {
      if (page.spans[t]) paintOver(span, page.colour, Math.min(0.75, (0.75 * bits[t]) / top));
    },
    tip: (t) => (page.spans[t] ? `${bits[t].toFixed(1)} bits, ${percent(2 ** -bits[t])}` : "not of the text"),
  });
  const show = (t) => {
    const best = alternatives[t] ?? [];
    const pieces = page.tokensOfWord[page.words[t]].filter((piece) => page.spans[piece]);
    const rows = best.map(([token, p]) => make("div", { class: token === page.tokens[t] ? "bar own" : "bar" },
      make("span", { class: "name" }, showSpaces(token)),
      make("i", { style: `width:${100 * p}%;background:${page.colour}` }), make("b", {}, percent(p))));
    detail.replaceChildren(
      make("p", { class: "which" }, `“${showSpaces(page.tokens[t])}” cost ${bits[t].toFixed(2)} bits (${percent(2 ** -bits[t])})`),
      ...(pieces.length > 1 ? [make("p", { class: "small" }, `a piece of “${showSpaces(page.wordTexts[page.words[t]])}”, which cost ${pieces.reduce((sum, piece) => sum + bits[piece], 0).toFixed(2)} bits in all`)] : []),
      ...(best.length ? [make("p", { class: "small" }, "expected in its place:"), ...rows] : []));
  };
  page.on("hover", (tokens) => { if (tokens.length && page.spans[tokens[0]]) show(tokens[0]); });
  const costOf = (t) => page.tokensOfWord[page.words[t]].reduce((sum, piece) => sum + (page.spans[piece] ? bits[piece] : 0), 0);
  const isDearer = (t, best) => costOf(t) > costOf(best) || (costOf(t) === costOf(best) && bits[t] > bits[best]);
  const all = bits.map((_, t) => t).filter((t) => page.spans[t]);
  show(all.reduce((best, t) => (isDearer(t, best) ? t : best), all[0] ?? 0));
  root.append(make("div", { class: "twocolumns" }, text, detail));
};
