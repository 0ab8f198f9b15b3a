"""A million lines through a decoder: in the order they came, and never more than a window of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import TypeVar

from regard.errors import RegardError

Line = TypeVar("Line")
Item = TypeVar("Item", bound=Sized)
Out = TypeVar("Out")

TOKENS_A_LINE = 64
"""A window of n lines also ends after n times so many tokens: few long lines need as much room as many short ones."""


@dataclass(frozen=True)
class LinesDone:
    """How far `decode_lines` is."""

    n_lines: int = 0
    n_empty: int = 0
    n_skipped: int = 0
    """Lines that were too long, or that could not be encoded."""


def decode_lines(
    lines: Iterable[Line],
    encode: Callable[[Line], Item | None],
    decode: Callable[[list[Item]], list[Out]],
    *,
    empty: Out,
    max_tokens: int = 4096,
    window: int = 2000,
    max_line: int | None = None,
    skips_long: bool = False,
    progress: Callable[[LinesDone], None] | None = None,
) -> Iterator[Out]:
    """Decode every line; what `decode` gives comes in the lines' order.

    Up to `window` lines are read and encoded, sorted by length and cut into batches of at most `max_tokens` tokens,
    padding included (a line that is longer is a batch of its own). So lines wait for their window alone, and where the
    window is 1, as for someone who types, for nothing. A line with no tokens gives `empty` and is not decoded. One with
    more than `max_line` tokens is an error; with `skips_long` it gives `empty` too and is counted as skipped, as is one
    of which `encode` makes None.
    What is wrong with a line is raised once those before it are decoded and given: nothing of them is lost.
    `progress` is told after every batch, and after a window that needs none.
    """
    if window < 1 or max_tokens < 1:
        raise RegardError(f"window and max_tokens must be at least 1, not {window} and {max_tokens}.")
    done = LinesDone()
    tell = progress or (lambda done: None)
    for items, fault in _windows(_check_lengths(map(encode, lines), max_line, skips_long), window):
        results = [empty] * len(items)
        wanted = {i: item for i, item in enumerate(items) if item is not None and len(item)}
        n_skipped, n_left_out = items.count(None), len(items) - len(wanted)
        done = LinesDone(
            n_lines=done.n_lines + n_left_out,
            n_empty=done.n_empty + n_left_out - n_skipped,
            n_skipped=done.n_skipped + n_skipped,
        )
        lengths = [0 if item is None else len(item) for item in items]
        for batch in batches_by_tokens(list(wanted), lengths, max_tokens):
            for i, out in zip(batch, decode([wanted[i] for i in batch]), strict=True):
                results[i] = out
            done = replace(done, n_lines=done.n_lines + len(batch))
            tell(done)
        if items and not wanted:
            tell(done)
        yield from results
        if fault is not None:
            raise fault


def _check_lengths(items: Iterator[Item | None], max_line: int | None, skips_long: bool) -> Iterator[Item | None]:
    """Make None of items that are too long, or refuse them."""
    for number, item in enumerate(items, start=1):
        is_long = item is not None and max_line is not None and len(item) > max_line
        if is_long and not skips_long:
            assert item is not None
            raise RegardError(
                f"Line {number} has {len(item)} tokens; at most {max_line} can be read. Shorten it, or leave it out: "
                "--skip-bad (in Python: skips_long)."
            )
        yield None if is_long else item


def _windows(items: Iterator[Item | None], window: int) -> Iterator[tuple[list[Item | None], RegardError | None]]:
    """Gather lists of at most `window` items, each given as soon as it is full.

    The last may end where the next line cannot be read, and then has what is wrong with it.
    """
    held: list[Item | None] = []
    n_tokens = 0
    try:
        for item in items:
            held.append(item)
            n_tokens += 0 if item is None else len(item)
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
