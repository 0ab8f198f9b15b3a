// What every view draws with, and the page that links them: hover a word in one view, and all others follow.
const SVG = new Set(["svg", "g", "rect", "line", "path", "text", "circle", "title"]);

// An element with attributes and children; strings become text, never HTML.
export const make = (tag, attributes = {}, ...children) => {
  const node = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
};

// White for 0, the colour itself for 1.
export const mix = (colour, strength) => {
  const t = Math.min(1, Math.max(0, strength));
  const part = (i) => Math.round(255 + (parseInt(colour.slice(i, i + 2), 16) - 255) * t);
  return `rgb(${part(1)},${part(3)},${part(5)})`;
};
// Colour a piece of text, in letters that can be read on it.
export const paintOver = (node, colour, strength) => {
  const rgb = mix(colour, strength), [r, g, b] = rgb.slice(4, -1).split(",").map(Number);
  node.style.background = strength > 0.002 ? rgb : "";
  node.style.color = 0.299 * r + 0.587 * g + 0.114 * b < 140 ? "#fff" : "";
};
// Blue towards -1, white at 0, orange towards +1.
export const diverging = (value) => mix(value >= 0 ? "#d9730d" : "#2166ac", Math.abs(value));

export const showSpaces = (text) => text.replace(/\n/g, "⏎").replace(/\t/g, "→").replace(/ /g, "\u00a0");
export const shorten = (text, most = 14) => {
  const shown = showSpaces(text.trim() || text);
  return shown.length > most ? shown.slice(0, most - 1) + "…" : shown;
};
export const percent = (share) => (share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`);

// What Packed.to_json of regard/lens/view.py gave: { shape, data, value(i) }; value(i) is the number at place i.
export const unpack = (packed) => {
  const bytes = packed.bytes ?? Uint8Array.from(atob(packed.base64), (c) => c.charCodeAt(0));
  const { shape, kind, low, high } = packed;
  if (kind === "uint8") {
    const step = (high - low) / 255;
    return { shape, data: bytes, value: (i) => low + step * bytes[i] };
  }
  const data = kind === "float32"
    ? new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)
    : Float32Array.from(new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2), halfToNumber);
  return { shape, data, value: (i) => data[i] };
};
const halfToNumber = (bits) => {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  return exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
};

// Buttons of which one is chosen: [label, ...]; arrow keys move, `choose(i)` is called.
export const chooser = (label, names, first, choose) => {
  const bar = make("div", { class: "tabs", role: "radiogroup", "aria-label": label }, make("span", {}, label));
  const buttons = names.map((name, i) => make("button", {
    type: "button", role: "radio", onclick: () => press(i),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      press((i + step + names.length) % names.length);
    },
  }, name));
  const mark = (i) => buttons.forEach((button, k) => {
    button.classList.toggle("on", k === i);
    button.setAttribute("aria-checked", k === i);
    button.tabIndex = k === i ? 0 : -1;
  });
  const press = (i) => { mark(i); if (bar.contains(document.activeElement)) buttons[i].focus(); choose(i); };
  mark(first);
  bar.append(...buttons);
  bar.select = mark;
  return bar;
};

// The numbers behind a picture, behind a fold.
export const numbers = (table) => {
  const cell = (tag) => (text) => make(tag, tag === "th" ? { scope: "col" } : {}, showSpaces(String(text)));
  const body = make("tbody"), fill = () => body.append(...table.rows.map((row) => make("tr", {}, ...row.map(cell("td")))));
  const fold = make("details", { class: "behind" }, make("summary", {}, "The numbers"),
    make("div", { class: "numbers", tabindex: 0, role: "region", "aria-label": "The numbers" },
      make("table", {}, make("thead", {}, make("tr", {}, ...table.columns.map(cell("th")))), body)));
  if (table.rows.length <= 500) fill();
  else fold.addEventListener("toggle", fill, { once: true });  // thousands of rows take as long as the picture itself
  return fold;
};

// The text of a panel as words and tokens that can be pointed at and reached by keyboard. `paint(span, t)` colours token t,
// `tip(t)` is what is said of it. Marks that the user did not type are shown small.
export const textOf = (page, { paint, tip, label }) => {
  const root = make("div", { class: "looktext", role: "group", "aria-label": label });
  const spans = page.tokens.map((token, t) => {
    const isMark = page.spans[t] === null;
    const span = make("span", { class: isMark ? "token mark" : "token", tabindex: t === 0 ? 0 : -1, role: "img",
      "aria-label": "", onpointerenter: () => page.emit("hover", [t]), onfocus: () => page.emit("hover", [t]),
      onpointerleave: () => page.emit("hover", []), onblur: () => page.emit("hover", []) },
    isMark ? token : "");
    span.dataset.token = t;
    return span;
  });
  const repaint = () => spans.forEach((span, t) => {
    paint(span, t);
    const said = tip?.(t) ?? "";
    span.setAttribute("aria-label", `${page.tokens[t].trim()}${said ? ": " + said : ""}`);
    if (said) span.dataset.tip = said;
  });
  root.addEventListener("keydown", (event) => moveAmong(spans, event));
  let at = 0;  // what stands between tokens, as between the words of some tokenizers, is shown and belongs to none
  spans.forEach((span, t) => {
    const place = page.spans[t];
    if (place && place[0] > at) root.append(page.textBetween(at, place[0]));
    if (place) {  // a character of several bytes is shown once, with the first of them
      span.textContent = page.textBetween(Math.max(at, place[0]), place[1]).replace(/\n/g, "⏎\n");
      span.classList.toggle("byte", !span.textContent);
    }
    at = Math.max(at, place ? place[1] : at);
    root.append(span);
  });
  page.on("hover", (tokens) => spans.forEach((span, t) => span.classList.toggle("hovered", tokens.includes(t))));
  repaint();
  return { root, spans, repaint };
};

// Arrow keys, Home and End among elements of which one can be reached by Tab.
export const moveAmong = (elements, event) => {
  const at = elements.indexOf(document.activeElement);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: elements.length - 1 }[event.key];
  if (at < 0 || next === undefined || !elements[next]) return;
  event.preventDefault();
  elements[at].tabIndex = -1;
  elements[next].tabIndex = 0;
  elements[next].focus();
};

// A panel's page: its tokens and words, and a channel to all other views. Events carry arrays of token numbers; panels of
// other models get those of their own tokens that share characters.
const makePage = (panel, pages) => {
  const listeners = {};
  const spans = panel.spans;
  const characters = Array.from(panel.text);  // Python counts code points, JavaScript halves of some
  const textBetween = (a, b) => characters.slice(a, b).join("");
  const tokensOfWord = [];
  panel.words.forEach((word, t) => (tokensOfWord[word] ??= []).push(t));
  const page = {
    ...panel, textBetween, tokensOfWord,
    all: (name) => pages.map((other) => other.views[name]).filter(Boolean),  // a view of every model of the page
    on: (event, act) => (listeners[event] ??= []).push(act),
    hear: (event, tokens) => (listeners[event] ?? []).forEach((act) => act(tokens)),
    emit: (event, tokens) => {
      page.hear(event, tokens);
      const covered = tokens.map((t) => spans[t]).filter(Boolean);
      for (const other of pages) {
        if (other === page || other.text !== page.text) continue;
        other.hear(event, other.spans.flatMap((span, t) => span && covered.some(([a, b]) => a < span[1] && span[0] < b) ? [t] : []));
      }
    },
  };
  return page;
};

// Draw every view of every panel into its place: an element with data-panel and data-view. `linked` are pages that were
// drawn before: the new ones join them, and follow where they are pointed at.
export const start = (scripts, data, root = document, linked = []) => {
  const pages = data.panels.map((panel) => makePage(panel, linked));
  linked.push(...pages);
  for (const place of root.querySelectorAll("[data-view]")) {
    const page = pages[Number(place.dataset.panel)];
    const view = page.views[place.dataset.view];
    scripts[view.name].draw(place, view, page);
    if (view.table) place.append(numbers(view.table));
  }
  return pages;
};
