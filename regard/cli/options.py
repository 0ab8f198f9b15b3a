"""Options that several verbs share, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that `regard train` wrote.")]
OtherRuns = Annotated[
    list[Path] | None, typer.Option("--with", metavar="RUN", help="Average with this run too (repeatable).")
]
Lines = Annotated[Path | None, typer.Argument(help="One sentence a line (default: -, standard input).")]
Tag = Annotated[str | None, typer.Option("--to", metavar="TAG", help="What to write, a tag such as <2de>.")]

Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Precision = Annotated[str, typer.Option("--precision", help="float32, or bf16: half the memory, faster on a GPU.")]
EnginePrecision = Annotated[
    str,
    typer.Option(
        "--precision", help="float32; bf16: half the memory, faster on a GPU; int8: with --engine ctranslate2."
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="torch, or ctranslate2: Transformers on a CPU, much faster (extra: export)."),
]
Window = Annotated[
    int | None, typer.Option("--window", min=1, help="Lines read ahead (default: 2000; 1 at a terminal).")
]
BatchTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="Tokens of a batch.")]

Beam = Annotated[int, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy.")]
NBest = Annotated[int, typer.Option("--n-best", "-n", min=1, help="How many answers an item.")]
LengthPenalty = Annotated[
    str, typer.Option("--length-penalty", help="none, length (log P / L^alpha) or wu (Wu et al. 2016).")
]
Alpha = Annotated[float, typer.Option("--alpha", min=0.0, help="How much the length counts.")]
NoRepeat = Annotated[int | None, typer.Option("--no-repeat", min=1, help="Block repeated n-grams of this length.")]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the k most probable tokens.")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Draw from the fewest tokens with this much probability.")]

Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Train so many at a time: small models share a GPU well.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out what cannot be used, and count it.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for scripts instead of text for people.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
Force = Annotated[
    bool, typer.Option("--force", help="Write where files lie that Regard did not write; a run is never written over.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="Change one setting (repeatable).")
]
