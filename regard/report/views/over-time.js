// A run as it learned: a slider through the weights that it kept.
import { chooser, diverging, make, textOf, unpack } from "regard/base";
import { lineChart, slider, widthOf } from "regard/chart";
import { drawMatrix, sayRow } from "regard/matrix";

export const draw = (root, view, page) => {
  const { steps, samples, bits, unit, feature, cells, r, heads, attention, gradients, curves } = view.data;
  const all = attention.map(unpack);
  const [sample, cellPlace, lookPlace, gradientPlace, curvePlace] = Array.from({ length: 5 }, () => make("div"));
  const half = () => (widthOf(root, 1000) > 700 ? 480 : widthOf(root, 480));
  let at = steps.length - 1, head = 0;
  const places = page.spans.flatMap((span, t) => (span ? [t] : []));

  const showCell = () => {
    const values = cells[at];
    if (!unit || values.length !== places.length) return;
    const valueAt = new Map(places.map((t, k) => [t, values[k]]));
    const { root: text } = textOf(page, {
      label: `The text, coloured by ${unit} after step ${steps[at]}`,
      paint: (span, t) => {
        if (!valueAt.has(t)) return;
        span.style.background = diverging(valueAt.get(t));
        span.style.color = Math.abs(valueAt.get(t)) > 0.72 ? "#fff" : "inherit";
      },
      tip: (t) => (valueAt.has(t) ? valueAt.get(t).toFixed(2) : ""),
    });
    const known = r[at] === null ? "" : ` · r with “${feature}” ${r[at].toFixed(2)}`;
    cellPlace.replaceChildren(make("p", { class: "small" }, `${unit}${known}`), text);
  };
  const showHead = () => {
    if (!heads.length) return;
    const packed = all[head], [, T, S] = packed.shape;
    const weights = { shape: [T, S], value: (i) => packed.value(at * T * S + i) };
    const names = page.tokens.slice(0, T), said = make("p", { class: "small" }, heads[head]), stage = make("div");
    lookPlace.replaceChildren(said, stage);
    drawMatrix(stage, { rows: names, columns: names, weights, colour: page.colour, label: `${heads[head]} after step ${steps[at]}`,
      point: (t) => { said.textContent = sayRow(weights, t, names, names); page.emit("hover", [t]); } });
  };
  const showGradient = () => {
    if (!gradients[at].length) return;
    const grey = gradients.map((curve, i) => ({ name: "", colour: "#d5d9de", width: 1, dots: false, points: curve.map((v, k) => [k, v]) })).filter((_, i) => i !== at);
    gradientPlace.replaceChildren(make("p", { class: "small" }, "gradient by distance on this text; grey: at the other steps"),
      lineChart({ lines: [...grey, { name: "", colour: page.colour, points: gradients[at].map((v, k) => [k, v]) }], x: "steps back",
        y: "norm of the gradient", isLog: true, width: heads.length ? half() : widthOf(root, 760), height: 220, label: `Gradient by distance after step ${steps[at]}` }));
  };
  const showCurves = () => {
    const loss = [{ name: "training", colour: "#8b929c", points: curves.train, dots: false }, { name: "validation", colour: page.colour, points: curves.valid }]
      .filter((line) => line.points.length);
    const norms = [{ name: "", colour: page.colour, points: curves.grad_norm, dots: false }];
    const parts = [];
    if (loss.length) parts.push(make("div", {}, lineChart({ lines: loss, x: "step", y: "loss", at: steps[at], width: half(), height: 220, label: "Loss by step" })));
    if (curves.grad_norm.length) parts.push(make("div", {}, lineChart({ lines: norms, x: "step", y: "norm of an update's gradient", isLog: true, at: steps[at], width: half(), height: 220, label: "Norm of the gradient by step" })));
    curvePlace.replaceChildren(make("div", { class: "sidebyside" }, ...parts));
  };
  const show = (i) => {
    at = i;
    const cost = bits[at] === null ? "" : `${bits[at].toFixed(2)} bits a token of the text`;
    sample.replaceChildren(make("p", { class: "small" }, cost),
      ...(samples[at] ? [make("p", { class: "small" }, "what it writes"), make("p", { class: "written" }, samples[at])] : []));
    showCell();
    showHead();
    showGradient();
    showCurves();
  };
  const bar = slider("after step", steps.map((step) => step.toLocaleString("en")), at, () => {});
  root.append(bar, sample, cellPlace);
  if (heads.length) root.append(chooser("heads that changed the most", heads, 0, (k) => { head = k; showHead(); }));
  root.append(make("div", { class: "sidebyside" }, ...(heads.length ? [lookPlace] : []), gradientPlace), curvePlace);
  bar.querySelector("input").addEventListener("input", (event) => show(Number(event.target.value)));
  show(at);
};
