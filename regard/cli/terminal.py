"""What the command line prints: tables, coloured tokens, plans. Nothing here computes anything."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from regard.cli.safe_terminal import SafeConsole
from regard.studies.table import STUDIES
from regard.training.progress import Reporter, Silent
from regard.training.progress import reporter as training_reporter
from regard.untrusted.values import make_printable

if TYPE_CHECKING:
    from regard.compare.result import Comparison
    from regard.report.look import Look
    from regard.score.scored import Scored
    from regard.studies.finding import Study
    from regard.tasks.table import AnyRun
    from regard.tasks.task import Evaluation, ProgressBar, Rehearsal
    from regard.text.learning import Progress

console = SafeConsole()
errors = SafeConsole(stderr=True)
MAX_ROWS = 12  # of a batch that are shown
MAX_ROW = 2000  # characters of each: a word can have millions

# From expected to astonishing, in bits: greys first, so that only what matters is coloured. Readable on light and
# dark backgrounds and by colour-blind readers (lightness alone tells the order).
SURPRISE_STYLES = ((2.0, "dim"), (5.0, ""), (8.0, "yellow"), (12.0, "dark_orange3"), (float("inf"), "bold red"))


def command_line() -> str:
    """What was typed, as a page shows it; bytes that are no text are written as such."""
    return make_printable(shlex.join(["regard", *sys.argv[1:]]))


def print_note(text: str) -> None:
    """A line on standard error, as it is."""
    errors.print(Text(text), soft_wrap=True)


def print_plan(plan: Rehearsal) -> None:
    """What `--dry-run` shows."""
    console.print(Text(plan.config.to_yaml()))
    table = plain_table("", "", show_header=False)
    for name, value in plan.lines():
        table.add_row(bold(name), value)
    console.print(table)
    console.print(bold("The first batch, decoded"))
    for row, text in enumerate(plan.first_batch[:MAX_ROWS], start=1):
        console.print(Text(f"{row:3}  ", "dim") + Text(on_one_line(text[:MAX_ROW]) + "…" * (len(text) > MAX_ROW)))
    if (n_more := len(plan.first_batch) - MAX_ROWS) > 0:
        console.print(dim(f"     and {n_more:,} more"))
    console.print(dim("Nothing was trained, and no run folder was written."))


def print_trained(run: AnyRun) -> None:
    """The test score, and what to type next."""
    assert run.ending is not None, "it was trained just now"
    if run.ending.test is not None:
        print_evaluation(run.ending.test, as_json=False, title="test score")
    console.print(Text(f"The run is in {run.folder}; its README.md says what it is. Next:"))
    for line in run.ending.usage.shell:
        console.print(Text(f"  {line}"), soft_wrap=True)


def print_evaluation(result: Evaluation, as_json: bool, title: str = "measure", has_details: bool = False) -> None:
    """Named figures, the headline in bold, how much was scored, and what has to be known to read them."""
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    found = result.measure()
    table = plain_table(title, "value", right=("value",))
    for figure in found.figures:
        style = "bold" if figure.name == found.headline else "not bold"
        table.add_row(Text(figure.name, style), Text(figure.text, style))
    table.add_row(", ".join(found.counts), ", ".join(f"{n:,}" for n in found.counts.values()))
    console.print(table)
    for line in found.details if has_details else ():
        console.print(Text(line), soft_wrap=True)
    for note in found.notes:
        console.print(Text(note), soft_wrap=True)
    if found.signature:
        console.print(Text(found.signature, "dim"), soft_wrap=True)


def print_scored(documents: Iterator[Scored], by: str, as_json: bool) -> None:
    """Every document as coloured tokens, or as `nats<TAB>text` lines that sort and cut understand."""
    n_tokens, n_bytes, nats = 0, 0, 0.0
    for index, document in enumerate(documents):
        n_tokens, n_bytes, nats = n_tokens + len(document.nats), n_bytes + document.n_bytes, nats + document.total
        if by == "token" and not as_json:
            console.print(colour_tokens(document), soft_wrap=True)
            continue
        for part in document.parts(by):
            if as_json:
                part["nats"] = part["nats"] if math.isfinite(part["nats"]) else None  # JSON has no word for infinity
                print(json.dumps({"document": index, **part}, ensure_ascii=False))
            else:
                print(f"{-part['nats']:.3f}\t{on_one_line(part['text'])}")
    if not as_json and by == "token":
        bits = nats / math.log(2)
        said = dim(
            f"{n_tokens:,} tokens, log-probability {-nats:,.2f} nats, {nats / max(n_tokens, 1):.3f} nats a token, "
            f"{bits / max(n_bytes, 1):.3f} bits a byte."
        )
        errors.print(said + _legend() if console.is_terminal else said)


def print_scored_pairs(
    sources: Sequence[str], targets: Sequence[str], scores: Iterable[Scored | None], as_json: bool
) -> None:
    """A line a pair: log P of the target, its tokens, their perplexity and both texts, or JSON; the sum on stderr."""
    n_pairs, n_tokens, n_left_out, nats = 0, 0, 0, 0.0
    for number, (source, target, found) in enumerate(zip(sources, targets, scores, strict=True), start=1):
        if found is None:
            n_left_out += bool(source.strip() or target.strip())
            print(json.dumps({"line": number, "log_prob": None}) if as_json else "")
            continue
        n_pairs, n_tokens, nats = n_pairs + 1, n_tokens + len(found.tokens), nats + found.total
        if as_json:
            print(_json_line(number, source, found))
        else:
            numbers = (
                f"{found.log_probability:.4f}",
                str(len(found.tokens)),
                f"{perplexity(found.total, len(found.tokens)):.4f}",
            )
            print(*numbers, on_one_line(source.strip()), on_one_line(found.text), sep="\t")
    left_out = f"; left out, each an empty line: {n_left_out:,}" if n_left_out else ""
    pairs = "pair" if n_pairs == 1 else "pairs"
    mean = nats / max(n_tokens, 1)
    said = (
        f"{n_pairs:,} {pairs}, {n_tokens:,} target tokens, log-probability {-nats:,.2f} nats, {mean:.3f} nats a "
        f"token, perplexity {perplexity(nats, n_tokens):,.2f}{left_out}"
    )
    errors.print(dim(said), soft_wrap=True)


def perplexity(nats: float, n_tokens: int) -> float:
    """e to the mean nats of a token; 1 where there is none."""
    from regard.score.evaluate import finite_perplexity  # with torch, which takes long to start

    return finite_perplexity(nats / max(n_tokens, 1))


def _json_line(number: int, source: str, found: Scored) -> str:
    """JSON has no word for infinity: what is impossible is null."""
    line = {
        "line": number,
        "source": source.strip(),
        "target": found.text,
        "log_prob": found.log_probability if math.isfinite(found.total) else None,
        "n_tokens": len(found.tokens),
        "perplexity": perplexity(found.total, len(found.tokens)),
        "tokens": [{"text": t.text, "nats": t.nats if math.isfinite(t.nats) else None} for t in found.tokens],
    }
    return json.dumps(line, ensure_ascii=False)


def colour_tokens(document: Scored) -> Text:
    """The document's text, each token in the colour of its surprise."""
    text = Text()
    for token in document.tokens:
        bits = token.nats / math.log(2)
        text.append(token.text, next(style for limit, style in SURPRISE_STYLES if bits <= limit))
    return text


def _legend() -> Text:
    """What the colours mean."""
    lower, parts = 0.0, [dim(" Surprise in bits:")]
    for upper, style in SURPRISE_STYLES:
        label = f"{lower:g}-{upper:g}" if upper != float("inf") else f"over {lower:g}"
        parts.append(Text(label, style))
        lower = upper
    return Text("  ").join(parts)


def print_comparison(comparison: Comparison) -> None:
    """The ranking, and where the pictures are; on standard error where nothing finished."""
    from regard.report.comparison_table import ComparisonTable  # with numpy, which takes long to start

    if not comparison.ranking:
        errors.print(ComparisonTable(comparison))
        return
    folder = comparison.folder or Path()
    console.print(ComparisonTable(comparison))
    console.print(
        Text(f"\nThe report: {folder / 'report.html'}  (a picture: {folder / 'overview.png'})"), soft_wrap=True
    )


def print_studies() -> None:
    """The table of studies, and everything that can be set for each."""
    table = plain_table("study", "what it shows", "your runs")
    for key, entry in STUDIES.items():
        table.add_row(bold(key), entry.summary, "--run RUN" if entry.takes_runs else "")
    console.print(table)
    for key in STUDIES:
        console.print()
        _print_study_settings(key)


def _print_study_settings(name: str) -> None:
    """The table of everything that can be set for a study."""
    table = plain_table(f"{name}: --set", "default", "meaning")
    for line in STUDIES[name].config.help():
        table.add_row(bold(line.name), to_yaml(line.default), line.doc)
    console.print(table)


def print_study_help(name: str) -> None:
    """What a study shows, its settings with their defaults, and how to run it."""
    entry, start = STUDIES[name], f"regard study {name}"
    console.print(Text(f"{name}: {entry.summary}\n"))
    _print_study_settings(name)
    examples = [start, f'{start} --set "{entry.example}" --out {name}-mine']
    examples += [f"{start} --seeds 1"] if entry.has_seeds else []
    examples += [f"{start} --run RUN"] if entry.takes_runs else []
    console.print(Text("\nExamples:\n" + "\n".join(f"  {example}" for example in examples)), soft_wrap=True)
    console.print(Text("The other options: regard study --help", "dim"))


def print_study(study: Study, folder: Path) -> None:
    """The short table, the sentence, and where the page is."""
    from regard.report.study import cell_text  # with torch, which takes long to start

    summary = study.finding.summary
    table = plain_table(*summary.columns, right=summary.columns[1:])
    for column in table.columns[1:]:
        column.no_wrap = True  # where there is little room, a name goes on in the next line, and no number is cut
    words = [word for name, *_ in summary.rows for word in cell_text(name).split()]
    table.columns[0].min_width = max(map(len, words))
    table.columns[0].overflow = "fold"
    for name, *cells in summary.rows:
        table.add_row(bold(cell_text(name)), *map(cell_text, cells))
    console.print(Text(f"{summary.title}\n"))
    console.print(table)
    console.print(Text(f"\n{study.sentence}", "bold"))
    for note in study.finding.notes:
        console.print(Text(note))
    console.print(Text(f"\nThe page: {folder / 'report.html'}  (a picture: {folder / 'figure.png'})"), soft_wrap=True)


def print_look(look: Look, page: Path, has_tables: bool = False) -> None:
    """The sentence of every view, and where the page is; the numbers of the last view too, where they are asked for."""
    for panel in look.panels:
        if len(look.panels) > 1:
            console.print(Text(panel.name, "bold"))
        for view in panel.views:
            console.print(Text(f"{view.title}: ", "bold") + Text(view.summary.replace("\n", "⏎")))
        if has_tables and panel.views and panel.views[-1].table is not None:
            columns, rows = panel.views[-1].table
            table = plain_table(*columns, right=tuple(columns[1:]))
            for row in rows:
                table.add_row(*(Text(on_one_line(cell)) for cell in row))
            console.print(table)
        if panel.missing:
            said = "; ".join(f"{name} ({why})" for name, why in panel.missing)
            console.print(Text(f"Not shown: {said}.", "dim"))
    console.print(Text(f"\nThe page: {page}"), soft_wrap=True)


def print_generated(
    prompt: str,
    pieces: Iterator[tuple[int, str]],
    n: int,
    as_json: bool,
    score: Callable[[str], dict[str, Any]] | None = None,
) -> None:
    """Stream one continuation as it is made; print several one after the other, each under its number.

    `score` gives what is to be said of each whole text, by name.
    """
    first = next(pieces, (0, ""))  # what is wrong with the prompt is said before any of it is printed
    pieces = chain([first], pieces)
    if n == 1 and not as_json:
        print(prompt, end="", flush=True)
        whole = prompt
        for _, piece in pieces:
            print(piece, end="", flush=True)
            whole += piece
        print()
        _print_facts({} if score is None else score(whole))
        return
    texts = [""] * n
    for index, piece in pieces:
        texts[index] += piece
    for index, text in enumerate(texts, start=1):
        if as_json:
            facts = {} if score is None else score(prompt + text)
            print(json.dumps({"number": index, "prompt": prompt, "text": prompt + text, **facts}, ensure_ascii=False))
        else:
            console.print(bold(f"--- {index} ---"))
            print(prompt + text)
            _print_facts({} if score is None else score(prompt + text))


def _print_facts(facts: Mapping[str, Any]) -> None:
    """A line for each, its name first."""
    for name, value in facts.items():
        print(f"{name.replace('_', ' ')}:", f"{value:.3f}" if isinstance(value, float) else value)


def reporter(is_quiet: bool) -> Reporter:
    """How training is shown: a bar on a terminal, a line now and then elsewhere, or nothing."""
    return Silent() if is_quiet else training_reporter(console=console)


def progress_bar(is_quiet: bool) -> ProgressBar:
    """How reading and encoding are shown."""
    return nullcontext if is_quiet else draw_progress


@contextmanager
def draw_progress() -> Iterator[Progress]:
    """A bar on stderr for work that is not training: reading, learning a tokenizer, encoding."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bars, tasks = Bars(*columns, console=errors, transient=True, disable=not sys.stderr.isatty()), {}

    def tell(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield tell


def bold(text: str) -> Text:
    return Text(text, "bold")


def dim(text: str) -> Text:
    return Text(text, "dim")


def on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def plain_table(*columns: str, right: tuple[str, ...] = (), show_header: bool = True) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


def to_yaml(value: Any) -> str:
    """A default as one would write it in a recipe."""
    if isinstance(value, tuple):
        return "[" + ", ".join(to_yaml(v) for v in value) + "]"
    if isinstance(value, bool):  # asked first: 1 == True
        return "true" if value else "false"
    return "null" if value is None else str(value)
