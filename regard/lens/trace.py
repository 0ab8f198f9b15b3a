"""What a model computed on a text, token by token: run.trace(text).

A fused kernel hides its weights, so a traced pass takes the plain path; the numbers are the same (tests hold both
equal).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.kernels.device import at_least_float32
from regard.layers.taps import Taps
from regard.models.gradient_model import GradientModel
from regard.models.gradient_next_token import as_next_token
from regard.models.next_token import BAD_WEIGHTS
from regard.score.frames import import_pandas
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[Any]
MAX_VALUE = 1e18  # of a tap: the squares of larger numbers overflow in float32
N_SHOWN = 20  # tokens that a notebook shows of a trace


@dataclass(frozen=True, repr=False)
class Trace:
    """Token t of `tokens` was read at row t of every tap, and cost `nats[t]` before it was read.

    `taps` holds arrays by tap name, without the batch dimension: `layers.0.attention` (N, T, T), `layers.0.cell`
    (T, H), `layers.0.hidden` (T, D), ... Row 0 is the unseen start of the text. An n-gram model has one tap,
    `matched_order`: how many tokens the longest n-gram it knew was long.

    A decoder is traced by the tokens that it writes: its row t writes token t and has read `inputs[t]`, the one before.
    What it looks at are the `sources`.
    """

    tokens: tuple[str, ...]
    nats: NDArray[np.float64]
    taps: Mapping[str, Array]
    spans: tuple[tuple[int, int] | None, ...] = ()
    """The characters of the traced text that each token is; None: it is a mark. Empty: they are not known."""
    inputs: tuple[str, ...] = ()
    """What each row read; empty: the tokens themselves."""
    sources: tuple[str, ...] = ()
    """The tokens that a decoder looks at, or the places of a picture."""
    source_spans: tuple[tuple[int, int] | None, ...] = ()

    def __repr__(self) -> str:
        taps = ", ".join(f"{name} {tap.shape}" for name, tap in self.taps.items())
        return f"<Trace of {len(self.tokens)} tokens, {self.nats.sum():.2f} nats; taps: {taps}>"

    def __getitem__(self, name: str) -> Array:
        if name not in self.taps:
            raise RegardError(f"There is no tap '{name}' in this trace; there are: {', '.join(self.taps)}.")
        return self.taps[name]

    def named(self, ending: str) -> dict[str, Array]:
        """All taps whose name ends so: `named("attention")` is every layer's weights."""
        return {n: a for n, a in self.taps.items() if n == ending or n.endswith("." + ending)}

    @property
    def attention(self) -> dict[str, Array]:
        """Every layer's attention weights, (N, T, S); empty where the model does not attend."""
        return self.named("attention")

    @property
    def cells(self) -> dict[str, Array]:
        """Every layer's cell states, (T, H); empty where the model has no cells."""
        return self.named("cell")

    def to_frame(self, tap: str | None = None) -> DataFrame:
        """A pandas DataFrame with a row for every token: its text, its nats, and each tap that has one value a token.

        With the name of a `tap`, that tap: a row for every token and a column for every unit; of attention, a row for
        every head and token and a column for every token that is looked at.
        """
        pandas = import_pandas()
        tokens = list(self.tokens)
        if tap is None:
            single = {name: values for name, values in self.taps.items() if values.ndim == 1}
            return pandas.DataFrame({"token": tokens, "nats": self.nats, **single})
        values, rows = self[tap], self.rows_of(tap)
        if values.ndim == 1:
            return pandas.DataFrame(values, index=rows if len(rows) == len(values) else None)
        names = rows if len(rows) == values.shape[-2] else list(range(values.shape[-2]))
        if values.ndim == 2:
            return pandas.DataFrame(values, index=names)
        index = pandas.MultiIndex.from_product([range(len(values)), names], names=["head", "token"])
        columns = self.columns_of(tap) if tap.endswith(("attention", "scores")) else None
        fits = columns is not None and len(columns) == values.shape[-1]
        return pandas.DataFrame(values.reshape(-1, values.shape[-1]), index=index, columns=columns if fits else None)

    def rows_of(self, tap: str) -> list[str]:
        """What the rows of a tap stand for: tokens that were read or written, or those of the source."""
        is_source = tap.startswith("encoder.") or tap.endswith(("cross_key", "cross_value"))
        return list(self.sources if is_source and self.sources else self.tokens)

    def columns_of(self, tap: str) -> list[str]:
        """What the columns of attention weights or scores stand for: the tokens that are looked at."""
        is_source = self.sources and (tap.startswith("encoder.") or tap.rpartition(".")[2].startswith("cross_"))
        return list(self.sources if is_source else self.inputs or self.tokens)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first tokens with their nats, a layer's attention, and the names of the taps."""
        tokens = [(token, f"{nats:.3f}") for token, nats in zip(self.tokens, self.nats, strict=True)][:N_SHOWN]
        n_more = len(self.tokens) - len(tokens)
        taps = [(name, " × ".join(map(str, tap.shape))) for name, tap in self.taps.items()]
        more = f"<p>… and {n_more} more</p>" if n_more else ""
        return (
            _html_table(("token", "nats"), tokens) + more + self._draw_attention() + _html_table(("tap", "shape"), taps)
        )

    def _draw_attention(self) -> str:
        """The last layer's attention, mean over its heads, as an SVG; empty where the model does not attend."""
        drawn = [name for name in self.taps if name.endswith("attention") and not name.startswith("encoder.")]
        if not drawn:
            return ""
        weights = self.taps[drawn[-1]].mean(axis=0)[:N_SHOWN, :N_SHOWN]
        names = self.rows_of(drawn[-1])[:N_SHOWN], self.columns_of(drawn[-1])[:N_SHOWN]
        return f"<p>{escape(drawn[-1])}, mean over its heads</p>{_svg_matrix(weights, *names)}"


def _svg_matrix(weights: Array, rows: list[str], columns: list[str]) -> str:
    """Squares, the darker the larger a weight; each says what it is when it is pointed at."""
    side, margin = 16, 90
    squares = [
        f'<rect x="{margin + side * s}" y="{margin + side * t}" width="{side}" height="{side}" fill="#0072b2" '
        f'fill-opacity="{min(1.0, max(0.0, float(weight))) ** 0.5:.3f}"><title>{escape(rows[t])} → '
        f"{escape(columns[s])}: {float(weight):.3f}</title></rect>"
        for t, row in enumerate(weights)
        for s, weight in enumerate(row)
        if t < len(rows) and s < len(columns)
    ]
    beside = [
        f'<text x="{margin - 4}" y="{margin + side * t + 12}" text-anchor="end">{escape(name[:12])}</text>'
        for t, name in enumerate(rows[: len(weights)])
    ]
    above = [
        f'<text transform="translate({margin + side * s + 12} {margin - 4}) rotate(-60)">{escape(name[:12])}</text>'
        for s, name in enumerate(columns[: weights.shape[1]])
    ]
    width, height = margin + side * weights.shape[1] + 60, margin + side * len(weights) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="attention" width="{width}" height="{height}" '
        f'font-size="11" fill="currentColor">{"".join(squares + beside + above)}</svg>'
    )


def _html_table(columns: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def check_recorded(taps: Mapping[str, Array]) -> None:
    """Refuse to show what damaged weights computed: NaN, or numbers whose squares overflow.

    Scores and logits of what is hidden or impossible are -inf.
    """
    for name, values in taps.items():
        if not values.size or not np.issubdtype(values.dtype, np.floating):
            continue
        can_be_impossible = name.endswith(("scores", "logits"))
        low, high = float(values.min()), float(values.max())  # NaN if there is one
        if not high <= MAX_VALUE or not (can_be_impossible or low >= -MAX_VALUE) or math.isnan(low):
            raise RegardError(
                f"What the model computed ('{name}') cannot be shown, its numbers overflow: {BAD_WEIGHTS}"
            )


def take_arrays(record: Taps) -> dict[str, Array]:
    """The taps of a batch of one, as arrays without the batch dimension; float32 at least."""
    return {name: at_least_float32(record[name].detach()[0]).cpu().numpy() for name in record}


class TraceableRun(Protocol):
    """What looking inside asks of a run of a language model."""

    @property
    def model(self) -> GradientModel | NgramModel: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    def trace(self, text: str) -> Trace: ...


def trace_text(model: GradientModel | NgramModel, tokenizer: Tokenizer | ExtendedVocabulary, text: str) -> Trace:
    """Run `model` over one text, by the plain path, and keep everything."""
    ids, offsets = tokenizer.encode_with_offsets(text)
    if not len(ids):
        raise RegardError("The text to trace is empty; give at least one token.")
    spans, next_token = tuple(offsets), as_next_token(model, tokenizer.eos)
    if isinstance(model, NgramModel):
        tokens = tuple(tokenizer.token_text(int(i)) for i in ids)
        return Trace(tokens, next_token.nats(ids), {"matched_order": model.matched_orders(ids)}, spans)
    limit = model.mixer.max_context
    if limit is not None and len(ids) + 1 > limit:
        raise RegardError(
            f"The text to trace is {len(ids)} tokens long and the model sees at most {limit - 1} at once. Shorten it."
        )
    nats = next_token.nats(ids)
    seen = [tokenizer.eos, *ids.tolist()]
    was_training = model.training
    model.eval()
    record = Taps()
    with torch.no_grad():
        model(torch.tensor([seen], device=model.embedding.device), None, record)
    model.train(was_training)
    taps = take_arrays(record)
    return Trace(tuple(tokenizer.token_text(i) for i in seen), np.append(0.0, nats), taps, (None, *spans))
