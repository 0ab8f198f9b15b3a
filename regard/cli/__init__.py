"""The command line: each verb parses its words, calls one library function and prints what came back."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated

import typer

from regard import __version__
from regard.cli import (
    caption,
    catalog,
    compare,
    exchange,
    grammar,
    judge,
    parse,
    recipes,
    study,
    train,
    translate,
    use,
)
from regard.errors import InterruptedRunError, RegardError

app = typer.Typer(
    name="regard",
    help="Train, compare and look inside sequence models, from n-grams to the Transformer, on your own text.",
    epilog="Start with:  regard compare ngram lstm transformer --data python-docs --budget 30s",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_TRAIN, _USE, _SEE = "Train", "Use a trained run", "What there is"
app.command("compare", rich_help_panel=_TRAIN)(compare.compare)
app.command("train", rich_help_panel=_TRAIN)(train.train)
app.command("study", rich_help_panel=_TRAIN)(study.study)
app.command("generate", rich_help_panel=_USE)(use.generate)
app.command("translate", rich_help_panel=_USE)(translate.translate)
app.command("caption", rich_help_panel=_USE)(caption.caption)
app.command("parse", rich_help_panel=_USE)(parse.parse)
app.command("score", rich_help_panel=_USE)(use.score)
app.command("eval", rich_help_panel=_USE)(use.evaluate)
app.command("bleu", rich_help_panel=_USE)(judge.bleu)
app.command("align", rich_help_panel=_USE)(judge.align)
app.command("report", rich_help_panel=_USE)(compare.report)
app.command("export", rich_help_panel=_USE)(exchange.export_run)
app.command("import", rich_help_panel=_USE)(exchange.import_run)
app.command("models", rich_help_panel=_SEE)(catalog.models)
app.command("recipes", rich_help_panel=_SEE)(recipes.recipes)
app.add_typer(grammar.data, name="data", rich_help_panel=_SEE)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a mistake of the user's becomes one sentence on stderr and exit code 2."""
    try:
        app()
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(2)
    except InterruptedRunError as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        where = "" if error.filename is None else f": {error.filename}"
        print(f"regard: {error.strerror}{where}. Nothing else was changed.", file=sys.stderr)
        sys.exit(2)
    except SystemExit as leaving:
        if leaving.code == 130:  # what typer makes of a Ctrl-C that no verb has caught
            print("\nregard: interrupted.", file=sys.stderr)
        raise
