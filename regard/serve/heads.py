"""Attention of heads that a page has not been sent yet: kept as bytes, and sent when one is chosen.

A text of 512 tokens and 12 x 12 heads are 38 million weights. A page begins with small pictures of all heads and a few
of them in full; the others stay here, a byte a weight, until newer texts need the room.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from regard.errors import RegardError
from regard.lens.view import Packed, View
from regard.serve.packing import Arrays

SENT_BYTES = 1_000_000
"""Of heads that a page begins with; one is always among them."""
MAX_KEPT_BYTES = 160_000_000

PackedHead = tuple[Mapping[str, Any], bytes]
"""What JSON says of an array, and the array."""


class KeptHeads:
    """Heads by the question that they were computed for, the newest questions last; two threads may use it."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self.max_bytes, self.n_bytes = max_bytes, 0
        self._kept: OrderedDict[Hashable, list[dict[str, PackedHead]]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, key: Hashable, view: View) -> View:
        """Keep all heads of an attention view under `key`; what is left is the view that is sent at once."""
        stacks: list[Mapping[str, Any]] = list(view.data["stacks"])
        heads = [{name: _pack(head) for name, head in {**s["full"], **s["rest"]}.items()} for s in stacks]
        with self._lock:
            self._drop(key)
            self._kept[key] = heads
            self.n_bytes += _count(heads)
            while self.n_bytes > self.max_bytes and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))
        return replace(view, data={**view.data, "stacks": [{**stack, "rest": {}} for stack in stacks]})

    def find(self, key: Hashable, stack: int, layer: int, head: int) -> bytes | None:
        """One head as the body of an answer, all numbers from 1 on; None where that text was not kept, or no longer."""
        with self._lock:
            stacks = self._kept.get(key)
            if stacks is None:
                return None
            self._kept.move_to_end(key)
        if stack > len(stacks):
            raise RegardError(f"stack {stack}: the model has {len(stacks)}. Ask for one from 1 on.")
        found = stacks[stack - 1].get(f"{layer - 1},{head - 1}")
        if found is None:
            n_layers = 1 + max(int(name.partition(",")[0]) for name in stacks[stack - 1])
            raise RegardError(f"There is no head {head} in layer {layer}; the model has {n_layers} layers there.")
        arrays = Arrays()
        return arrays.write(arrays.add_bytes(*found))

    def _drop(self, key: Hashable) -> None:
        self.n_bytes -= _count(self._kept.pop(key, []))


def _pack(head: Packed) -> PackedHead:
    return head.header(), head.to_bytes()


def _count(heads: list[dict[str, PackedHead]]) -> int:
    return sum(len(part) for stack in heads for _, part in stack.values())
