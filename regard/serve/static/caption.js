// What is said of a picture, and where in it each word looked.
import { make, start } from "regard/base";
import { ask, look } from "./ask.js";
import { addSaveBars } from "./look.js";
import { numbersBelow, round } from "./answers.js";

export const CAPTION = {
  label: "Caption", note: "What the model says of the picture, the best captions by beam search; choose a word to see where it looked.",
  options: [
    { name: "beam", label: "beam", value: 5, min: 1, max: 20, step: 1 },
    { name: "n_best", label: "how many", value: 3, min: 1, max: 10, step: 1 },
  ],
};
const SIDE = 640;  // pixels: models see less, and a request holds at most 1 MB

// A picture file as base64 of a JPEG that is small enough to be sent.
export const shrinkPicture = async (file) => {
  const picture = await createImageBitmap(file), scale = Math.min(1, SIDE / Math.max(picture.width, picture.height));
  const canvas = make("canvas", { width: Math.max(1, Math.round(scale * picture.width)), height: Math.max(1, Math.round(scale * picture.height)) });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#ffffff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.9).split(",")[1];
};

export const showCaption = async (root, run, state, signal) => {
  if (state.picture === null) {
    root.append(make("p", { class: "absent" }, "There is no picture yet: choose a file above."));
    return;
  }
  const answer = await ask(run.name, "caption", { picture: state.picture, beam: state.options.beam, n_best: state.options.n_best }, signal);
  const [best, ...others] = answer.captions;
  root.append(make("p", { class: "result" }, best.text || "(nothing)"), make("p", { class: "small" }, `log P ${round(best.log_prob)}`));
  if (others.length) root.append(make("ol", { class: "others", start: 2 }, ...others.map((one) => make("li", {}, `${one.text} `, make("small", {}, round(one.log_prob))))));
  if (best.text && run.views.includes("picture")) {
    const question = { runs: [run.name], picture: state.picture, target: best.text, views: ["picture"] };
    const [data, script] = await Promise.all([look(question, signal), import("regard/picture")]);
    const place = make("div", { class: "view view-picture", "data-panel": 0, "data-view": "picture" });
    root.append(place);
    start({ picture: script }, data, root, []);
    addSaveBars(root, data, question);
  }
  numbersBelow(root, `captions-of-${run.name}`, { json: answer, table: { columns: ["caption", "log P"], rows: answer.captions.map((one) => [one.text, round(one.log_prob, 4)]) } });
};
