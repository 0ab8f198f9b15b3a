"""How a model that reads pairs is taught. Importing this file does not import torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from regard.settings import Settings, setting

MODES = ("teacher", "free", "scheduled")
MEASURES = ("loss", "bleu", "f1")
DECAYS = ("linear", "exponential", "inverse-sigmoid")


@dataclass(frozen=True, kw_only=True)
class TeachingConfig(Settings):
    """Which last word the decoder is given while it learns, in what batches, and what selects its best weights."""

    renamed: ClassVar[Mapping[str, str]] = {"judged_by": "select_by", "max_judged": "max_select_items"}

    mode: str = setting(
        "teacher",
        "the last word the decoder reads; teacher: the true one; free: its own; scheduled: first the one, later the "
        "other (Bengio et al. 2015)",
        choices=MODES,
    )
    decay: str = setting("inverse-sigmoid", "scheduled: how the share of true words falls", choices=DECAYS)
    n_half: int = setting(2000, "scheduled: after so many updates half of the words are the model's own", low=1)
    p_lowest: float = setting(0.0, "scheduled: the share of true words never falls below this", low=0.0, high=1.0)
    smoothing: float = setting(
        0.1, "label smoothing: so much of the probability to be learned is spread over all words", low=0.0, high=0.9
    )
    max_tokens: int = setting(4096, "tokens a batch: source and target, padding included", low=1)
    p_bpe_dropout: float = setting(
        0.0, "share of BPE merges left out anew each time a sentence is read (Provilkov et al. 2020)", low=0, high=1
    )
    select_by: str = setting(
        "loss",
        "keep the weights with the best validation loss, BLEU, or F1 (of trees); BLEU and F1 are of greedy "
        "decoding, for F1 under the constraint that the output is a tree",
        choices=MEASURES,
    )
    max_select_items: int = setting(500, "bleu, f1: validation items that are decoded at an evaluation", low=1)

    def notes(self) -> list[str]:
        defaults = {f.name: f.default for f in type(self).help()}
        changed = [name for name, default in defaults.items() if getattr(self, name) != default]
        notes = []
        unused = [name for name in ("decay", "n_half", "p_lowest") if name in changed]
        if self.mode != "scheduled" and unused:
            notes.append(f"{', '.join(unused)} change nothing: they are for mode scheduled, and mode is {self.mode}.")
        if self.select_by == "loss" and "max_select_items" in changed:
            notes.append("max_select_items changes nothing: it is for select_by bleu or f1, and select_by is loss.")
        return notes
