// One word in several contexts: where it stands, how alike its vectors are, what is near, and a map; layer by layer.
import { diverging, make, shorten } from "regard/base";
import { lineChart, pointChart, slider, widthOf } from "regard/chart";

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b8578f", "#d89000", "#332288", "#4aa3d8", "#4a4a4a"];

export const draw = (root, view) => {
  const { occurrences, layers, alike, anyTwo, toType, nearTypes, neighbours, maps } = view.data;
  const colour = (k) => COLOURS[k % COLOURS.length];
  const list = make("ol", { class: "occurrences" }, ...occurrences.map(({ text, start, end }, k) => {
    const characters = Array.from(text), part = (a, b) => characters.slice(a, b).join("");
    return make("li", {}, part(0, start), make("b", { style: `color:${colour(k)}` }, part(start, end)), part(end));
  }));
  const stage = make("div");
  const table = (i) => {
    const head = make("tr", {}, make("td"), ...occurrences.map((_, k) => make("th", { scope: "col", style: `color:${colour(k)}` }, String(k + 1))));
    const rows = alike[i].map((row, k) => make("tr", {}, make("th", { scope: "row", style: `color:${colour(k)}` }, String(k + 1)),
      ...row.map((v) => make("td", { style: `background:${diverging(v)};color:${Math.abs(v) > 0.72 ? "#fff" : "inherit"}` }, v.toFixed(2)))));
    return make("table", { class: "alike", "aria-label": "Cosines between occurrences" }, make("tbody", {}, head, ...rows));
  };
  const near = (i) => make("div", { class: "near" }, ...neighbours[i].map((found, k) => make("div", {},
    make("p", { class: "which", style: `color:${colour(k)}` }, `${k + 1}`),
    ...found.map(([word, around, cosine]) => make("p", { class: "neighbour", "data-tip": around }, `${shorten(word, 18)} `, make("b", {}, cosine.toFixed(2)))))));
  const show = (i) => {
    const points = maps[i].map((p) => ({ ...p, text: p.occurrence === null ? shorten(p.word, 16) : `${p.occurrence + 1} ${p.word}`, tip: p.around,
      colour: p.occurrence === null ? "#b9bec6" : colour(p.occurrence), isStrong: p.occurrence !== null }));
    stage.replaceChildren(
      make("div", { class: "sidebyside" },
        make("div", {}, make("p", { class: "small" }, "cosine between occurrences"), table(i)),
        make("div", {}, make("p", { class: "small" }, "nearest words in context; point at one to see where it stands"), near(i))),
      make("p", { class: "small" }, "a map: the occurrences and the words around them, in the plane in which they differ the most"),
      pointChart({ points, width: widthOf(root, 760), label: `Map of ${layers[i]}` }));
  };
  const n = occurrences.length;
  const lines = toType.length ? occurrences.map((_, k) => ({ name: `type and token ${k + 1}`, colour: colour(k), points: toType.map((row, l) => [l, row[k]]) })) : [];
  if (n > 1) {
    const mean = alike.map((rows) => rows.flatMap((row, a) => row.filter((_, b) => a !== b)).reduce((x, y) => x + y, 0) / (n * (n - 1)));
    lines.push({ name: "between occurrences", colour: "#1c1e21", width: 3, points: mean.map((v, l) => [l, v]) });
  }
  lines.push({ name: "any two words", colour: "#8b929c", dash: "5 4", points: anyTwo.map((v, l) => [l, v]) });
  root.append(list);
  if (nearTypes.length) root.append(make("p", { class: "small" }, "nearest to its type vector in the vocabulary: ",
    nearTypes.map(([word, cosine]) => `${word.trim() || word} ${cosine.toFixed(2)}`).join(", ")));
  const chart = lineChart({ lines, x: "layer (0: what the first layer reads)", y: "cosine", width: widthOf(root, 760), label: `Cosines by layer. ${view.summary}` });
  root.append(slider("after", layers, layers.length - 1, show), stage, make("p", { class: "small" }, "by layer"), chart);
};
