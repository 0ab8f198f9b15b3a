"""Looking inside a reader: what it computed of a text, and one of its answers as a prediction to be explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.labelled_batches import pad_windows
from regard.data.labelled_windows import TextFramer, Windows
from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.prediction import Look, Place, Prediction, Span, choose_target, find_stand_in
from regard.lens.trace import Trace, take_arrays
from regard.models.elmo import Elmo
from regard.models.reader import Reader
from regard.tasks.labelled_objective import to_tensors


@dataclass(frozen=True)
class Outcome:
    """What a head's output says about one thing that is asked."""

    what: str
    choices: Sequence[str]
    read: Callable[[Tensor], Tensor]
    """log P of every choice, (C,), from the output for one text; of a rating the number, (1,)."""
    row: int | None
    """The token whose state the answer is read from; None: the states of all tokens are pooled."""
    is_number: bool = False


@dataclass(frozen=True)
class Framed:
    """One text, or two, as a reader reads them in one window."""

    text: str
    windows: Windows
    tokens: tuple[str, ...]
    spans: tuple[Span | None, ...]
    framer: TextFramer


def frame_text(framer: TextFramer, windows: Windows, texts: Sequence[str]) -> Framed:
    """What a reader reads of texts, with the characters of each token; an error where it takes more than one window."""
    if len(windows.tokens) > 1:
        raise RegardError(
            f"The text has {len(windows):,} tokens and is read in {len(windows.tokens)} windows of at most "
            f"{framer.max_positions}. What is looked into is one window: shorten the text."
        )
    ids = windows.tokens[0].tolist()
    return Framed(
        "\t".join(texts), windows, tuple(framer.tokenizer.token_text(i) for i in ids), framer.find_spans(texts), framer
    )


def read_framed(
    model: Reader, framed: Framed, has_segments: bool, inputs: Sequence[int | None], taps: Taps | None
) -> Tensor:
    """The head's output for a text of which some tokens may be others, or left out (None)."""
    windows = leave_out(framed.windows, inputs)
    tokens, mask, keep, places, segments = (part.to(model.device) for part in to_tensors(pad_windows([windows])))
    outputs: Tensor = model.eval()(tokens, mask, keep, places, segments if has_segments else None, taps)
    return outputs[0]


def leave_out(windows: Windows, inputs: Sequence[int | None]) -> Windows:
    """The one window with other tokens, without those that are None; a place that is left out is told by the next."""
    kept = np.array([token is not None for token in inputs])
    tokens = np.array([token for token in inputs if token is not None], dtype=np.int64)
    after = np.minimum(np.cumsum(kept) - kept, max(0, len(tokens) - 1))  # where each token stands now
    return replace(
        windows,
        tokens=(tokens,),
        segments=(windows.segments[0][kept],),
        keeps=(windows.keeps[0][kept],),
        places=np.stack([np.zeros_like(windows.places[:, 1]), after[windows.places[:, 1]]], axis=1, dtype=np.int32),
    )


def predict_outcome(
    model: Reader, framed: Framed, has_segments: bool, outcome: Outcome, target: int | str | None
) -> Prediction:
    """An answer of a reader as a prediction."""

    def compute(inputs: Sequence[int | None], taps: Taps | None) -> Tensor:
        return outcome.read(read_framed(model, framed, has_segments, inputs, taps))

    ids, n = framed.windows.tokens[0].tolist(), len(framed.tokens)
    looks = (Look("pool.", "attention", 0), Look("layers.", ".attention", outcome.row))
    prediction = Prediction(
        what=outcome.what,
        text=framed.text,
        tokens=framed.tokens,
        spans=framed.spans,
        choices=outcome.choices,
        target=0,
        inputs=tuple(ids),
        model=compute,
        places=tuple(find_places(model, n, i) for i in range(n)),
        looks=looks,
        stand_ins=(find_stand_in(framed.framer.tokenizer),) * n,
        is_number=outcome.is_number,
    )
    return choose_target(prediction, target)


def find_places(model: Reader, n: int, i: int) -> tuple[Place, ...]:
    """Where a reader reads the vector of token i of n: ELMo in both orders, <eos> before each."""
    upper = (Place("mixer.words", i),) if model.mixer is not None and model.mixer.words is not None else ()
    encoder: Any = model.encoder
    if isinstance(encoder, Elmo):  # the end mark of the text is that which the way back begins with
        back = 0 if i == n - 1 else n - 1 - i
        return (Place("ahead.embedding", i + 1), Place("back.embedding", back), *upper)
    return (Place("embedding", i), *upper)


@torch.no_grad()
def trace_reader(model: Reader, framed: Framed, has_segments: bool) -> Trace:
    """What a reader computed of a text, by token; no token has a surprise."""
    record = Taps()
    read_framed(model, framed, has_segments, framed.windows.tokens[0].tolist(), record)
    return Trace(framed.tokens, np.zeros(len(framed.tokens)), take_arrays(record), framed.spans)
