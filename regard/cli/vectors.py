"""`regard vectors`: nearest words, analogies, tests, maps and files of word vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import regard
from regard.cli import options, terminal
from regard.cli.help import format_help
from regard.errors import RegardError

Source = Annotated[
    Path, typer.Argument(metavar="RUN_OR_FILE", help="A run of word vectors, or a word2vec, GloVe or fastText file.")
]
N = Annotated[int, typer.Option("--n", "-n", min=1, help="How many words.")]
Data = Annotated[list[str] | None, typer.Option("--data", "-d", help="The text to look at (repeatable).")]


def nearest(
    source: Source,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="The words to find others for.")],
    n: N = 10,
    as_json: options.AsJson = False,
) -> None:
    """The words whose vectors have the largest cosine with that of a word.

    Examples:
      regard vectors nearest runs/skipgram ship
      regard vectors nearest glove.6B.50d.txt ship sea --n 5 --json
    """
    vectors = regard.api.load_vectors(source)
    found = {word: vectors.nearest(word, n) for word in words}
    if as_json:
        print(json.dumps([{"word": word, "nearest": _plain(near)} for word, near in found.items()], ensure_ascii=False))
        return
    for number, (word, near) in enumerate(found.items()):
        if number:
            print()
        _print_ranked(near, word)


def analogy(
    source: Source,
    first: Annotated[str, typer.Argument(metavar="A", help="A is to B ...")],
    second: Annotated[str, typer.Argument(metavar="B", help="... as C is to ?")],
    third: Annotated[str, typer.Argument(metavar="C", help="The third word.")],
    n: N = 5,
    as_json: options.AsJson = False,
) -> None:
    """The words that are to C as B is to A: those nearest to B - A + C.

    Examples:
      # man is to king as woman is to ...
      regard vectors analogy glove.6B.50d.txt man king woman
    """
    found = regard.api.load_vectors(source).analogy(first, second, third, n)
    if as_json:
        question = {"first": first, "second": second, "third": third}
        print(json.dumps({**question, "answers": _plain(found)}, ensure_ascii=False))
        return
    _print_ranked(found, f"{first} : {second} = {third} : ?")


def evaluate(
    source: Source,
    tests: Annotated[
        list[Path], typer.Argument(metavar="TEST...", help="Rated pairs (two words and a number a line) or analogies.")
    ],
    as_json: options.AsJson = False,
) -> None:
    """Score vectors: Spearman's correlation with people's ratings of word pairs, or the share of analogies solved.

    Items with a word that has no vector are left out, and counted. Analogies are four words a line, in sections that
    begin with a line such as `: capitals`.

    Examples:
      regard vectors eval runs/skipgram EN-WS-353-ALL.txt EN-MEN-TR-3k.txt
      regard vectors eval glove.6B.50d.txt questions-words.txt --json
    """
    terminal.print_evaluation(regard.api.score_vectors(source, tests), as_json)


def draw_map(
    source: Source,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD...]", help="Draw these with their nearest.")
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=0, help="Nearest words of each word.")] = 12,
    by: Annotated[str, typer.Option("--by", help="pca, or umap where umap-learn is installed.")] = "pca",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of umap.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the page and the picture.")] = Path("map"),
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Draw words in two dimensions, as a page and a picture: the most frequent, or some with their nearest.

    Examples:
      regard vectors map runs/skipgram --out map
      regard vectors map runs/skipgram ship church horse --n 15 --out map
    """
    page = regard.api.draw_word_map(source, words or (), n=n, by=by, seed=seed, out=out, force=force)
    print((out / "numbers.json").read_text(encoding="utf-8") if as_json else f"Wrote {page} and {out / 'figure.png'}")


def coverage(
    source: Source,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT...]", help="The text to look at, as with --data.")
    ] = None,
    data: Data = None,
    as_json: options.AsJson = False,
) -> None:
    """The share of a text's words that have no vector; of a run, beside what subwords and characters do not have.

    Without a text, the test split of the run's own text is looked at. Subwords and characters are learned from the
    run's training text, subwords as many as the run has words.

    Examples:
      regard vectors coverage runs/skipgram
      regard vectors coverage glove.6B.50d.txt my.txt
    """
    found = regard.api.measure_coverage(source, [*(texts or ()), *(data or ())] or None)
    if as_json:
        print(json.dumps([each.to_dict() for each in found]))
        return
    columns = ("vocabulary", "words not in it", "different words not in it", "tokens a word")
    shown = terminal.plain_table("unit", *columns, right=columns)
    for each in found:
        shown.add_row(
            each.unit, f"{each.vocab_size:,}", f"{100 * each.missing_words:.2f}%", f"{100 * each.missing_types:.2f}%",
            f"{each.tokens_per_word:.2f}",
        )  # fmt: skip
    terminal.console.print(shown)
    terminal.console.print(f"of {found[0].n_words:,} words, {found[0].n_types:,} of them different")


def convert(
    source: Source,
    to: Annotated[Path, typer.Argument(help="The file to write: .vec (word2vec, fastText), .bin or .txt (GloVe).")],
    form: Annotated[
        str | None, typer.Option("--format", help="word2vec, binary or glove; by the name if left out.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Write the vectors of a run or a file as word2vec's text or binary, or as GloVe's text.

    Examples:
      regard vectors convert runs/skipgram mine.bin
      regard vectors convert glove.6B.50d.txt glove.vec
    """
    regard.api.export_vectors(source, to, form, force=force)
    typer.echo(f"Wrote {to}")


def _plain(found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "cosine": round(cosine, 6)} for word, cosine in found]


def _print_ranked(found: list[tuple[str, float]], title: str) -> None:
    if not found:
        raise RegardError("There is no other word.")
    shown = terminal.plain_table(title, "cosine", right=("cosine",))
    for word, cosine in found:
        shown.add_row(Text(word), f"{cosine:.3f}")
    terminal.console.print(shown)


vectors = typer.Typer(
    help="Word vectors: nearest words, analogies, tests, maps, and files of word2vec, GloVe and fastText.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)
_VERBS: dict[str, Callable[..., None]] = {
    "nearest": nearest, "analogy": analogy, "eval": evaluate, "map": draw_map, "coverage": coverage, "convert": convert,
}  # fmt: skip
for _name, _verb in _VERBS.items():
    vectors.command(_name, help=format_help(_verb.__doc__))(_verb)
