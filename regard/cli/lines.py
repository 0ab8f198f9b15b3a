"""Lines in from a file or a pipe, and what is said of them on stderr while they are decoded."""

from __future__ import annotations

import codecs
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, TypeVar

from regard.cli.safe_terminal import SafeStream
from regard.data.reading import MAX_LINE, BadLine
from regard.errors import RegardError, suggest_path
from regard.score.figures import join_names
from regard.untrusted.unpacking import open_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from regard.decode.lines import LinesDone

Answer = TypeVar("Answer")
TOO_LONG = "too long"
MAX_BYTES = 4 * MAX_LINE  # UTF-8 has at most 4 a character
REFERENCE = 8  # bytes of a list for each line
MAX_HELD = 2**29  # bytes of lines that are read whole, as Python holds them


class SourceLines:
    """The lines of a stream, as they come; one that is not UTF-8, or endless, is an error that names it.

    With `skips_bad` it is an empty line instead, and is counted; of a `file` that is named, none can be left out.
    """

    def __init__(
        self, stream: IO[bytes], skips_bad: bool = False, is_typed: bool = False, file: Path | None = None
    ) -> None:
        self._stream, self._skips_bad, self.is_typed = stream, skips_bad, is_typed
        self._place, self._way_out = (
            ("Line", ", or leave it out: --skip-bad") if file is None else (f"'{file}', line", "")
        )
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._read_bounded(), start=1):
            text = _read(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)
            if isinstance(text, BadLine):
                if not self._skips_bad:
                    raise RegardError(f"{self._place} {number} {text.why}{self._way_out}.")
                self.skipped[text.kind] += 1
                text = ""
            yield text

    def _read_bounded(self) -> Iterator[bytes]:
        """Lines, of which one that has no end is never held whole."""
        while line := self._stream.readline(MAX_BYTES + 1):
            rest = line
            while len(line) > MAX_BYTES and rest and not rest.endswith(b"\n"):
                rest = self._stream.readline(MAX_BYTES)
            yield line


def _read(line: bytes) -> str | BadLine:
    try:
        text = "" if len(line) > MAX_BYTES else line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return BadLine("not UTF-8", f"is not UTF-8 ({error.reason}). Convert the text first, with iconv for example")
    if len(line) <= MAX_BYTES and len(text) <= MAX_LINE:
        return text
    return BadLine(
        TOO_LONG, f"has more than {MAX_LINE:,} characters. Has the text lost its line ends? Give a sentence a line"
    )


def is_typed(file: Path | None) -> bool:
    """Whether the lines are typed at a terminal, so that each answer is waited for."""
    return _is_standard_input(file) and _is_terminal(sys.stdin)


@contextmanager
def open_lines(file: Path | None, skips_bad: bool = False) -> Iterator[SourceLines]:
    """The lines of a file or of standard input."""
    with _open(file) as stream:
        yield SourceLines(stream, skips_bad, is_typed(file))


def answer_lines(
    decode: Callable[..., Iterator[Answer]],
    file: Path | None,
    *,
    skip_bad: bool,
    window: int | None,
    max_tokens: int,
    why_skipped: str = TOO_LONG,
) -> Iterator[tuple[int, str, Answer]]:
    """Number, text and answer of every line of a file or of standard input, with progress on stderr.

    `decode` is the method `lines` of a run, a translator or a parser, and `why_skipped` says what is wrong
    with the lines that it leaves out. At a terminal each line is answered before the next one.
    """
    with open_lines(file, skip_bad) as lines, show_progress(lines, why_skipped) as progress:
        read: deque[str] = deque()
        kept = (read.append(line) or line for line in lines)  # type: ignore[func-returns-value]
        window = window or (1 if lines.is_typed else 2000)
        found = decode(kept, max_tokens=max_tokens, window=window, skips_long=skip_bad, progress=progress)
        for number, answer in enumerate(found, start=1):
            progress.make_way()
            yield number, read.popleft(), answer


def _is_standard_input(file: Path | None) -> bool:
    return file is None or str(file) == "-"


def _open(file: Path | None) -> AbstractContextManager[IO[bytes]]:
    if file is None or _is_standard_input(file):
        if sys.stdin is None:  # Python's word for a descriptor 0 that is closed
            raise RegardError("Standard input is closed. Pipe lines in, or name a file of them.")
        return nullcontext(sys.stdin.buffer)
    try:
        return open_bytes(file, f"'{file}'", takes_pipes=True)
    except FileNotFoundError:
        raise RegardError(f"There is no file '{file}'.{suggest_path(file)}") from None
    except OSError as error:
        raise RegardError(f"'{file}' cannot be read: {error.strerror}. Give a file of lines.") from None


def read_whole_input(limit: int = MAX_BYTES) -> str:
    """The text on standard input, of at most `limit` bytes: what has no end is never held."""
    with _open(None) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise RegardError(f"Standard input gives more than {limit:,} bytes. Give a shorter text.")
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise RegardError(f"Standard input is not UTF-8: {error.reason} at byte {error.start}. Convert it.") from None


def read_lines(file: Path) -> list[str]:
    """All lines of a file. None can be left out, since others belong to them."""
    return read_aligned([file])[0]


def read_aligned(files: Sequence[Path]) -> list[list[str]]:
    """The lines of several files that belong together line by line, read side by side up to the end of the shortest."""
    if sum(map(_is_standard_input, files)) > 1:
        raise RegardError("Standard input, -, is named twice, and its lines can stand for one file only. Name a file.")
    found: list[list[str]] = [[] for _ in files]
    n_held = 0
    with ExitStack() as stack:
        sources = [SourceLines(stack.enter_context(_open(file)), file=file) for file in files]
        for number, lines in enumerate(zip_longest(*sources)):
            if None in lines:
                short, long = (
                    files[lines.index(None)],
                    next(f for f, s in zip(files, lines, strict=True) if s is not None),
                )
                raise RegardError(
                    f"'{short}' ends after line {number:,}, and '{long}' goes on: line i of one must belong to line i "
                    "of the other. Give files of equal length."
                )
            for kept, line in zip(found, lines, strict=True):
                kept.append(line)
            n_held += sum(map(sys.getsizeof, lines)) + REFERENCE * len(lines)
            if n_held > MAX_HELD:
                names, fill = join_names([repr(str(file)) for file in files]), "fill" if len(files) > 1 else "fills"
                raise RegardError(
                    f"{names} {fill} more than {MAX_HELD // 2**20:,} MB of memory by line {number + 1:,}, and all "
                    "lines are held at once. Split it into parts, and give one after the other."
                )
    return found


class LinesProgress:
    """How many lines are done and how fast: one line on stderr, written over itself."""

    def __init__(self, is_shown: bool) -> None:
        self.n_skipped, self.has_line = 0, False
        self._is_shown, self._began = is_shown, time.monotonic()
        self._stream = sys.stderr if isinstance(sys.stderr, SafeStream) else SafeStream(sys.stderr)

    def __call__(self, done: LinesDone) -> None:
        self.n_skipped = done.n_skipped
        if self._is_shown:
            rate = done.n_lines / max(time.monotonic() - self._began, 1e-9)
            self._stream.write_again(f"{done.n_lines:,} lines, {rate:,.0f} a second")
            self.has_line = True

    def make_way(self) -> None:
        """Remove the line where answers are printed on the same terminal."""
        if self.has_line and _is_terminal(sys.stdout):
            self._stream.write_again("")
            self.has_line = False


@contextmanager
def show_progress(lines: SourceLines, why_skipped: str = TOO_LONG) -> Iterator[LinesProgress]:
    """Print how many lines are done and how fast on stderr, where that is a terminal and the lines are not typed.

    At the end it says how many were left out, whoever looks.
    """
    progress = LinesProgress(is_shown=_is_terminal(sys.stderr) and not lines.is_typed)
    try:
        yield progress
    finally:
        if progress.has_line:
            print(file=sys.stderr)
        skipped = lines.skipped + Counter({why_skipped: progress.n_skipped})
        if skipped:
            told = ", ".join(f"{n:,} {kind}" for kind, n in sorted(skipped.items(), reverse=True))
            print(f"regard: left out, each an empty line: {told}.", file=sys.stderr)


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()
