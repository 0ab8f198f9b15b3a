"""One prediction that can be computed again: with a word left out, an attention row changed, a cell set to zero.

Whatever the task is, a prediction is a choice among outcomes from some input tokens: the next token, a masked place, a
class, the tag of a word, the next token of a translation, the start of an answer; or a number. Attribution, influence,
erasure, patching and faithfulness all take a Prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from regard.errors import RegardError, nearest
from regard.layers.taps import Replacement, Taps
from regard.mixers.mixer import select_positions
from regard.models.gradient_model import GradientModel
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer

Span = tuple[int, int]
"""Characters [start, end) of the user's text."""
Array = NDArray[np.float64]


class Place(NamedTuple):
    """Where a token's vector is read: row `row` of the tap called `tap`."""

    tap: str
    row: int


class Look(NamedTuple):
    """Where a prediction's attention to its tokens is found: in taps called `starts`...`ends`.

    Their row `row` (None: the mean of all rows) is about the tokens from the number `first` on.
    """

    starts: str
    ends: str
    row: int | None
    first: int = 0

    def matches(self, name: str) -> bool:
        """Whether this is about the tap called `name`."""
        return name.startswith(self.starts) and name.endswith(self.ends)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One prediction: `compute(taps)` gives log P of every choice, (C,); of a rating, the number, (1,).

    `tokens` are all that the model reads, the marks around a text too, which have no span. `target` is the choice that
    is explained. Nothing is computed before it is asked for, but for the target where that was left open.
    """

    what: str
    """What is predicted, such as "the next token"."""
    text: str
    """What the user gave; two texts have a tab between them."""
    tokens: tuple[str, ...]
    spans: tuple[Span | None, ...]
    """The characters of `text` that each token is; None: it is a mark, or of another text."""
    choices: Sequence[str]
    target: int
    inputs: tuple[int, ...]
    """What the model is given for each token."""
    model: Callable[[Sequence[int | None], Taps | None], Tensor]
    """Computes from inputs; None stands for a token that is left out."""
    places: tuple[tuple[Place, ...], ...]
    """Where each token's vector is read."""
    looks: tuple[Look, ...] = ()
    stand_ins: tuple[int | None, ...] = ()
    """What is given in the place of each token when it is erased: <unk> or a mask. None: it is left out."""
    is_number: bool = False

    def compute(self, taps: Taps | None = None) -> Tensor:
        """log P of every choice, (C,), with its gradient where that is enabled."""
        return self.model(self.inputs, taps)

    @torch.no_grad()
    def log_probs(self, replace: Mapping[str, Replacement] | None = None) -> Array:
        """log P of every choice, (C,); with values replaced by tap name, as Taps say."""
        if replace is None:
            return self.log_probs_without()
        taps = Taps(replace)
        found: Array = self.compute(taps).double().cpu().numpy()
        taps.check_replaced()
        return found

    @torch.no_grad()
    def log_probs_without(self, *tokens: int) -> Array:
        """log P of every choice where tokens are erased: replaced by what stands in for each, or left out."""
        changed: list[int | None] = list(self.inputs)
        for token in tokens:
            changed[token] = self.stand_ins[token] if self.stand_ins else None
        found: Array = self.model(changed, None).double().cpu().numpy()
        return found

    @torch.no_grad()
    def record(self) -> Taps:
        """What the model computes for this prediction."""
        taps = Taps()
        self.compute(taps)
        return taps

    def choose(self, target: int | str) -> Prediction:
        """Explain another choice of this prediction."""
        return replace(self, target=find_choice(self.choices, target))

    def best(self, n: int = 5) -> list[tuple[str, float]]:
        """The n most probable choices, and their probabilities; of a rating, the number."""
        found = self.log_probs()
        if self.is_number:
            return [(self.choices[0], float(found[0]))]
        order = np.argsort(-found, kind="stable")[:n]
        return [(self.choices[int(i)], float(np.exp(found[i]))) for i in order]

    @property
    def target_name(self) -> str:
        return self.choices[self.target]


class TokenChoices(Sequence[str]):
    """The texts of a vocabulary's tokens, and of `others` after them, made when they are asked for."""

    def __init__(self, tokenizer: Tokenizer | ExtendedVocabulary, n: int, others: Sequence[str] = ()) -> None:
        self.tokenizer, self._n, self._others = tokenizer, n, others

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(self._n))]
        if not -self._n <= i < self._n:
            raise IndexError(i)
        i, V = i % self._n, self.tokenizer.vocab_size
        if i < V:
            return self.tokenizer.token_text(i)
        return self._others[i - V] if i - V < len(self._others) else f"<{i}>"

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(self._n))


def find_choice(choices: Sequence[str], target: int | str) -> int:
    """The number of a choice that is given by its number or its name; an error where there is none."""
    if isinstance(target, str) and isinstance(choices, TokenChoices):
        return _find_token(choices, target)
    if isinstance(target, str):
        if target in choices:
            return list(choices).index(target)
        shown = ", ".join(list(choices)[:20])
        raise RegardError(f"There is no choice '{target}'.{nearest(target, choices)} There are: {shown}.")
    if isinstance(target, bool) or not isinstance(target, int | np.integer) or not 0 <= target < len(choices):
        raise RegardError(
            f"The target is the number or the name of a choice, from 0 to {len(choices) - 1}, not {target!r:.60}."
        )
    return int(target)


def _find_token(choices: TokenChoices, target: str) -> int:
    """The token that a text is; as a word in a sentence, with a space before it, where that is one token."""
    found = [choices.tokenizer.encode(text).tolist() for text in (target, f" {target}") if text]
    single = [ids[0] for ids in found if len(ids) == 1 and ids[0] < len(choices)]
    if not single:
        parts = ", ".join(repr(choices[i]) for i in found[0]) if found and found[0] else "nothing"
        raise RegardError(
            f"The target '{target}' is not one token of this vocabulary, which makes of it: {parts}. Give one of these."
        )
    return int(single[0])


def predict_next(
    model: GradientModel,
    tokenizer: Tokenizer | ExtendedVocabulary,
    text: str,
    at: int | None = None,
    target: int | str | None = None,
) -> Prediction:
    """The token that a language model expects after row `at` of the text's trace; row 0 is the start of the text.

    `at` None is the last row; `target` None the most probable token.
    """
    ids, offsets = tokenizer.encode_with_offsets(text)
    row = choose_row(at, len(ids) + 1, "row 0 is the start of the text, row t its t-th token")
    seen = [tokenizer.eos, *ids.tolist()[:row]]
    n_choices = max(tokenizer.vocab_size, model.vocab_size)
    limit = model.mixer.max_context
    if limit is not None and len(seen) > limit:
        raise RegardError(
            f"The prediction is made from {len(seen) - 1} tokens and the model sees at most {limit - 1} at once. "
            "Shorten the text, or set `at` to an earlier row."
        )

    def compute(inputs: Sequence[int | None], taps: Taps | None) -> Tensor:
        given = torch.tensor([[i for i in inputs if i is not None]], device=model.embedding.device)
        h, _ = model.eval().hidden(given, None, taps)
        found = model.log_probs(select_positions(h, slice(-1, None)))[0]
        return functional.pad(found, (0, n_choices - len(found)), value=-math.inf)  # words that none is left to copy

    unknown = find_stand_in(tokenizer)
    return choose_target(
        Prediction(
            what="the next token",
            text=text,
            tokens=tuple(tokenizer.token_text(i) for i in seen),
            spans=(None, *offsets[:row]),
            choices=TokenChoices(tokenizer, n_choices),
            target=0,
            inputs=tuple(seen),
            model=compute,
            places=tuple((Place("embedding", i),) for i in range(len(seen))),
            looks=(Look("layers.", ".attention", row),),
            stand_ins=(unknown,) * len(seen),
        ),
        target,
    )


def choose_target(prediction: Prediction, target: int | str | None) -> Prediction:
    """The prediction with its target chosen: the most probable choice where `target` is None."""
    if target is None:
        return replace(prediction, target=int(prediction.log_probs().argmax()))
    return prediction.choose(target)


def find_stand_in(tokenizer: Tokenizer | ExtendedVocabulary) -> int | None:
    """What is read in the place of an erased token: a mask, else <unk>; None: the vocabulary has neither."""
    if tokenizer.marks is not None:
        return tokenizer.marks.mask
    return tokenizer.unk if isinstance(tokenizer, Tokenizer) else tokenizer.tokenizer.unk


def choose_row(at: int | None, n: int, what: str) -> int:
    """A row by its number, the last where None; negative ones count from the end."""
    if at is None:
        return n - 1
    if isinstance(at, bool) or not isinstance(at, int | np.integer) or not -n <= at < n:
        raise RegardError(f"`at` is a whole number from 0 to {n - 1} ({what}), not {at!r:.60}.")
    return int(at) % n


def attention_rows(prediction: Prediction, record: Any) -> dict[str, Array]:
    """The attention (N, n) of each layer and head to the prediction's n tokens, by tap name, lowest layer first.

    `record` is that of the prediction, Taps or a mapping of arrays without a batch dimension.
    """
    found: dict[str, Array] = {}
    for name in record:
        for look in prediction.looks:
            if look.matches(name):
                weights = _plain(record[name])  # (N, T, S)
                rows = weights.mean(axis=1) if look.row is None else weights[:, look.row]
                found[name] = np.zeros((len(rows), len(prediction.tokens)))
                found[name][:, look.first : look.first + rows.shape[1]] = rows
                break
    return found


def _plain(value: Any) -> Array:
    array = value[0].detach().double().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    return array.astype(np.float64)
