// What attention, gradients and erasure say of each word, side by side; the verdict, and the numbers under it.
import { make, percent, shorten, showSpaces } from "regard/base";

const COLOURS = { attention: "#2166ac", gradients: "#d9730d", erasure: "#6b7280" };
const MOST = 40;

export const draw = (root, view, page) => {
  const { verdict, what, target, words, marks, tokens, shares, measures, permuted } = view.data;
  const names = Object.keys(shares);
  const top = Math.max(...names.flatMap((name) => shares[name]), 1e-9);
  const colour = (name) => COLOURS[name] ?? page.colour;
  const legend = make("p", { class: "legend" }, ...names.map((name) =>
    make("span", {}, make("i", { style: `background:${colour(name)}` }), name)));
  const shown = words.map((_, i) => i).slice(-MOST);
  const rows = shown.map((i) => {
    const said = names.map((name) => `${name} ${percent(shares[name][i])}`).join(", ");
    return make("div", { class: marks[i] ? "wordrow mark" : "wordrow", role: "listitem", "aria-label": `${words[i].trim()}: ${said}`,
      "data-tip": said, onpointerenter: () => page.emit("hover", tokens[i]), onpointerleave: () => page.emit("hover", []) },
    make("span", { class: "name" }, shorten(words[i])),
    make("div", {}, ...names.map((name) => make("i", { style: `width:${(100 * shares[name][i]) / top}%;background:${colour(name)}` }))));
  });
  page.on("hover", (hovered) => rows.forEach((row, k) => row.classList.toggle("hovered", tokens[shown[k]].some((t) => hovered.includes(t)))));
  const left = make("div", {}, legend, make("div", { class: "wordrows", role: "list", "aria-label": "What each explanation says of each word" }, ...rows));
  const facts = measures.map(({ name, value, says }) => make("div", { class: "fact" },
    make("b", {}, value === null ? "–" : value.toFixed(2)), make("span", {}, name), make("small", {}, says)));
  const right = make("div", { role: "group", "aria-label": verdict },
    make("p", { class: "which" }, `${what}: “${showSpaces(target)}”`), ...facts, ...(permuted.length ? [make("p", { class: "small" }, "How far the output moved, a dot for each permutation of the attention:")] : []), drawPermuted(permuted, page.colour));
  root.append(make("div", { class: "faithful" }, left, right));
};

// How far the output moved at each of the permutations.
const drawPermuted = (moved, colour) => {
  if (!moved.length) return "";
  const width = 280, height = 34;
  const dots = moved.map((x) => make("circle", { cx: 6 + x * (width - 12), cy: 14, r: 4, fill: colour, "fill-opacity": 0.35 }));
  return make("svg", { viewBox: `0 0 ${width} ${height}`, class: "strip", role: "img",
    "aria-label": `The output moved by ${Math.min(...moved).toFixed(2)} to ${Math.max(...moved).toFixed(2)} when attention was permuted` },
  make("line", { x1: 6, x2: width - 6, y1: 14, y2: 14, stroke: "currentColor", "stroke-opacity": 0.25 }), ...dots,
  make("text", { x: 6, y: 31, "font-size": 10, fill: "currentColor" }, "0: as before"),
  make("text", { x: width - 6, y: 31, "font-size": 10, fill: "currentColor", "text-anchor": "end" }, "1: all else"));
};
