// The table of positions, how alike two positions are, and the same by how far apart they are.
import { chooser, make, unpack } from "regard/base";
import { heatMap, lineChart, widthOf } from "regard/chart";

export const draw = (root, view, page) => {
  const { tables } = view.data;
  const stage = make("div");
  const show = (i) => {
    const table = tables[i], values = unpack(table.table), products = unpack(table.products);
    const half = widthOf(root, 1000) > 700 ? 470 : widthOf(root, 470);
    const shown = values.shape[0] < table.n ? ` (the first ${values.shape[0]} of ${table.n})` : "";
    const picture = heatMap({ values, width: half, height: 320, label: "The table of positions.",
      tip: (t, d, v) => `position ${t}, number ${d}: ${v.toFixed(3)}` });
    const square = Math.min(half, 320);
    const alike = heatMap({ values: products, width: square, height: square, label: "Products of positions.",
      tip: (t, s, v) => `positions ${t} and ${s}, ${Math.abs(t - s)} apart: ${v.toFixed(3)}` });
    const line = (list) => list.map((v, k) => [k, v]).slice(0, 513);
    const lines = [{ name: table.isLearned ? "learned" : "sinusoidal", colour: page.colour, points: line(table.mean), dots: false }];
    if (table.isLearned) lines.push({ name: "sinusoids of the same size", colour: "#8b929c", points: line(table.fixed), dash: "5 4", dots: false });
    const band = table.spread.some((v) => v > 0.002)
      ? [1, -1].map((side) => ({ name: "", colour: page.colour, width: 0.7, dots: false, points: line(table.mean.map((v, k) => v + side * table.spread[k])) })) : [];
    stage.replaceChildren(
      make("div", { class: "sidebyside" },
        make("div", {}, make("p", { class: "small" }, `positions downwards${shown}, numbers of their vectors to the right`), picture),
        make("div", {}, make("p", { class: "small" }, "P Pᵀ: position by position"), alike)),
      make("p", { class: "small" }, `cosine of two positions by how far apart they are${band.length ? "; thin lines: one standard deviation" : ""}`),
      lineChart({ lines: [...lines, ...band], x: "positions apart", y: "cosine", label: `Cosine by offset. ${view.summary}`, width: widthOf(root, 760) }));
  };
  if (tables.length > 1) root.append(chooser("table", tables.map((t) => t.name), 0, show));
  root.append(stage);
  show(0);
};
