"""Batches whose shapes differ: cuDNN's attention, which is planned for each shape, is left out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_pairs import run_tiny_pairs, tiny_pair_model, tiny_prepared

from regard.kernels.device import sdpa_backend_for_any_shape
from regard.layers.bridge import Bridge
from regard.tasks.pair_objective import PairObjective

ASKED = torch.backends.cuda.cudnn_sdp_enabled


def test_the_choice_is_as_it_was_after_the_block() -> None:
    before = ASKED()
    with sdpa_backend_for_any_shape():
        assert not ASKED()
    assert ASKED() == before
    with pytest.raises(ValueError, match="stop"), sdpa_backend_for_any_shape():
        raise ValueError("stop")
    assert ASKED() == before


def test_pairs_are_learned_without_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    evaluate = PairObjective.evaluate

    def watched(self: PairObjective, model: Any) -> Any:
        seen.append(ASKED())
        return evaluate(self, model)

    monkeypatch.setattr(PairObjective, "evaluate", watched)
    prepared = tiny_prepared()
    run_tiny_pairs(tmp_path, tiny_pair_model(prepared), prepared)
    assert seen
    assert not any(seen)


def test_a_bridge_hands_on_whole_tensors() -> None:
    """cuDNN refuses a cell that is a slice of something wider."""
    for state in Bridge(6, n_ends=1, n_layers=2, has_cell=True)((torch.ones(3, 6),)):
        assert all(part.is_contiguous() for part in state)
