// What is shown, as a file: JSON as the server answered, CSV of the numbers, SVG and PNG of the picture.
import { make } from "regard/base";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight",
  "text-anchor", "dominant-baseline"];

const download = (name, blob) => {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

// A cell that a spreadsheet would take for a formula gets a quote before it.
const cell = (value) => {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
export const toCsv = ({ columns, rows }) => [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";

// The picture with the styles that the page gives it, so that it looks the same by itself.
export const toSvg = (svg) => {
  const copy = svg.cloneNode(true);
  const own = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  own.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of STYLES) copies[i].style.setProperty(name, style.getPropertyValue(name));
  });
  const box = svg.getBoundingClientRect(), view = svg.viewBox?.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", view?.width || box.width);
  copy.setAttribute("height", view?.height || box.height);
  return new XMLSerializer().serializeToString(copy);
};

const toPng = async (svg) => {
  const picture = new Image();
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(toSvg(svg));
  await picture.decode();
  const canvas = make("canvas", { width: 2 * picture.width, height: 2 * picture.height });
  const brush = canvas.getContext("2d");
  brush.fillStyle = "#ffffff";
  brush.fillRect(0, 0, canvas.width, canvas.height);
  brush.scale(2, 2);
  brush.drawImage(picture, 0, 0);
  return canvasBlob(canvas);
};
const canvasBlob = (canvas) => new Promise((keep) => canvas.toBlob(keep, "image/png"));

// Buttons for what there is: `json` and `table` are values, `picture()` gives an svg or a canvas when it is asked for, and
// `draw(kind)` a file that the server draws where there is neither.
export const saveBar = (name, { json, table, picture, draw }) => {
  const bar = make("div", { class: "save", role: "group", "aria-label": `Save ${name}` }, make("span", {}, "Save as"));
  const told = make("span", { role: "status" });
  const add = (kind, make_file) => bar.append(make("button", { type: "button", onclick: async () => {
    told.textContent = draw ? "drawing …" : "";
    try {
      download(`${name}.${kind.toLowerCase()}`, await make_file());
      told.textContent = "";
    } catch (error) {
      told.textContent = error.message;
    }
  } }, kind));
  const plain = (_, value) => (value instanceof Uint8Array ? Array.from(value) : value);
  const isCanvas = picture?.() instanceof HTMLCanvasElement;
  if (picture) add("PNG", () => (isCanvas ? canvasBlob(picture()) : toPng(picture())));
  else if (draw) add("PNG", () => draw("png"));
  if (picture && !isCanvas) add("SVG", () => new Blob([toSvg(picture())], { type: "image/svg+xml" }));
  else if (draw) add("SVG", () => draw("svg"));
  if (table) add("CSV", () => new Blob([toCsv(table)], { type: "text/csv" }));
  if (json) add("JSON", () => new Blob([JSON.stringify(json, plain, 1)], { type: "application/json" }));
  bar.append(told);
  return bar;
};

// Coloured tokens as a picture: [{ text, colour }, ...], in lines of at most 88 characters.
export const drawTokens = (tokens) => {
  const WIDTH = 8.43, LINE = 26, MOST = 88;
  let x = 0, y = 0;
  const marks = [];
  for (const { text, colour } of tokens) {
    for (const [i, part] of text.split("\n").entries()) {
      if (i > 0) [x, y] = [0, y + 1];
      if (x > 0 && x + part.length > MOST) [x, y] = [0, y + 1];
      if (part) {
        const place = { x: 8 + WIDTH * x, y: 8 + LINE * y };
        if (colour) marks.push(make("rect", { ...place, width: WIDTH * part.length, height: LINE - 4, fill: colour }));
        const said = make("text", { x: place.x, y: place.y + 16, "font-family": "monospace", "font-size": 14, fill: "#1c1e21" });
        said.setAttributeNS("http://www.w3.org/XML/1998/namespace", "xml:space", "preserve");
        said.append(part);
        marks.push(said);
      }
      x += part.length;
    }
  }
  return make("svg", { viewBox: `0 0 ${16 + WIDTH * MOST} ${16 + LINE * (y + 1)}` }, ...marks);
};
