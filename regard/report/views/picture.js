// A picture as one word of its caption saw it: bright where the model looked.
import { make, moveAmong, percent, unpack } from "regard/base";

export const draw = (root, view) => {
  const { picture, words, size, first } = view.data;
  const weights = unpack(view.data.weights), [, h, w] = weights.shape;
  const shade = make("canvas", { class: "shade" });
  const large = make("div", { class: "large photo", style: `aspect-ratio:${size[1]}/${size[0]}` }, make("img", { src: picture, alt: words.join(" ") }), shade);
  const said = make("p", { class: "says", "aria-live": "polite" });
  const buttons = words.map((word, i) => make("button", { type: "button", role: "radio", class: "sayword", onclick: () => show(i), onfocus: () => show(i),
    onpointerenter: () => show(i), tabindex: i === first ? 0 : -1 }, word));
  const show = (i) => {
    const row = Array.from({ length: h * w }, (_, k) => weights.value(i * h * w + k)), most = Math.max(...row), sum = row.reduce((a, b) => a + b, 0);
    shade.width = w;
    shade.height = h;
    const pen = shade.getContext("2d"), image = pen.createImageData(w, h);
    row.forEach((x, k) => { image.data[4 * k + 3] = Math.round(215 * (1 - x / most)); });
    pen.putImageData(image, 0, 0);
    said.textContent = `“${words[i]}”: ${percent(most / sum)} on its brightest place`;
    buttons.forEach((button, k) => { button.classList.toggle("on", k === i); button.setAttribute("aria-checked", k === i); });
  };
  const bar = make("div", { class: "saywords", role: "radiogroup", "aria-label": "Words of the caption" }, ...buttons);
  bar.addEventListener("keydown", (event) => moveAmong(buttons, event));
  root.append(make("div", { class: "twocolumns" }, large, make("div", {}, bar, said)));
  show(first);
};
