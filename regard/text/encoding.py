"""Text to ids, the fast way where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import tokenizers

Ids = NDArray[np.int32]


class Encoder:
    """What `Tokenizer` encodes with."""

    def __init__(self, hf: tokenizers.Tokenizer, kind: str) -> None:
        self._hf, self._kind = hf, kind

    def encode(self, text: str) -> Ids:
        return np.array(self._hf.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def encode_documents(self, pieces: Iterable[tuple[str, bool]]) -> Ids:
        parts = []
        for text, ends in pieces:
            parts.append(self.encode(text))
            if ends and not (self._kind == "word" and text.endswith("\n")):
                parts.append(np.zeros(1, dtype=np.int32))
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
