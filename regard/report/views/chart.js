// Charts that several views draw: lines over a number, points in a plane, a picture of a matrix, and a slider.
import { diverging, make, mix } from "regard/base";

const write = (value) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(0).replace("e+", "e");
  return String(Number(value.toPrecision(2)));
};
const roundTicks = (low, high, most) => {
  const raw = (high - low || 1) / most, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= raw);
  const ticks = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) ticks.push(Math.abs(v) < 1e-9 * step ? 0 : v);
  return ticks;
};
const logTicks = (low, high) => {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const step = Math.max(1, Math.ceil((last - first) / 6)), ticks = [];
  for (let e = first; e <= last; e += step) for (const k of last - first > 2 ? [1] : [1, 2, 5]) ticks.push(k * 10 ** e);
  return ticks.filter((v) => v >= low * 0.999 && v <= high * 1.001);
};

// lines: [{ name, colour, points: [[x, y], ...], dash, dots }]. With `at` a vertical line stands there.
export const lineChart = ({ lines, x, y, label, width = 640, height = 260, isLog = false, isLogX = false, at = null }) => {
  const w = Math.max(280, width), left = 58, right = 14, top = 26, bottom = 44;
  const all = lines.flatMap((line) => line.points).filter(([, v]) => Number.isFinite(v) && (!isLog || v > 0));
  if (!all.length) return make("p", { class: "absent" }, "There are no numbers to draw.");
  const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  if (!isLog && y0 > 0 && y0 < 0.5 * y1) y0 = 0;
  if (y0 === y1) { y0 = isLog ? y0 / 2 : y0 - 1; y1 = isLog ? y1 * 2 : y1 + 1; }
  const scale = (v, a, b, log) => (b === a ? 0.5 : log ? (Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a)) : (v - a) / (b - a));
  const shift = isLogX ? 1 - Math.min(0, x0) : 0;  // step 0 has its place on a logarithmic axis, too
  const px = (v) => left + (w - left - right) * scale(v + shift, x0 + shift, x1 + shift, isLogX);
  const py = (v) => height - bottom - (height - top - bottom) * scale(v, y0, y1, isLog);
  const svg = make("svg", { viewBox: `0 0 ${w} ${height}`, class: "chart", role: "img", "aria-label": label });
  for (const v of isLog ? logTicks(y0, y1) : roundTicks(y0, y1, 5)) {
    svg.append(make("line", { x1: left, x2: w - right, y1: py(v), y2: py(v), class: "grid" }),
      make("text", { x: left - 7, y: py(v) + 4, "text-anchor": "end" }, write(v)));
  }
  const places = isLogX ? [...new Set(xs)].sort((a, b) => a - b) : roundTicks(x0, x1, w < 460 ? 4 : 8).filter((v) => Number.isInteger(v) || !xs.every(Number.isInteger));
  let last = -Infinity;
  for (const v of places) {
    if (px(v) - last < 34) continue;
    last = px(v);
    svg.append(make("text", { x: px(v), y: height - bottom + 18, "text-anchor": "middle" }, isLogX ? String(v) : write(v)));
  }
  svg.append(make("line", { x1: left, x2: w - right, y1: height - bottom, y2: height - bottom, class: "axis" }),
    make("text", { x: w - right, y: height - 6, "text-anchor": "end", class: "name" }, x),
    make("text", { x: left, y: top - 12, class: "name" }, y));
  if (at !== null) svg.append(make("line", { x1: px(at), x2: px(at), y1: top, y2: height - bottom, class: "now" }));
  for (const line of lines) {
    const shown = line.points.filter(([, v]) => Number.isFinite(v) && (!isLog || v > 0));
    const path = shown.map(([a, b], i) => `${i ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
    svg.append(make("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": line.width ?? 2,
      "stroke-dasharray": line.dash ?? null, "stroke-linejoin": "round" }));
    if (line.dots === false) continue;
    for (const [a, b] of shown) {
      const dot = make("circle", { cx: px(a), cy: py(b), r: shown.length > 40 ? 2 : 3.2, fill: line.colour });
      dot.dataset.tip = `${line.name}${line.name ? ", " : ""}${x} ${write(a)}: ${Number(b.toPrecision(3))}`;
      svg.append(dot);
    }
  }
  const named = lines.filter((line) => line.name);
  if (named.length < 2) return svg;
  return make("div", {}, svg, make("p", { class: "legend" }, ...named.map((line) =>
    make("span", {}, make("i", { style: `background:${line.colour}` }), line.name))));
};

// points: [{ x, y, text, colour, isStrong, tip }]; labels are left out where they would cover others.
export const pointChart = ({ points, label, width = 640, height = 420 }) => {
  const w = Math.max(280, width), margin = 26;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const reach = (values) => { const a = Math.min(...values), b = Math.max(...values); return a === b ? [a - 1, b + 1] : [a, b]; };
  const [[x0, x1], [y0, y1]] = [reach(xs), reach(ys)];
  const px = (v) => margin + ((w - 2 * margin - 60) * (v - x0)) / (x1 - x0), py = (v) => height - margin - ((height - 2 * margin) * (v - y0)) / (y1 - y0);
  const svg = make("svg", { viewBox: `0 0 ${w} ${height}`, class: "chart plane", role: "img", "aria-label": label });
  const taken = [];
  const isFree = (box) => taken.every(([a, b, c, d]) => box[2] < a || box[0] > c || box[3] < b || box[1] > d);
  for (const p of [...points].sort((a, b) => (b.isStrong ? 1 : 0) - (a.isStrong ? 1 : 0))) {
    const [cx, cy] = [px(p.x), py(p.y)];
    const dot = make("circle", { cx, cy, r: p.isStrong ? 6 : 3, fill: p.colour });
    dot.dataset.tip = p.tip ?? p.text;
    svg.append(dot);
    const long = 9 + 7 * p.text.length, rows = p.isStrong ? [0, 15, -15, 30, -30] : [0];  // strong names always find a place
    const tried = rows.flatMap((dy) => [false, true].slice(0, p.isStrong ? 2 : 1).map((isLeft) => ({ isLeft, dy,
      box: isLeft ? [cx - long, cy + dy - 7, cx - 5, cy + dy + 6] : [cx + 5, cy + dy - 7, cx + long, cy + dy + 6] })));
    const place = tried.find(({ box }) => isFree(box) && box[0] > 0) ?? (p.isStrong ? tried[0] : null);
    if (!place) continue;
    taken.push(place.box);
    svg.append(make("text", { x: place.isLeft ? cx - 9 : cx + 8, y: cy + place.dy + 4, "text-anchor": place.isLeft ? "end" : "start",
      class: p.isStrong ? "strong" : "" }, p.text));
  }
  return svg;
};

// A matrix as a picture: `colour` null is blue and orange around 0, else from white to the colour.
export const heatMap = ({ values, label, tip, width = 640, height = 280, colour = null }) => {
  const [R, C] = values.shape;
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < R * C; i++) { const v = values.value(i); low = Math.min(low, v); high = Math.max(high, v); }
  const top = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const canvas = make("canvas", { width: C, height: R, class: "heat", tabindex: 0, role: "img", "aria-label": label,
    style: `width:${Math.min(width, 26 * C)}px;height:${Math.min(height, 26 * R)}px` });
  const pen = canvas.getContext("2d"), image = pen.createImageData(C, R);
  for (let i = 0; i < R * C; i++) {
    const v = values.value(i);
    const rgb = colour === null ? diverging(v / top) : mix(colour, high > low ? (v - low) / (high - low) : 0);
    image.data.set([...rgb.slice(4, -1).split(",").map(Number), 255], 4 * i);
  }
  pen.putImageData(image, 0, 0);
  let at = [0, 0];
  const say = () => { canvas.dataset.tip = tip(at[0], at[1], values.value(at[0] * C + at[1])); canvas.setAttribute("aria-label", `${label} ${canvas.dataset.tip}`); };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    at = [Math.min(R - 1, Math.floor((R * (event.clientY - box.top)) / box.height)), Math.min(C - 1, Math.floor((C * (event.clientX - box.left)) / box.width))];
    say();
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    at = [Math.min(R - 1, Math.max(0, at[0] + step[0])), Math.min(C - 1, Math.max(0, at[1] + step[1]))];
    say();
  });
  return canvas;
};

// One of several values in their order; `show(i)` is called for the first and for every other one chosen.
export const slider = (label, names, first, show) => {
  const said = make("output", {}, names[first]);
  const input = make("input", { type: "range", min: 0, max: names.length - 1, step: 1, value: first, "aria-label": label,
    "aria-valuetext": names[first], oninput: () => {
      const i = Number(input.value);
      said.textContent = names[i];
      input.setAttribute("aria-valuetext", names[i]);
      show(i);
    } });
  show(first);
  return make("label", { class: "slider" }, make("span", {}, label), input, said);
};

export const widthOf = (root, most = 720) => Math.min(most, root.clientWidth || 640);
