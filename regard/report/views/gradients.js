// Gradients of predictions: over the text for one word, by distance, and by layer.
import { make, mix, showSpaces, textOf, unpack } from "regard/base";
import { lineChart, widthOf } from "regard/chart";

export const draw = (root, view, page) => {
  const { targets, curve, layers, weights } = view.data;
  const norms = unpack(view.data.norms), T = norms.shape[1];
  let row = targets.length - 1;
  const which = make("p", { class: "which", "aria-live": "polite" });
  const place = make("div");
  const value = (s) => norms.value(row * T + s);
  const { root: text, repaint } = textOf(page, {
    label: "The text, coloured by the gradient of one prediction",
    paint: (span, t) => {
      const top = Math.max(...Array.from({ length: targets[row] }, (_, s) => value(s))) || 1;
      span.style.background = t < targets[row] ? mix(page.colour, 0.8 * Math.sqrt(value(t) / top)) : "none";
      span.style.opacity = t > targets[row] ? 0.4 : 1;
      span.style.fontWeight = t === targets[row] ? 700 : "inherit";
    },
    tip: (t) => (t < targets[row] ? `gradient ${value(t).toPrecision(3)}, ${targets[row] - t} before the predicted word` : ""),
  });
  const show = () => {
    const last = targets[row];
    which.textContent = `The prediction of “${showSpaces(page.tokens[last])}”`;
    repaint();
    const own = Array.from({ length: last }, (_, k) => [k, value(last - 1 - k)]);
    place.replaceChildren(lineChart({
      lines: [{ name: "mean of all predictions", colour: page.colour, points: curve.map((v, k) => [k, v]) },
        { name: `this prediction`, colour: "#8b929c", points: own, dash: "4 3", width: 1.3, dots: false }],
      x: "steps back", y: "norm of the gradient", isLog: true, width: widthOf(root, 760), label: `Norm of the gradient by distance. ${view.summary}` }));
  };
  page.on("hover", (tokens) => {
    const found = targets.indexOf(tokens[0]);
    if (found >= 0 && found !== row) { row = found; show(); }
  });
  const bars = (title, list) => {
    const top = Math.max(...list.map(([, v]) => v)) || 1;
    return make("div", {}, make("p", { class: "small" }, title), ...list.map(([name, v]) => make("div", { class: "bar" },
      make("span", { class: "name" }, name), make("i", { style: `width:${(100 * v) / top}%;background:${page.colour}` }),
      make("b", {}, v.toPrecision(2)))));
  };
  show();
  root.append(which, text, make("p", { class: "small" }, "by distance"), place,
    make("div", { class: "sidebyside" }, bars("at what each layer gives (root mean square over the text)", layers), bars("at the weights of each layer", weights)));
};
