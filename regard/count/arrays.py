"""The kinds of numpy array this room passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]  # token ids of any width: what a stream holds
Index = npt.NDArray[np.int64]  # positions in a level of the trie, or keys into one
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
