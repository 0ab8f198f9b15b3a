"""`regard export` and `regard import`: models out to other tools, and in from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard


def export_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder: n-gram, GPT-2, or a Transformer of pairs.")],
    to: Annotated[
        Path, typer.Argument(help="The ARPA file (.gz packs it), or the folder for Hugging Face or CTranslate2.")
    ],
) -> None:
    """Write a run for another tool: n-grams for KenLM, GPT-2 for transformers, translators for CTranslate2.

    [bold]Examples[/bold]

      regard export runs/ngram words.arpa.gz

      [dim]gpt2, or a transformer of its form; AutoModelForCausalLM and AutoTokenizer load it:[/dim]
      regard export runs/mine my-gpt2

      [dim]a Transformer that translates or parses; ctranslate2.Translator loads it (extra: export):[/dim]
      regard export runs/en-de fast-en-de
    """
    regard.api.export(run, to)
    typer.echo(f"Wrote {to}")


def import_run(
    source: Annotated[Path, typer.Argument(help="An ARPA file, packed by gzip or not, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.")],
) -> None:
    """Make a run folder of an ARPA file or of a Hugging Face GPT-2 folder: to score, generate and look inside.

    [bold]Examples[/bold]

      regard import words.arpa.gz --out runs/words

      [dim]a folder with config.json, model.safetensors and tokenizer.json (or vocab.json and merges.txt):[/dim]
      regard import gpt2 --out runs/gpt2
    """
    notes: list[str] = []
    run = regard.api.import_run(source, out, notes.append)
    typer.echo("\n".join([f"Wrote {run.folder}", *notes]))
