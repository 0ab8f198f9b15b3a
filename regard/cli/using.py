"""`regard generate`, `regard score` and `regard eval`: what one does with a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that `regard train` wrote.")]


def generate(
    run: RunFolder,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="Text to continue; empty: start from scratch.")] = "",
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many continuations.")] = 1,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest continuation, in tokens.")] = 200,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 always takes the likeliest token.")] = 0.8,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Only the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="The smallest set with this much probability.")] = None,
    min_p: Annotated[
        float | None, typer.Option("--min-p", help="Tokens at least this fraction as likely as the likeliest.")
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam search of this width; no sampling.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same text.")] = 0,
    stop: Annotated[list[str] | None, typer.Option("--stop", help="Stop before this text (repeatable).")] = None,
    precision: Annotated[
        str, typer.Option("--precision", help="float32 or bf16: half the memory, and faster on a GPU.")
    ] = "float32",
) -> None:
    """Write text with a trained model, as it is made.

    [bold]Examples[/bold]

      regard generate runs/lstm --prompt "In October, people"

      regard generate runs/lstm --n 3 --temperature 0.7 --top-p 0.9 --stop "\\n\\n"

      regard generate runs/lstm --prompt "The" --beam 4 --max-tokens 30
    """
    from regard import terminal
    from regard.run import load

    loaded = load(run, precision=precision)
    pieces = loaded.stream(
        prompt,
        n=n,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        beam=beam,
        seed=seed,
        stop=tuple(s.replace("\\n", "\n").replace("\\t", "\t") for s in stop or ()),
    )
    terminal.print_generated(prompt, pieces, n)


def score(
    run: RunFolder,
    file: Annotated[
        str, typer.Argument(help="The text to score; - reads standard input. Pairs: the sources, one a line.")
    ] = "-",
    target: Annotated[Path | None, typer.Argument(help="Pairs: their targets, one a line.")] = None,
    by: Annotated[str, typer.Option("--by", help="Text: what to print: token, line or document.")] = "token",
    to: Annotated[str | None, typer.Option("--to", metavar="TAG", help="Pairs: a tag such as <2de>.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pairs that cannot be scored give an empty line.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of colours.")] = False,
) -> None:
    """Log-probability of a text: surprising tokens coloured, or a number a line or document.

    For a run that reads pairs: of each target given its source, a line with log-probability, tokens, perplexity and
    both texts, with tabs between them; --json has what each token costs too.

    [bold]Examples[/bold]

      regard score runs/lstm my.txt

      [dim]the strangest lines:[/dim]
      regard score runs/lstm my.txt --by line | sort -n | head

      echo "the cat sat on the" | regard score runs/lstm

      [dim]the pairs that a translator finds least likely:[/dim]
      regard score runs/multi30k train.en train.de | sort -n | head
    """
    from regard import terminal
    from regard.errors import RegardError
    from regard.folder import open_folder
    from regard.run import load

    if open_folder(run)[0].reads_pairs:
        if target is None:
            raise RegardError(f"'{run}' reads pairs: give the sources and their targets, as two files of lines.")
        _score_pairs(run, Path(file), target, to, skip_bad, as_json)
        return
    if target is not None or to is not None or skip_bad:
        loaded = load(run)  # what describes pictures is no language model either, and says so
        given = "--to" if to is not None else "--skip-bad" if skip_bad else f"'{target}'"
        raise RegardError(f"'{loaded.folder}' is a language model and scores one text: leave out {given}.")
    terminal.print_scored(load(run).score_source(file), by=by, as_json=as_json)


def _score_pairs(run: Path, source: Path, target: Path, to: str | None, skip_bad: bool, as_json: bool) -> None:
    from regard import line_terminal
    from regard.pair_run import load_pair_run
    from regard.pair_terminal import print_scored_pairs

    sources, targets = line_terminal.same_length([source, target])
    scores = load_pair_run(run).scores(zip(sources, targets, strict=True), to, skips_bad=skip_bad)
    print_scored_pairs(sources, targets, scores, as_json)


def evaluate(
    run: RunFolder,
    data: Annotated[
        list[str] | None, typer.Option("--data", "-d", help="Other text than the run's own test split (repeatable).")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="train, valid or test of the run's own data.")] = "test",
    stride: Annotated[
        int | None,
        typer.Option("--stride", min=1, help="Step of the sliding window of fixed-context models (default: half)."),
    ] = None,
    beam: Annotated[int, typer.Option("--beam", min=1, help="Pairs: width of the beam search; 1 is greedy.")] = 5,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TAG", help="Pairs: only those into this, a tag such as <2de>.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out pairs, trees and pictures that cannot be used; count them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Loss, perplexity per token and per word, and bits per byte on held-out text.

    For a run that reads pairs: loss, BLEU and chrF of its translations (beam search as in `regard translate`); for one
    that was trained on trees: labelled precision, recall and F1 of its parses, and how many are no trees when nothing
    holds it to write some.

    For a run that describes pictures: loss, and BLEU-1 to BLEU-4 against all that people said of each.

    [bold]Examples[/bold]

      regard eval runs/lstm

      regard eval runs/transformer --data other.txt --stride 64

      [dim]pairs, two aligned files:[/dim]
      regard eval runs/multi30k --data test.en --data test.de --beam 5

      [dim]one language of several that a run was trained to write:[/dim]
      regard eval runs/several --to '<2de>' --data test.en --data test.de

      [dim]pictures, a folder and its captions:[/dim]
      regard eval runs/flickr8k --data photos --data captions.txt
    """
    from regard import api, terminal
    from regard.caption_run import CaptionRun
    from regard.errors import RegardError
    from regard.pair_run import PairRun

    loaded = api.load(run)
    is_language_model = not isinstance(loaded, CaptionRun | PairRun)
    if skip_bad and (data is None or is_language_model):
        if is_language_model:
            raise RegardError(f"'{run}' is a language model and leaves out no line: leave out --skip-bad.")
        raise RegardError("--skip-bad is for what --data names: name some, or leave it out.")
    if to is not None and not isinstance(loaded, PairRun):
        raise RegardError(f"--to is for runs that read pairs, and '{run}' reads none: leave it out.")
    if isinstance(loaded, CaptionRun):
        from regard.caption_terminal import print_caption_evaluation
        from regard.decode.caption import MAX_LENGTH
        from regard.decode.config import BeamConfig

        config = BeamConfig(beam=beam, max_length=MAX_LENGTH)
        print_caption_evaluation(loaded.evaluate(data, split=split, beam=config, skips_bad=skip_bad), as_json)
        return
    if isinstance(loaded, PairRun):
        from regard.decode.config import BeamConfig

        config = BeamConfig(beam=beam, max_ratio=3.0)
        terminal.print_pair_evaluation(
            loaded.evaluate(data, split=split, beam=config, skips_bad=skip_bad, tag=to), as_json=as_json
        )
        return
    terminal.print_evaluation(loaded.evaluate(data, split=split, stride=stride), as_json=as_json)
    if loaded.can_copy_words and not as_json:
        unknown = "Words that the tokenizer does not have all count as one <unk> here"
        typer.echo(f"{unknown}; `regard score` tells them apart.")
