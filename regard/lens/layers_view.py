"""What a model would say if it stopped at each layer: its head, read from the states of every layer, as a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.lens.context_view import name_layer
from regard.lens.logit_lens import can_read_out, read_out
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, View
from regard.models.bert import Bert

Array = NDArray[np.float64]

MAX_PLACES = 64  # predictions that are read out, the last ones of a long text
MAX_NUMBERS = 4_000_000  # of log P that are held at a time, of all layers
N_BEST = 5


@dataclass(frozen=True)
class Place:
    """One prediction: the row that makes it, the token that came there, and its id where the vocabulary has one."""

    row: int
    token: int | None
    """None: what comes after the text, which nobody knows."""
    own: int | None


@dataclass(frozen=True)
class ReadOut:
    """`best[l][i]` are the most probable tokens of place i, read from layer l; `bits[l, i]` is what came there."""

    layers: tuple[str, ...]
    places: tuple[Place, ...]
    best: tuple[tuple[tuple[tuple[int, float], ...], ...], ...]
    bits: Array
    """NaN where no token came that the vocabulary has."""

    @property
    def means(self) -> list[float]:
        """Bits a token by layer; NaN where no token of the text is known."""
        is_known = np.isfinite(self.bits[0]) if len(self.bits) else np.zeros(0, bool)
        return [float(row[is_known].mean()) if is_known.any() else float("nan") for row in self.bits]

    def agrees(self, layer: int) -> float:
        """In what share of places a layer's first choice is that of the last."""
        return float(np.mean([a[0][0] == b[0][0] for a, b in zip(self.best[layer], self.best[-1], strict=True)]))


def view_layers(subject: Subject, options: LookOptions) -> View | None:
    """What every layer would say at every place of the text; None for what predicts no tokens, or has no layers."""
    found = read_layers_out(subject)
    if found is None:
        return None
    vocabulary, names = subject.run.tokenizers[-1], [name_reading(layer) for layer in found.layers]
    tokens, n_all = subject.tokens, len(list_places(subject))
    return View(
        name="layers",
        title="What it would say at each layer",
        note="The model's last norm and its head, read from the states of every layer, as if it stopped there. The "
        "last is what it says. Choose a row to see more than the first choice."
        + (f" The last {len(found.places)} of {n_all} places." if n_all > len(found.places) else ""),
        summary=summarise(found, names),
        data={
            "layers": names,
            "where": "at" if isinstance(subject.run.model, Bert) else "after",
            "bits": found.means,
            "places": [
                {
                    "read": tokens[place.row] if not subject.is_written else subject.trace.inputs[place.row],
                    "token": place.token,
                    "own": None if place.own is None else vocabulary.token_text(place.own),
                    "came": None if place.token is None else tokens[place.token],
                    "isOwn": [best[i][0][0] == place.own for best in found.best],
                    "best": [[[vocabulary.token_text(t), round(p, 4)] for t, p in best[i]] for best in found.best],
                }
                for i, place in enumerate(found.places)
            ],
        },
        table=(
            ("came", *names),
            [
                ("?" if place.token is None else tokens[place.token],
                 *(f"{vocabulary.token_text(best[i][0][0])} {best[i][0][1]:.1%}" for best in found.best))
                for i, place in enumerate(found.places)
            ],
        ),
    )  # fmt: skip


def read_layers_out(subject: Subject) -> ReadOut | None:
    """The head read from all layers, at the last places of the text."""
    if not can_read_out(subject.run.model):
        return None
    places, n = list_places(subject)[-MAX_PLACES:], subject.run.tokenizers[-1].vocab_size
    if not places:
        return None
    n_layers = len(read_out(subject.run.model, subject.trace, [places[0].row]))
    at_once, parts = max(1, MAX_NUMBERS // (n * n_layers)), []
    for first in range(0, len(places), at_once):
        some = places[first : first + at_once]
        parts.append(_shrink(read_out(subject.run.model, subject.trace, [place.row for place in some]), some))
    layers = tuple(name.removesuffix(".best") for name in parts[0] if name.endswith(".best"))
    if len(layers) < 2:
        return None
    best = [np.concatenate([part[f"{name}.best"] for part in parts]) for name in layers]
    bits = [np.concatenate([part[f"{name}.bits"] for part in parts]) for name in layers]
    return ReadOut(
        layers,
        tuple(places),
        tuple(tuple(tuple((int(t), float(p)) for t, p in place) for place in layer) for layer in best),
        np.stack(bits),
    )


def _shrink(log_probs: dict[str, Array], places: Sequence[Place]) -> dict[str, Array]:
    """Of each layer's log P the best tokens with their probabilities, (n, k, 2), and the bits of what came, (n,)."""
    found: dict[str, Array] = {}
    for name, rows in log_probs.items():
        order = np.argsort(-rows, axis=1, kind="stable")[:, :N_BEST]
        found[f"{name}.best"] = np.stack([order, np.exp(np.take_along_axis(rows, order, axis=1))], axis=-1)
        own = [place.own if place.own is not None and place.own < rows.shape[1] else None for place in places]
        costs = [np.nan if t is None else -row[t] / np.log(2) for row, t in zip(rows, own, strict=True)]
        found[f"{name}.bits"] = np.array(costs, dtype=np.float64)
    return found


def list_places(subject: Subject) -> list[Place]:
    """Every prediction of the text: a language model's row expects the token after it, any other one its own."""
    n, tokenizer = len(subject.tokens), subject.run.tokenizers[-1]
    ids: dict[int, int] = {}
    own = [t for t, span in enumerate(subject.spans) if span is not None]
    if isinstance(subject.run.model, Bert):
        framed, mask = subject.run.encode_masked(subject.written, needs_mask=False), subject.run.marks.mask
        return [Place(t, t, None if framed[t] == mask else int(framed[t])) for t in own]
    encoded = tokenizer.encode(subject.written).tolist()
    if len(encoded) == len(own):
        ids = dict(zip(own, encoded, strict=True))
    if subject.is_written:
        return [Place(t, t, ids.get(t, tokenizer.eos if t == n - 1 else None)) for t in range(n)]
    return [Place(t, t + 1, ids.get(t + 1)) for t in range(n - 1)] + [Place(n - 1, None, None)]


def name_reading(layer: str) -> str:
    """What a reading is called: that of a layer, or the model's own where more comes behind its last layer."""
    return "the whole model" if layer == "logits" else name_layer(layer)


def summarise(found: ReadOut, names: Sequence[str]) -> str:
    """What the numbers say, in a sentence or two."""
    means = found.means
    said = (
        ""
        if np.isnan(means[0])
        else f"A token costs {means[0]:.1f} bits where the head reads {names[0]}, "
        + "".join(f"{mean:.1f} after {name}, " for name, mean in zip(names[1:-1], means[1:-1], strict=True))
        + f"and {means[-1]:.1f} {'of' if found.layers[-1] == 'logits' else 'after'} {names[-1]}. "
    )
    before = found.agrees(len(names) - 2)
    return f"{said}In {before:.0%} of places its first choice is there already at {names[-2]}."


def explain_no_layers(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of what each layer would say."""
    if not can_read_out(subject.run.model):
        return "it has no head that predicts tokens"
    if not list_places(subject):
        return "the text has no token of its vocabulary"
    return "its layers are of another width than its head"
