// Attention worked by hand: every number between the scores and the output. What stands in a box can be changed.
import { diverging, make, mix, showSpaces } from "regard/base";

const MAX_SHOWN = 8;  // numbers of a vector that are written out; longer ones are strips of colour
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const write = (x, digits = 3) => (Number.isFinite(x) ? (Math.abs(x) >= 1e5 ? x.toExponential(2) : String(Number(x.toFixed(digits)))) : "–");
const fixed = (x, digits = 3) => (Number.isFinite(x) ? x.toFixed(digits) : "–");

// b^s / Σ b^s
export const softmax = (scores, base = Math.E) => {
  const most = Math.max(...scores), e = scores.map((s) => Math.exp((s - most) * Math.log(base)));
  const sum = e.reduce((a, b) => a + b, 0);
  return e.map((x) => x / sum);
};
export const times = (A, B) => A.map((row) => B[0].map((_, j) => row.reduce((sum, x, i) => sum + x * B[i][j], 0)));
const transpose = (A) => A[0].map((_, j) => A.map((row) => row[j]));

const input = (value, change, label) => make("input", { type: "number", step: "any", class: "cell", value: write(value, 4), "aria-label": label,
  oninput: (event) => { const x = event.target.valueAsNumber; if (Number.isFinite(x)) change(x); } });
const vectorInputs = (vector, change, label) => make("span", { class: "vector" }, "[", ...vector.map((x, i) =>
  input(x, (value) => { vector[i] = value; change(); }, `${label}, number ${i + 1}`)), "]");
const vectorText = (vector) => {
  const shown = vector.slice(0, MAX_SHOWN).map((x) => write(x));
  const text = make("span", { class: "vector" }, `[${shown.join(", ")}${vector.length > MAX_SHOWN ? ", …" : ""}]`);
  return vector.length > MAX_SHOWN ? make("span", { class: "long" }, strip(vector), text) : text;
};
// A long vector as a row of colours, blue below zero and orange above.
const strip = (vector, most = Math.max(...vector.map(Math.abs), 1e-9)) => {
  return make("span", { class: "strip-vector", role: "img", "aria-label": `${vector.length} numbers`,
    "data-tip": vector.map((x) => write(x, 2)).join("  ") },
  ...vector.map((x) => make("i", { style: `background:${diverging(x / most)}` })));
};

const attend = (root, given, colour) => {
  const e = structuredClone(given);
  const isLong = (e.query ?? e.values?.[0] ?? []).length > MAX_SHOWN;
  let scores = e.scores ?? e.keys.map((k) => dot(e.query, k));
  const canType = Boolean(e.scores) || isLong;  // scores themselves, where there are no vectors that one would type
  const largest = Math.max(...(e.values ?? [[1]]).flat().map(Math.abs), 1e-9);
  const outputs = e.words.map(() => ({ score: make("td"), scaled: make("td"), weight: make("td"), bar: make("i"), part: make("td") }));
  const z = make("td", { class: "z" }), total = make("td", { class: "total" });
  const update = () => {
    if (!canType) scores = e.keys.map((k) => dot(e.query, k));
    const scaled = scores.map((s) => (e.d ? s / Math.sqrt(e.d) : s));
    const weights = softmax(scaled, e.base);
    outputs.forEach((out, i) => {
      if (!canType) out.score.textContent = write(scores[i]);
      out.scaled.textContent = write(scaled[i]);
      out.weight.textContent = fixed(weights[i]);
      out.bar.style.width = `${100 * weights[i]}%`;
      if (e.values) out.part.replaceChildren((isLong ? (part) => strip(part, largest) : vectorText)(e.values[i].map((v) => weights[i] * v)));
    });
    total.textContent = fixed(weights.reduce((a, b) => a + b, 0));
    if (e.values) z.replaceChildren("z = ", vectorText(e.values[0].map((_, j) => e.values.reduce((sum, v, i) => sum + weights[i] * v[j], 0))));
  };
  const rows = e.words.map((word, i) => {
    const out = outputs[i];
    if (canType) out.score.replaceChildren(input(scores[i], (x) => { scores[i] = x; update(); }, `score of ${word}`));
    return make("tr", {}, make("th", { scope: "row" }, showSpaces(word)),
      ...(e.keys ? [make("td", {}, isLong ? strip(e.keys[i]) : vectorInputs(e.keys[i], update, `key of ${word}`))] : []),
      out.score, ...(e.d ? [out.scaled] : []), out.weight, make("td", { class: "weightbar" }, out.bar),
      ...(e.printed ? [make("td", { class: "misprint" }, e.printed[i].toFixed(2))] : []),
      ...(e.values ? [make("td", {}, isLong ? strip(e.values[i]) : vectorInputs(e.values[i], update, `value of ${word}`)), out.part] : []));
  });
  outputs.forEach((out) => { out.bar.style.background = colour; });
  const heads = ["", ...(e.keys ? ["key k"] : []), e.keys ? "q · k" : "score s", ...(e.d ? ["s / √d"] : []), "weight a", "",
    ...(e.printed ? ["as printed"] : []), ...(e.values ? ["value v", "a v"] : [])];
  const foot = make("tr", {}, make("th", { scope: "row" }, "sum"), ...(e.keys ? [make("td")] : []), make("td"), ...(e.d ? [make("td")] : []),
    total, make("td"), ...(e.printed ? [make("td", { class: "misprint" }, e.printed.reduce((a, b) => a + b, 0).toFixed(2))] : []),
    ...(e.values ? [make("td"), z] : []));
  const top = make("p", { class: "asked" },
    ...(e.query ? [`${e.asker} asks with q = `, isLong ? strip(e.query) : vectorInputs(e.query, update, "query"), "  "] : []),
    ...(e.d ? ["d = ", input(e.d, (x) => { if (x > 0) { e.d = x; update(); } }, "d"), `  `] : []),
    "base of the softmax ", input(e.base, (x) => { if (x > 1) { e.base = x; update(); } }, "base of the softmax"));
  root.append(top, make("div", { class: "scroller" }, make("table", { class: "work" },
    make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, ...rows), make("tfoot", {}, foot))));
  update();
};

const project = (root, given, colour) => {
  const e = structuredClone(given);
  const shown = {};
  const matrix = (name, rows, isEdited) => {
    const cells = rows.map((row) => row.map(() => make("td")));
    shown[name] = (values, shade) => values.forEach((row, i) => row.forEach((x, j) => {
      if (isEdited) return;
      cells[i][j].textContent = shade === undefined ? write(x) : fixed(x);
      if (shade) cells[i][j].style.background = mix(colour, 0.7 * x);
    }));
    if (isEdited) rows.forEach((row, i) => row.forEach((x, j) => cells[i][j].append(input(x, (value) => { row[j] = value; update(); }, `${name}, row ${i + 1}, column ${j + 1}`))));
    return make("figure", { class: "small-matrix" }, make("figcaption", {}, name), make("table", { class: "bracket" }, ...cells.map((row) => make("tr", {}, ...row))));
  };
  const empty = (n, m) => Array.from({ length: n }, () => Array.from({ length: m }, () => 0));
  const n = e.X.length, d = e.WQ[0].length;
  const update = () => {
    const [Q, K, V] = [times(e.X, e.WQ), times(e.X, e.WK), times(e.X, e.WV)];
    const S = times(Q, transpose(K)), A = S.map((row) => softmax(row));
    shown["Q = X W^Q"](Q); shown["K = X W^K"](K); shown["V = X W^V"](V); shown["S = Q Kᵀ"](S);
    shown["A = softmax of each row"](A, true); shown["Z = A V"](times(A, V), false);
  };
  const line = (...parts) => make("div", { class: "matrices" }, ...parts);
  root.append(
    line(matrix("X", e.X, true), matrix("W^Q", e.WQ, true), matrix("W^K", e.WK, true), matrix("W^V", e.WV, true)),
    line(matrix("Q = X W^Q", empty(n, d)), matrix("K = X W^K", empty(n, d)), matrix("V = X W^V", empty(n, e.WV[0].length))),
    line(matrix("S = Q Kᵀ", empty(n, n)), matrix("A = softmax of each row", empty(n, n)), matrix("Z = A V", empty(n, e.WV[0].length))));
  update();
};

const regress = (root, given, colour) => {
  const e = structuredClone(given);
  const wide = 560, tall = 240, pad = 26;
  const low = Math.min(...e.xs), high = Math.max(...e.xs), bottom = Math.min(...e.ys) - 0.4, ceiling = Math.max(...e.ys) + 0.4;
  const px = (x) => pad + ((x - low) / (high - low)) * (wide - 2 * pad), py = (y) => tall - pad - ((y - bottom) / (ceiling - bottom)) * (tall - 2 * pad);
  const weigh = (x) => softmax(e.xs.map((x_i) => -((x - x_i) ** 2) / (2 * e.h ** 2)));
  const predict = (x) => dot(weigh(x), e.ys);
  const curve = make("path", { fill: "none", stroke: colour, "stroke-width": 2.5 });
  const cursor = make("line", { y1: pad, y2: tall - pad, stroke: "currentColor", "stroke-dasharray": "3 3" });
  const spot = make("circle", { r: 6, fill: colour });
  const dots = e.xs.map(() => make("circle", { fill: mix(colour, 0.35), stroke: colour }));
  const svg = make("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "regression", role: "img" }, make("path", { d: `M${pad} ${tall - pad}H${wide - pad}`, stroke: "currentColor" }), cursor, curve, ...dots, spot);
  const body = make("tbody"), answer = make("p", { class: "which", "aria-live": "polite" });
  const update = () => {
    const weights = weigh(e.x), y = predict(e.x);
    curve.setAttribute("d", Array.from({ length: 141 }, (_, i) => low + ((high - low) * i) / 140).map((x, i) => `${i ? "L" : "M"}${px(x).toFixed(1)} ${py(predict(x)).toFixed(1)}`).join(""));
    cursor.setAttribute("x1", px(e.x)); cursor.setAttribute("x2", px(e.x));
    spot.setAttribute("cx", px(e.x)); spot.setAttribute("cy", py(y));
    dots.forEach((dot, i) => { dot.setAttribute("cx", px(e.xs[i])); dot.setAttribute("cy", py(e.ys[i])); dot.setAttribute("r", 3 + 11 * Math.sqrt(weights[i])); });
    answer.textContent = `x = ${write(e.x, 2)}: ŷ = ${fixed(y)}`;
    svg.setAttribute("aria-label", `A curve through ${e.xs.length} points; at x = ${write(e.x, 2)} it is ${fixed(y)}`);
    outputs.forEach(([score, weight], i) => { score.textContent = write(-((e.x - e.xs[i]) ** 2) / (2 * e.h ** 2), 2); weight.textContent = fixed(weights[i]); });
  };
  const outputs = e.xs.map(() => [make("td"), make("td")]);
  e.xs.forEach((_, i) => body.append(make("tr", {}, make("td", {}, input(e.xs[i], (v) => { e.xs[i] = v; update(); }, `x of point ${i + 1}`)),
    make("td", {}, input(e.ys[i], (v) => { e.ys[i] = v; update(); }, `y of point ${i + 1}`)), ...outputs[i])));
  const slider = make("input", { type: "range", min: low, max: high, step: 0.05, value: e.x, "aria-label": "x", oninput: (event) => { e.x = event.target.valueAsNumber; update(); } });
  root.append(make("p", { class: "asked" }, "x ", slider, "  width h = ", input(e.h, (v) => { if (v > 0) { e.h = v; update(); } }, "width of the kernel")), answer,
    make("div", { class: "twocolumns curve" }, svg, make("div", { class: "scroller" }, make("table", { class: "work" },
      make("thead", {}, make("tr", {}, ...["key x", "value y", "score", "weight"].map((h) => make("th", { scope: "col" }, h)))), body))));
  update();
};

const KINDS = { attend, project, regress };
export const draw = (root, view, page) => {
  for (const example of view.data.examples) {
    const box = make("div", { class: "example" }, ...(example.title ? [make("h3", {}, example.title)] : []), ...(example.note ? [make("p", { class: "note" }, example.note)] : []));
    KINDS[example.kind](box, example, page.colour);
    root.append(box);
  }
};
