"""`regard embed`: texts as vectors, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli import lines, options
from regard.errors import RegardError

Folder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="A run of bert, elmo, a language model or a task, or a Hugging Face folder."),
]
File = Annotated[Path, typer.Argument(help="One text a line.")]
Layers = Annotated[
    str,
    typer.Option(
        "--layers",
        help="last, first, second-to-last, sum, sum-last-four, concat-last-four, or the mix that a task learned.",
    ),
]
Pool = Annotated[
    str, typer.Option("--pool", help="mean or max of a text's tokens; first or last mark; none: a vector a token.")
]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="The file to write: .npz, or .parquet where pyarrow is installed.")
]
Stride = Annotated[
    int | None,
    typer.Option("--stride", min=1, help="Tokens from one window of a long text to the next (default: half a window)."),
]


def embed(
    run: Folder,
    file: File,
    layers: Layers = "last",
    pool: Pool = "mean",
    out: Out = Path("vectors.npz"),
    stride: Stride = None,
    n_batch: Annotated[int, typer.Option("--batch", min=1, help="Texts read at once.")] = 32,
    force: options.Force = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
) -> None:
    """Write the vector of every line of a file, or with --pool none of every token, from the layers of a model.

    Texts that are longer than the model reads are read in windows that overlap: nothing is cut off. An .npz has
    `vectors` (texts, width), or with --pool none all tokens one after the other and `lengths`, how many each text has.

    Examples:
      regard embed runs/bert-tiny my.txt --out my.npz
      regard embed minilm my.txt --layers concat-last-four --pool none
    """
    texts = lines.read_lines(file)
    if not texts:
        raise RegardError(f"'{file}' is empty: give a file with one text a line.")
    shape = regard.api.embed(
        run, texts, out, layers=layers, pool=pool, stride=stride, n_batch=n_batch, force=force, device=device,
        precision=precision,
    )  # fmt: skip
    typer.echo(f"Wrote {out}: {len(texts):,} texts, {shape[0]:,} vectors of width {shape[1]:,}")
