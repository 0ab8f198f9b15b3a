"""Gradients as a view: how far back a prediction's gradient reaches on one text, and how large it is at each layer."""

from __future__ import annotations

import numpy as np
import torch

from regard.lens.gradients import TextGradients, measure_gradients
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, Packed, View
from regard.models.language_model import LanguageModel
from regard.models.pointer import PointerModel

MAX_TOKENS = 256


def view_gradients(subject: Subject, options: LookOptions) -> View | None:
    """Norms of gradients by distance, for every prediction and on average, and by layer; for language models."""
    model = subject.run.model
    if not isinstance(model, LanguageModel | PointerModel):
        return None
    ids = subject.run.tokenizer.encode(subject.text)[:MAX_TOKENS].tolist()
    seen = torch.tensor([subject.run.tokenizer.eos, *ids], device=model.embedding.device)
    limit = model.mixer.max_context
    seen = seen if limit is None else seen[: limit + 1]
    if len(seen) < 3:
        return None
    found = measure_gradients(model, seen)
    curve = found.by_distance()
    return View(
        name="gradients",
        title="How far back the gradient reaches",
        note="The norm of the gradient of one prediction's loss with respect to each embedding that was read before "
        "it: what learning can change there. Point at a word to see the gradient of its prediction. In a recurrent "
        "network it shrinks or grows by a factor at every step; attention reaches each word in one.",
        summary=summarise(found, curve),
        data={
            "targets": [t + 1 for t in found.targets],  # the token that is predicted
            "norms": Packed(found.norms, "float32"),
            "curve": [float(f"{v:.4g}") for v in curve],
            "layers": [[name, float(f"{value:.4g}")] for name, value in found.layers],
            "weights": [[name, float(f"{value:.4g}")] for name, value in found.weights],
        },
        table=(
            ("what", "norm of the gradient"),
            [
                *((f"{k} back", f"{v:.3g}") for k, v in enumerate(curve)),
                *((f"states of {name}", f"{v:.3g}") for name, v in found.layers),
                *((f"weights of {name}", f"{v:.3g}") for name, v in found.weights),
            ],
        ),
    )


def explain_no_gradients(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of gradients."""
    if isinstance(subject.run.model, LanguageModel | PointerModel):
        return "the text is one token long: give a longer one"
    return "it is no language model with a gradient"


def summarise(found: TextGradients, curve: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    """What the numbers say, in one sentence."""
    far = min(20, len(curve) - 1)
    text = f"Over {len(found.targets)} predictions, the gradient"
    if len(curve) < 3:
        return f"{text} has little text behind it: give a longer one to see how far it reaches."
    if curve[1] == 0:
        return f"{text} reaches nothing but the token just read."
    share = curve[far] / curve[1]
    beyond = np.flatnonzero(curve[1:] < 0.5 * curve[1])
    half = (
        f"; {int(beyond[0]) + 1} steps back it is less than half of that" if len(beyond) else "; it never falls to half"
    )
    low, high = (fn(found.layers, key=lambda item: item[1]) for fn in (min, max))
    return (
        f"{text} {far} steps back is {share:.1%} of the one a step back{half}. By layer it is "
        f"largest at the states of {high[0]} ({high[1]:.2g}) and smallest at those of {low[0]} ({low[1]:.2g})."
    )
