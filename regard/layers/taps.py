"""Named taps: what a model computed, kept for looking at.

A layer that is handed Taps writes what it computed under a name that is public vocabulary:

    embedding            (B, T, D)     after the embedding and its dropout
    layers.L.attention   (B, N, T, S)  attention weights
    layers.L.cross_attention (B, N, T, S)  a decoder's weights on its source; N = 1 in recurrent ones
    encoder.…            the same names for what the encoder computed; .ahead and .back where it reads both ways
    layers.L.gates.input, .forget, .output, .candidate, .reset, .update   (B, T, H)
    layers.L.cell        (B, T, H)     LSTM cell states
    layers.L.hidden      (B, T, D)     the output of layer L; (B, T, F) inside the bag and the window
    hidden               (B, T, D)     what the head reads
    logits               (B, T, V)

A layer that is handed None computes the same numbers by its fastest path and keeps nothing. The choice is the
caller's, by argument; nothing is switched on behind the model's back.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor


class Taps:
    """Tensors by tap name; `scope("layers.0")` is the same record seen from inside that layer."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self._prefix = ""

    def scope(self, name: str) -> Taps:
        inner = Taps()
        inner._kept, inner._prefix = self._kept, f"{self._prefix}{name}."
        return inner

    def keep(self, name: str, value: Tensor) -> Tensor:
        """Remember `value` (with its graph, so that gradients can be asked for) and hand it back."""
        if value.requires_grad and not value.is_leaf:
            value.retain_grad()
        self._kept[self._prefix + name] = value
        return value

    def __getitem__(self, name: str) -> Tensor:
        return self._kept[self._prefix + name]

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._kept

    def __iter__(self) -> Iterator[str]:
        return (n.removeprefix(self._prefix) for n in self._kept if n.startswith(self._prefix))

    def named(self, ending: str) -> dict[str, Tensor]:
        """All taps whose name ends so: `named("attention")` is every layer's weights."""
        return {n: self[n] for n in self if n == ending or n.endswith("." + ending)}


def keep(taps: Taps | None, name: str, value: Tensor) -> Tensor:
    """Remember `value` where there are taps, and hand it back."""
    return value if taps is None else taps.keep(name, value)


def scope(taps: Taps | None, name: str) -> Taps | None:
    """The taps seen from inside the part called `name`, where there are any."""
    return None if taps is None else taps.scope(name)
