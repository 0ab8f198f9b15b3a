"""What runs are compared on: the test items as one run reads them, and how a run is asked for its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.lens.views import Views, WindowLosses


@dataclass(frozen=True, kw_only=True)
class TestSet:
    """Test items as one run reads them."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    about: str
    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...] = ()
    fits: NDArray[np.bool_]
    """Which items the run has room for."""
    fingerprint: str
    """Of the items: equal for runs that are tested on the same."""
    watched: str | None = None
    """Stands for the validation data; None: they were not read."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """What could not be used and was left out, by kind."""
    notes: tuple[str, ...] = ()
    documents: tuple[int, ...] | None = None
    """From which document each item is; None: each is one of its own."""
    lossy: str = ""
    """Names the run's tokenizer where it loses text: such a score compares with those of the same tokenizer alone."""
    baseline: float | None = None
    """The score of the simplest model there is, which any other should beat."""
    max_context: int | None = None
    """How many tokens of a text the run sees at most; None: no limit."""
    bytes_per_token: float = 1.0
    lengths: tuple[int, ...] | None = None
    """How many words the source of each item has; None: the items have no sources that are read."""
    own: Any = None
    """What only the task reads."""
    passage: str = ""
    prompt: str = ""
    sampling: str = ""
    show: Callable[[Any, str, Callable[[str], None]], Views] | None = None
    """What a run shows of itself beside its answers: of the run, a prompt, and what is told of pictures that fail."""
    measure_positions: Callable[[Any], WindowLosses] | None = None
    """What a run's loss is where it has read so many bytes."""
    picture: Callable[[int], NDArray[np.uint8]] | None = None
    """The picture of an item, as the model sees it."""


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How a run is asked for its answers."""

    beam: int = 5
    device: str = "auto"
    max_tokens: int = 4096
    context: float | None = None
    """Bytes of the past that language models see at most in their second score; None: there is none."""

    @property
    def words(self) -> str:
        return "greedy" if self.beam == 1 else f"beam search of width {self.beam}"


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """How the runs of a task are compared where nothing else is asked for."""

    items: str
    """What test items are called in reports."""
    searches: bool = True
    """Whether answers are searched for, so that the width of the beam matters."""
    has_budget: bool = True
    """Whether contenders can be trained under one budget; else only finished runs are compared."""
    n_parameters: int | None = None
    """The size that contenders are matched to; None: as they are configured."""
    train: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By kind of device, what a training of minutes sets of `train`."""


def answer_in_batches(
    batches: Iterable[Sequence[int]],
    decode: Callable[[Sequence[int]], list[str]],
    chosen: Sequence[int],
    tell: Callable[[int], None],
) -> list[Any]:
    """The answers of all batches in the order of `chosen`, always one line each; `tell` is told how many are done."""
    found: dict[int, str] = {}
    for batch in batches:
        found |= zip(batch, (" ".join(text.split("\n")) for text in decode(batch)), strict=True)
        tell(len(found))
    return [found[i] for i in chosen]
