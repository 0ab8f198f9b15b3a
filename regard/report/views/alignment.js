// Which word of the source each word of a translation looked at; frames where the right links are known.
import { chooser, make, unpack } from "regard/base";
import { drawLines, drawMatrix, sayRow } from "regard/matrix";

export const draw = (root, view, page) => {
  const { rows, columns, mean, layers, gold, first } = view.data;
  const said = make("p", { class: "says", "aria-live": "polite" }, "Point at a word, or move with the arrow keys.");
  const stage = make("div", { class: "stage" });
  const state = { layer: first ? first[0] : layers.length - 1, head: first ? first[1] + 1 : 0, mode: 0 };  // head 0: the mean
  const heads = make("div", { class: "controls" });
  const show = () => {
    const isMean = state.head === 0;
    const weights = unpack(isMean && state.layer === layers.length - 1 ? mean : isMean ? average(layers[state.layer]) : layers[state.layer][state.head - 1]);
    const label = `Layer ${state.layer + 1}, ${isMean ? "mean of its heads" : `head ${state.head}`}. Arrow keys move from word to word.`;
    const point = (t) => { said.textContent = sayRow(weights, t, rows, columns); };
    const given = { rows, columns, weights, colour: page.colour, label, links: gold ?? [], point };
    (state.mode === 0 ? drawMatrix : drawLines)(stage, given);
  };
  const average = (packed) => {
    const all = packed.map(unpack), [T, S] = all[0].shape;
    const values = new Float32Array(T * S).map((_, i) => all.reduce((sum, w) => sum + w.value(i), 0) / all.length);
    return { shape: [T, S], kind: "float32", low: 0, high: 1, bytes: new Uint8Array(values.buffer) };
  };
  const chooseHeads = () => {
    const n = layers[state.layer].length;
    heads.replaceChildren(
      ...(layers.length > 1 ? [chooser("layer", layers.map((_, i) => String(i + 1)), state.layer, (i) => { state.layer = i; state.head = 0; chooseHeads(); show(); })] : []),
      ...(n > 1 ? [chooser("head", ["mean", ...Array.from({ length: n }, (_, i) => String(i + 1))], state.head, (i) => { state.head = i; show(); })] : []),
      chooser("show", ["matrix", "lines"], state.mode, (i) => { state.mode = i; show(); }));
  };
  root.append(heads, said, stage);
  chooseHeads();
  show();
};
