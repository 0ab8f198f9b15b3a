"""What a page draws of a model: plain data, a sentence computed from it, and the numbers behind it.

A view knows no HTML and no run. One script draws it (`regard/report/views/NAME.js`), one function draws its picture,
the terminal prints its summary, and the JSON of the local page sends it as it is.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

KINDS = {"uint8": "u1", "float16": "<f2", "float32": "<f4"}
"""How numbers are packed, and numpy's name for it; little-endian, as every browser reads it."""

Rows = tuple[Sequence[str], Sequence[Sequence[str]]]
"""The columns of a table, and its rows."""


@dataclass(frozen=True)
class Packed:
    """An array as bytes for a page: float16 or float32, or uint8 between its lowest and highest value.

    value = low + (high - low) byte / 255 for uint8, so that none is off by more than (high - low) / 510.

    >>> Packed(np.array([[0.0, 0.5], [0.25, 1.0]])).to_json()
    {'shape': [2, 2], 'kind': 'uint8', 'low': 0.0, 'high': 1.0, 'base64': 'AIBA/w=='}
    """

    array: NDArray[Any]
    kind: str = "uint8"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RegardError(f"An array is packed as one of {', '.join(KINDS)}, not as '{self.kind}'.")
        if self.array.size and not np.isfinite(self.array).all():
            raise RegardError("An array with infinite or missing numbers cannot be packed; replace them first.")

    @property
    def low(self) -> float:
        return float(self.array.min()) if self.array.size else 0.0

    @property
    def high(self) -> float:
        return float(self.array.max()) if self.array.size else 0.0

    def to_bytes(self) -> bytes:
        """The numbers, row after row."""
        if self.kind != "uint8":
            return self.array.astype(KINDS[self.kind]).tobytes()
        reach = self.high - self.low
        shares = (self.array - self.low) / reach if reach > 0 else np.zeros(self.array.shape)
        return np.rint(255 * shares).astype(np.uint8).tobytes()

    def header(self) -> dict[str, Any]:
        """All but the bytes."""
        return {"shape": list(self.array.shape), "kind": self.kind, "low": self.low, "high": self.high}

    def to_json(self) -> dict[str, Any]:
        return self.header() | {"base64": base64.b64encode(self.to_bytes()).decode("ascii")}


def unpack(packed: Mapping[str, Any]) -> NDArray[np.float64]:
    """The numbers of what `Packed.to_json` gave."""
    array = np.frombuffer(base64.b64decode(packed["base64"]), KINDS[packed["kind"]]).reshape(packed["shape"])
    values = array.astype(np.float64)
    low, high = float(packed["low"]), float(packed["high"])
    return low + (high - low) * values / 255 if packed["kind"] == "uint8" else values


@dataclass(frozen=True, kw_only=True)
class View:
    """One look at what a model computed."""

    name: str
    """Also the name of the script that draws it."""
    title: str
    note: str
    """What is seen here and how to read it, in one or two plain sentences."""
    data: Mapping[str, Any]
    """JSON values; large arrays as Packed."""
    summary: str = ""
    """One sentence computed from the numbers: printed in the terminal, and read out by screen readers."""
    table: Rows | None = None
    """The numbers behind the picture."""

    def to_json(self, pack: Callable[[Packed], Any] = Packed.to_json) -> dict[str, Any]:
        """Plain JSON values; arrays are what `pack` makes of them."""
        table = None if self.table is None else {"columns": list(self.table[0]), "rows": [[*r] for r in self.table[1]]}
        return {
            "name": self.name, "title": self.title, "note": self.note, "summary": self.summary, "table": table,
            "data": to_plain(self.data, pack),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """What is to be shown of a model; every view reads the options that concern it."""

    top_k: int = 8
    """How many alternatives are shown for a token."""
    layer: int | None = None
    """Layer to begin with, from 1 on; None: the view chooses."""
    head: int | None = None
    """Head to begin with, from 1 on; None: the view chooses."""
    word: str | None = None
    """The word that is asked about: its text, or its number from 1 on; None: the last."""
    gold: str | None = None
    """Which words of a source and its target belong together, as 0-0 1-2; None: as far as it is known."""
    search_text: str | None = None
    """A long text whose features units are held against; None: a long text itself, or the run's held-out text."""
    texts: tuple[str, ...] = ()
    """Texts in which `word` is to be compared; empty: the text that is looked at."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Options of one view alone, by name."""


def to_plain(value: Any, pack: Callable[[Packed], Any] = Packed.to_json) -> Any:
    """JSON values: arrays as lists, packed ones as `pack` writes them, and null for what JSON has no number for."""
    if isinstance(value, Packed):
        return pack(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, pack) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(item, pack) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def show_token(text: str) -> str:
    """A token on one line: line ends and tabs can be seen, and spaces where there is nothing else.

    >>> show_token("a\\n"), show_token("  "), show_token(" a b")
    ('a⏎', '␣␣', ' a b')
    """
    return (text if text.strip(" ") else text.replace(" ", "␣")).replace("\n", "⏎").replace("\t", "→")
