// Writing: each token as it comes, and what else was probable at its place. Choosing another token goes on from there.
import { make, mix, percent, showSpaces } from "regard/base";
import { stream } from "./ask.js";
import { drawBars, nameToken, numbersBelow, tokenLine } from "./answers.js";
import { drawTokens } from "./save.js";

export const WRITE = {
  label: "Write", verb: "generate",
  note: "The model goes on with the text. Point at a token to see what else was probable there; choose another to go on from it.",
  options: [
    { name: "max_tokens", label: "tokens", value: 60, min: 1, max: 500, step: 1 },
    { name: "temperature", label: "temperature", value: 0.8, min: 0, max: 3, step: 0.1 },
    { name: "top_k", label: "top k (0: all)", value: 0, min: 0, max: 1000, step: 1 },
    { name: "seed", label: "seed", value: 0, min: 0, max: 1_000_000, step: 1 },
  ],
};

export const write = async (root, run, state, signal, goOn) => {
  const { top_k: k, ...options } = state.options;
  const written = [];
  const detail = make("div", { class: "detail" }), place = make("div", {}), bar = make("div", {});
  const status = make("p", { class: "small", role: "status" }, "writing …");
  root.append(make("div", { class: "twocolumns" }, make("div", {}, place, status, bar), detail));

  const shade = (one) => mix(run.colour, 0.7 * Math.min(1, -Math.log2(one.probability ?? 1) / 12));  // by its surprise
  const show = (i) => {
    const one = written[i];
    const rows = one.alternatives.map((other) => [nameToken(other.text), other.probability, percent(other.probability)]);
    const before = state.text + written.slice(0, i).map((token) => token.text).join("");
    detail.replaceChildren(
      make("p", { class: "which" }, `“${nameToken(one.token)}” had ${one.probability === null ? "no probability told" : percent(one.probability)}`),
      make("p", { class: "small" }, "the most probable there; choose one to go on from it:"),
      drawBars(rows, run.colour, "What else was probable here", detail.clientWidth || 300),
      make("p", { class: "picks" }, ...one.alternatives.map((other) => make("button", { type: "button", class: "pick",
        "aria-label": `Go on with ${nameToken(other.text)}`, onclick: () => goOn(before + other.text) }, nameToken(other.text)))));
  };
  const repaint = () => {
    const tokens = written.map((one) => one.text);
    const line = tokenLine(tokens, {
      label: `What ${run.name} wrote`, show,
      paint: (span, i) => { span.style.background = shade(written[i]); },
      describe: (i) => `${showSpaces(tokens[i].trim() || tokens[i])}: ${percent(written[i].probability ?? 0)}`,
    });
    line.prepend(make("b", {}, state.text));
    place.replaceChildren(line);
  };
  let waits = false;
  for await (const one of stream(run.name, "generate", { text: state.text, ...options, ...(k > 0 ? { top_k: k } : {}), alternatives: 8, stream: true }, signal)) {
    if (one.text || one.alternatives.length) written.push(one);
    if (!waits) {  // many tokens may come between two frames
      waits = true;
      requestAnimationFrame(() => { waits = false; repaint(); });
    }
  }
  repaint();
  status.textContent = `${written.length} tokens written.`;
  if (!written.length) return;
  show(0);
  const table = { columns: ["token", "probability", "most probable", "its probability"],
    rows: written.map((one) => [one.token, one.probability?.toPrecision(4), one.alternatives[0]?.text, one.alternatives[0]?.probability.toPrecision(4)].map((x) => x ?? "")) };
  numbersBelow(bar, `written-by-${run.name}`, { json: { prompt: state.text, tokens: written }, table,
    picture: () => drawTokens([{ text: state.text }, ...written.map((one) => ({ text: one.text, colour: shade(one) }))]) });
};
