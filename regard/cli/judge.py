"""`regard bleu` and `regard align`: how good translations are, and which word comes from which."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import regard
from regard.cli import lines
from regard.cli.options import Device, Force, Tag
from regard.cli.terminal import print_note
from regard.report.page_folder import LOOK

MAX_DRAWN = 30  # lines on a page of alignments


def bleu(
    system: Annotated[Path, typer.Argument(help="Translations, one a line.")],
    reference: Annotated[
        list[Path], typer.Option("--reference", "-r", help="What they are compared with (repeatable: several a line).")
    ],
    other: Annotated[
        Path | None, typer.Option("--other", help="Another system's: is it better, or lucky with these lines?")
    ] = None,
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="sacreBLEU's: 13a, intl, char, zh or none.")] = "13a",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """BLEU and chrF by sacreBLEU, with its signature; with --other, whether more sentences would say the same.

    Examples:
      regard bleu test.out --reference test.de
      regard bleu transformer.out -r test.de --other lstm.out
    """
    from regard.score.figures import p_text  # sacreBLEU takes long to start
    from regard.score.translation import bleu as bleu_of
    from regard.score.translation import chrf as chrf_of
    from regard.score.translation import sample_sentences

    texts, *rest = lines.read_aligned([system, *reference, *([] if other is None else [other])])
    references = [list(several) for several in zip(*rest[: len(reference)], strict=True)]
    found = bleu_of(texts, references, tokenizer=tokenizer), chrf_of(texts, references)
    versus = None
    if other is not None:
        one, two = (sample_sentences(given, references, tokenizer=tokenizer) for given in (texts, rest[-1]))
        versus = one - two
    if as_json:
        both = {"bleu": found[0].to_dict(), "chrf": found[1].to_dict()}
        if versus is not None:
            both["versus"] = {"difference": versus.value, "interval": versus.interval, "p": versus.p}
        typer.echo(json.dumps(both))
        return
    for score in found:
        typer.echo(str(score))
    if found[0].looks_tokenized and tokenizer != "none":
        note = "The translations are split into words already: this BLEU compares with no published score."
        typer.echo(note, err=True)
    if versus is not None:
        low, high = versus.interval
        verdict = "other sentences may say otherwise"
        if versus.p < 0.05:
            verdict = "other sentences would say the same; whether other seeds would, two files cannot tell"
        interval = f"95% interval {low:+.2f} to {high:+.2f}, {p_text(versus.p)}"
        typer.echo(f"{versus.value:+.2f} BLEU against {other} over {len(texts):,} sentences ({interval}): {verdict}.")


def align(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run of a model that reads pairs.")],
    source: Annotated[Path, typer.Argument(help="Sources, one a line, words between spaces.")],
    target: Annotated[Path, typer.Argument(help="Their targets.")],
    gold: Annotated[
        Path | None, typer.Option("--gold", help="Gold alignments (0-0 1-2 a line): print the alignment error rate.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Draw the first alignments, as a page and pictures.")
    ] = None,
    force: Force = False,
    to: Tag = None,
    device: Device = "auto",
) -> None:
    """Which source word each target word comes from, by where the model looks when it is made to write the target.

    Examples:
      regard align runs/mine test.en test.de > test.align
      regard align runs/mine test.tok.en test.tok.de --gold test.en-de.align
      # drawn, with the gold links framed
      regard align runs/mine test.tok.en test.tok.de --out alignments
    """
    # Here, with numpy, which takes long to start.
    from regard.score.alignment import alignment_error_rate, read_alignments, same_sentences

    sources, targets = lines.read_aligned([source, target])
    if out is not None:
        regard.api.check_page_folder(out, LOOK, force)
    wanted = None if gold is None else read_alignments(gold)
    if wanted is not None:
        same_sentences(len(sources), len(wanted))  # before any work is done
        for number, (s, t, links) in enumerate(zip(sources, targets, wanted, strict=True), start=1):
            links.check(len(s.split()), len(t.split()), f"{gold}, line {number}")
    loaded = regard.load(run, device, kind=regard.TranslationRun)
    if out is not None:
        kept = [i for i, (s, t) in enumerate(zip(sources, targets, strict=True)) if s.strip() and t.strip()][:MAX_DRAWN]
        gold_links = [] if wanted is None else [str(wanted[i]) for i in kept]
        draw_alignments(loaded, [(sources[i], targets[i]) for i in kept], out, to, gold_links, force)
    found = (loaded.align(s, t, to) for s, t in zip(sources, targets, strict=True))
    if wanted is not None:
        print(alignment_error_rate(list(found), wanted))
        return
    for links in found:
        print(links)


def draw_alignments(
    run: Any,
    pairs: Sequence[tuple[str, str]],
    out: Path,
    tag: str | None,
    gold: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Draw where the words of targets look, and say where the page is."""
    page = regard.api.look_alignments(run, pairs, tag=tag, gold=gold).save(out, force)
    print_note(f"The alignments of {len(pairs)} line{'s' * (len(pairs) != 1)}: {page}")
