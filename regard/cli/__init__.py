"""The command line: each verb parses its words, calls one library function and prints what came back."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import typer

from regard import __version__
from regard.cli import (
    cache,
    caption,
    catalog,
    check,
    compare,
    embed,
    exchange,
    fill,
    grammar,
    judge,
    look,
    next_word,
    parse,
    predict,
    recipes,
    serve,
    study,
    train,
    translate,
    use,
    vectors,
)  # fmt: skip
from regard.cli.help import format_help
from regard.cli.interrupts import terminated_as_interrupted
from regard.cli.safe_terminal import guard_terminal
from regard.errors import InterruptedRunError, RegardError
from regard.untrusted.values import MAX_PRINTED, make_printable

app = typer.Typer(
    name="regard",
    help="Train, compare and look inside sequence models, from n-grams to the Transformer, on your own text.",
    epilog="Start with: regard compare ngram lstm --data python-docs --budget 30s",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS: dict[str, dict[str, Callable[..., None]]] = {
    "Train and compare": {
        "compare": compare.compare,
        "train": train.train,
        "study": study.study,
        "report": compare.report,
    },
    "Use a trained run": {
        "look": look.look,
        "next": next_word.predict_next,
        "generate": use.generate,
        "fill": fill.fill,
        "embed": embed.embed,
        "translate": translate.translate,
        "caption": caption.caption,
        "parse": parse.parse,
        "predict": predict.predict,
        "score": use.score,
        "eval": use.evaluate,
        "bleu": judge.bleu,
        "align": judge.align,
        "export": exchange.export_run,
        "serve": serve.serve,
        "import": exchange.import_run,
        "check": check.check,
    },
    "What there is": {"models": catalog.models, "recipes": recipes.recipes, "cache": cache.cache},
}
for _panel, _verbs in VERBS.items():
    for _name, _verb in _verbs.items():
        _kind = study.StudyCommand if _name == "study" else None
        app.command(_name, cls=_kind, help=format_help(_verb.__doc__), rich_help_panel=_panel)(_verb)
app.add_typer(vectors.vectors, name="vectors", rich_help_panel="Use a trained run")
app.add_typer(grammar.data, name="data", rich_help_panel="What there is")


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
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")  # of Pillow's: smaller pictures are refused by us
    try:
        with terminated_as_interrupted(), guard_terminal():
            app()
    except RegardError as error:
        print(f"regard: {make_printable(str(error), MAX_PRINTED)}", file=sys.stderr)
        sys.exit(2)
    except InterruptedRunError as interruption:
        print(interruption, file=sys.stderr)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        # torch has no word of its own for it: "DefaultCPUAllocator: can't allocate memory", "CUDA out of memory"
        if not isinstance(error, MemoryError) and not re.search("allocate memory|out of memory", str(error)):
            raise
        print("regard: this needs more memory than there is. Give less at a time, or a smaller model.", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader of our output (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno is None:
            raise
        where = "" if error.filename is None else f": {make_printable(str(error.filename), 200)}"
        known = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
        more = "Nothing else was changed." if known else "Is it there, a file or folder as it should be, and yours?"
        print(f"regard: {error.strerror}{where}. {more}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as leaving:
        if leaving.code == 130:  # what typer makes of a Ctrl-C that no verb has caught
            print("\nregard: interrupted.", file=sys.stderr)
        raise
