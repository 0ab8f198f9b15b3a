// The views of `regard look` on the text that is typed, of one run or two, all linked. What takes seconds is computed when it
// is asked for by a click, while the other views are there.
import { make, start } from "regard/base";
import { drawView, fetchHead, look, waitsBefore } from "./ask.js";
import { saveBar } from "./save.js";

export const LOOK = { label: "Look inside", verb: "trace",
  note: "What the model computed on the text. Point at a word in one view, and all others follow." };
const FIRST = ["picture", "alignment", "surprise", "attention", "influence"];
const N_FIRST = 2;
const N_KEPT = 6;
const answered = new Map();  // slow answers by their questions, so that showing another view does not lose them
let clicked = null;  // the slow view that was just asked for

// `update` changes the page's state and draws all anew; `remember` changes it and draws nothing.
export const showViews = async (root, runs, state, signal, { served: { views, slow }, update, remember }) => {
  const known = Object.keys(views).filter((name) => runs.some((run) => run.views.includes(name)));
  const asked = (state.views ?? []).filter((name) => known.includes(name));
  const chosen = asked.length ? asked : FIRST.filter((name) => known.includes(name)).slice(0, N_FIRST);
  const toggle = (name) => {
    const isOn = chosen.includes(name);
    clicked = !isOn && slow.includes(name) ? name : null;
    const names = isOn ? chosen.filter((one) => one !== name) : known.filter((one) => one === name || chosen.includes(one));
    update({ views: names.length ? names : null });
  };
  root.append(make("div", { class: "tabs", role: "group", "aria-label": "Views" }, make("span", {}, "views"),
    ...known.map((name) => make("button", { type: "button", id: `view-${name}`, "aria-pressed": String(chosen.includes(name)), class: chosen.includes(name) ? "on" : "",
      title: views[name] + (slow.includes(name) ? " (takes a while)" : ""), onclick: () => toggle(name) }, name))));
  const status = make("p", { class: "small", role: "status" });
  root.append(status);
  const places = new Map(chosen.map((name) => [name, make("div")]));
  root.append(...places.values());
  const linked = [];
  const body = askAbout(runs, state);
  if (body === null) {
    status.textContent = "There is no picture yet: choose a file above.";
    return;
  }
  const isAlone = state.views === null && chosen.every((name) => slow.includes(name)) && runs.every((run) => run.n_parameters < 5e6);
  const context = { runs, body, signal, views, linked, state, remember, isAlone };
  for (const name of chosen) if (slow.includes(name)) offer(places.get(name), name, context);
  const quick = chosen.filter((name) => !slow.includes(name));
  if (!quick.length) return;
  status.textContent = "computing …";
  try {
    await drawViews(quick, await look({ ...body, views: quick }, signal), places, context);
  } finally {
    status.textContent = "";
  }
};

// What is looked at, as the API takes it; null: a picture, and there is none yet.
const askAbout = (runs, state) => {
  const given = Object.fromEntries(["target", "word"].filter((name) => state[name].trim()).map((name) => [name, state[name]]));
  if (runs[0].tags.length > 1) given.tag = state.tag;
  if (runs.length === 1 && state.layer && state.head) Object.assign(given, { layer: state.layer, head: state.head });  // of other models there may be fewer
  const names = { runs: runs.map((run) => run.name), ...given };
  if (runs[0].verbs.includes("caption")) return state.picture === null ? null : { ...names, picture: state.picture };
  const line = (text) => text.replace(/\s+/g, " ").trim();
  return { ...names, text: runs[0].n_texts === 2 ? `${line(state.text)}\t${line(state.second)}` : state.text };
};

const drawViews = async (names, data, places, { runs, body, signal, views, linked, remember }) => {
  const scripts = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await import(`regard/${name}`)])));
  if (signal.aborted) return;
  data.panels.forEach((panel, i) => {
    const same = Object.fromEntries(["text", "picture", "target", "tag"].filter((name) => name in body).map((name) => [name, body[name]]));
    panel.fetchHead = (layer, head, stack) => fetchHead(runs[i].name, { ...same, layer: layer + 1, head: head + 1, stack: stack + 1 }, signal);
    const nStacks = panel.views.attention?.data.stacks.length ?? 0;
    if (runs.length === 1 && nStacks === 1) panel.remember = remember;  // which head was chosen
  });
  for (const name of names) {
    const section = drawSection(name, data, views);
    places.get(name).replaceChildren(section);
    start(scripts, data, section, linked);
    addSaveBars(section, data, { ...body, views: [name] });
  }
};

const capital = (text) => text[0].toUpperCase() + text.slice(1);

// A view that takes seconds: a button, and while it is computed how long that has taken and how many others wait for such.
const offer = (place, name, context) => {
  const { views, state, remember } = context;
  const said = make("span", { role: "status", class: "small" });
  const failed = make("p", { class: "failed", role: "alert", hidden: true });
  const go = make("button", { type: "button", class: "go" }, "Compute");
  const stop = make("button", { type: "button", class: "plain", hidden: true }, "Give up");
  const form = name === "vectors" ? askForTexts(state, remember) : null;
  const ask = async () => {
    const question = { ...context.body, views: [name], ...(form ? form.read() : {}) };
    const key = JSON.stringify(question), own = new AbortController();
    const began = performance.now();
    const tell = async () => {
      const n = await waitsBefore(own.signal).catch(() => 0);
      const seconds = Math.round((performance.now() - began) / 1000);
      if (!own.signal.aborted && !stop.hidden) said.textContent = `computing for ${seconds} s${n ? `; ${n} more wait for such views` : ""} …`;
    };
    const abort = () => own.abort();
    context.signal.addEventListener("abort", abort);
    stop.onclick = abort;
    [go.disabled, stop.hidden, failed.hidden] = [true, false, true];
    said.textContent = "computing …";
    const timer = setInterval(tell, 1500);
    try {
      const data = answered.get(key) ?? await look(question, own.signal);
      answered.set(key, data);
      if (answered.size > N_KEPT) answered.delete(answered.keys().next().value);
      const drawn = make("div");
      await drawViews([name], data, new Map([[name, drawn]]), { ...context, body: question });
      if (!context.signal.aborted) place.replaceChildren(...(form ? [make("section", { class: "looked" }, form.root, row, failed)] : []), drawn);
    } catch (error) {
      if (context.signal.aborted) return;
      failed.textContent = error.name === "AbortError" ? "Given up." : error.message;
      failed.hidden = false;
      if (!(error.name === "AbortError" || error.isTold)) console.error(error);
    } finally {
      clearInterval(timer);
      context.signal.removeEventListener("abort", abort);
      [go.disabled, stop.hidden, said.textContent] = [false, true, ""];
    }
  };
  go.onclick = ask;
  const row = make("div", { class: "row" }, go, stop, said);
  place.replaceChildren(make("section", { class: "looked" }, make("h3", {}, capital(name)), make("p", { class: "note" }, capital(views[name].split(":")[0]) + "."),
    ...(form ? [form.root] : []), row, failed));
  const isKnown = answered.has(JSON.stringify({ ...context.body, views: [name], ...(form ? form.read() : {}) }));
  const isWanted = clicked === name || context.isAlone;
  if (isKnown || (isWanted && (!form || form.isReady()))) ask();
  if (clicked === name) clicked = null;
};

// The word and the texts in which it is compared, one a line.
const askForTexts = (state, remember) => {
  const word = make("input", { type: "text", value: state.word, maxlength: 200, placeholder: "green", oninput: () => remember({ word: word.value }) });
  const texts = make("textarea", { rows: 4, spellcheck: "false", "aria-label": "Texts, one a line", oninput: () => remember({ texts: texts.value }) });
  texts.value = state.texts || state.text;
  const lines = () => texts.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, 12);
  return {
    root: make("div", { class: "form" }, make("label", {}, make("span", {}, "Word"), word), make("label", {}, make("span", {}, "Texts with this word, one a line (12 at most)"), texts)),
    read: () => ({ text: lines()[0] ?? "", texts: lines(), word: word.value.trim() }),
    isReady: () => word.value.trim() !== "" && lines().length > 0,
  };
};

const drawSection = (name, data, views) => {
  const first = data.panels.map((panel) => panel.views[name]).find(Boolean);
  const section = make("section", { class: "looked" }, make("h3", {}, first?.title ?? name), make("p", { class: "note" }, first?.note ?? views[name]));
  const panels = make("div", { class: data.panels.length > 1 ? "panels several" : "panels" });
  data.panels.forEach((panel, number) => {
    const view = panel.views[name];
    const article = make("article", { style: `--c:${panel.colour}` }, ...(data.panels.length > 1 ? [make("h3", {}, panel.name)] : []));
    if (view) {
      if (view.summary) article.append(make("p", { class: "summary" }, view.summary));
      article.append(make("div", { class: `view view-${name}`, "data-panel": number, "data-view": name }));
    } else {
      article.append(make("p", { class: "absent" }, `Nothing to show: ${panel.missing[name] ?? "the model has nothing of this kind"}.`));
    }
    panels.append(article);
  });
  section.append(panels);
  return section;
};

// What is on the screen is saved as it is; of what is not a drawing there, and for an SVG of a canvas, the server draws the view.
export const addSaveBars = (section, data, question) => {
  for (const place of section.querySelectorAll("[data-view]")) {
    const panel = data.panels[Number(place.dataset.panel)], view = panel.views[place.dataset.view];
    const find = () => [...place.querySelectorAll("svg, canvas")].sort((a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight)[0];
    const draw = (kind) => drawView({ ...question, runs: [panel.name], kind });
    place.append(saveBar(`${view.name}-of-${panel.name}`, { json: view, table: view.table, picture: find() ? find : null, draw: view.name === "steps" ? null : draw }));
  }
};
