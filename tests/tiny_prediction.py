"""Predictions of models that are made by hand, so that what explains them is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.layers.taps import Taps, keep
from regard.lens.prediction import Look, Place, Prediction

E = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [2.0, 1.0], [0.5, -1.0]], dtype=torch.float64)
"""Vectors of five words; word 0 is <unk>, which says nothing."""


def predict_by_hand(
    inputs: Sequence[int], answer: Callable[[Tensor, Taps | None], Tensor], *, can_erase: bool = True
) -> Prediction:
    """A choice between two classes of so many words: `answer` makes scores (2,) of vectors (1, T, D)."""

    def compute(given: Sequence[int | None], taps: Taps | None) -> Tensor:
        ids = torch.tensor([i for i in given if i is not None])
        return answer(keep(taps, "embedding", E[ids][None]), taps).log_softmax(dim=-1)

    n = len(inputs)
    return Prediction(
        what="the class",
        text=" ".join(f"w{i}" for i in inputs),
        tokens=tuple(f"w{i}" for i in inputs),
        spans=tuple((3 * i, 3 * i + 2) if can_erase else None for i in range(n)),
        choices=("yes", "no"),
        target=0,
        inputs=tuple(inputs),
        model=compute,
        places=tuple((Place("embedding", i),) for i in range(n)),
        looks=(Look("pool.", "attention", 0),),
        stand_ins=(0,) * n,
    )


def look_and_answer(scores: Sequence[float], values: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Attention with fixed scores over the words; its output (D,) decides: yes has the score z_1, no has 0."""

    def answer(x: Tensor, taps: Taps | None) -> Tensor:
        A = torch.tensor(scores, dtype=x.dtype).softmax(dim=0)[None, None, None, : x.shape[1]]
        z = keep(taps, "pool.attention", A)[:, 0] @ values(x)  # (1, 1, D)
        return torch.stack([z[0, 0, 0], torch.zeros_like(z[0, 0, 0])])

    return answer
