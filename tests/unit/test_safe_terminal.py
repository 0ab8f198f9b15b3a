"""No text commands a terminal, and rich's own colours still do."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.text import Text

from regard.cli.lines import SourceLines, answer_lines, show_progress
from regard.cli.safe_terminal import SafeConsole, SafeStream, guard_terminal
from regard.cli.terminal import plain_table
from regard.decode.lines import LinesDone
from regard.run.card import escape_markdown


def test_texts_are_shown_and_colours_stay() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, color_system="standard")
    console.print(Text("\x1b[2Jgone\x9b1m", "bold red"))
    assert "\x1b[2J" not in out.getvalue()
    assert "\\x1b[2Jgone\\x9b1m" in out.getvalue()
    assert out.getvalue().startswith("\x1b[1;31m")


@pytest.mark.parametrize(
    "text", ["runs/lstm[v2]", "[/x].tsv", "[link=http://x]click[/link]", "[bold]a[/bold]", ":cat:"]
)
def test_brackets_of_texts_are_no_styles(text: str) -> None:
    out = io.StringIO()
    console, table = SafeConsole(file=out, width=100), plain_table(text)
    table.add_row(text)
    console.print(text)
    console.print(table)
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [text] * 3


def test_a_stream_that_is_a_terminal_prints_no_command() -> None:
    out = io.StringIO()
    print("a\x1b]0;owned\x07b", file=SafeStream(out))  # type: ignore[arg-type]
    assert out.getvalue() == "a\\x1b]0;owned\\x07b\n"


def test_a_card_shows_names_as_they_are() -> None:
    assert escape_markdown("a|b\nc") == "a\\|b c"
    assert escape_markdown("<script>x</script>") == "&lt;script&gt;x&lt;/script&gt;"
    assert escape_markdown("![x](y)") == "!\\[x\\](y)"
    assert escape_markdown("Hochreiter & Schmidhuber, &lt;") == "Hochreiter & Schmidhuber, &amp;lt;"


@pytest.mark.parametrize(
    "text",
    [
        r"\[x\](http://evil.example)", r"\\[x](y)", r"\`a`", r"a\|b | c", r"\<b>", "a\\", "`` ` ``", "~~~", "---",
        "- a", "+", "1. a", "2) a", "# a", "a #", "=== a", "*a* **b** ***", "~a~ ~~b~~", "$a$ $$b$$",
        "_a_ __b__ (_c_) _", "&amp; &#65; & &x", "<!-- a --> <a href=b>", "![a](b)", "[^1]: a", "[a]: b",
        "HTTPS://a.b/c_d", "WWW.a.example", "a.b@c.example @d", "__init__.py", "runs/my_run_2/a__b",
        "grammar:en-de:50@test", "label_one, LABEL-2; C++ 0.5",
    ],
)  # fmt: skip
def test_markdown_makes_nothing_of_a_text(text: str) -> None:
    """In a paragraph, a heading and a cell; with addresses that are made links of, where a program does that."""
    escaped = escape_markdown(text)
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    cell = f"| a | b |\n|---|---|\n| {escaped} | end |"
    for source, n_texts in ((escaped, 1), (f"# {escaped}", 1), (cell, 4)):
        inline = [token for token in reader.parse(source) if token.type == "inline"]
        assert len(inline) == n_texts, source
        found = inline[0] if n_texts == 1 else inline[2]
        assert {token.type for token in found.children or []} <= {"text", "text_special"}
        shown = "".join(token.content for token in found.children or [])
        assert shown.replace("\u200b", "") == text
        assert not re.search(r"://|www\.|\w@\w+\.", shown, re.IGNORECASE)
    assert [token.type for token in reader.parse(escaped)] == ["paragraph_open", "inline", "paragraph_close"]


@pytest.mark.parametrize(
    "name", ["runs/my_run_2", "label_one", "grammar:en-de:50@test", "a-b.txt", "12.5", "-3", "C++"]
)
def test_ordinary_names_stay_as_they_are_in_a_card(name: str) -> None:
    assert escape_markdown(name) == name


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_name_that_is_no_text_is_printed_into_a_file_or_a_pipe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8", errors="strict", write_through=True)
    monkeypatch.setattr(f"sys.{name}", stream)
    with guard_terminal():
        print("few\udcff.txt", file=stream)
    assert written.getvalue() == b"few\\udcff.txt\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_written_over_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with guard_terminal(), show_progress(SourceLines(io.BytesIO(b"a\n"))) as tell:
        tell(LinesDone(n_lines=1, n_skipped=0))
    assert terminal.getvalue().startswith("\r1 lines, ")
    assert "\\x0d" not in terminal.getvalue()


def run_on_terminal(*words: object) -> str:
    """What the command prints on a terminal of 100 columns."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("regard")), *map(str, words)]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    printed = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # an error where the other end is closed
        while block := terminal.read(65_536):
            printed += block
    process.wait(timeout=60)
    return printed.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--help",), "Train, compare and look inside"),
        (("train", "--non\x1b[31msense"), "No such option"),
        (("models",), "Elman"),
        (
            ("train", "rnn", "--data", "python-docs", "--set", "train.max_steps=3", "--set", "model.d_model=8"),
            "bits per byte",
        ),
    ],
)
def test_colours_and_bars_are_drawn_on_a_terminal(words: tuple[str, ...], wanted: str, tmp_path: Path) -> None:
    """Only characters of users are written as \\xNN; on a terminal all of help and every bar was."""
    out = ("--out", tmp_path / "run") if words[0] == "train" else ()
    printed = run_on_terminal(*words, *out)
    assert wanted in printed
    assert "\x1b[1m" in printed or "\x1b[31m╭" in printed
    assert printed.replace("\\x1b[31msense", "").count("\\x1b") == 0


def test_answers_take_the_line_of_the_progress(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On one terminal: an answer was printed behind the number of lines that were done."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", terminal)
    (tmp_path / "two").write_text("a\nb\n")

    def decode(read: Iterator[str], *, progress: Callable[[LinesDone], None], **_: Any) -> Iterator[str]:
        for number, line in enumerate(read, start=1):
            progress(LinesDone(n_lines=number, n_skipped=0))
            yield line.upper()

    for _, _, answer in answer_lines(decode, tmp_path / "two", skip_bad=False, window=None, max_tokens=1):
        terminal.write(f"{answer}\n")
    shown = [line.rpartition("\r")[2] for line in terminal.getvalue().split("\n")]
    assert shown == ["\x1b[KA", "\x1b[KB", ""]
