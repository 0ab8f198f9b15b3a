"""`regard export` and `regard import`: models out to other tools, and in from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli.options import Force


def export_run(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder: n-gram, GPT-2, BERT, a task on these, or pairs."),
    ],
    to: Annotated[
        Path,
        typer.Argument(help="An ARPA or .onnx file, or a folder for Hugging Face or CTranslate2."),
    ],
    is_marian: Annotated[
        bool, typer.Option("--marian", help="A Transformer that translates: for Hugging Face, as Marian.")
    ] = False,
    force: Force = False,
) -> None:
    """Write a run for another tool: KenLM, transformers, onnxruntime or CTranslate2.

    Examples:
      regard export runs/ngram words.arpa.gz
      # GPT-2, or a transformer of its form, for AutoModelForCausalLM
      regard export runs/mine my-gpt2
      # BERT, for AutoModelForMaskedLM, or a task on top of it with its head
      regard export runs/bert-tiny my-bert
      # for onnxruntime (extra: onnx); GPT-2 with its cache
      regard export runs/mine my-gpt2.onnx
      # a Transformer that translates or parses, for CTranslate2 (extra: export)
      regard export runs/en-de fast-en-de
      # or for AutoModelForSeq2SeqLM (norms after the sums, as in vaswani)
      regard export runs/en-de my-marian --marian
      # once more, over what an earlier export wrote
      regard export runs/mine my-gpt2 --force
    """
    regard.api.export(run, to, force=force, is_marian=is_marian)
    typer.echo(f"Wrote {to}")


def import_run(
    source: Annotated[Path, typer.Argument(help="An ARPA file, packed or not, or a folder of Hugging Face or ELMo.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder to write.")],
    is_pair: Annotated[
        bool, typer.Option("--pair", help="The classifier in the folder reads two texts, which its files do not say.")
    ] = False,
    force: Force = False,
) -> None:
    """Make a run folder of an ARPA file, a Hugging Face folder of GPT-2, BERT's family or Marian, or ELMo's files.

    A folder with the head of a task (AutoModelForSequenceClassification, ForTokenClassification, ForQuestionAnswering)
    becomes a run that `regard predict` uses.

    Examples:
      regard import words.arpa.gz --out runs/words
      # a folder with config.json, model.safetensors and its tokenizer
      regard import gpt2 --out runs/gpt2
      regard import bert-base-uncased --out runs/bert
      # ELMo as published: options.json and HDF5 weights (extra: elmo)
      regard import elmo-small --out runs/elmo
      # what `regard export --marian` wrote, perhaps trained further
      regard import my-marian --out runs/en-de
      # a translator as published: source.spm, target.spm, vocab.json
      regard import opus-mt-en-de --out runs/opus
    """
    notes: list[str] = []
    run = regard.api.import_run(source, out, notes.append, force=force, is_pair=is_pair)
    typer.echo("\n".join([f"Wrote {run.folder}", *notes]))
