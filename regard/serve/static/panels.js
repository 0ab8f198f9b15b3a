// What can be seen of a run: the table of panels, and which of them a run has.
import { ANSWERS } from "./answers.js";
import { CAPTION } from "./caption.js";
import { GAME } from "./game.js";
import { LOOK } from "./look.js";
import { WRITE } from "./write.js";

export const PANELS = { ...ANSWERS, write: WRITE, caption: CAPTION, look: LOOK, game: GAME };
const ORDER = ["write", "next", "score", "translate", "parse", "caption", "predict", "fill", "nearest", "look", "game"];

const canShow = (run, name) => (PANELS[name].isFor ? PANELS[name].isFor(run) : run.verbs.includes(PANELS[name].verb ?? name));
export const panelsOf = (run) => ORDER.filter((name) => canShow(run, name));

// Runs that can stand beside another in a panel: those of its kind, or, where views are looked at, all that read a text as it does.
export const comparable = (runs, run, panel) => runs.filter((other) => other !== run && canShow(other, panel)
  && (other.task === run.task || (panel === "look" && reads(other) === reads(run))));
const reads = (run) => (run.verbs.includes("caption") ? "a picture" : run.n_texts);
