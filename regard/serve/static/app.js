// The page: pick a run or two, give a text or a picture, choose what to see.
import { make } from "regard/base";
import { ask, AskError, listRuns } from "./ask.js";
import { numbersBelow } from "./answers.js";
import { showCaption } from "./caption.js";
import { drawControls, parts, stopWaiting } from "./controls.js";
import { play } from "./game.js";
import { showViews } from "./look.js";
import { PANELS, panelsOf } from "./panels.js";
import { chosen, fillIn, find, readAddress, readsPicture, served, settle, state, writeAddress, writeAddressSoon } from "./state.js";
import { write } from "./write.js";

const app = document.getElementById("app");
let current = new AbortController(), nExamples = 0;

const forget = () => Object.assign(state, { text: null, second: null, picture: null });

// Change the state and draw all anew; where an example is shown, another kind of run gets one of its own.
const update = async (changes = {}) => {
  const before = find(state.run), wasPicture = readsPicture();
  if (changes.panel && changes.panel !== state.panel) state.options = {};
  if (changes.run && changes.run !== state.run) Object.assign(state, { layer: null, head: null, target: "" });
  Object.assign(state, changes);
  settle();
  if (find(state.run).task !== before.task && (state.isExample || wasPicture || readsPicture())) forget();
  drawControls(acts);
  if (await fillIn()) drawControls(acts);
  show();
};

const another = async () => {
  forget();
  nExamples += 1;
  await fillIn(nExamples);
  drawControls(acts);
  show();
};

const share = async (status) => {
  writeAddress();
  try {
    await navigator.clipboard.writeText(location.href);
    status.textContent = `Copied: it opens this page as it is now${readsPicture() ? ", but for the picture" : ""}.`;
  } catch {
    status.textContent = "Copy it from the address bar: it opens this page as it is now.";
  }
};

// Ask again and draw the panel anew; what was asked before is given up, and stays to be seen until the new answer is there.
const show = async () => {
  if (state.text === null && !readsPicture()) return;  // an example is on its way
  current.abort();
  stopWaiting();
  writeAddress();
  const mine = current = new AbortController();
  const panel = PANELS[state.panel], asked = { ...state, options: { ...state.options } };
  const body = make("div", {});
  parts.panel.setAttribute("aria-labelledby", `tab-${state.panel}`);
  parts.panel.setAttribute("aria-busy", "true");
  const reveal = () => {
    const has = parts.panel.contains(document.activeElement) ? document.activeElement.id : "";
    parts.panel.replaceChildren(make("p", { class: "note" }, panel.note), body);
    parts.panel.dataset.shown = state.panel;
    if (has) document.getElementById(has)?.focus();
  };
  if (state.panel === "write" || parts.panel.dataset.shown !== state.panel) reveal();
  try {
    if (state.panel === "look") await showViews(body, chosen(), asked, mine.signal, { served, update, remember: (changes) => { Object.assign(state, changes); writeAddressSoon(); } });
    else if (state.panel === "game") await play(body, find(state.run), served.runs.filter((run) => run.verbs.includes("next")), asked, mine.signal, () => update({ seed: state.seed + 1 }));
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
const acts = { update, show, another, share };

// A column for each run; one that fails says so in its own.
const showEach = (body, asked, signal) => {
  const shown = chosen();
  const columns = make("div", { class: shown.length > 1 ? "panels several" : "panels" });
  body.append(columns);
  return Promise.all(shown.map(async (run) => {
    const article = make("article", { style: `--c:${run.colour}` }, ...(shown.length > 1 ? [make("h3", {}, run.name)] : []));
    columns.append(article);
    try {
      if (asked.panel === "write") await write(article, run, asked, signal, (text) => update({ text }));
      else if (asked.panel === "caption") await showCaption(article, run, asked, signal);
      else await showAnswer(article, run, asked, signal);
    } catch (error) {
      if (!(error instanceof AskError)) throw error;
      article.append(make("p", { class: "failed", role: "alert" }, error.message));
    }
  }));
};

const showAnswer = async (article, run, asked, signal) => {
  const panel = PANELS[asked.panel];
  const answer = await ask(run.name, panel.verb ?? asked.panel, panel.body(asked, run), signal);
  numbersBelow(article, `${asked.panel}-of-${run.name}`, { json: answer, ...panel.draw(article, answer, run, asked) });
};

const begin = async () => {
  try {
    const found = await listRuns();
    Object.assign(served, { runs: found.runs.filter((run) => panelsOf(run).length), views: found.views, slow: found.slow_views });
  } catch (error) {
    app.replaceChildren(make("p", { class: "failed", role: "alert" }, error.message));
    return;
  }
  if (!served.runs.length) {
    app.replaceChildren(make("p", { class: "failed", role: "alert" }, "None of these runs has anything that this page shows; the JSON API may."));
    return;
  }
  const follow = async () => { readAddress(); await fillIn(); drawControls(acts); show(); };
  addEventListener("hashchange", follow);
  addEventListener("pointermove", moveTip);
  readAddress();
  await fillIn();
  app.replaceChildren(make("header", {}, make("p", { class: "kicker" }, "Regard"), make("h1", {}, "What does it say, and why?")), parts.first, parts.tabs, parts.options, parts.panel);
  drawControls(acts);
  show();
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
