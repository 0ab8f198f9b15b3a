"""`regard look`: what models compute on a text, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli import lines, options, terminal
from regard.data.reading import read_text_blocks
from regard.errors import RegardError
from regard.report.page_folder import LOOK

MAX_SEARCHED = 200_000  # characters, as many as `regard/lens/cells.py` looks at

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="A run, or a Hugging Face GPT-2 or BERT; several are shown side by side."),
]
Text = Annotated[
    list[str] | None,
    typer.Option("--text", "-t", help="The text to look at; - reads standard input. Several: those that --word is in."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="What a translator or captioner is made to write (default: its own).")
]
Picture = Annotated[Path | None, typer.Option("--picture", help="The picture that a captioner looks at.")]
Views = Annotated[list[str] | None, typer.Option("--view", "-v", metavar="VIEW", help="Only this view (repeatable).")]
Steps = Annotated[bool, typer.Option("--steps", help="One row of attention in numbers, from q·k to z.")]
Layer = Annotated[int | None, typer.Option("--layer", help="Layer to begin with, from 1 on.")]
Head = Annotated[int | None, typer.Option("--head", help="Head to begin with, from 1 on.")]
Word = Annotated[
    str | None,
    typer.Option("--word", help="The word to compare in texts, or that --steps or --view influence is about."),
]
OverTime = Annotated[bool, typer.Option("--over-time", help="Through the weights the run kept: checkpoint.snapshots.")]
Last = Annotated[int | None, typer.Option("--last", min=1, help="Look at so many tokens of the text's end.")]
Gold = Annotated[str | None, typer.Option("--gold", help="Which words of a pair belong together, as 0-0 1-2.")]
Search = Annotated[
    Path | None,
    typer.Option("--search", metavar="FILE", help="A long text to search cells on; else the run's held-out text."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder to write.")]


def look(
    runs: Runs,
    text: Text = None,
    target: Target = None,
    picture: Picture = None,
    view: Views = None,
    steps: Steps = False,
    layer: Layer = None,
    head: Head = None,
    word: Word = None,
    last: Last = None,
    gold: Gold = None,
    to: options.Tag = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Alternatives that are shown for a token.")] = 8,
    out: Out = Path("look"),
    force: options.Force = False,
    search: Search = None,
    over_time: OverTime = False,
    device: options.Device = "auto",
) -> None:
    """Look inside models on a text of yours: one page that works without a network, pictures, and JSON.

    Views: next, surprise, layers, attention, alignment, picture, steps, influence, faithfulness, cells,
    vectors, gradients, positions, over-time. A view that a model has nothing for is left out.

    Examples:
      regard look runs/transformer --text "In October, people in the US celebrate"
      # two models side by side
      regard look runs/lstm runs/gpt2 --text "She said that she" --out two
      # one row of attention, in numbers
      regard look runs/gpt2 --text "The cat sat." --steps --layer 1 --word sat
      # the alignment of a translation, the model's own or yours
      regard look runs/multi30k --text "A dog runs." --target "Ein Hund rennt."
      # one word in several contexts
      regard look runs/bert --word green -t "The shirt is green" -t "Green votes"
      # how a run learned, by the weights that it kept
      regard look runs/watched --over-time --text "def parse(line):"
      # where a captioner looks
      regard look runs/flickr8k --picture photo.jpg
    """
    takes_word = {"influence", "faithfulness", "steps", "vectors"} & set(view or ())
    asked = ["steps"] if steps else ["vectors"] if word is not None and not takes_word else []
    views = [*(view or ()), *asked] or None
    texts = _read_texts(text, picture)
    regard.api.check_page_folder(out, LOOK, force)  # before anything is computed
    with terminal.draw_progress() as progress:
        found = regard.look(
            runs, texts, target=target, picture=picture, last=last, tag=to, views=views, top_k=top_k,
            layer=layer, head=head, word=word, gold=gold, device=device, search_text=_read_file(search),
            over_time=over_time, progress=progress, command=terminal.command_line(),
        )  # fmt: skip
    page = found.save(out, force)
    terminal.print_look(found, page, has_tables=steps)


def _read_texts(texts: list[str] | None, picture: Path | None) -> list[str]:
    """The texts of --text, one of them from standard input, less its last line end; a picture needs none."""
    if not texts and picture is None:
        raise RegardError('Give the text to look at: --text "In October, people", or --text - to read standard input.')
    return [lines.read_whole_input().removesuffix("\n") if text == "-" else text for text in texts or ()]


def _read_file(path: Path | None) -> str | None:
    """The beginning of a text file in UTF-8, as much as is searched, where one is given."""
    if path is None:
        return None
    found = ""
    try:
        for block in read_text_blocks(path, f"'{path}'"):
            found += block
            if len(found) >= MAX_SEARCHED:
                break
    except OSError as error:
        raise RegardError(f"'{path}' cannot be read: {error.strerror}. Give --search a text file.") from None
    except RegardError as error:
        found, _, _ = str(error).partition(" Set data.encoding")  # there are no settings here
        raise RegardError(f"{found} --search takes a text file in UTF-8.") from None
    return found
