"""What a decoder writes, token by token: its trace, and one of its tokens as a prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.layers.taps import Taps
from regard.lens.prediction import (
    Look,
    Place,
    Prediction,
    Span,
    TokenChoices,
    choose_row,
    choose_target,
    find_stand_in,
)
from regard.lens.trace import Trace, take_arrays
from regard.mixers.mixer import select_positions
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.source import Source
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Side:
    """What a decoder looks at: the tokens of a source, or the places of a picture."""

    text: str
    tokens: tuple[str, ...]
    spans: tuple[Span | None, ...]
    inputs: tuple[int, ...]
    stand_ins: tuple[int | None, ...]
    tap: str
    """Where the vectors of its tokens are read."""
    encode: Callable[[Sequence[int | None], Taps | None], Source]
    """Encodes such inputs; None stands for what is left out."""


@dataclass(frozen=True)
class Written:
    """What a decoder is made to write, without its end."""

    tokenizer: Tokenizer
    ids: tuple[int, ...]
    spans: tuple[Span | None, ...]
    """The characters of each token in the written text."""
    text: str = ""
    unknown: tuple[str, ...] = ()
    """The words behind V, V + 1, ..., where words are copied."""

    def show(self, token: int) -> str:
        """One token, as text."""
        n = self.tokenizer.vocab_size
        return self.tokenizer.token_text(token) if token < n else self.unknown[token - n]

    @property
    def read(self) -> tuple[int, ...]:
        """What is read at every step: the mark before a target, then what was written; copied words are <unk>."""
        unknown, n = 1 if self.tokenizer.unk is None else self.tokenizer.unk, self.tokenizer.vocab_size
        return (self.tokenizer.start, *(i if i < n else unknown for i in self.ids))


def trace_written(written: Written, nats: NDArray[np.float64], record: Taps, side: Side) -> Trace:
    """The trace of a decoder that was made to write tokens, and their end where `nats` has it; row t writes token t."""
    n, texts = len(nats), tuple(map(written.show, written.ids))
    return Trace(
        (*texts, "<end>")[:n],
        nats,
        take_arrays(record),
        spans=(*written.spans, None)[:n],
        inputs=(written.tokenizer.token_text(written.tokenizer.start), *texts)[:n],
        sources=side.tokens,
        source_spans=side.spans,
    )


def predict_written(
    model: ConditionalLanguageModel, side: Side, written: Written, at: int | None, target: int | str | None
) -> Prediction:
    """The token that a decoder writes at row `at`, after those of `written` before it; None: after all of them.

    The prediction's tokens are those of the source, then those that were written before.
    """
    read, S = written.read, len(side.tokens)
    row = choose_row(at, len(read), "row t writes token t")

    def compute(inputs: Sequence[int | None], taps: Taps | None) -> Tensor:
        source = side.encode(inputs[:S], taps)
        given = torch.tensor([[i for i in inputs[S:] if i is not None]], device=model.embedding.device)
        h, _ = model.hidden(given, source, None, taps)
        return model.log_probs(select_positions(h, slice(-1, None)), n_words)[0]

    with torch.no_grad():
        n_words = model.n_words(side.encode(side.inputs, None).words)
    stand_in = find_stand_in(written.tokenizer)
    text = f"{side.text}\t{written.text}" if side.text else written.text
    shift = len(text) - len(written.text)
    before = tuple(None if span is None else (span[0] + shift, span[1] + shift) for span in written.spans[:row])
    prediction = Prediction(
        what="the next token that is written",
        text=text,
        tokens=(*side.tokens, written.tokenizer.end_mark, *map(written.show, written.ids[:row])),
        spans=(*side.spans, None, *before),
        choices=TokenChoices(written.tokenizer, n_words, written.unknown),
        target=0,
        inputs=(*side.inputs, *read[: row + 1]),
        model=compute,
        places=(
            *((Place(side.tap, i),) for i in range(S)),
            *((Place("embedding", i),) for i in range(row + 1)),
        ),
        looks=(
            Look("layers.", ".cross_attention", row),
            Look("layers.", ".attention", row, first=S),
            Look("encoder.layers.", ".attention", None),
        ),
        stand_ins=(*side.stand_ins, *(stand_in,) * (row + 1)),
    )
    return choose_target(prediction, target)
