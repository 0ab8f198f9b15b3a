"""`regard compare` and `regard report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import regard
from regard.cli import terminal
from regard.cli.options import Force, Jobs, Quiet

Contenders = Annotated[
    list[str],
    typer.Argument(help="Model names (`regard models`), one YAML file that describes the comparison, or run folders."),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data", "-d", help="The data, as for `regard train` (repeatable); of runs: other test data than theirs."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        "-b",
        help="For each contender and seed: 1e14flops, 5Mtokens; 2min: as many FLOPs as fit (default: 1min).",
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0, help="Stop by the clock instead, however fast the machine is.")
]
Task = Annotated[
    str | None,
    typer.Option("--task", "-t", help="classify, rate, tag or answer; a run folder then reads the texts of its task."),
]
Match = Annotated[
    str | None, typer.Option("--match", help="Parameters that are equal: total (default), non-embedding, none.")
]
Params = Annotated[str | None, typer.Option("--params", help="Parameters of each contender: 1M.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="How many seeds.")]
Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", help="char, byte, word, bpe or wordpiece; bpe:8000 sets its size.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="What every model continues in the report.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder to write (default: compare/DATA, or compare/RUNS).")
]
Split = Annotated[
    str | None, typer.Option("--split", help="Runs: train, valid or test of their own data (default: test).")
]
Beam = Annotated[int | None, typer.Option("--beam", min=1, help="Width of the beam search; 1 is greedy (default: 5).")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=1, help="Tokens of a batch that is decoded (default: 4096).")
]
Context = Annotated[
    str | None,
    typer.Option("--context", help="Tokens that all see at most in a second score (default: the fewest); own: none."),
]
Device = Annotated[str | None, typer.Option("--device", help="Runs: auto, cpu, cuda or cuda:N (default: auto).")]
Reach = Annotated[
    list[float] | None,
    typer.Option("--reach", help="Tell what this validation score costs (repeatable; default: round ones)."),
]
SkipBad = Annotated[
    bool | None, typer.Option("--skip-bad", help="Runs: leave out items of --data that cannot be used, and count them.")
]
Each = Annotated[bool | None, typer.Option("--each", help="Runs: compare seeds one by one, not as one contender.")]


def compare(
    contenders: Contenders,
    task: Task = None,
    data: Data = None,
    budget: Budget = None,
    seconds: Seconds = None,
    params: Params = None,
    match: Match = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    tokenizer: Tokenizer = None,
    prompt: Prompt = None,
    out: Out = None,
    split: Split = None,
    beam: Beam = None,
    context: Context = None,
    max_tokens: MaxTokens = None,
    device: Device = None,
    reach: Reach = None,
    skip_bad: SkipBad = None,
    each: Each = None,
    quiet: Quiet = False,
) -> None:
    """Compare models, trained under one budget or finished: which is better, by how much, at what cost.

    One budget for all: every contender stops at the same number of FLOPs or tokens. A time is turned into FLOPs by the
    speed of this machine, and can be typed as FLOPs on another. Language models get the same number of parameters
    (widths are solved for, within 2%) and are scored in bits per byte on text that none has seen; other models do where
    --params is given. Finished runs of one task are given by their folders; nothing is
    trained, and all are tested on the same data. Runs that differ by their seed alone count as one contender.

    Writes a table, compare.json, overview.png and report.html: intervals, a test for each pair, what each cost, answers
    side by side. After an interruption, the same command goes on.

    Examples:
      regard compare ngram window rnn lstm --data my.txt --budget 2min
      regard compare lstm transformer --data my.txt --budget 5Mtokens --seeds 3
      # classifiers from scratch, and one on top of a language model of yours
      regard compare bag lstm runs/lm --task classify --data reviews.tsv
      # contenders, data and budget from a file
      regard compare recipes/demo.yaml
      # finished runs; answers are kept in --out, so that a second call is quick
      regard compare runs/lstm runs/transformer --out compare/multi30k
      regard compare runs/lstm-s* runs/transformer-s*
      regard compare runs/lstm runs/gru --data test.en --data test.de --beam 5
    """
    comparison = regard.compare(
        contenders, task=task, data=data, budget=budget, seconds=seconds, params=params, match=match, seeds=seeds,
        jobs=jobs, tokenizer=tokenizer, prompt=prompt, out=out, split=split, beam=beam, context=context,
        max_tokens=max_tokens, device=device, levels=reach or (), skips_bad=skip_bad,
        is_each=each, progress=terminal.progress_bar(quiet), reporter=terminal.reporter(quiet),
    )  # fmt: skip
    terminal.print_comparison(comparison)
    if not comparison.ranking:
        raise typer.Exit(1)


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `regard compare` wrote.")],
    force: Force = False,
) -> None:
    """Draw report.html and overview.png again from a comparison's compare.json.

    Example:
      regard report compare/python-docs
    """
    page = regard.api.report(folder, force)
    typer.echo(f"Wrote {page}\nWrote {page.with_name('overview.png')}")
