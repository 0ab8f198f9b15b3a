"""A million lines through a decoder: in the order they came, and never more than a window of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import TypeVar

from regard.errors import RegardError, nearest

Line = TypeVar("Line")
Item = TypeVar("Item", bound=Sized)
Out = TypeVar("Out")

LONG_LINES = ("error", "skip")
TOKENS_A_LINE = 64
"""A window of n lines also ends after n times so many tokens: few long lines need as much room as many short ones."""


@dataclass(frozen=True)
class LinesDone:
    """How far `decode_lines` is."""

    n_lines: int = 0
    n_empty: int = 0
    n_skipped: int = 0
    """Lines that were too long."""


def decode_lines(
    lines: Iterable[Line],
    encode: Callable[[Line], Item],
    decode: Callable[[list[Item]], list[Out]],
    *,
    empty: Out,
    max_tokens: int = 4096,
    window: int = 2000,
    max_line: int | None = None,
    long_lines: str = "error",
    progress: Callable[[LinesDone], None] | None = None,
) -> Iterator[Out]:
    """Decode every line; what `decode` gives comes in the lines' order.

    Up to `window` lines are read and encoded, sorted by length and cut into batches of at most `max_tokens` tokens,
    padding included (a line that is longer is a batch of its own). So lines wait for their window alone, and where the
    window is 1, as for someone who types, for nothing. A line with no tokens gives `empty` and is not decoded. One with
    more than `max_line` tokens is an error, or gives `empty` too and is counted, where `long_lines` is "skip".
    What is wrong with a line is raised once those before it are decoded and given: nothing of them is lost.
    `progress` is told after every batch, and after a window that needs none.
    """
    if long_lines not in LONG_LINES:
        raise RegardError(
            f"long_lines must be one of error, skip, not {long_lines!r}.{nearest(long_lines, LONG_LINES)}"
        )
    if window < 1 or max_tokens < 1:
        raise RegardError(f"window and max_tokens must be at least 1, not {window} and {max_tokens}.")
    done = LinesDone()
    tell = progress or (lambda done: None)
    encoded: Iterator[Item] = map(encode, lines)
    if max_line is not None and long_lines == "error":
        encoded = _refuse_longer(encoded, max_line)
    for items, fault in _windows(encoded, window):
        results = [empty] * len(items)
        lengths = [len(item) for item in items]
        too_long = [i for i, n in enumerate(lengths) if max_line is not None and n > max_line]
        wanted = sorted({i for i, n in enumerate(lengths) if n > 0} - set(too_long))
        done = LinesDone(
            n_lines=done.n_lines + len(items) - len(wanted),
            n_empty=done.n_empty + lengths.count(0),
            n_skipped=done.n_skipped + len(too_long),
        )
        for batch in batches_by_tokens(wanted, lengths, max_tokens):
            for i, out in zip(batch, decode([items[i] for i in batch]), strict=True):
                results[i] = out
            done = replace(done, n_lines=done.n_lines + len(batch))
            tell(done)
        if items and not wanted:
            tell(done)
        yield from results
        if fault is not None:
            raise fault


def _refuse_longer(items: Iterator[Item], max_line: int) -> Iterator[Item]:
    for number, item in enumerate(items, start=1):
        if len(item) > max_line:
            raise RegardError(
                f"Line {number} has {len(item)} tokens; at most {max_line} can be read. Shorten it, or leave it out: "
                "--skip-bad (in Python: skips_long)."
            )
        yield item


def _windows(items: Iterator[Item], window: int) -> Iterator[tuple[list[Item], RegardError | None]]:
    """Gather lists of at most `window` items, each given as soon as it is full.

    The last may end where the next line cannot be read, and then has what is wrong with it.
    """
    held: list[Item] = []
    n_tokens = 0
    try:
        for item in items:
            held.append(item)
            n_tokens += len(item)
            if len(held) == window or n_tokens >= window * TOKENS_A_LINE:
                yield held, None
                held, n_tokens = [], 0
    except RegardError as fault:
        yield held, fault
        return
    if held:
        yield held, None


def batches_by_tokens(indices: list[int], lengths: list[int], max_tokens: int) -> Iterator[list[int]]:
    """Sort indices into batches of similar lengths, the longest first, of at most max_tokens tokens with padding.

    >>> list(batches_by_tokens([0, 1, 2, 3], [3, 9, 2, 3], max_tokens=8))
    [[1], [0, 3], [2]]
    """
    batch: list[int] = []
    for i in sorted(indices, key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
