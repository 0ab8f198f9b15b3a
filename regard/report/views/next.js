// The most probable continuations as bars; one distribution at a time, or all side by side where they make up one model.
import { make, percent, showSpaces } from "regard/base";

export const draw = (root, view, page) => {
  const { distributions, reasons } = view.data;
  // one scale for all models of the page, or 58% and 4% would be bars of one length
  const most = Math.max(...page.all("next").flatMap(({ data }) => data.distributions).flatMap(({ items }) => items.map(([, p]) => p)), 1e-9);
  const columns = distributions.map(({ name, items }) => {
    const rows = items.map(([text, p]) => {
      const bar = make("div", { class: "bar", role: "listitem", "aria-label": `${text}: ${percent(p)}` },
        make("span", { class: "name" }, showSpaces(text)),
        make("i", { style: `width:${(100 * p) / most}%;background:${page.colour}` }), make("b", {}, percent(p)));
      const why = reasons[text];
      if (!why || name === "words") return bar;
      bar.dataset.tip = why;
      return make("div", {}, bar, make("div", { class: "why" }, why));
    });
    return make("div", { class: "distribution", role: "list", "aria-label": name },
      make("p", { class: "which" }, name), ...rows);
  });
  root.append(make("div", { class: "distributions" }, ...columns));
};
