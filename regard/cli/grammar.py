"""`regard data`, and `regard data grammar`: sentences in three languages, written to files."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from regard.cli import catalog, terminal
from regard.cli.help import format_help
from regard.errors import RegardError, nearest

UsageError: Any = typer.BadParameter.__base__  # of click, or of the copy of click that newer versions of typer hold
LOOK = "look"


class SourceOrVerb(TyperGroup):
    """`regard data SOURCE` looks at a source: a first word that is no verb of this group is one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # typer's Context or click's, by its version
        first = args[0] if args else "-"
        is_option = first.startswith("-") and first != "-"  # of this group, which has --help alone
        if first not in self.commands and not is_option:
            self._check_near(first)
            args = [LOOK, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """A wrong option of `look`, which nobody typed, is explained as one of this group."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if getattr(error.ctx, "info_name", None) == LOOK:
                error.ctx = ctx
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with the arguments and options of `look`: they are what one types."""
        shown = copy(self)
        shown.params, shown.subcommand_metavar = [*self.commands[LOOK].params, *self.params], "| grammar ..."
        super(SourceOrVerb, shown).format_help(ctx, formatter)

    def _check_near(self, first: str) -> None:
        """Refuse a verb that is written wrong: as a source, it would be told that sources take no --out."""
        verbs = [name for name, verb in self.commands.items() if not verb.hidden]
        close = nearest(first, verbs)
        if first.isalpha() and close and not Path(first).exists():
            raise RegardError(f"There is no file, folder, built-in text or verb called '{first}'.{close}")


data = typer.Typer(
    cls=SourceOrVerb,
    help=format_help(catalog.data.__doc__),
    subcommand_metavar="[SOURCE | grammar ...]",
    rich_markup_mode="rich",
    add_completion=False,
)
data.command(LOOK, hidden=True)(catalog.data)


def grammar(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write: new, or empty.")],
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Sentences to train on.")] = 1000,
    n_valid: Annotated[int | None, typer.Option("--valid", min=1, help="Sentences to validate on; n / 10.")] = None,
    n_test: Annotated[int | None, typer.Option("--test", min=1, help="Sentences to test on; n / 10.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other sentences.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Write this alone (repeatable): text, align, pos, ner, trees, sentiment, questions, scenes, dates, "
            "numbers, reversal, copying.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="Sentences of one kind: event, opinion, complex, question, scene; ambiguous, long."
        ),
    ] = None,
    pixels: Annotated[int, typer.Option("--pixels", min=16, max=1024, help="Width and height of a scene.")] = 96,
) -> None:
    """Write parallel English, German and French with everything known: alignments, tags, names, trees, sentiment,
    questions, drawn scenes; and dates, numbers, reversal and copying. Nothing is downloaded.

    Validation and test hold combinations of words (verb and object, adjective and noun) that training never shows.

    Examples:
      regard data grammar --n 1000 --out toy
      # translation with gold alignments, and nothing else
      regard data grammar --n 100000 --only text --only align --out parallel
      # pictures with captions
      regard data grammar --n 5000 --kind scene --only scenes --out captions
    """
    from regard.data.builtin.grammar.corpus_files import CorpusPlan, write_corpus  # with numpy, which starts slowly

    tenth = max(1, n // 10)
    plan = CorpusPlan(
        n_of={"train": n, "valid": n_valid or tenth, "test": n_test or tenth},
        seed=seed,
        parts=tuple(only) if only else None,
        kind=kind,
        n_pixels=pixels,
    )
    with terminal.draw_progress() as progress:
        write_corpus(out, plan, progress)
    n_files = sum(path.is_file() for path in out.rglob("*"))
    typer.echo(f"Wrote {out}: {n_files:,} files; its README.md says what each holds.")


data.command("grammar", help=format_help(grammar.__doc__))(grammar)
