"""`regard caption`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import regard
from regard.cli import options
from regard.cli.terminal import print_note
from regard.decode.config import BeamConfig

if TYPE_CHECKING:
    from regard.decode.caption import Caption

Pictures = Annotated[list[str], typer.Argument(metavar="PICTURE...", help="Files, folders, or globs in quotes.")]
MaxLength = Annotated[int, typer.Option("--max-length", min=1, help="The longest caption, in tokens.")]
Draw = Annotated[
    Path | None,
    typer.Option(
        "--draw",
        metavar="DIR",
        help="Write where each word looked: a PNG a picture, sheet.png of the first ten, and index.html.",
    ),
]


def caption(
    run: options.RunFolder,
    pictures: Pictures,
    beam: options.Beam = 5,
    n_best: options.NBest = 1,
    length_penalty: options.LengthPenalty = "length",
    alpha: options.Alpha = 1.0,
    max_length: MaxLength = 50,
    no_repeat: options.NoRepeat = None,
    draw: Draw = None,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
) -> None:
    """Say what is in pictures.

    One picture gives its caption; several give a line each, name and caption with a tab between them. With --n-best
    the score stands behind each caption.

    Examples:
      regard caption runs/flickr8k photo.jpg
      regard caption runs/flickr8k photos/ --draw attention
      regard caption runs/flickr8k 'photos/*.png' --n-best 3 --json
    """
    from regard.data.pictures import list_pictures  # Pillow and matplotlib take long to start
    from regard.report.captions import CaptionDrawing

    loaded = regard.load(run, device, precision, kind=regard.CaptionRun)
    config = BeamConfig(
        beam=max(beam, n_best), n_best=n_best, length_penalty=length_penalty, alpha=alpha, max_length=max_length,
        no_repeat_ngram=no_repeat,
    )  # fmt: skip
    files = list(list_pictures(pictures))
    drawing = None if draw is None else CaptionDrawing(draw, force)
    if drawing is not None:
        loaded.check_attention()
    n_described, tell = 0, lambda why: print_note(f"regard: {why}")
    for path, square, best in loaded.describe(files, config, tell if skip_bad else None):
        n_described += 1
        for found in best:
            print(_line(path, found, len(files) > 1, n_best > 1, as_json))
        if drawing is not None:
            drawing.add(loaded.attend(square, best[0], path.name))
    if n_described < len(files):
        print_note(f"regard: left out: {len(files) - n_described:,} of {len(files):,} pictures.")
    if drawing is not None:
        page = drawing.finish()
        print_note(f"Where each word looked: {page}; beside it a PNG for each picture, and sheet.png.")


def _line(path: Path, found: Caption, has_name: bool, has_score: bool, as_json: bool) -> str:
    """One caption as it is printed."""
    if as_json:
        line = {"picture": str(path), "text": found.text, "log_prob": found.log_prob, "score": found.score}
        return json.dumps(line, ensure_ascii=False)
    name, score = [str(path)] if has_name else [], [f"{found.score:.4f}"] if has_score else []
    return "\t".join([*name, found.text, *score])
