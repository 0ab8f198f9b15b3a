// The words of a prediction's input, coloured by what each has to do with it, and the strongest as bars.
import { chooser, diverging, make, shorten, showSpaces } from "regard/base";

const MOST = 12;

export const draw = (root, view, page) => {
  const { what, target, chance, unit, words, marks, tokens, methods, cut } = view.data;
  const names = Object.keys(methods);
  const line = make("div", { class: "looktext", role: "group", "aria-label": "The words that the prediction is made from" });
  const bars = make("div", { class: "influencebars", role: "list", "aria-label": "The strongest words" });
  const chips = words.map((word, i) => {
    const chip = make("span", { class: marks[i] ? "token mark" : "token", tabindex: i === 0 ? 0 : -1, role: "img",
      onpointerenter: () => page.emit("hover", tokens[i]), onfocus: () => page.emit("hover", tokens[i]),
      onpointerleave: () => page.emit("hover", []), onblur: () => page.emit("hover", []) }, showSpaces(word));
    return chip;
  });
  line.addEventListener("keydown", (event) => {
    const at = chips.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: chips.length - 1 }[event.key];
    if (at < 0 || next === undefined || !chips[next]) return;
    event.preventDefault();
    chips[at].tabIndex = -1;
    chips[next].tabIndex = 0;
    chips[next].focus();
  });
  page.on("hover", (hovered) => chips.forEach((chip, i) => chip.classList.toggle("hovered", tokens[i].some((t) => hovered.includes(t)))));
  if (cut) line.append(make("span", { class: "small" }, `… ${cut} words before … `));
  chips.forEach((chip) => line.append(chip, " "));
  line.append(make("span", { class: "asked" }, `→ ${showSpaces(target)}`));
  const show = (which) => {
    const scores = methods[names[which]];
    const top = Math.max(...scores.map(Math.abs), 1e-9);
    chips.forEach((chip, i) => {
      const share = scores[i] / top;
      chip.style.background = diverging(0.85 * share);
      chip.classList.toggle("painted", Math.abs(share) > 0.02);
      chip.dataset.tip = `${scores[i] >= 0 ? "+" : ""}${scores[i].toFixed(3)}`;
      chip.setAttribute("aria-label", `${words[i].trim()}: ${chip.dataset.tip}`);
    });
    const order = scores.map((score, i) => [Math.abs(score), i]).sort((a, b) => b[0] - a[0]).slice(0, MOST);
    bars.replaceChildren(...order.filter(([score]) => score > 0).map(([, i]) => make("div", { class: "bar", role: "listitem" },
      make("span", { class: "name" }, shorten(words[i])),
      make("i", { style: `width:${(100 * Math.abs(scores[i])) / top}%;background:${diverging(Math.sign(scores[i]) * 0.8)}` }),
      make("b", {}, chips[i].dataset.tip))));
  };
  const detail = make("div", {}, make("p", { class: "which" }, `${what}: “${showSpaces(target)}”, ${chance}`),
    make("p", { class: "small" }, `by how much ${unit} falls without the word`), bars);
  root.append(chooser("by", names, 0, show), make("div", { class: "twocolumns" }, line, detail));
  show(0);
};
