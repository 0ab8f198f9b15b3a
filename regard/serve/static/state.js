// What the page shows: the run, the panel, the text and the settings. All of it but a picture is in the address, so that it
// can be shared.
import { ask } from "./ask.js";
import { comparable, PANELS, panelsOf } from "./panels.js";

export const served = { runs: [], views: {}, slow: [] };
export const state = {
  run: "", with: "", panel: "", text: null, second: null, picture: null, target: "", word: "", texts: "", tag: "", seed: 1,
  layer: null, head: null, views: null, options: {}, isExample: false,
};

const EXAMPLE_WAIT = 800;  // milliseconds that a page waits for an example of the run's own data
// Where a run has no data on this machine.
const TEXTS = {
  "language-model": "The function returns the", "bidirectional-language-model": "The function returns the value .",
  "masked-language-model": "Return the [MASK] of the string.", translation: "the dog sees a cat .", parsing: "the dog sees a cat .",
  tagging: "Anna lives in Berlin .", classification: "I love this old film.", rating: "I love this old film.",
  answering: "Who sees the cat ?", "word-vectors": "function",
};
const SECOND = { answering: "Anna sees the cat . The dog sleeps ." };

export const find = (name) => served.runs.find((run) => run.name === name);
export const chosen = () => [find(state.run), find(state.with)].filter(Boolean);
export const readsPicture = () => find(state.run).verbs.includes("caption");
export const readsPair = () => find(state.run).n_texts === 2;

export const clamp = (option, given) => {
  const value = Number(given);
  if (given === null || given === "" || Number.isNaN(value)) return option.value;
  return Math.min(option.max, Math.max(option.min, option.step === 1 ? Math.round(value) : value));
};
const optionsOf = (panel) => PANELS[panel]?.options ?? [];
const wholeNumber = (given) => { const n = Number.parseInt(given ?? "", 10); return n >= 1 ? n : null; };

export const readAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  state.run = find(given.get("run")) ? given.get("run") : served.runs[0].name;
  state.with = given.get("with") ?? "";
  state.panel = given.get("panel") ?? "";
  state.text = given.get("text");
  state.second = given.get("second");
  for (const name of ["target", "word", "texts", "tag"]) state[name] = given.get(name) ?? "";
  state.seed = wholeNumber(given.get("seed")) ?? 1;
  [state.layer, state.head] = [wholeNumber(given.get("layer")), wholeNumber(given.get("head"))];
  state.views = given.get("views")?.split(",").filter(Boolean) ?? null;
  state.options = {};
  settle();
  for (const option of optionsOf(state.panel)) state.options[option.name] = clamp(option, given.get(option.name));
};

export const writeAddress = () => {
  clearTimeout(timer);
  const kept = new URLSearchParams({ run: state.run });
  const keep = (name, value, isKept = true) => { if (value && isKept) kept.set(name, value); };
  keep("with", state.with);
  keep("panel", state.panel);
  if (!readsPicture()) kept.set("text", state.text ?? "");
  if (readsPair()) kept.set("second", state.second ?? "");
  for (const name of ["target", "word", "tag"]) keep(name, state[name]);
  keep("texts", state.texts, state.views?.includes("vectors"));
  keep("seed", state.seed, state.panel === "game");
  for (const name of ["layer", "head"]) keep(name, state[name], state.panel === "look");
  if (state.views) kept.set("views", state.views.join(","));
  for (const option of optionsOf(state.panel)) if (state.options[option.name] !== option.value) kept.set(option.name, state.options[option.name]);
  history.replaceState(null, "", `#${kept}`);
};

// After the last of several changes: browsers refuse to change an address that often.
let timer = 0;
export const writeAddressSoon = () => {
  clearTimeout(timer);
  timer = setTimeout(writeAddress, 300);
};

// Make what does not fit the run fit: its panel, what it is compared with, its settings.
export const settle = () => {
  const run = find(state.run);
  if (!panelsOf(run).includes(state.panel)) state.panel = panelsOf(run)[0];
  if (!comparable(served.runs, run, state.panel).includes(find(state.with))) state.with = "";
  if (!run.tags.includes(state.tag)) state.tag = run.tags.length > 1 ? run.tags[0] : "";
  for (const option of optionsOf(state.panel)) state.options[option.name] ??= option.value;
};

// Where there is nothing to look at yet, take an example of what the run was tested on, or one of ours; whether one was taken.
let nAsked = 0;
export const fillIn = async (seed = 0) => {
  const run = find(state.run), isFull = () => (readsPicture() ? state.picture : state.text) !== null;
  if (isFull()) return false;
  const mine = nAsked += 1;
  const found = run.verbs.includes("example") ? await ask(run.name, "example", { seed }, AbortSignal.timeout(EXAMPLE_WAIT)).catch(() => ({})) : {};
  if (mine !== nAsked || run.name !== state.run || isFull()) return false;  // another was asked for, or something was typed
  state.picture = found.picture ?? null;
  state.text = found.text ?? TEXTS[run.task] ?? "A text.";
  state.second ??= found.second ?? SECOND[run.task] ?? "Another text.";
  state.isExample = true;
  return true;
};
