"""`regard generate`, `regard score` and `regard eval`: what one does with a trained run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import regard
from regard.cli import lines, options, terminal
from regard.errors import RegardError

Prompt = Annotated[str, typer.Option("--prompt", "-p", help="Text to continue; empty: start from scratch.")]
MinP = Annotated[
    float | None, typer.Option("--min-p", help="Tokens at least this fraction as probable as the most probable.")
]
Search = Annotated[int | None, typer.Option("--beam", min=1, help="Beam search of this width.")]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=1, help="Longest continuation, in tokens (default: 200; of a BERT 20)."),
]
Stop = Annotated[list[str] | None, typer.Option("--stop", help="Stop before this text (repeatable).")]

Under = Annotated[
    Path | None,
    typer.Option(
        "--score-under",
        metavar="RUN",
        help="Bits per byte of a BERT's text under this language model, and of its own.",
    ),
]

REPEATED_MASKING = (
    "regard: written by repeated masking, each place drawn anew given all others: no left-to-right model wrote this, "
    "and it has no probability."
)


def generate(
    run: options.RunFolder,
    prompt: Prompt = "",
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=10_000, help="How many continuations.")] = 1,
    max_tokens: MaxTokens = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 always takes the most probable token.")] = 0.8,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    min_p: MinP = None,
    beam: Search = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same text.")] = 0,
    stop: Stop = None,
    score_under: Under = None,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.EnginePrecision = "float32",
    engine: options.Engine = "torch",
) -> None:
    """Write text with a trained model, as it is made.

    Examples:
      regard generate runs/lstm --prompt "In October, people"
      regard generate runs/lstm --n 3 --temperature 0.7 --top-p 0.9 --stop "\\n\\n"
      regard generate runs/lstm --prompt "The" --beam 4 --max-tokens 30
      # on a CPU, in eight bits
      regard generate runs/transformer --engine ctranslate2 --precision int8
      # of a BERT, by repeated masking, which is not how it was trained
      regard generate runs/bert-tiny --prompt "Return the" --max-tokens 12
      # what a left-to-right model says of such a text, and of its own
      regard generate runs/bert-tiny --prompt "Return the" --score-under runs/lstm
    """
    loaded: Any = regard.load(run, device, precision, engine=engine)
    sampling: dict[str, Any] = {
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "temperature": temperature,
        "seed": seed,
    }
    if isinstance(loaded, regard.MaskedLanguageModelRun):
        if stop or beam is not None:
            raise RegardError(f"'{run}' writes by repeated masking: leave out {'--beam' if beam else '--stop'}.")
        print(REPEATED_MASKING, file=sys.stderr)
        score = _score_under(score_under, device, prompt, sampling)
        made = loaded.generate(prompt, n, max_tokens=max_tokens or 20, **sampling)
        terminal.print_generated("", enumerate([made] if isinstance(made, str) else made), n, as_json, score)
        return
    if score_under is not None:
        raise RegardError(f"--score-under is for text by repeated masking, of a BERT. Score a text: regard score {run}")
    if not isinstance(loaded, regard.LanguageModelRun):
        loaded = regard.load(run, device, precision, kind=regard.LanguageModelRun)  # which says what it is instead
    pieces = loaded.stream(
        prompt,
        n=n,
        max_tokens=max_tokens or 200,
        beam=beam,
        **sampling,
        stop=tuple(s.replace("\\n", "\n").replace("\\t", "\t") for s in stop or ()),
    )
    terminal.print_generated(prompt, pieces, n, as_json)


def _score_under(
    under: Path | None, device: str, prompt: str, sampling: dict[str, Any]
) -> Callable[[str], dict[str, Any]] | None:
    """What a left-to-right run says of a text, and of one of its own after the same prompt; None: no run is given."""
    if under is None:
        return None
    judge: Any = regard.load(under, device, kind=regard.LanguageModelRun)

    def score(text: str) -> dict[str, Any]:
        own = judge.write_as_long(text, prompt, **sampling)
        return {
            "under": str(under),
            "bits_per_byte": judge.score(text).bits_per_byte,
            "its_own_text": own,
            "bits_per_byte_of_its_own": judge.score(own).bits_per_byte,
        }

    return score


Scored = Annotated[str, typer.Argument(help="The text to score; - reads standard input. Pairs: sources, one a line.")]
Target = Annotated[Path | None, typer.Argument(help="Pairs: their targets, one a line.")]
By = Annotated[str, typer.Option("--by", help="Text: what to print: token, line or document.")]


def score(
    run: options.RunFolder,
    file: Scored = "-",
    target: Target = None,
    by: By = "token",
    to: options.Tag = None,
    skip_bad: options.SkipBad = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
) -> None:
    """Log-probability of a text: surprising tokens coloured, or a number a line or document.

    For a run that translates: of each target given its source, a line with log-probability, tokens, perplexity and
    both texts, with tabs between them; --json has what each token costs too.

    Examples:
      regard score runs/lstm my.txt
      # the strangest lines
      regard score runs/lstm my.txt --by line | sort -n | head
      echo "the cat sat on the" | regard score runs/lstm
      # the pairs that a translator finds least likely
      regard score runs/multi30k train.en train.de | sort -n | head
    """
    loaded = regard.load(run, device)
    if isinstance(loaded, regard.TranslationRun):
        if target is None:
            raise RegardError(f"'{run}' translates: give the sources and their targets, as two files of lines.")
        sources, targets = lines.read_aligned([Path(file), target])
        scores = loaded.scores(zip(sources, targets, strict=True), to, skips_bad=skip_bad)
        terminal.print_scored_pairs(sources, targets, scores, as_json)
        return
    if not isinstance(loaded, regard.LanguageModelRun):
        raise RegardError(
            f"'{run}' is no language model and no translator: score it on its test data with regard eval."
        )
    if target is not None or to is not None or skip_bad:
        given = "--to" if to is not None else "--skip-bad" if skip_bad else f"'{target}'"
        raise RegardError(f"'{run}' is a language model and scores one text: leave out {given}.")
    terminal.print_scored(loaded.score_source(file), by=by, as_json=as_json)


OtherData = Annotated[
    list[str] | None, typer.Option("--data", "-d", help="Other data than the run's own test split (repeatable).")
]
Split = Annotated[str, typer.Option("--split", help="train, valid or test of the run's own data.")]
Stride = Annotated[
    int | None,
    typer.Option("--stride", min=1, help="Step of the sliding window of fixed-context models (default: half)."),
]
Drawn = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Draw a page for a task with labels: reliability, confusions, errors."),
]


def evaluate(
    run: options.RunFolder,
    data: OtherData = None,
    split: Split = "test",
    stride: Stride = None,
    beam: Search = None,
    to: options.Tag = None,
    skip_bad: options.SkipBad = False,
    out: Drawn = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
) -> None:
    """Scores on held-out data: bits per byte of a language model, BLEU of a translator, accuracy of a classifier.

    A language model: loss, perplexity per token and per word, bits per byte. A translator: loss, BLEU and chrF (beam
    search as in `regard translate`). A parser: labelled precision, recall and F1, and how many parses are ill-formed
    without the constraint. A captioner: loss, and BLEU-1 to BLEU-4 against all that people said of each picture. What
    classifies, rates, tags or answers: its measures with intervals, what was taken for what, whether its probabilities
    can be trusted, and the worst errors.

    Examples:
      regard eval runs/lstm
      regard eval runs/transformer --data other.txt --stride 64
      # pairs, two aligned files
      regard eval runs/multi30k --data test.en --data test.de --beam 5
      # one language of several that a run was trained to write
      regard eval runs/several --to '<2de>' --data test.en --data test.de
      # pictures, a folder and its captions
      regard eval runs/flickr8k --data photos --data captions.txt
      # a classifier, drawn as a page
      regard eval runs/classifier --out scores
    """
    asked: dict[str, Any] = {"stride": stride, "beam": beam, "tag": to, "skips_bad": skip_bad or None}
    loaded = regard.load(run, device)
    with terminal.draw_progress() as progress:
        found = regard.api.evaluate(loaded, data, split=split, out=out, force=force, progress=progress, **asked)
    terminal.print_evaluation(found, as_json, has_details=True)
    if out is not None:
        terminal.print_note(f"The page: {out / 'report.html'}")
