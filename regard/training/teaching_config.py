"""How a model that reads pairs is taught. Importing this file does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from regard.settings import Settings, setting

MODES = ("teacher", "free", "scheduled")
JUDGES = ("loss", "bleu", "f1")
DECAYS = ("linear", "exponential", "inverse-sigmoid")


@dataclass(frozen=True, kw_only=True)
class TeachingConfig(Settings):
    """Which last word the decoder is given while it learns, in what batches, and what its score is."""

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
    judged_by: str = setting(
        "loss",
        "which weights are best: by validation loss, BLEU, or F1 where targets are trees; both of greedy decoding, in "
        "which all that is written for F1 is a tree",
        choices=JUDGES,
    )
    max_judged: int = setting(500, "bleu, f1: validation sentences that are decoded at an evaluation", low=1)

    def notes(self) -> list[str]:
        defaults = {f.name: f.default for f in type(self).help()}
        changed = [name for name, default in defaults.items() if getattr(self, name) != default]
        notes = []
        unused = [name for name in ("decay", "n_half", "p_lowest") if name in changed]
        if self.mode != "scheduled" and unused:
            notes.append(f"{', '.join(unused)} change nothing: they are for mode scheduled, and mode is {self.mode}.")
        if self.judged_by == "loss" and "max_judged" in changed:
            notes.append("max_judged changes nothing: it is for judged_by bleu or f1, and judged_by is loss.")
        return notes
