"""`regard translate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import regard
from regard.cli import lines, options
from regard.cli.judge import MAX_DRAWN, draw_alignments
from regard.decode.config import BeamConfig, SamplingConfig
from regard.errors import RegardError
from regard.report.page_folder import LOOK

if TYPE_CHECKING:
    from regard import TranslationRun
    from regard.decode.translate import Translation

Beam = Annotated[
    int | None, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy (default: 5).")
]
Sample = Annotated[bool, typer.Option("--sample", help="Draw targets at random instead of searching.")]
Temperature = Annotated[
    float | None, typer.Option("--temperature", min=0.0, help="Below 1 draws more probable tokens (default: 1).")
]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="The same seed draws the same for the same line (default: 0).")
]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", min=1, help="The longest target, in tokens (default: by --max-ratio).")
]
MaxRatio = Annotated[
    float, typer.Option("--max-ratio", min=0.1, help="The longest target: so many tokens a source token, and 10.")
]
Align = Annotated[bool, typer.Option("--align", help="Print a word alignment too, as 0-0 1-2.")]
Draw = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="With --align: draw the alignments of the first lines, as a page and pictures."),
]


def translate(
    run: options.RunFolder,
    file: options.Lines = None,
    others: options.OtherRuns = None,
    beam: Beam = None,
    n_best: options.NBest = 1,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    seed: Seed = None,
    length_penalty: options.LengthPenalty = "length",
    alpha: options.Alpha = 1.0,
    max_length: MaxLength = None,
    max_ratio: MaxRatio = 3.0,
    no_repeat: options.NoRepeat = None,
    to: options.Tag = None,
    align: Align = False,
    out: Draw = None,
    force: options.Force = False,
    skip_bad: options.SkipBad = False,
    window: options.Window = None,
    max_tokens: options.BatchTokens = 4096,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    precision: options.EnginePrecision = "float32",
    engine: options.Engine = "torch",
) -> None:
    """Translate lines, in their order; a pipe of any length is read as it comes.

    With --n-best each target stands on a line of its own: the number of its source's line, from 1 on, text and score,
    with tabs between. --align puts a tab and the alignment behind; --json prints all of it as objects.

    Examples:
      regard translate runs/multi30k < test.en > test.out
      echo "A dog runs." | regard translate runs/multi30k --n-best 3
      # on a CPU, in eight bits: several times as fast
      regard translate runs/multi30k test.en --engine ctranslate2 --precision int8
      # three at random
      regard translate runs/multi30k test.en --sample --n-best 3 --seed 1
      # an ensemble, with word alignments, drawn on a page
      regard translate runs/one test.en --with runs/two --align --out alignments
    """
    _check_drawing(out, align, force)
    sampling = _sampling(sample, beam, {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed})
    config = BeamConfig(beam=_width(beam, n_best), n_best=n_best, length_penalty=length_penalty, alpha=alpha,
                        max_length=max_length, max_ratio=max_ratio, no_repeat_ngram=no_repeat)  # fmt: skip
    loaded, *more = (_open(folder, device, precision, engine) for folder in (run, *(others or ())))
    tag = loaded.reader.choose_tag(to)
    decode = loaded.translator(config, others=more, tag=tag, sampling=sampling).lines
    found = lines.answer_lines(decode, file, skip_bad=skip_bad, window=window, max_tokens=max_tokens)
    drawn: list[tuple[str, str]] = []
    for number, source, best in found:
        drawn += [(source, best[0].text)] if out and source.strip() and len(drawn) < MAX_DRAWN else []
        links = [str(loaded.align(source, each.text, tag)) for each in best] if align else [None] * len(best)
        for translation, link in zip(best, links, strict=True):
            print(_line(number, translation, link, n_best, as_json), flush=lines.is_typed(file))
    if out is not None:
        draw_alignments(loaded, drawn, out, tag, force=force)


def _open(folder: Path, device: str, precision: str, engine: str) -> TranslationRun:
    return regard.load(folder, device, precision, engine=engine, kind=regard.TranslationRun)


def _check_drawing(out: Path | None, align: bool, force: bool) -> None:
    if out is not None and not align:
        raise RegardError("--out draws word alignments: add --align, or leave it out. Translations go to the terminal.")
    if out is not None:
        regard.api.check_page_folder(out, LOOK, force)


def _line(number: int, translation: Translation, links: str | None, n_best: int, as_json: bool) -> str:
    """One translation as it is printed."""
    if as_json:
        line = {"line": number, "text": translation.text, "log_prob": translation.log_prob, "score": translation.score}
        return json.dumps(line | ({} if links is None else {"alignment": links}), ensure_ascii=False)
    if n_best == 1 and links is None:
        return translation.text
    columns = [translation.text.replace("\t", "\\t")]
    if n_best > 1:
        columns = [str(number), *columns, f"{translation.score:.4f}"]
    return "\t".join(columns if links is None else [*columns, links])


def _width(beam: int | None, n_best: int) -> int:
    """The width of the beam: wide enough for what is wanted of it."""
    if beam is not None and n_best > beam:
        raise RegardError(
            f"--n-best {n_best} of a search that keeps {beam}: make --beam {n_best} at least, or leave it out."
        )
    return max(beam or 5, n_best)


def _sampling(is_asked: bool, beam: int | None, given: dict[str, float | int | None]) -> SamplingConfig | None:
    """How targets are drawn; None: they are searched for."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if not is_asked:
        if chosen:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise RegardError(f"{options} only {'applies' if len(chosen) == 1 else 'apply'} with --sample.")
        return None
    if beam is not None:
        raise RegardError("--sample draws and --beam searches: leave out one of them. --n-best says how many.")
    return SamplingConfig.from_dict(chosen)
