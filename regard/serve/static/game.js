// Guess what comes next, against the runs (Shannon 1951). Every character typed is a guess at the next one; a wrong one is
// told, and the next guess counts as the second, and so on. What the person is charged is a code that somebody with a twin
// of the person could decode: of the rank r of the right guess,
//
//   bits = -log2 P(r),   P(r) = (c_r + 2 q_r) / (n + 2),   q_r = (K + 1) / (K r (r + 1))
//
// with c_r how often rank r came among the n characters before and K characters that may come. Whoever gives up after g
// wrong guesses is charged -log2(P(rank > g) / (K - g)). So the figure is never below what the person knows: an upper bound.
import { make } from "regard/base";
import { ask } from "./ask.js";
import { drawBars, numbersBelow } from "./answers.js";

export const GAME = { label: "Game", verb: "passage",
  note: "A passage of the text that the run was tested on. Type what comes next, a letter or a whole word: every character is a guess, and capital letters and spaces count." };
const K = 97;  // what a keyboard types: 95 characters, the line end, and one for all others
const prior = (r) => (K + 1) / (K * r * (r + 1));

// The bits of a rank, or of giving up after g wrong guesses, given the ranks before; learns from it.
export class RankCode {
  constructor() { this.counts = new Float64Array(K + 1); this.n = 0; }
  chance(r) { return (this.counts[r] + 2 * prior(r)) / (this.n + 2); }
  guess(rank) {
    const bits = -Math.log2(this.chance(rank));
    this.counts[rank] += 1;
    this.n += 1;
    return bits;
  }
  giveUp(g) {
    let above = 0;
    for (let r = g + 1; r <= K; r += 1) above += this.chance(r);
    for (let r = g + 1; r <= K; r += 1) this.counts[r] += 1 / (K - g);
    this.n += 1;
    return -Math.log2(above / (K - g));
  }
}

// What a run pays for the characters from `start` on: a token that begins before it is charged in part, the end not at all.
export const bitsFrom = (tokens, bits, start) => {
  let at = 0, sum = 0;
  tokens.forEach((text, i) => {
    const length = Array.from(text).length, end = at + length;
    if (length && end > start) sum += bits[i] * (end - Math.max(at, start)) / length;
    at = end;
  });
  return sum;
};

// `own` is the run whose test text is guessed; it is ranked among all `runs` that predict.
export const play = async (root, own, runs, state, signal, again) => {
  const passage = await ask(own.name, "passage", { seed: state.seed }, signal);
  const letters = Array.from(passage.text), code = new RankCode();
  let at = 0, tried = [], paid = [];
  const shown = make("p", { class: "guessing", "aria-live": "off" }), said = make("p", { class: "small", role: "status" });
  const input = make("input", { type: "text", class: "guess", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "aria-label": "What comes next" });
  const button = (label, act) => make("button", { type: "button", onclick: act }, label);
  const giveUp = button("Show the next character", () => settle(code.giveUp(tried.length)));
  const lineEnd = button("⏎ line end", () => take("\n"));
  const finish = button("Stop here and compare", () => end());
  const scores = make("div", { role: "region", "aria-label": "Ranking" });

  const repaint = () => {
    shown.replaceChildren(make("span", { class: "given" }, passage.before), ...paid.map((bits, i) => make("span", { class: bits < 1 ? "easy" : bits < 4 ? "fair" : "hard", title: `${bits.toFixed(2)} bits` },
      letters[i] === "\n" ? "⏎\n" : letters[i])), make("span", { class: "caret" }, "▁"));
  };
  const settle = (bits) => {
    paid.push(bits);
    at += 1;
    tried = [];
    input.value = "";
    said.textContent = `${at} of ${letters.length} characters, ${(paid.reduce((a, b) => a + b, 0) / at).toFixed(2)} bits each so far`;
    repaint();
    if (at === letters.length) end();
    else input.focus();
  };
  // One character as a guess; whether it was right.
  const take = (character) => {
    if (at >= letters.length) return false;
    if (character === letters[at]) { settle(code.guess(tried.length + 1)); return true; }
    if (!tried.includes(character)) tried.push(character);
    said.textContent = `Not ${tried.map((c) => (c === " " ? "a space" : c === "\n" ? "a line end" : `“${c}”`)).join(", ")}.`;
    input.value = "";
    return false;
  };
  input.addEventListener("input", (event) => {
    if (event.isComposing) return;
    for (const character of Array.from(input.value)) if (!take(character)) break;
  });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); take("\n"); } });

  const end = async () => {
    if (!at) { said.textContent = "Guess at least one character first."; return; }
    [input, giveUp, lineEnd, finish].forEach((node) => { node.disabled = true; });
    said.textContent = "Asking the runs …";
    const seen = letters.slice(0, at).join(""), start = Array.from(passage.before).length;
    const answers = await Promise.all(runs.map((run) => ask(run.name, "score", { text: passage.before + seen }, signal).catch(() => null)));
    const rows = [["you", paid.reduce((a, b) => a + b, 0) / at, "#1c1e21"],
      ...runs.flatMap((run, i) => (answers[i] ? [[run.name, bitsFrom(answers[i].tokens, answers[i].token_bits, start) / at, run.colour]] : []))].sort((a, b) => a[1] - b[1]);
    const table = { columns: ["place", "who", "bits a character"], rows: rows.map(([name, bits], i) => [i + 1, name, bits.toFixed(3)]) };
    const svg = drawBars(rows.map(([name, bits, colour]) => [name, bits, bits.toFixed(2), colour]), "", "Bits a character, the best first");
    scores.replaceChildren(make("h3", {}, `The ranking over ${at} characters`), svg,
      make("p", { class: "note" }, "Fewer bits are better. All saw the same text before. The runs are charged by their probabilities, you by the rank of your right guess, which can only cost you more: you know at least this much."),
      button("Another passage", () => again()));
    numbersBelow(scores, "guessing", { json: { seed: state.seed, before: passage.before, text: seen, bits: paid, ranking: table.rows }, table, picture: () => svg });
    said.textContent = `You: ${rows.find(([name]) => name === "you")[1].toFixed(2)} bits a character, place ${1 + rows.findIndex(([name]) => name === "you")} of ${rows.length}.`;
  };
  root.append(shown, make("div", { class: "guessbar" }, input, lineEnd, giveUp, finish), said, scores);
  said.textContent = `${letters.length} characters to guess; stop whenever you like.`;
  repaint();
};
