"""`regard caption`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def caption(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run of a model that describes pictures.")],
    pictures: Annotated[list[str], typer.Argument(metavar="PICTURE...", help="Files, folders, or globs in quotes.")],
    beam: Annotated[int, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy.")] = 5,
    n_best: Annotated[int, typer.Option("--n-best", "-n", min=1, help="How many captions a picture.")] = 1,
    length_penalty: Annotated[
        str, typer.Option("--length-penalty", help="none, length (log P / L^alpha) or wu (Wu et al. 2016).")
    ] = "length",
    alpha: Annotated[float, typer.Option("--alpha", min=0.0, help="How much the length counts.")] = 1.0,
    max_length: Annotated[int, typer.Option("--max-length", min=1, help="The longest caption, in tokens.")] = 50,
    no_repeat: Annotated[
        int | None, typer.Option("--no-repeat", min=1, help="Block repeated n-grams of this length.")
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            metavar="DIR",
            help="Write where each word looked: a PNG a picture, sheet.png of the first ten, and index.html.",
        ),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Pictures that cannot be read are left out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a caption, with scores.")] = False,
    precision: Annotated[str, typer.Option("--precision", help="float32 or bf16.")] = "float32",
) -> None:
    """Say what is in pictures.

    One picture gives its caption; several give a line each, name and caption with a tab between them. With --n-best
    the score stands behind each caption.

    [bold]Examples[/bold]

      regard caption runs/flickr8k photo.jpg

      regard caption runs/flickr8k photos/ --draw looked

      regard caption runs/flickr8k 'photos/*.png' --n-best 3 --json
    """
    from regard.caption_run import load_caption_run, picture_files
    from regard.caption_terminal import print_drawn, print_n_skipped, print_skipped
    from regard.decode.config import BeamConfig

    loaded = load_caption_run(run, precision=precision)
    config = BeamConfig(
        beam=max(beam, n_best), n_best=n_best, length_penalty=length_penalty, alpha=alpha, max_length=max_length,
        no_repeat_ngram=no_repeat,
    )  # fmt: skip
    files = list(picture_files(pictures))
    drawing = None if draw is None else loaded.drawing(draw)
    n_described = 0
    for path, square, best in loaded.described(files, config, skipped=print_skipped if skip_bad else None):
        n_described += 1
        for found in best:
            if as_json:
                line = {"picture": str(path), "text": found.text, "log_prob": found.log_prob, "score": found.score}
                print(json.dumps(line, ensure_ascii=False))
            else:
                name = [str(path)] if len(files) > 1 else []
                print(*name, found.text, *([f"{found.score:.4f}"] if n_best > 1 else []), sep="\t")
        if drawing is not None:
            drawing.add(path, square, best[0])
    if n_described < len(files):
        print_n_skipped(len(files) - n_described, len(files))
    if drawing is not None:
        print_drawn(drawing.finish())
