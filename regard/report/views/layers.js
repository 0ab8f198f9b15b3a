// What each layer would say at each place: a row for a place, a column for a layer, the first choice in each cell.
import { make, mix, percent, shorten, showSpaces } from "regard/base";

export const draw = (root, view, page) => {
  const { layers, bits, places, where } = view.data;
  const short = layers.map((name) => name.replace("the ", ""));
  const detail = make("div", { class: "distributions", "aria-live": "polite" });
  const which = make("p", { class: "which" });
  const rows = places.map(({ read, came, best, isOwn, token }, i) => {
    const cells = best.map((found, l) => {
      const [text, p] = found[0];
      const cell = make("td", { class: isOwn[l] ? "right" : "", "data-tip": found.map(([t, q]) => `${showSpaces(t)} ${percent(q)}`).join("   ") },
        shorten(text, 12), make("small", {}, percent(p)));
      cell.style.background = mix(page.colour, 0.55 * Math.sqrt(p));
      cell.style.color = "#1c1e21";  // on a light ground, in the dark too
      return cell;
    });
    const row = make("tr", { tabindex: i === places.length - 1 ? 0 : -1, "aria-label": `${where} ${read}`, onfocus: () => choose(i), onclick: () => choose(i),
      onpointerenter: () => { if (token !== null) page.emit("hover", [token]); }, onpointerleave: () => page.emit("hover", []) },
    make("th", { scope: "row" }, shorten(read, 12)), ...cells, make("td", { class: "came" }, came === null ? "?" : shorten(came, 12)));
    return row;
  });
  const choose = (i) => {
    const { read, came, own, best } = places[i];
    rows.forEach((row, k) => { row.classList.toggle("on", k === i); row.tabIndex = k === i ? 0 : -1; });
    which.textContent = `${where === "at" ? "At" : "After"} “${showSpaces(read)}”` + (came === null || where === "at" ? "" : `, where “${showSpaces(came)}” came`);
    detail.replaceChildren(...best.map((found, l) => make("div", {}, make("p", { class: "small" }, layers[l]),
      ...found.map(([text, p]) => make("div", { class: text === own ? "bar own" : "bar" }, make("span", { class: "name" }, showSpaces(text)),
        make("i", { style: `width:${100 * p}%;background:${page.colour}` }), make("b", {}, percent(p)))))));
  };
  const body = make("tbody", {}, ...rows);
  body.addEventListener("keydown", (event) => {
    const at = rows.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (at < 0 || !rows[next]) return;
    event.preventDefault();
    rows[next].focus();
  });
  page.on("hover", (tokens) => rows.forEach((row, k) => row.classList.toggle("hovered", places[k].token !== null && tokens.includes(places[k].token))));
  const heads = [where, ...short, where === "at" ? "is" : "came"].map((name) => make("th", { scope: "col" }, name));
  const most = Math.max(...bits.map((b) => b ?? 0), 1e-9);
  const costs = make("tr", { class: "bits" }, make("th", { scope: "row" }, "bits a token"),
    ...bits.map((b) => make("td", {}, b === null ? "–" : b.toFixed(1), make("i", { style: `width:${(100 * (b ?? 0)) / most}%;background:${page.colour}` }))), make("td"));
  root.append(make("div", { class: "scroller says-table", tabindex: -1 }, make("table", { "aria-label": "The first choice of each layer" },
    make("thead", {}, make("tr", {}, ...heads)), body, make("tfoot", {}, costs))), which, detail);
  choose(places.length - 1);
  const table = root.querySelector(".says-table");
  table.scrollTop = table.scrollHeight;
};
