// The page: pick a run or two, type a text, choose what to see. All of it is in the address, so that it can be shared.
import { make, numbers } from "regard/base";
import { ANSWERS } from "./answers.js";
import { ask, AskError, listRuns } from "./ask.js";
import { GAME, play } from "./game.js";
import { LOOK, showViews } from "./look.js";
import { saveBar } from "./save.js";
import { WRITE, write } from "./write.js";

const PANELS = { ...ANSWERS, write: WRITE, look: LOOK, game: GAME };
const ORDER = ["write", "next", "score", "translate", "parse", "predict", "fill", "nearest", "look", "game"];
const WAIT = 450;  // milliseconds without a key before a text is taken as typed
const TEXTS = {
  "language-model": "The function returns the", "bidirectional-language-model": "The function returns the value .",
  "masked-language-model": "Return the [MASK] of the string.", translation: "the dog sees a cat .", parsing: "the dog sees a cat .",
  tagging: "Anna lives in Berlin .", classification: "I love this old film.", rating: "I love this old film.",
  answering: "Who sees the cat ?", "word-vectors": "function",
};
const SECOND = { answering: "Anna sees the cat . The dog sleeps ." };

const app = document.getElementById("app");
let runs = [], views = {}, slow = [], current = new AbortController(), timer = 0;
const state = { run: "", with: "", panel: "", text: null, second: null, target: "", word: "", texts: "", seed: 1, views: null, options: {} };

const find = (name) => runs.find((run) => run.name === name);
const chosen = () => [find(state.run), find(state.with)].filter(Boolean);
const verbOf = (name) => PANELS[name].verb ?? name;
const canShow = (run, name) => (PANELS[name].isFor ? PANELS[name].isFor(run) : run.verbs.includes(verbOf(name)));
const panelsOf = (run) => ORDER.filter((name) => canShow(run, name));

// The state in the address, and back.
const readAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  state.run = find(given.get("run")) ? given.get("run") : runs[0].name;
  state.with = find(given.get("with")) && given.get("with") !== state.run ? given.get("with") : "";
  state.text = given.get("text");
  state.second = given.get("second");
  state.target = given.get("target") ?? "";
  state.word = given.get("word") ?? "";
  state.texts = given.get("texts") ?? "";
  state.seed = Number.parseInt(given.get("seed") ?? "1", 10) || 1;
  state.views = given.get("views")?.split(",").filter(Boolean) ?? null;
  state.panel = panelsOf(find(state.run)).includes(given.get("panel")) ? given.get("panel") : panelsOf(find(state.run))[0];
  state.options = {};
  for (const option of PANELS[state.panel]?.options ?? []) state.options[option.name] = clamp(option, given.get(option.name));
};
const clamp = (option, given) => {
  const value = Number(given);
  return given === null || given === "" || Number.isNaN(value) ? option.value : Math.min(option.max, Math.max(option.min, option.step === 1 ? Math.round(value) : value));
};
const writeAddress = () => {
  const kept = new URLSearchParams({ run: state.run });
  if (state.with) kept.set("with", state.with);
  kept.set("panel", state.panel);
  kept.set("text", state.text);
  if (find(state.run).n_texts === 2) kept.set("second", state.second);
  if (state.target) kept.set("target", state.target);
  if (state.word) kept.set("word", state.word);
  if (state.texts && state.views?.includes("vectors")) kept.set("texts", state.texts);
  if (state.panel === "game") kept.set("seed", state.seed);
  if (state.views) kept.set("views", state.views.join(","));
  for (const option of PANELS[state.panel].options ?? []) if (state.options[option.name] !== option.value) kept.set(option.name, state.options[option.name]);
  history.replaceState(null, "", `#${kept}`);
};

const complete = () => {
  const run = find(state.run);
  if (!panelsOf(run).includes(state.panel)) state.panel = panelsOf(run)[0];
  if (state.with && !canShow(find(state.with), state.panel)) state.with = "";
  state.text ??= TEXTS[run.task] ?? "A text.";
  state.second ??= SECOND[run.task] ?? "Another text.";
  for (const option of PANELS[state.panel].options ?? []) state.options[option.name] ??= option.value;
};

const update = (changes = {}) => {
  const before = find(state.run);
  const isOther = changes.run && find(changes.run).task !== before.task && state.text === (TEXTS[before.task] ?? "A text.");
  if (changes.panel && changes.panel !== state.panel) state.options = {};
  Object.assign(state, changes);
  if (isOther) state.text = state.second = null;  // another kind of run has another example
  if (state.with === state.run) state.with = "";
  complete();
  writeAddress();
  drawControls();
  show();
};

const labelled = (label, control) => make("label", {}, make("span", {}, label), control);
const select = (label, names, value, act) => {
  const box = make("select", { onchange: () => act(box.value) }, ...names.map(([name, said]) => make("option", { value: name, selected: name === value }, said)));
  return labelled(label, box);
};
const grow = (box) => { box.rows = Math.min(12, Math.max(2, box.value.split("\n").length, Math.ceil(box.value.length / 95))); };
const area = (id, label, value, key) => {
  const box = make("textarea", { id, rows: 2, spellcheck: "false", maxlength: 20000, "aria-label": label, oninput: () => {
    grow(box);
    state[key] = box.value;
    writeAddress();
    clearTimeout(timer);
    if (!PANELS[state.panel].isSlow || state.panel === "look") timer = setTimeout(show, WAIT);
  }, onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); show(); } } });
  box.value = value;
  grow(box);
  return labelled(label, box);
};
const number = (option) => labelled(option.label, make("input", { type: "number", value: state.options[option.name], min: option.min, max: option.max, step: option.step,
  onchange: (event) => update({ options: { ...state.options, [option.name]: clamp(option, event.target.value) } }) }));

const parts = { controls: make("div", { class: "controls" }), tabs: make("div", {}), options: make("div", { class: "controls" }), panel: make("section", { id: "panel", role: "tabpanel", "aria-live": "off" }) };

// Which controls there are follows from the run; the text boxes stay as they are while one types in them.
const drawControls = () => {
  const run = find(state.run), has = document.activeElement?.id;
  const others = runs.filter((other) => other.name !== state.run && canShow(other, state.panel));
  const describe = (one) => [one.name, `${one.name} (${one.model}, ${one.n_parameters.toLocaleString("en")} parameters)`];
  const isPair = run.n_texts === 2 && state.panel === "predict";
  const isTranslated = state.panel === "look" && ["translation", "parsing"].includes(run.task);
  parts.controls.replaceChildren(
    make("div", { class: "row" },
      select("Run", runs.map(describe), state.run, (name) => update({ run: name })),
      ...(others.length ? [select("Compare with", [["", "no other run"], ...others.map(describe)], state.with, (name) => update({ with: name }))] : [])),
    ...(state.panel === "game" ? [] : [area("text", run.task === "answering" ? "Question" : run.task === "word-vectors" ? "Word" : "Text", state.text, "text")]),
    ...(isPair ? [area("second", run.task === "answering" ? "Passage" : "Second text", state.second, "second")] : []),
    ...(isTranslated && run.task === "translation" ? [area("target", "What it is made to write (empty: its own translation)", state.target, "target")] : []));
  parts.options.replaceChildren(
    make("div", { class: "row" },
      ...(PANELS[state.panel].options ?? []).map(number),
      ...(state.panel === "look" ? [labelled("word that is asked about", make("input", { type: "text", value: state.word, placeholder: "the last",
        maxlength: 200, onchange: (event) => update({ word: event.target.value }) }))] : []),
      make("button", { type: "button", class: "go", onclick: () => (state.panel === "game" ? update({ seed: state.seed + 1 }) : show()), title: "Ctrl+Enter" },
        state.panel === "game" ? "Another passage" : state.panel === "write" ? "Write" : "Show"),
      make("button", { type: "button", class: "share", onclick: share }, "Copy the address"),
      make("span", { id: "shared", role: "status", class: "small" })));
  parts.tabs.replaceChildren(drawTabs(run));
  if (has) document.getElementById(has)?.focus();
};

const drawTabs = (run) => {
  const names = panelsOf(run);
  const bar = make("div", { class: "tabs", role: "tablist", "aria-label": "What to see" });
  bar.append(...names.map((name, i) => make("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === state.panel), "aria-controls": "panel",
    class: name === state.panel ? "on" : "", tabindex: name === state.panel ? 0 : -1, onclick: () => update({ panel: name }),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = names[(i + step + names.length) % names.length];
      update({ panel: next });
      document.getElementById(`tab-${next}`).focus();
    },
  }, PANELS[name].label)));
  return bar;
};

const share = async () => {
  const said = document.getElementById("shared");
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "Copied: it opens this page as it is now.";
  } catch {
    said.textContent = "Copy it from the address bar: it opens this page as it is now.";
  }
};

// Ask again and draw the panel anew; what was asked before is given up.
const show = async () => {
  current.abort();
  clearTimeout(timer);
  const mine = current = new AbortController();
  const panel = PANELS[state.panel], asked = { ...state, options: { ...state.options } };
  const body = make("div", {});
  parts.panel.setAttribute("aria-labelledby", `tab-${state.panel}`);
  parts.panel.setAttribute("aria-busy", "true");
  const isFirst = parts.panel.dataset.shown !== state.panel;
  const reveal = () => {
    parts.panel.replaceChildren(make("p", { class: "note" }, panel.note), body);
    parts.panel.dataset.shown = state.panel;
  };
  if (isFirst || panel.isSlow) reveal();  // else the answer before stays until the new one is there
  try {
    if (state.panel === "look") await showViews(body, chosen(), asked, mine.signal, views, slow,
      (names) => update({ views: names.length ? names : null }), (changes) => { Object.assign(state, changes); writeAddress(); });
    else if (state.panel === "game") await play(body, chosen(), asked, mine.signal, () => update({ seed: state.seed + 1 }));
    else await showEach(body, asked, mine.signal);
  } catch (error) {
    if (mine.signal.aborted) return;
    if (!(error instanceof AskError)) console.error(error);
    body.append(make("p", { class: "failed", role: "alert" }, error instanceof AskError ? error.message : "This cannot be drawn; the console says why."));
  }
  if (mine.signal.aborted) return;
  if (!body.isConnected) reveal();
  parts.panel.setAttribute("aria-busy", "false");
};

// A column for each run; one that fails says so in its own.
const showEach = (body, asked, signal) => {
  const shown = chosen();
  const columns = make("div", { class: shown.length > 1 ? "panels several" : "panels" });
  body.append(columns);
  return Promise.all(shown.map(async (run) => {
    const article = make("article", { style: `--c:${run.colour}` }, ...(shown.length > 1 ? [make("h3", {}, run.name)] : []));
    columns.append(article);
    try {
      if (state.panel === "write") await write(article, run, asked, signal, (text) => update({ text }));
      else await showAnswer(article, run, asked, signal);
    } catch (error) {
      if (!(error instanceof AskError)) throw error;
      article.append(make("p", { class: "failed", role: "alert" }, error.message));
    }
  }));
};

const showAnswer = async (article, run, asked, signal) => {
  const panel = PANELS[asked.panel];
  const answer = await ask(run.name, verbOf(asked.panel), panel.body(asked, run), signal);
  const { table, picture } = panel.draw(article, answer, run, asked);
  article.append(saveBar(`${asked.panel}-of-${run.name}`, { json: answer, table, picture }));
  if (table) article.append(numbers(table));
};

const begin = async () => {
  try {
    ({ runs, views, slow_views: slow } = await listRuns());
  } catch (error) {
    app.replaceChildren(make("p", { class: "failed", role: "alert" }, error.message));
    return;
  }
  runs = runs.filter((run) => panelsOf(run).length);
  if (!runs.length) {
    app.replaceChildren(make("p", { class: "failed", role: "alert" }, "None of these runs has anything that this page shows; the JSON API may."));
    return;
  }
  app.replaceChildren(make("header", {}, make("p", { class: "kicker" }, "Regard"), make("h1", {}, "What does it say, and why?")), parts.controls, parts.tabs, parts.options, parts.panel);
  const follow = () => { readAddress(); complete(); drawControls(); show(); };
  addEventListener("hashchange", follow);
  addEventListener("pointermove", moveTip);
  follow();
};

const tip = document.getElementById("tip");
const moveTip = (event) => {
  const said = event.target instanceof Element ? event.target.closest("[data-tip]")?.dataset.tip : "";
  tip.hidden = !said;
  if (!said) return;
  tip.textContent = said;
  const box = tip.getBoundingClientRect(), below = event.clientY + 18;
  tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 12 : below}px`;
};

begin();
