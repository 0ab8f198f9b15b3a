"""`regard translate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.decode.config import SamplingConfig


def translate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run of a model that reads pairs.")],
    file: Annotated[Path | None, typer.Argument(help="One source a line (default: -, standard input).")] = None,
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="Average with this run too (repeatable).")
    ] = None,
    beam: Annotated[
        int | None, typer.Option("--beam", "-b", min=1, help="Width of the beam search; 1 is greedy (default: 5).")
    ] = None,
    n_best: Annotated[int, typer.Option("--n-best", "-n", min=1, help="How many targets a source.")] = 1,
    sample: Annotated[bool, typer.Option("--sample", help="Draw targets at random instead of searching.")] = False,
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="Below 1 draws likelier tokens (default: 1).")
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from the k likeliest tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", help="Draw from the fewest tokens with this much probability.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="The same seed draws the same for the same line (default: 0).")
    ] = None,
    length_penalty: Annotated[
        str, typer.Option("--length-penalty", help="none, length (log P / L^alpha) or wu (Wu et al. 2016).")
    ] = "length",
    alpha: Annotated[float, typer.Option("--alpha", min=0.0, help="How much the length counts.")] = 1.0,
    max_length: Annotated[
        int | None, typer.Option("--max-length", min=1, help="The longest target, in tokens (default: by --max-ratio).")
    ] = None,
    max_ratio: Annotated[
        float, typer.Option("--max-ratio", min=0.1, help="The longest target: so many tokens a source token, and 10.")
    ] = 3.0,
    no_repeat: Annotated[
        int | None, typer.Option("--no-repeat", min=1, help="Block repeated n-grams of this length.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TAG", help="Target language, a tag such as <2de>.")] = None,
    align: Annotated[bool, typer.Option("--align", help="Print a word alignment too, as 0-0 1-2.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Lines that cannot be read give an empty line.")] = False,
    window: Annotated[
        int | None, typer.Option("--window", min=1, help="Lines read ahead (default: 2000; 1 at a terminal).")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Tokens of a batch.")] = 4096,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with scores.")] = False,
    precision: Annotated[str, typer.Option("--precision", help="float32 or bf16.")] = "float32",
) -> None:
    """Translate lines, in their order; a pipe of any length is read as it comes.

    With --n-best each target stands on a line of its own: the number of its source's line, from 1 on, text and score,
    with tabs between. --align puts a tab and the alignment behind; --json prints all of it as objects.

    [bold]Examples[/bold]

      regard translate runs/multi30k < test.en > test.out

      echo "A dog runs." | regard translate runs/multi30k --n-best 3

      [dim]three at random, the same whenever asked:[/dim]
      regard translate runs/multi30k test.en --sample --n-best 3 --top-p 0.9 --seed 1

      [dim]an ensemble, with word alignments:[/dim]
      regard translate runs/one test.en --with runs/two --align
    """
    from regard import line_terminal
    from regard.decode.config import BeamConfig
    from regard.errors import RegardError
    from regard.pair_run import load_pair_run

    if beam is not None and n_best > beam:
        raise RegardError(
            f"--n-best {n_best} of a search that keeps {beam}: make --beam {n_best} at least, or leave it out."
        )
    sampling = _sampling(sample, beam, {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed})
    loaded = load_pair_run(run, precision=precision)
    config = BeamConfig(
        beam=max(beam or 5, n_best), n_best=n_best, length_penalty=length_penalty, alpha=alpha, max_length=max_length,
        max_ratio=max_ratio, no_repeat_ngram=no_repeat,
    )  # fmt: skip
    tag = loaded.wanted_tag(to)
    together = [load_pair_run(other, precision=precision) for other in others or ()]
    translator = loaded.translator(config, others=together, tag=tag, sampling=sampling)
    is_typed = line_terminal.is_typed(file)
    with line_terminal.source_lines(file, skip_bad) as lines, line_terminal.lines_progress(lines) as progress:
        sources: list[str] = []
        kept = (sources.append(line) or line for line in lines) if align else lines  # type: ignore[func-returns-value]
        found = translator.lines(
            kept,
            max_tokens=max_tokens,
            window=window or (1 if is_typed else 2000),
            skips_long=skip_bad,
            progress=progress,
        )
        for number, best in enumerate(found, start=1):
            for translation in best:
                links = str(loaded.aligned(sources[0], translation.text, tag)) if align else None
                column = translation.text.replace("\t", "\\t")
                if as_json:
                    line = {"line": number, "text": translation.text, "log_prob": translation.log_prob}
                    line |= {"score": translation.score} | ({} if links is None else {"alignment": links})
                    print(json.dumps(line, ensure_ascii=False), flush=is_typed)
                elif n_best > 1:
                    more = [] if links is None else [links]
                    print(number, column, f"{translation.score:.4f}", *more, sep="\t", flush=is_typed)
                elif links is not None:
                    print(column, links, sep="\t", flush=is_typed)
                else:
                    print(translation.text, flush=is_typed)
            if align:
                sources.pop(0)


def _sampling(is_asked: bool, beam: int | None, given: dict[str, float | int | None]) -> SamplingConfig | None:
    """How targets are drawn; None: they are searched for."""
    from regard.decode.config import SamplingConfig
    from regard.errors import RegardError

    chosen = {name: value for name, value in given.items() if value is not None}
    if not is_asked:
        if chosen:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise RegardError(f"{options} only {'applies' if len(chosen) == 1 else 'apply'} with --sample.")
        return None
    if beam is not None:
        raise RegardError("--sample draws and --beam searches: leave out one of them. --n-best says how many.")
    return SamplingConfig.from_dict(chosen)
