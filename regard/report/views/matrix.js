// Weights between two rows of words: as a matrix, as lines, and gathered from pieces into words. Canvas, so that a thousand
// words stay quick; the words under the pointer and under the arrow keys are told to the caller.
import { make, mix, percent, shorten } from "regard/base";

// Attention between words from attention between their pieces: the mean over the pieces that look, the sum over those that
// are looked at. `rows` and `columns` list the pieces of each word.
export const gather = (weights, rows, columns) => {
  const S = weights.shape[1], found = new Float32Array(rows.length * columns.length);
  const wordOf = new Int32Array(S).fill(-1);
  columns.forEach((pieces, word) => pieces.forEach((s) => { wordOf[s] = word; }));
  rows.forEach((pieces, row) => {
    for (const t of pieces) {
      for (let s = 0; s < S; s++) {
        if (wordOf[s] >= 0) found[row * columns.length + wordOf[s]] += weights.value(t * S + s) / pieces.length;
      }
    }
  });
  return { shape: [rows.length, columns.length], value: (i) => found[i] };
};

const colours = (colour) => Array.from({ length: 256 }, (_, i) => {
  const rgb = mix(colour, i ? 0.05 + 0.95 * Math.sqrt(i / 255) : 0);
  return rgb.slice(4, -1).split(",").map(Number);
});

// Weights as a picture of one pixel a weight.
export const paintPixels = (canvas, weights, colour) => {
  const [T, S] = weights.shape, table = colours(colour);
  canvas.width = S;
  canvas.height = T;
  const pen = canvas.getContext("2d"), image = pen.createImageData(S, T);
  for (let i = 0; i < T * S; i++) {
    const [r, g, b] = table[Math.round(255 * Math.min(1, Math.max(0, weights.value(i))))];
    image.data.set([r, g, b, 255], 4 * i);
  }
  pen.putImageData(image, 0, 0);
};

const sharp = (canvas, width, height) => {
  const scale = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return pen;
};

// The words with the most weight in a row, said in a sentence.
export const sayRow = (weights, row, rows, columns, n = 4) => {
  const S = weights.shape[1];
  const order = Array.from({ length: S }, (_, s) => s).sort((a, b) => weights.value(row * S + b) - weights.value(row * S + a));
  const best = order.slice(0, n).filter((s) => weights.value(row * S + s) >= 0.005);
  const looked = best.map((s) => `“${shorten(columns[s], 24)}” ${percent(weights.value(row * S + s))}`);
  return `“${shorten(rows[row], 24)}” looks at ${looked.join(", ") || "nothing"}`;
};

// A matrix with words at its left and above it. `links` are marked squares: [[row, column, kind], ...].
export const drawMatrix = (root, { rows, columns, weights, colour, label, links = [], point = () => {} }) => {
  const [T, S] = weights.shape;
  const wide = Math.max(200, root.clientWidth || 640);
  const longest = (words) => Math.min(110, 14 + 7 * Math.max(1, ...words.map((w) => shorten(w).length)));
  let left = longest(rows), top = longest(columns);
  let cell = Math.min(26, Math.floor((wide - left) / S), Math.floor(760 / T));
  const isLabelled = cell >= 9;
  if (!isLabelled) { left = 2; top = 2; cell = Math.max(1, Math.min(Math.floor((wide - 4) / S), 8)); }
  const pixels = document.createElement("canvas");
  paintPixels(pixels, weights, colour);
  const canvas = make("canvas", { class: "matrix", tabindex: 0, role: "img", "aria-label": label });
  const width = left + S * cell + 2, height = top + T * cell + 2;
  let at = null;
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink") || "#1c1e21", soft = style.getPropertyValue("--soft") || "#5d6470";
    const pen = sharp(canvas, width, height);
    pen.clearRect(0, 0, width, height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(pixels, left, top, S * cell, T * cell);
    if (cell >= 6) {
      pen.strokeStyle = "#fff";
      pen.lineWidth = 1;
      pen.beginPath();
      for (let s = 0; s <= S; s++) { pen.moveTo(left + s * cell, top); pen.lineTo(left + s * cell, top + T * cell); }
      for (let t = 0; t <= T; t++) { pen.moveTo(left, top + t * cell); pen.lineTo(left + S * cell, top + t * cell); }
      pen.stroke();
    }
    pen.strokeStyle = style.getPropertyValue("--line") || "#e3e5e8";
    pen.strokeRect(left - 0.5, top - 0.5, S * cell + 1, T * cell + 1);
    for (const [t, s, kind] of links) {
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.setLineDash(kind === "possible" ? [3, 2] : []);
      pen.strokeRect(left + s * cell + 1.5, top + t * cell + 1.5, cell - 3, cell - 3);
    }
    pen.setLineDash([]);
    if (isLabelled) {
      const size = Math.min(12.5, cell - 1);
      pen.textBaseline = "middle";
      const mono = style.getPropertyValue("--mono") || "monospace";
      const write = (word, isOn) => { pen.font = `${isOn ? "bold " : ""}${size}px ${mono}`; pen.fillStyle = isOn ? ink : soft; return shorten(word); };
      pen.textAlign = "right";
      rows.forEach((word, t) => pen.fillText(write(word, at?.[0] === t), left - 6, top + (t + 0.5) * cell));
      pen.textAlign = "left";
      columns.forEach((word, s) => {
        pen.save();
        pen.translate(left + (s + 0.5) * cell, top - 6);
        pen.rotate(-Math.PI / 2);
        pen.fillText(write(word, at?.[1] === s), 0, 0);
        pen.restore();
      });
    }
    if (at) {
      pen.strokeStyle = ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(left - 0.75, top + at[0] * cell - 0.75, S * cell + 1.5, cell + 1.5);
      if (at[1] !== null) pen.strokeRect(left + at[1] * cell, top + at[0] * cell, cell, cell);
    }
  };
  const move = (t, s) => {
    at = [t, s];
    canvas.dataset.tip = `“${shorten(rows[t], 24)}” looks at “${shorten(columns[s], 24)}”: ${percent(weights.value(t * S + s))}`;
    draw();
    point(t, s);
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const s = Math.floor((event.clientX - box.left - left) / cell), t = Math.floor((event.clientY - box.top - top) / cell);
    if (t >= 0 && t < T && s >= 0 && s < S) move(t, s);
    else delete canvas.dataset.tip;
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [t, s] = at ?? [0, 0];
    move(Math.min(T - 1, Math.max(0, t + step[0])), Math.min(S - 1, Math.max(0, (s ?? 0) + step[1])));
  });
  draw();
  root.replaceChildren(make("div", { class: "scroller" }, canvas));
  return { select: (t) => { if (t !== at?.[0]) { at = t === null ? null : [t, null]; draw(); } } };
};

// Two columns of words with a line for every weight; only what can be seen is drawn, however long the text is.
export const drawLines = (root, { rows, columns, weights, colour, label, point = () => {} }) => {
  const [T, S] = weights.shape, line = 21, tall = Math.min(620, Math.max(T, S) * line + 8);
  const canvas = make("canvas", { class: "lines", tabindex: 0, role: "img", "aria-label": label });
  const inner = make("div", { style: `height:${Math.max(T, S) * line + 8}px` }, canvas);
  const box = make("div", { class: "scroller tall", style: `height:${tall}px` }, inner);
  let row = null;
  const draw = () => {
    const width = Math.min(620, Math.max(280, root.clientWidth || 560)), x0 = 0.36 * width, x1 = 0.64 * width, from = box.scrollTop;
    const pen = sharp(canvas, width, tall);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink") || "#1c1e21", soft = style.getPropertyValue("--soft") || "#5d6470";
    const y = (i) => i * line + line / 2 + 4 - from;
    pen.clearRect(0, 0, width, tall);
    const first = Math.max(0, Math.floor(from / line) - 1), last = Math.ceil((from + tall) / line) + 1;
    const lines = (t, strength, least) => {
      for (let s = 0; s < S; s++) {
        const w = weights.value(t * S + s);
        if (w < least) continue;
        pen.globalAlpha = Math.min(1, strength * Math.sqrt(w));
        pen.lineWidth = 0.6 + 2.6 * w;
        pen.beginPath();
        pen.moveTo(x0 + 4, y(t));
        pen.bezierCurveTo(x0 + 44, y(t), x1 - 44, y(s), x1 - 4, y(s));
        pen.stroke();
      }
    };
    pen.strokeStyle = colour;
    for (let t = first; t < Math.min(T, last); t++) if (t !== row) lines(t, row === null ? 0.8 : 0.1, 0.03);
    if (row !== null) lines(row, 1, 0.004);
    pen.globalAlpha = 1;
    pen.textBaseline = "middle";
    const mono = style.getPropertyValue("--mono") || "monospace";
    const fit = Math.max(6, Math.floor((x0 - 8) / 8));
    pen.textAlign = "right";
    for (let t = first; t < Math.min(T, last); t++) {
      pen.font = `${t === row ? "bold " : ""}13.5px ${mono}`;
      pen.fillStyle = row === null || t === row ? ink : soft;
      pen.fillText(shorten(rows[t], fit), x0, y(t));
    }
    pen.textAlign = "left";
    for (let s = first; s < Math.min(S, last); s++) {
      const w = row === null ? 0 : weights.value(row * S + s);
      if (w > 0.004) {
        pen.fillStyle = mix(colour, 0.85 * Math.sqrt(w));
        pen.fillRect(x1 - 2, y(s) - 9, width - x1 - 2, 18);
      }
      pen.font = `${w > 0.25 ? "bold " : ""}13.5px ${mono}`;
      pen.fillStyle = w > 0.5 ? "#fff" : row === null || w > 0.02 ? ink : soft;
      pen.fillText(shorten(columns[s], fit - (w > 0.02 ? 5 : 0)), x1 + 2, y(s));
      if (w > 0.02) { pen.textAlign = "right"; pen.fillText(percent(w), width - 6, y(s)); pen.textAlign = "left"; }
    }
  };
  const choose = (t) => { if (t >= 0 && t < T) { row = t; draw(); point(t, null); } };
  canvas.addEventListener("pointermove", (event) => {
    const place = canvas.getBoundingClientRect();
    if (event.clientX - place.left > 0.5 * place.width) return;
    const t = Math.floor((event.clientY - place.top + box.scrollTop - 4) / line);
    if (t !== row) choose(t);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(Math.min(T - 1, Math.max(0, (row ?? -1) + step)));
    const y = row * line - box.scrollTop;
    if (y < 0 || y > tall - 2 * line) box.scrollTop = row * line - tall / 2;
  });
  box.addEventListener("scroll", draw);
  root.replaceChildren(box);
  draw();
  return { select: (t) => { if (t !== row) { row = t; draw(); } } };
};
