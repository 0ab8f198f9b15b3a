"""All random generators of a process as tensors, so that a run continues with the numbers it would have drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Seed torch (all devices), numpy's global generator and Python's own."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def random_tensors() -> dict[str, Tensor]:
    """The state of every generator. Dropout draws from torch's; the others are kept for the user's own code."""
    _, keys, position, has_gauss, gauss = _numpy_state()
    version, words, next_gauss = random.getstate()
    tensors = {
        "torch": torch.get_rng_state(),
        "numpy.keys": torch.from_numpy(keys.astype(np.int64)),
        "numpy.rest": torch.tensor([position, has_gauss, gauss], dtype=torch.float64),
        "python.words": torch.tensor([version, *words], dtype=torch.int64),
        "python.gauss": torch.tensor([] if next_gauss is None else [next_gauss], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        tensors |= {f"cuda.{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return tensors


def restore_random(tensors: Mapping[str, Tensor]) -> None:
    """Put back what `random_tensors` gave. A GPU that is no longer there is left out."""
    torch.set_rng_state(tensors["torch"])
    position, has_gauss, gauss = tensors["numpy.rest"].tolist()
    keys = tensors["numpy.keys"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", keys, int(position), int(has_gauss), gauss))
    version, *words = tensors["python.words"].tolist()
    next_gauss = tensors["python.gauss"].tolist()
    random.setstate((version, tuple(words), next_gauss[0] if next_gauss else None))
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if f"cuda.{i}" in tensors:
                torch.cuda.set_rng_state(tensors[f"cuda.{i}"], i)


def _numpy_state() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=True)
    assert isinstance(state, tuple)
    return state
