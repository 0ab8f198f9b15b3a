"""`regard compare` and `regard report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

COMPARE_EXAMPLES = (
    """
One budget for all: every contender gets the same number of parameters (widths are solved for, within 2%) and """
    """stops at the same number of seconds, tokens or FLOPs. Scores are bits per byte on text that none has seen.

Writes a table, compare.json, overview.png and report.html. After an interruption, the same command goes on.

[bold]Examples[/bold]

  regard compare ngram window rnn lstm transformer --data my.txt --budget 2min

  regard compare lstm transformer --data my.txt --budget 5Mtokens --seeds 3

  [dim]contenders, data and budget from a file:[/dim]
  regard compare recipes/demo.yaml

[bold]Finished runs[/bold] of models that translate, parse or describe pictures are given by their folders; nothing """
    """is trained. All are tested on the same data: intervals, paired bootstraps, what each cost, their outputs side """
    """by side. Outputs are kept in --out, so that a second call is quick.

  regard compare runs/lstm-plain runs/lstm runs/transformer --out compare/multi30k

  regard compare runs/lstm-s* runs/transformer-s*    (runs that differ by their seed alone count as one system)

  regard compare runs/lstm runs/transformer --data test.en --data test.de --beam 5 --reach 30
"""
)


def compare(
    contenders: Annotated[
        list[str],
        typer.Argument(
            help="Model names (`regard models`), one YAML file that describes the comparison, or run folders."
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", "-d", help="The text, as for `regard train` (repeatable); of runs: other test data than theirs."
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", help="For each contender and seed: 2min, 5Mtokens, 1e14flops.")
    ] = None,
    params: Annotated[str | None, typer.Option("--params", help="Parameters of each contender: 1M.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="How many seeds.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option("--tokenizer", help="char, byte, word, bpe or wordpiece; bpe:8000 sets its size.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="What every model continues in the report.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write (default: compare/DATA, or compare/RUNS).")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Runs: train, valid or test of their own data (default: test).")
    ] = None,
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, help="Runs: width of the beam search; 1 is greedy (default: 5).")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="Runs: tokens of a batch (default: 4096).")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="Runs: auto, cpu, cuda or cuda:N (default: auto).")
    ] = None,
    reach: Annotated[
        list[float] | None,
        typer.Option("--reach", help="Runs: tell what this validation score costs (repeatable; default: round ones)."),
    ] = None,
    skip_bad: Annotated[
        bool | None, typer.Option("--skip-bad", help="Runs: leave out what of --data cannot be used, and count it.")
    ] = None,
    each: Annotated[
        bool | None, typer.Option("--each", help="Runs: compare seeds one by one, too, not as one system.")
    ] = None,
) -> None:
    """Train models of every generation under one budget and show which is better, by how much, at what cost."""
    from regard.cli import terminal
    from regard.cli.comparing_runs import compare_finished, given_runs, refuse_options
    from regard.comparison.plan import comparison_plan
    from regard.comparison.runner import run_comparison
    from regard.comparison.table import comparison_table
    from regard.errors import naming_recipe
    from regard.training.progress import reporter

    training = {"budget": budget, "params": params, "seeds": seeds, "tokenizer": tokenizer, "prompt": prompt}
    testing = {"split": split, "beam": beam, "max-tokens": max_tokens, "device": device, "reach": reach}
    testing |= {"each": each, "skip-bad": skip_bad}
    if given_runs(contenders):
        refuse_options(training, "is for models that are trained to be compared, and these runs are finished")
        compare_finished(contenders, data, out, testing)
        return
    refuse_options(testing, "is for finished runs, and these are to be trained")
    plan = comparison_plan(
        contenders, data=data, budget=budget, params=params, seeds=seeds, tokenizer=tokenizer, prompt=prompt, out=out
    )
    is_recipe = data is None and contenders[0].endswith((".yaml", ".yml"))
    with naming_recipe(contenders[0] if is_recipe else None):
        comparison = run_comparison(plan, progress=terminal.draw_progress, reporter=reporter())
    if not comparison.ranking:
        terminal.errors.print(comparison_table(comparison))
        raise typer.Exit(1)
    terminal.print_comparison(comparison, plan.out)


compare.__doc__ = f"{compare.__doc__}\n{COMPARE_EXAMPLES}"


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `regard compare` wrote.")],
) -> None:
    """Draw report.html and overview.png again from a comparison's compare.json.

    [bold]Example[/bold]

      regard report compare/python-docs
    """
    from regard import api

    typer.echo(f"Wrote {api.report(folder)}")
