"""Vectors for texts from the layers of an encoder: one a text, or one a token.

A text that is longer than the encoder reads is read in windows that overlap. Where two windows have a token, its vector
is that of the window in which it is further from an edge: so a long text gives one vector a token as a short one does,
and nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.labelled_windows import cut_windows
from regard.errors import RegardError, nearest
from regard.models.elmo import tell_words
from regard.models.encoder import Encoder
from regard.models.reader import LayerChoice
from regard.tasks.reader_config import LAYERS
from regard.text.tokenizer import Tokenizer

POOLS = ("mean", "max", "first", "last", "none")
WINDOW_READ_AHEAD = 256  # texts that are sorted by length, so that little of a batch is padding

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """A part of a text as the encoder reads it: its tokens with marks around them."""

    tokens: list[int]
    keeps: slice
    """Which of the tokens this window gives the vectors of."""


class Embedder:
    """Makes vectors of texts, some at a time, in their order and in bounded memory."""

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        layers: str = "last",
        pool: str = "mean",
        stride: int | None = None,
        learned: LayerChoice | None = None,
    ) -> None:
        """`stride` is how many tokens later the next window of a long text begins; None: half a window.

        `learned` are the layers that the head of a task reads, among them a mix if it learned one.
        """
        if layers == "mix" and (learned is None or learned.mix is None):
            raise RegardError(
                "A mix of layers is learned by a task (encoder.layers=mix), and this model has learned none. Take "
                f"{', '.join(LAYERS[:-2])} or {LAYERS[-2]}, or train one: regard train RUN --task tag --set "
                "encoder.layers=mix --data FILE"
            )
        if layers not in LAYERS:
            raise RegardError(f"layers must be one of {', '.join(LAYERS)}, not '{layers}'.{nearest(layers, LAYERS)}")
        if pool not in POOLS:
            raise RegardError(f"pool must be one of {', '.join(POOLS)}, not '{pool}'.{nearest(pool, POOLS)}")
        if stride is not None and stride < 1:
            raise RegardError(f"stride is a number of tokens, 1 at least, not {stride}.")
        chosen = learned if layers == "mix" else LayerChoice(layers, encoder.n_layers, encoder.d_model)
        assert chosen is not None, "refused before"
        self.choose = chosen
        self.encoder, self.tokenizer, self.pool, self.stride = encoder, tokenizer, pool, stride
        self.words = tell_words(encoder, tokenizer)

    def embed(self, texts: Iterable[str], n_batch: int = 32) -> Iterator[Vectors]:
        """For each text its vector, (E,); with the pool "none" the vectors of its tokens, (T, E), marks left out."""
        waiting = iter(texts)
        while some := list(islice(waiting, WINDOW_READ_AHEAD)):
            cut = [self.cut(text) for text in some]
            places = [(i, window) for i, windows in enumerate(cut) for window in windows]
            order = sorted(range(len(places)), key=lambda at: len(places[at][1].tokens))
            found: dict[int, Vectors] = {}
            for begin in range(0, len(order), n_batch):
                chosen = order[begin : begin + n_batch]
                vectors = self._read([places[at][1].tokens for at in chosen])
                found |= {at: v[places[at][1].keeps] for at, v in zip(chosen, vectors, strict=True)}
            at = 0
            for windows in cut:
                yield self._pool(np.concatenate([found[at + k] for k in range(len(windows))]))
                at += len(windows)

    def cut(self, text: str) -> list[Window]:
        """The windows of a text, one where it is short."""
        ids = self.words.encode(text).tolist()
        marks, limit = self.tokenizer.marks, self.encoder.max_positions
        before, after = [] if marks is None else [marks.first], [self.tokenizer.eos]
        room = len(ids) if limit is None else limit - len(before) - len(after)
        if room < 1 and ids:
            raise RegardError(
                f"The model reads {limit} tokens at once, too few for a text and its marks. Take another."
            )
        # Whose vectors count: those of the marks, or of the text alone.
        is_marked = self.pool in ("first", "last") or (not ids and self.pool != "none")
        windows = []
        for start, first, last, end in cut_windows(len(ids), room, self.stride):
            n = len(before)
            tokens = [*before, *ids[start:end], *after]
            keeps = slice(0, len(tokens)) if is_marked else slice(n + first - start, n + last - start)
            windows.append(Window(tokens, keeps))
        return windows

    @torch.inference_mode()
    def _read(self, rows: Sequence[Sequence[int]]) -> list[Vectors]:
        tokens, mask = self._pad(rows)
        states = self.choose(self.encoder.encode(tokens, mask))  # (B, T, E)
        whole = states.float().cpu().numpy()
        return [whole[i, : len(row)] for i, row in enumerate(rows)]

    def _pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Bool[Tensor, "B T"]]:
        encoder: Any = self.encoder
        device = next(encoder.parameters()).device
        T, padding = max(map(len, rows)), 0 if self.tokenizer.marks is None else self.tokenizer.marks.padding
        tokens = torch.tensor([[*row, *[padding] * (T - len(row))] for row in rows], device=device)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        return tokens, torch.arange(T, device=device)[None] < lengths[:, None]

    def _pool(self, vectors: Float[NDArray[np.float32], "T E"]) -> Vectors:
        """One vector of those of a text: mean and max of its tokens, first and last of its marks."""
        if self.pool == "none":
            return vectors
        if self.pool in ("first", "last"):
            one: Vectors = vectors[0 if self.pool == "first" else -1]
            return one
        pooled: Vectors = vectors.mean(axis=0) if self.pool == "mean" else vectors.max(axis=0)
        return pooled
