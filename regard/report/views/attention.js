// Every head at a glance, named by what it does; the chosen one as lines, as a matrix, or as the text that one word sees.
import { chooser, make, paintOver, textOf, unpack } from "regard/base";
import { drawLines, drawMatrix, gather, paintPixels, sayRow } from "regard/matrix";

export const draw = (root, view, page) => {
  const { stacks } = view.data;
  const body = make("div");
  const show = (i) => { body.replaceChildren(); drawStack(body, stacks[i], page, i); };
  if (stacks.length > 1) root.append(chooser("of", stacks.map((stack) => stack.title), stacks.length - 1, show));
  root.append(body);
  show(stacks.length - 1);
};

const groups = (words) => {
  const found = [];
  words.forEach((word, t) => (found[word] ??= []).push(t));
  return found;
};

const drawStack = (root, stack, page, number) => {
  const { layers, small, full, first } = stack;
  const isOwn = !stack.rows;  // the rows are the page's own tokens, which other views know too
  const rows = stack.rows ?? page, keys = stack.keys ?? rows;
  const rowGroups = groups(rows.words), keyGroups = groups(keys.words);
  const rowPieces = rows.tokens.map((_, t) => [t]);
  const hasPieces = rowGroups.length < rows.tokens.length || keyGroups.length < keys.tokens.length;
  const state = { layer: first[0], head: first[1], byWords: hasPieces, mode: 0, row: null };
  const which = make("p", { class: "which" });
  const said = make("p", { class: "says", "aria-live": "polite" });
  const stage = make("div", { class: "stage" });
  const wait = make("p", { class: "absent" });
  const cache = new Map();
  let shown = null, weights = null, ofPieces = null;

  const units = () => (state.byWords ? rowGroups : rowPieces);
  const names = () => (state.byWords ? rows.wordTexts : rows.tokens);
  const columns = () => (state.byWords ? keys.wordTexts : keys.tokens);
  const load = async (key) => {
    if (!cache.has(key)) {
      const packed = full[key] ?? (page.fetchHead ? await page.fetchHead(state.layer, state.head, number) : null);
      cache.set(key, packed && unpack(packed));
    }
    return cache.get(key);
  };
  const say = () => {
    said.textContent = weights && state.row !== null ? sayRow(weights, state.row, names(), columns()) : "Point at a word, or move with the arrow keys.";
  };
  const point = (row) => { state.row = row; say(); if (isOwn) page.emit("hover", units()[row]); };

  const show = () => {
    const { layer, head } = state, { label } = layers[layer][head];
    which.textContent = `Layer ${layer + 1}, head ${head + 1}: ${label}`;
    marks.forEach((button) => {
      const isOn = button.dataset.head === `${layer},${head}`;
      button.classList.toggle("on", isOn);
      button.setAttribute("aria-checked", isOn);
      button.tabIndex = isOn ? 0 : -1;
    });
    const key = `${layer},${head}`;
    const ready = cache.get(key) ?? (full[key] ? (cache.set(key, unpack(full[key])), cache.get(key)) : null);
    if (ready) render(ready);
    else {
      const isAsked = () => key === `${state.layer},${state.head}`;
      if (page.fetchHead) wait.textContent = "Fetching this head …";
      stage.replaceChildren(wait);
      load(key).then((found) => { if (isAsked()) render(found); }).catch((error) => { if (isAsked()) wait.textContent = error.message; });
    }
  };
  const choose = () => {
    page.remember?.({ layer: state.layer + 1, head: state.head + 1 });  // a page that keeps its state in its address
    show();
  };
  const render = (found) => {
    ofPieces = found;
    if (!found) {
      weights = null;
      shown = null;
      wait.textContent = `This head is here as a small picture only. To see all of it: regard look ... --layer ${state.layer + 1} --head ${state.head + 1}`;
      stage.replaceChildren(wait);
      say();
      return;
    }
    weights = state.byWords ? gather(found, rowGroups, keyGroups) : found;
    const given = { rows: names(), columns: columns(), weights, colour: page.colour, point,
      label: `${which.textContent}. Arrow keys move from word to word.` };
    shown = [drawLines, drawMatrix, drawText][state.mode](stage, given);
    if (state.row !== null) { state.row = Math.min(state.row, names().length - 1); shown.select(state.row); }
    say();
  };

  // The text as the chosen word sees it.
  const drawText = (stage, { rows }) => {
    const S = rows.length;
    const { root: text, repaint } = textOf({ ...page, on: () => {} }, {
      label: "The text, coloured by where the chosen word looks",
      paint: (span, t) => {
        const unit = state.byWords ? page.words[t] : t;
        const w = state.row === null ? 0 : weights.value(state.row * S + unit);
        paintOver(span, page.colour, 0.85 * Math.sqrt(w));
        span.classList.toggle("asked", unit === state.row);
      },
    });
    stage.replaceChildren(text);
    return { select: repaint };
  };

  const marks = [];
  const heads = make("div", { class: "heads scroller", role: "radiogroup", "aria-label": "Layers and heads" });
  layers.forEach((row, layer) => {
    const line = make("div", { class: "row" }, make("span", { class: "layer" }, `layer ${layer + 1}`));
    row.forEach(({ label, pattern, share }, head) => {
      const canvas = make("canvas", { "aria-hidden": true });
      paintPixels(canvas, unpack(small[layer][head]), page.colour);
      const button = make("button", { type: "button", role: "radio", class: "headmark", "data-head": `${layer},${head}`,
        "aria-label": `Layer ${layer + 1}, head ${head + 1}: ${label}`,
        onclick: () => { Object.assign(state, { layer, head }); choose(); } }, canvas,
      make("small", {}, ["mixed", "broad"].includes(pattern) ? pattern : `${pattern} ${Math.round(100 * share)}%`));
      marks.push(button);
      line.append(button);
    });
    heads.append(line);
  });
  heads.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    state.layer = (state.layer + step[0] + layers.length) % layers.length;
    const n = layers[state.layer].length;
    state.head = (Math.min(state.head, n - 1) + step[1] + n) % n;
    choose();
    marks.find((button) => button.classList.contains("on")).focus();
  });

  page.on("hover", (tokens) => {
    if (!tokens.length || !ofPieces || !isOwn || !root.isConnected) return;
    state.row = state.byWords ? rows.words[tokens[0]] : tokens[0];
    shown?.select(state.row);
    say();
  });
  const modes = chooser("show", isOwn && !stack.keys ? ["lines", "matrix", "text"] : ["lines", "matrix"], 0, (i) => { state.mode = i; show(); });
  const by = chooser("by", ["words", "pieces"], 0, (i) => {
    const token = state.row === null ? null : units()[state.row][0];
    state.byWords = i === 0;
    state.row = token === null ? null : state.byWords ? rows.words[token] : token;
    show();
  });
  const chosen = make("div", { class: "chosen" }, which, make("div", { class: "controls" }, modes, ...(hasPieces ? [by] : [])), said, stage);
  const isNarrow = Math.max(...layers.map((row) => row.length)) <= 4;
  root.append(marks.length > 1 ? make("div", { class: isNarrow ? "beside" : "" }, heads, chosen) : chosen);
  show();
};
