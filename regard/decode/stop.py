"""Text that ends before a stop string, though tokens arrive one at a time and know nothing of strings."""

from __future__ import annotations

from collections.abc import Sequence


class StopText:
    """Passes text on until one of the stop strings would appear; holds back what may yet become one.

    The one that is complete first counts, so that it does not matter in which pieces the text comes.

    >>> stop = StopText(["END"])
    >>> stop.push("the E"), stop.push("N"), stop.push("D now"), stop.is_stopped
    ('the ', '', '', True)
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [s for s in stops if s]
        self._held = ""
        self.is_stopped = False

    def push(self, text: str) -> str:
        """What can be shown for certain after `text` has come."""
        if self.is_stopped:
            return ""
        self._held += text
        found = [(at + len(s), at) for s in self._stops if (at := self._held.find(s)) >= 0]
        if found:
            self.is_stopped = True
            return self._held[: min(found)[1]]
        keep = max((_overlap(self._held, s) for s in self._stops), default=0)
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        shown, self._held = ("" if self.is_stopped else self._held), ""
        return shown


def _overlap(text: str, stop: str) -> int:
    """How many last characters of `text` are the beginning of `stop`."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
