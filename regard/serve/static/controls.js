// The boxes and buttons above the panel. Each has an id, so that it keeps the focus when all of them are drawn anew.
import { make } from "regard/base";
import { shrinkPicture } from "./caption.js";
import { comparable, PANELS, panelsOf } from "./panels.js";
import { clamp, find, readsPair, readsPicture, served, state } from "./state.js";

const WAIT = 450;  // milliseconds without a key before a text is taken as typed
export const parts = {
  first: make("div", { class: "form" }), tabs: make("div", {}), options: make("div", { class: "form" }),
  panel: make("section", { id: "panel", role: "tabpanel", "aria-live": "off" }),
};
let timer = 0;
export const stopWaiting = () => clearTimeout(timer);

const labelled = (label, control) => make("label", {}, make("span", {}, label), control);
const select = (id, label, names, value, act) => {
  const box = make("select", { id, onchange: () => act(box.value) }, ...names.map(([name, said]) => make("option", { value: name, selected: name === value }, said)));
  return labelled(label, box);
};
const grow = (box) => { box.rows = Math.min(12, Math.max(2, box.value.split("\n").length, Math.ceil(box.value.length / 95))); };
const area = (id, label, show) => {
  const box = make("textarea", { id, rows: 2, spellcheck: "false", maxlength: 20000, oninput: () => {
    grow(box);
    Object.assign(state, { [id]: box.value, isExample: false });
    clearTimeout(timer);
    if (state.panel !== "write") timer = setTimeout(show, WAIT);
  }, onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); show(); } } });
  box.value = state[id] ?? "";
  grow(box);
  return labelled(label, box);
};
const number = (option, update) => labelled(option.label, make("input", {
  id: `option-${option.name}`, type: "number", value: state.options[option.name], min: option.min, max: option.max, step: option.step,
  onchange: (event) => update({ options: { ...state.options, [option.name]: clamp(option, event.target.value) } }),
}));
const button = (id, label, act, more = {}) => make("button", { type: "button", id, onclick: act, ...more }, label);

// A picture from a file; one can also be dropped on the page or pasted into it.
const pictureBox = (update, tell) => {
  const take = async (file) => {
    try {
      update({ picture: await shrinkPicture(file), isExample: false });
    } catch {
      tell("This is no picture that the browser can read. Choose a JPEG or PNG file.");
    }
  };
  const box = labelled("Picture: choose a file, drop one here, or paste one", make("input", { id: "picture", type: "file", accept: "image/*",
    onchange: (event) => { if (event.target.files[0]) take(event.target.files[0]); } }));
  const shown = state.picture ? make("img", { src: `data:image/jpeg;base64,${state.picture}`, alt: "The picture that is asked about", class: "given-picture photo" }) : "";
  document.ondragover = (event) => event.preventDefault();
  document.ondrop = (event) => { event.preventDefault(); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); };
  document.onpaste = (event) => { if (event.clipboardData.files[0]) take(event.clipboardData.files[0]); };
  return make("div", { class: "row" }, shown, box);
};

const describe = (run) => [run.name, `${run.name} (${run.model}, ${run.n_parameters.toLocaleString("en")} parameters)`];
const NAMES = { answering: ["Question", "Passage"], "word-vectors": ["Word", ""] };
const TARGETS = { translation: "What it is made to write (empty: its own translation)", captions: "What it is made to say (empty: its own caption)" };

// Which controls there are follows from the run and the panel.
export const drawControls = ({ update, show, another, share }) => {
  const run = find(state.run), has = document.activeElement?.id, panel = PANELS[state.panel];
  const others = comparable(served.runs, run, state.panel), [first, second] = NAMES[run.task] ?? ["Text", "Second text"];
  const status = make("span", { id: "told", role: "status", class: "small" });
  document.ondragover = document.ondrop = document.onpaste = null;
  parts.first.replaceChildren(
    make("div", { class: "row" },
      select("run", "Run", served.runs.map(describe), state.run, (name) => update({ run: name })),
      ...(others.length ? [select("with", "Compare with", [["", "no other run"], ...others.map(describe)], state.with, (name) => update({ with: name }))] : []),
      ...(run.tags.length > 1 ? [select("tag", "Into", run.tags.map((tag) => [tag, tag]), state.tag, (tag) => update({ tag }))] : [])),
    ...(state.panel === "game" ? [] : readsPicture() ? [pictureBox(update, (said) => { status.textContent = said; })] : [area("text", first, show)]),
    ...(readsPair() && state.panel !== "game" ? [area("second", second, show)] : []),
    ...(state.panel === "look" && TARGETS[run.task] ? [area("target", TARGETS[run.task], show)] : []));
  parts.options.replaceChildren(make("div", { class: "row" },
    ...(panel.options ?? []).map((option) => number(option, update)),
    ...(state.panel === "look" ? [labelled("Word that is asked about", make("input", { id: "word", type: "text", value: state.word, placeholder: "the last",
      maxlength: 200, onchange: (event) => update({ word: event.target.value }) }))] : []),
    button("go", { write: "Write", game: "Another passage" }[state.panel] ?? "Show", () => (state.panel === "game" ? update({ seed: state.seed + 1 }) : show()), { class: "go", title: "Ctrl+Enter" }),
    ...(state.panel === "game" || !run.verbs.includes("example") ? [] : [button("another", "Another example", another, { class: "plain" })]),
    button("share", "Copy the address", () => share(status), { class: "plain" }), status));
  parts.tabs.replaceChildren(drawTabs(run, update));
  if (has) document.getElementById(has)?.focus();
};

const drawTabs = (run, update) => {
  const names = panelsOf(run);
  const bar = make("div", { class: "tabs", role: "tablist", "aria-label": "What to see" });
  bar.append(...names.map((name, i) => button(`tab-${name}`, PANELS[name].label, () => update({ panel: name }), {
    role: "tab", "aria-selected": String(name === state.panel), "aria-controls": "panel",
    class: name === state.panel ? "on" : "", tabindex: name === state.panel ? 0 : -1,
    onkeydown: (event) => {
      const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: names.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const name = names.at(next % names.length);
      update({ panel: name });
      document.getElementById(`tab-${name}`).focus();
    },
  })));
  return bar;
};
