"""JSON with arrays beside it in one body: what a page reads without making numbers of text.

    4 bytes, little-endian: how long the JSON is;  the JSON, padded with spaces to a multiple of 8;  the arrays

In the JSON an array is `{"shape", "kind", "low", "high", "at", "n"}`: its n bytes begin `at` bytes after the JSON, at a
multiple of 8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from regard.lens.view import Packed, to_plain

MEDIA_TYPE = "application/x-regard-arrays"
UNIT = 8


class Arrays:
    """The arrays of one answer, one after the other."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._n = 0

    def add(self, packed: Packed) -> dict[str, Any]:
        """Put an array behind the others; what stands for it in the JSON."""
        return self.add_bytes(packed.header(), packed.to_bytes())

    def add_bytes(self, header: Mapping[str, Any], part: bytes) -> dict[str, Any]:
        """Put the bytes of an array behind the others; what stands for it in the JSON, of which `header` is a part."""
        place = {"at": self._n, "n": len(part)}
        part += b"\0" * (-len(part) % UNIT)
        self._parts.append(part)
        self._n += len(part)
        return {**header, **place}

    def write(self, value: Any) -> bytes:
        """The whole body, of JSON values in which `add` was called for every array."""
        text = json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
        text += b" " * (-(len(text) + 4) % UNIT)
        return b"".join([len(text).to_bytes(4, "little"), text, *self._parts])
