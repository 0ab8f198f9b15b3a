"""What the command line prints of captions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from regard.terminal import console, errors, plain_table

if TYPE_CHECKING:
    from pathlib import Path

    from regard.caption_run import CaptionEvaluation


def print_caption_evaluation(result: CaptionEvaluation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    table = plain_table("measure", "value", right=("value",))
    table.add_row("loss, nats a token", f"{result.nats_per_token:.4f}")
    table.add_row("perplexity a token", f"{result.perplexity:,.2f}")
    for n, score in enumerate(result.bleu.up_to, start=1):
        bold = "bold" if n == len(result.bleu.up_to) else "not bold"
        table.add_row(Text(f"BLEU-{n}", bold), Text(f"{score:.2f}", bold))
    table.add_row("pictures, captions, tokens", f"{result.n_pictures:,}, {result.n_captions:,}, {result.n_tokens:,}")
    console.print(table)
    if result.skipped:
        from regard.data.split import describe_skipped

        console.print(f"{describe_skipped(result.skipped, '')}.", soft_wrap=True)
    console.print(f"[dim]sacreBLEU {result.bleu.signature}[/dim]")


def print_test_bleu(scores: dict[str, Any] | None) -> None:
    """What a run that has just ended scored on its test pictures, if it did."""
    if scores is not None:
        orders = ", ".join(f"BLEU-{n} {score:.2f}" for n, score in enumerate(scores["bleu"]["up_to"], start=1))
        rest = f"perplexity {scores['perplexity']:,.2f} on {scores['n_pictures']:,} test pictures"
        console.print(f"[bold]{orders}[/bold], {rest}")


def print_drawn(page: Path) -> None:
    said = f"Where each word looked: {page}; beside it a PNG for each picture, and sheet.png."
    errors.print(Text(said), soft_wrap=True)


def print_skipped(why: str) -> None:
    """Something was left out of what is printed."""
    errors.print(Text(f"regard: {why}"), soft_wrap=True)


def print_n_skipped(n: int, n_given: int) -> None:
    """How much of it that was, in the end."""
    errors.print(Text(f"regard: left out: {n:,} of {n_given:,} pictures."))
