// The panels that ask one question and draw one answer: what each needs, sends and draws. `draw` fills `root` and gives
// { table, picture }: the numbers behind it, and what can be saved as a picture.
import { make, mix, moveAmong, numbers, percent, showSpaces } from "regard/base";
import { drawTokens, saveBar } from "./save.js";

export const round = (value, n = 2) => (value === null || value === undefined ? "–" : value.toFixed(n));

// What a token is called where it stands alone: one that is nothing but spaces would not be seen.
export const nameToken = (text) => (text.trim() || /\n/.test(text) ? showSpaces(text.trim() || text) : text === "" ? "(nothing)" : "␣".repeat(text.length));

// How wide a picture may be, so that its letters are as large as those around it.
export const roomFor = (n = 1) => {
  const whole = document.getElementById("panel")?.clientWidth || 600;
  return Math.max(250, Math.min(560, n > 1 && whole > 900 ? whole / n - 30 : whole));
};

// Names with bars, as one picture: [[name, share, what is said, colour], ...].
export const drawBars = (rows, colour, label, width = roomFor()) => {
  const ROW = 26, left = Math.min(150, Math.round(0.34 * width)), most = Math.floor((left - 12) / 8.2);
  const top = Math.max(...rows.map(([, share]) => share), 1e-9), longest = Math.max(...rows.map(([, , said]) => said.length), 1);
  const room = width - left - 16 - 7.5 * longest;
  const marks = rows.flatMap(([name, share, said, own], i) => {
    const y = ROW * i, long = Math.max(1, room * share / top);
    const text = make("text", { x: left - 10, y: y + 18, "text-anchor": "end", class: "barname" }, name.length > most ? name.slice(0, most - 1) + "…" : name);
    if (name.length > most) text.append(make("title", {}, name));
    return [text,
      make("rect", { x: left, y: y + 5, width: long, height: 16, rx: 2, fill: own ?? colour, opacity: 0.78 }),
      make("text", { x: left + long + 8, y: y + 18, class: "barvalue" }, said)];
  });
  return make("svg", { viewBox: `0 0 ${width} ${ROW * rows.length}`, style: `max-width:${width}px`, class: "bars", role: "img", "aria-label": label }, ...marks);
};

// The buttons that save an answer, and the numbers behind it.
export const numbersBelow = (root, name, { json, table, picture }) => {
  root.append(saveBar(name, { json, table, picture }));
  if (table) root.append(numbers(table));
};

// Texts of which each can be reached by keyboard; `describe(i)` is what is said of one.
export const tokenLine = (tokens, { paint, describe, show, label }) => {
  const spans = tokens.map((token, i) => {
    const act = () => show?.(i);
    const span = make("span", { class: "token", tabindex: i === 0 ? 0 : -1, role: "img", "aria-label": describe(i),
      "data-tip": describe(i), onpointerenter: act, onfocus: act, onclick: act }, token.replace(/\n/g, "⏎\n"));
    paint(span, i);
    return span;
  });
  return make("div", { class: "looktext", role: "group", "aria-label": label, onkeydown: (event) => moveAmong(spans, event) }, ...spans);
};

const drawScore = (root, answer, run) => {
  const { tokens, token_bits: bits } = answer;
  const shown = tokens.map((text, i) => [text, bits[i]]).filter(([text]) => text);
  const top = Math.max(2, ...shown.map(([, b]) => b).sort((a, b) => a - b).slice(0, Math.ceil(0.95 * shown.length)).slice(-1));
  const shade = (b) => mix(run.colour, 0.75 * Math.sqrt(Math.max(0, b) / top));
  root.append(
    make("p", { class: "big" }, `${round(answer.bits_per_character)} `, make("small", {}, `bits a character · ${round(answer.bits, 1)} bits for ${shown.length} tokens and the end`)),
    tokenLine(shown.map(([text]) => text), {
      label: `The text, coloured by what each token cost ${run.name}`,
      paint: (span, i) => { span.style.background = shade(shown[i][1]); },
      describe: (i) => `${showSpaces(shown[i][0].trim() || shown[i][0])}: ${round(shown[i][1], 1)} bits, ${percent(2 ** -shown[i][1])}`,
    }));
  return {
    table: { columns: ["token", "bits", "probability"], rows: tokens.map((text, i) => [text || "(end)", round(bits[i], 3), (2 ** -bits[i]).toPrecision(3)]) },
    picture: () => drawTokens(shown.map(([text, b]) => ({ text, colour: shade(b) }))),
  };
};

const drawChoices = (root, rows, run, label, state) => {
  const svg = drawBars(rows.map(([name, share]) => [nameToken(name), share, percent(share)]), run.colour, label, roomFor(state.with ? 2 : 1));
  root.append(svg);
  return { table: { columns: ["token", "probability"], rows: rows.map(([name, share]) => [name, share.toPrecision(4)]) }, picture: () => svg };
};

const drawAlignment = (root, answer, run) => {
  const [best, ...others] = answer.translations;
  root.append(make("p", { class: "result" }, best.text || "(nothing)"), make("p", { class: "small" }, `log P ${round(best.log_prob)}`));
  if (others.length) {
    root.append(make("ol", { class: "others", start: 2 }, ...others.map((one) => make("li", {}, `${one.text} `, make("small", {}, round(one.log_prob))))));
  }
  const { source_words: sources, target_words: targets, weights } = answer;
  if (!weights) {
    root.append(make("p", { class: "absent" }, "It has no attention to draw an alignment of."));
    return { table: { columns: ["translation", "log P"], rows: answer.translations.map((one) => [one.text, round(one.log_prob, 4)]) } };
  }
  const CELL = 26, LEFT = 110, TOP = 90;
  const cells = weights.flatMap((row, t) => row.map((weight, s) => {
    const box = make("rect", { x: LEFT + CELL * s, y: TOP + CELL * t, width: CELL - 1, height: CELL - 1, fill: mix(run.colour, weight) });
    box.append(make("title", {}, `${targets[t]} ← ${sources[s]}: ${percent(weight)}`));
    return box;
  }));
  const names = [
    ...sources.map((word, s) => make("text", { x: 0, y: 0, transform: `translate(${LEFT + CELL * s + 17}, ${TOP - 8}) rotate(-55)`, class: "barname" }, word)),
    ...targets.map((word, t) => make("text", { x: LEFT - 8, y: TOP + CELL * t + 18, "text-anchor": "end", class: "barname" }, word)),
  ];
  const size = [LEFT + CELL * sources.length + 40, TOP + CELL * targets.length + 8];
  const svg = make("svg", { viewBox: `0 0 ${size[0]} ${size[1]}`, width: size[0], height: size[1], class: "alignment", role: "img",
    "aria-label": `Which words of the source each word of the translation looked at` }, ...cells, ...names);
  root.append(make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Alignment" }, svg));
  return {
    table: { columns: ["", ...sources], rows: targets.map((word, t) => [word, ...weights[t].map((weight) => weight.toFixed(3))]) },
    picture: () => svg,
  };
};

// Every tree with its probability, the best first.
const drawTrees = (root, answer, run) => {
  if (!answer.trees.length) {
    root.append(make("p", { class: "absent" }, "A sentence without words has no tree."));
    return {};
  }
  const pictures = answer.trees.map((one, i) => {
    const svg = drawTree(one, run);
    if (answer.trees.length > 1) root.append(make("h4", {}, `${i + 1}. with probability ${percent(Math.exp(one.log_prob))}`));
    root.append(make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": `Tree ${i + 1}` }, svg),
      make("p", { class: "small code" }, one.brackets));
    return svg;
  });
  root.append(make("p", { class: "small" }, `log P ${answer.trees.map((one) => round(one.log_prob)).join(", ")}`));
  return {
    table: { columns: ["tree", "log P", "probability"], rows: answer.trees.map((one) => [one.brackets, round(one.log_prob, 4), Math.exp(one.log_prob).toPrecision(3)]) },
    picture: () => pictures[0],
  };
};

// The words stand on the last row, each node above the middle of its children.
const drawTree = (answer, run) => {
  const ROW = 44, depthOf = (node) => (typeof node === "string" ? 0 : 1 + Math.max(...node.children.map(depthOf)));
  const depth = depthOf(answer.tree), lines = [], texts = [];
  let right = 14;
  const walk = (node, level) => {
    const isWord = typeof node === "string", y = 22 + ROW * (isWord ? depth : level), name = isWord ? node : node.label;
    let x;
    if (isWord) {
      const width = 8.6 * Math.max(node.length, 2) + 14;
      x = right + width / 2;
      right += width;
    } else {
      const places = node.children.map((child) => walk(child, level + 1));
      x = (places[0].x + places.at(-1).x) / 2;
      for (const place of places) lines.push(make("line", { x1: x, y1: y + 6, x2: place.x, y2: place.y - 15, class: "branch" }));
    }
    texts.push(make("text", { x, y, "text-anchor": "middle", class: isWord ? "leaf" : "label", fill: isWord ? null : run.colour }, name));
    return { x, y };
  };
  walk(answer.tree, 0);
  const width = right + 14, height = 22 + ROW * depth + 14;
  return make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "parse", role: "img", "aria-label": answer.brackets }, ...lines, ...texts);
};

const drawTags = (root, answer) => {
  const kinds = [...new Set(answer.tags.map((tag) => tag.replace(/^[BIES]-/, "")))].filter((kind) => kind !== "O");
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b8578f", "#d89000", "#332288"];
  const colour = (tag) => COLOURS[kinds.indexOf(tag.replace(/^[BIES]-/, "")) % COLOURS.length];
  root.append(make("div", { class: "tagged", role: "list", "aria-label": "Words and their tags" },
    ...answer.words.map((word, i) => make("span", { role: "listitem", class: answer.tags[i] === "O" ? "word" : "word tagged-word", style: `--c:${colour(answer.tags[i]) ?? "transparent"}`,
      "data-tip": `${answer.tags[i]}: ${percent(answer.probabilities[i])}` }, make("b", {}, word), make("small", {}, answer.tags[i])))),
  make("p", { class: "small" }, `All tags are right with probability ${percent(answer.probability)}.`));
  return {
    table: { columns: ["word", "tag", "probability"], rows: answer.words.map((word, i) => [word, answer.tags[i], answer.probabilities[i].toPrecision(4)]) },
    picture: () => drawTokens(answer.words.flatMap((word, i) => (answer.tags[i] === "O" ? [{ text: `${word} ` }]
      : [{ text: word, colour: mix(colour(answer.tags[i]), 0.25) }, { text: `/${answer.tags[i]} ` }]))),
  };
};

const drawPrediction = (root, answer, run, state) => {
  if (answer.kind === "tagging") return drawTags(root, answer);
  if (answer.kind === "classification") {
    root.append(make("p", { class: "big" }, answer.label, make("small", {}, ` ${percent(answer.probability)}`)));
    return drawChoices(root, Object.entries(answer.probabilities).sort((a, b) => b[1] - a[1]), run, "The probability of each class", state);
  }
  if (answer.kind === "rating") {
    root.append(make("p", { class: "big" }, round(answer.value, 3)));
    return { table: { columns: ["value"], rows: [[round(answer.value, 5)]] } };
  }
  root.append(make("p", { class: "big" }, answer.answer ?? "(no answer)", make("small", {}, ` ${percent(answer.probability)}`)));
  const letters = Array.from(state.second.trim()), [start, end] = [answer.start ?? 0, answer.end ?? 0];
  const [before, found, after] = [letters.slice(0, start), letters.slice(start, end), letters.slice(end)].map((part) => part.join(""));
  root.append(make("p", { class: "passage-text" }, before, make("mark", {}, found), after));
  return { picture: () => drawTokens([{ text: before }, { text: found, colour: "#fde8a8" }, { text: after }]), table: { columns: ["answer", "start", "end", "probability"], rows: [[answer.answer, answer.start, answer.end, answer.probability]] } };
};

const drawFilled = (root, answer, run, state) => {
  root.append(make("p", { class: "result" }, answer.best));
  const pictures = answer.places.map((place, i) => {
    root.append(make("h4", {}, `Place ${i + 1}`));
    return drawChoices(root, place.map((one) => [one.token, one.probability]), run, `Tokens for place ${i + 1}`, state).picture;
  });
  const rows = answer.places.flatMap((place, i) => place.map((one) => [i + 1, one.token, one.probability.toPrecision(4)]));
  return { table: { columns: ["place", "token", "probability"], rows }, picture: pictures[0] };
};

const drawNearest = (root, answer, run, state) => {
  const svg = drawBars(answer.words.map((one) => [one.text, Math.max(0, one.cosine), one.cosine.toFixed(3)]), run.colour, "The nearest words by cosine", roomFor(state.with ? 2 : 1));
  root.append(svg);
  return { table: { columns: ["word", "cosine"], rows: answer.words.map((one) => [one.text, one.cosine.toFixed(4)]) }, picture: () => svg };
};

const whole = (name, label, value, min, max) => ({ name, label, value, min, max, step: 1 });
const tagOf = (state, run) => (run.tags.length > 1 ? { tag: run.tags.includes(state.tag) ? state.tag : run.tags[0] } : {});

export const ANSWERS = {
  score: {
    label: "Surprise", note: "What every token costs, in bits: the more colour, the more surprising.",
    isFor: (run) => run.verbs.includes("score") && run.task !== "translation",
    body: (state) => ({ text: state.text }), draw: drawScore,
  },
  next: {
    label: "Next word", note: "What the model expects after the text, the most probable first.",
    options: [whole("n", "how many", 12, 1, 50)],
    body: (state) => ({ text: state.text, top_k: state.options.n }),
    draw: (root, answer, run, state) => drawChoices(root, answer.tokens.map((one) => [one.text, one.probability]), run, "What may come next", state),
  },
  translate: {
    label: "Translation", note: "The best translations by beam search; the picture shows which words the best one looked at.",
    options: [whole("beam", "beam", 5, 1, 20), whole("n_best", "how many", 3, 1, 10)],
    body: (state, run) => ({ text: state.text, beam: state.options.beam, n_best: state.options.n_best, ...tagOf(state, run) }),
    draw: drawAlignment,
  },
  parse: {
    label: "Tree", note: "The most probable trees over exactly these words; punctuation has spaces around it.",
    options: [whole("beam", "beam", 10, 1, 20), whole("n_best", "how many", 1, 1, 10)],
    body: (state, run) => ({ text: state.text, beam: state.options.beam, n_best: state.options.n_best, ...tagOf(state, run) }), draw: drawTrees,
  },
  predict: {
    label: "Answer", note: "What the model tells of the text, with its probability.",
    body: (state, run) => (run.n_texts === 2 ? { text: state.text, second: state.second } : { text: state.text }), draw: drawPrediction,
  },
  fill: {
    label: "Masked words", note: "The most probable tokens at every [MASK], each place by itself.",
    options: [whole("top_k", "how many", 8, 1, 50)],
    body: (state) => ({ text: state.text, top_k: state.options.top_k }), draw: drawFilled,
  },
  nearest: {
    label: "Nearest words", note: "The words whose vectors have the largest cosine with that of the word.",
    options: [whole("n", "how many", 12, 1, 50)],
    body: (state) => ({ text: state.text.trim(), top_k: state.options.n }), draw: drawNearest,
  },
};
