"""What the command line prints: tables, coloured tokens, plans. Nothing here computes anything."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from regard.api import Plan
    from regard.caption_run import CaptionRun
    from regard.comparison.result import Comparison
    from regard.data.config import DataConfig
    from regard.pair_evaluation import PairEvaluation
    from regard.pair_run import PairRun
    from regard.run import Run
    from regard.score.evaluate import Evaluation
    from regard.score.scored import Scored
    from regard.studies.finding import Study
    from regard.text.learning import Progress

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)
MAX_ROWS = 12  # of a batch that are shown

# From expected to astonishing, in bits: greys first, so that only what matters is coloured. Readable on light and
# dark backgrounds and by colour-blind readers (lightness alone tells the order).
SURPRISE_STYLES = ((2.0, "dim"), (5.0, ""), (8.0, "yellow"), (12.0, "dark_orange3"), (float("inf"), "bold red"))


def print_models(name: str | None) -> None:
    """The table of models, or everything that can be set for one."""
    from regard.config import SECTIONS_OF
    from regard.models.table import MODEL_NAMES, model_entry

    if name is None:
        table = plain_table("model", "what it is", "paper")
        for key in MODEL_NAMES:
            entry = model_entry(key)
            table.add_row(f"[bold]{key}[/bold]", entry.summary, f"[dim]{entry.paper}[/dim]")
        console.print(table)
        console.print("[dim]`regard models NAME` lists everything that can be set for one of them.[/dim]")
        return
    entry = model_entry(name)
    console.print(f"[bold]{name}[/bold]  {entry.summary}  [dim]({entry.paper})[/dim]")
    for section, kind in {"model": entry.config, **SECTIONS_OF[entry.reads]}.items():
        if entry.kind == "count" and section not in ("model", "data", "tokenizer"):
            continue
        table = plain_table(f"{section}.", "default", "kind", "meaning")
        for line in kind.help():
            default = "required" if line.default is MISSING else _yaml(line.default)
            table.add_row(f"[bold]{line.name}[/bold]", default, f"[dim]{escape(line.kind)}[/dim]", escape(line.doc))
        console.print(table)
    if entry.reads != "text":
        console.print("[bold]decoder_from[/bold]  null  [dim]a run or a GPT-2 folder that the decoder begins as[/dim]")
    data = {
        "text": "--data my.txt",
        "pairs": "--data train.en --data train.de",
        "pictures": "--data photos --data captions.txt",
    }[entry.reads]
    console.print(f"[dim]Example: regard train --model {name} {data} --set data.p_valid=0.1[/dim]")


def print_data(sources: Sequence[str], settings: Mapping[str, Any]) -> None:
    """The built-in texts and the forms of a source, or what the named sources hold."""
    from regard.data.builtin import BUILTIN
    from regard.data.pairs_config import PairsConfig
    from regard.data.preview import choose_config

    if sources:
        config = choose_config(sources, settings)
        if isinstance(config, PairsConfig):
            from regard.pair_terminal import print_pairs

            print_pairs(config)
        else:
            _print_text(config)
        return
    table = plain_table("built-in", "what it is")
    for name, builtin in BUILTIN.items():
        table.add_row(f"[bold]{name}[/bold]", builtin.description)
    pairs = "pairs to translate, of any two of en, de and fr; en-trees to parse; dates, numbers, reversal, copying"
    table.add_row("[bold]grammar:en-de[/bold]", pairs)
    console.print(table)
    table = plain_table("your own", "what --data takes")
    for form, meaning in (
        ("my.txt", "a text file, UTF-8; also .gz, .xz, .zst"),
        ("notes/", "every file of a folder"),
        ("'notes/*.md'", "a glob; quote it"),
        ("posts.jsonl", "one JSON object a line; data.field names the text (default: text)"),
        ("posts.csv", "a table with a header, also .tsv; data.field names the column"),
        ("a.en a.de", "pairs: two files aligned line by line; also one .tsv, .csv or .jsonl"),
        ("-", "standard input"),
        ("hub:NAME/CONFIG", "a Hugging Face data set (needs the extra: pip install 'regard[hub]')"),
    ):
        table.add_row(f"[bold]{form}[/bold]", escape(meaning))
    console.print(table)
    console.print("[dim]`regard data SOURCE` shows what one of them holds.[/dim]")


def _print_text(config: DataConfig) -> None:
    from regard.data.prepared_text import prepare_text
    from regard.text.config import TokenizerConfig

    with draw_progress() as progress:
        prepared = prepare_text(config, TokenizerConfig(kind="byte"), progress=progress)
    table = plain_table("split", "documents", "bytes", "words", right=("documents", "bytes", "words"))
    for name in ("train", "valid", "test"):
        stream = getattr(prepared, name)
        table.add_row(name, f"{stream.n_documents:,}", f"{stream.n_bytes:,}", f"{stream.n_words:,}")
    console.print(table)
    console.print("[dim]It begins:[/dim]")
    console.print(Text(prepared.train.text_sample(400)))


def print_plan(plan: Plan) -> None:
    """What `--dry-run` shows."""
    console.print(Text(plan.config.to_yaml()))
    table = plain_table("", "", show_header=False)
    for name, value in plan.lines():
        table.add_row(f"[bold]{name}[/bold]", value)
    console.print(table)
    console.print("[bold]The first batch, decoded[/bold]")
    for row, text in enumerate(plan.first_batch[:MAX_ROWS], start=1):
        console.print(Text(f"{row:3}  ", "dim") + Text(on_one_line(text)))
    if (n_more := len(plan.first_batch) - MAX_ROWS) > 0:
        console.print(f"[dim]     and {n_more:,} more[/dim]")
    console.print("[dim]Nothing was trained, and no run folder was written.[/dim]")


def print_trained(run: Run | PairRun | CaptionRun) -> None:
    from regard.caption_run import CaptionRun
    from regard.caption_terminal import print_test_bleu
    from regard.pair_run import PairRun

    folder = shlex.quote(str(run.folder))
    if isinstance(run, CaptionRun):
        print_test_bleu(run.test_result())
        first = f"regard caption {folder} {shlex.quote(run.example())}"
    elif isinstance(run, PairRun):
        scores = run.test_result()
        if scores is not None and "bleu" in scores:
            values = f"BLEU {scores['bleu']['score']:.2f}, chrF {scores['chrf']['score']:.2f}"
            console.print(
                f"[bold]{values}[/bold], perplexity {scores['perplexity']:,.2f} on {scores['n_pairs']:,} test pairs"
            )
        if scores is not None and "parses" in scores:
            console.print(
                f"[bold]F1 {100 * scores['parses']['f1']:.2f}[/bold], perplexity {scores['perplexity']:,.2f} on "
                f"{scores['n_pairs']:,} test sentences"
            )
        verb = "parse" if run.is_parser else "translate"
        source, tag = run.example()
        to = "" if tag is None else f" --to {shlex.quote(tag)}"
        first = f"echo {shlex.quote(source)} | regard {verb} {folder}{to}"
    else:
        if (result := run.test_result()) is not None:
            print_evaluation(result, as_json=False)
        first = f"regard generate {folder} --prompt {shlex.quote(run.sample_prompt())}"
    console.print(Text(f"The run is in {run.folder}; its README.md says what it is. Next:"))
    console.print(Text(f"  {first}"), soft_wrap=True)
    console.print(Text(f"  regard eval {folder}"), soft_wrap=True)


def print_evaluation(result: Evaluation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    table = plain_table("measure", "value", right=("value",))
    table.add_row("loss, nats a token", f"{result.nats_per_token:.4f}")
    table.add_row("perplexity a token", f"{result.perplexity:,.2f}")
    table.add_row("perplexity a word", f"{result.perplexity_per_word:,.2f}")
    table.add_row("[bold]bits a byte[/bold]", f"[bold]{result.bits_per_byte:.4f}[/bold]")
    table.add_row("tokens, words, bytes", f"{result.n_tokens:,}, {result.n_words:,}, {result.n_bytes:,}")
    console.print(table)


def print_pair_evaluation(result: PairEvaluation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    table = plain_table("measure", "value", right=("value",))
    table.add_row("loss, nats a token", f"{result.nats_per_token:.4f}")
    table.add_row("perplexity a token", f"{result.perplexity:,.2f}")
    if result.chrf is not None:
        table.add_row("chrF", f"{result.chrf.score:.2f}")
    if result.bleu is not None:
        table.add_row("[bold]BLEU[/bold]", f"[bold]{result.bleu.score:.2f}[/bold]")
    if result.parses is not None:
        found = result.parses.brackets
        table.add_row("labelled precision", f"{100 * found.precision:.2f}")
        table.add_row("labelled recall", f"{100 * found.recall:.2f}")
        table.add_row("[bold]labelled F1[/bold]", f"[bold]{100 * found.f1:.2f}[/bold]")
        table.add_row("sentences all right, %", f"{100 * found.exact:.2f}")
        table.add_row("no trees without the constraint", f"{result.parses.n_ill_formed:,} of {result.n_pairs:,}")
    table.add_row("pairs, target tokens", f"{result.n_pairs:,}, {result.n_tokens:,}")
    console.print(table)
    if result.n_left_out:
        share = f"{result.n_left_out:,} of {result.n_pairs + result.n_left_out:,} pairs"
        console.print(f"Left out, since they are longer than the model reads: {share}.")
    if result.skipped:
        from regard.data.split import describe_skipped

        console.print(f"{describe_skipped(result.skipped)}.")
    if result.bleu is not None:
        console.print(f"[dim]sacreBLEU {result.bleu.signature}[/dim]")


def print_scored(documents: Iterator[Scored], by: str, as_json: bool) -> None:
    """Every document as coloured tokens, or as `nats<TAB>text` lines that sort and cut understand."""
    n_tokens, n_bytes, nats = 0, 0, 0.0
    for index, document in enumerate(documents):
        n_tokens, n_bytes, nats = n_tokens + len(document.nats), n_bytes + document.n_bytes, nats + document.total
        if by == "token" and not as_json:
            console.print(coloured(document), soft_wrap=True)
            continue
        for part in document.parts(by):
            if as_json:
                part["nats"] = part["nats"] if math.isfinite(part["nats"]) else None  # JSON has no word for infinity
                print(json.dumps({"document": index, **part}, ensure_ascii=False))
            else:
                print(f"{-part['nats']:.3f}\t{on_one_line(part['text'])}")
    if not as_json and by == "token":
        bits = nats / math.log(2)
        errors.print(
            f"[dim]{n_tokens:,} tokens, log-probability {-nats:,.2f} nats, {nats / max(n_tokens, 1):.3f} nats a token, "
            f"{bits / max(n_bytes, 1):.3f} bits a byte. Surprise in bits: [/dim]" + _legend()
        )


def coloured(document: Scored) -> Text:
    """The document's text, each token in the colour of its surprise."""
    text = Text()
    for token in document.tokens:
        bits = token.nats / math.log(2)
        text.append(token.text, next(style for limit, style in SURPRISE_STYLES if bits <= limit))
    return text


def _legend() -> str:
    lower, parts = 0.0, []
    for upper, style in SURPRISE_STYLES:
        label = f"{lower:g}-{upper:g}" if upper != float("inf") else f"over {lower:g}"
        parts.append(f"[{style}]{label}[/{style}]" if style else label)
        lower = upper
    return "  ".join(parts)


def print_comparison(comparison: Comparison, folder: Path) -> None:
    """The ranking, and where the pictures are."""
    from regard.comparison.table import comparison_table

    console.print(comparison_table(comparison))
    console.print(
        Text(f"\nThe report: {folder / 'report.html'}  (a picture: {folder / 'overview.png'})"), soft_wrap=True
    )


def print_studies() -> None:
    """The table of studies, and everything that can be set for each."""
    from regard.studies.table import STUDIES

    table = plain_table("study", "what it shows", "your runs")
    for key, entry in STUDIES.items():
        table.add_row(f"[bold]{key}[/bold]", entry.summary, "--run RUN" if entry.takes_runs else "")
    console.print(table)
    for key, entry in STUDIES.items():
        table = plain_table(f"{key}: --set", "default", "meaning")
        for line in entry.config.help():
            table.add_row(f"[bold]{line.name}[/bold]", escape(_yaml(line.default)), escape(line.doc))
        console.print()
        console.print(table)


def print_study(study: Study, folder: Path) -> None:
    """The short table, the sentence, and where the page is."""
    from regard.studies.page import cell_text

    summary = study.finding.summary
    table = plain_table(*summary.columns, right=summary.columns[1:])
    for column in table.columns[1:]:
        column.no_wrap = True  # where there is little room, a name goes on in the next line, and no number is cut
    words = [word for name, *_ in summary.rows for word in cell_text(name).split()]
    table.columns[0].min_width = max(map(len, words))
    table.columns[0].overflow = "fold"
    for name, *cells in summary.rows:
        table.add_row(f"[bold]{escape(cell_text(name))}[/bold]", *(escape(cell_text(cell)) for cell in cells))
    console.print(Text(f"{summary.title}\n"))
    console.print(table)
    console.print(Text(f"\n{study.sentence}", "bold"))
    for note in study.finding.notes:
        console.print(Text(note))
    console.print(Text(f"\nThe page: {folder / 'report.html'}  (a picture: {folder / 'figure.png'})"), soft_wrap=True)


def print_generated(prompt: str, pieces: Iterator[tuple[int, str]], n: int) -> None:
    """Stream one continuation as it is made; print several one after the other, each under its number."""
    first = next(pieces, (0, ""))  # what is wrong with the prompt is said before any of it is printed
    pieces = chain([first], pieces)
    if n == 1:
        print(prompt, end="", flush=True)
        for _, piece in pieces:
            print(piece, end="", flush=True)
        print()
        return
    texts = [""] * n
    for index, piece in pieces:
        texts[index] += piece
    for index, text in enumerate(texts, start=1):
        console.print(f"[bold]--- {index} ---[/bold]")
        print(prompt + text)


@contextmanager
def draw_progress() -> Iterator[Progress]:
    """A bar on stderr for work that is not training: reading, learning a tokenizer, encoding."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bars, tasks = Bars(*columns, console=errors, transient=True, disable=not sys.stderr.isatty()), {}

    def tell(what: str, done: int, total: int | None) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield tell


def on_one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def plain_table(*columns: str, right: tuple[str, ...] = (), show_header: bool = True) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header, header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


def _yaml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_yaml(v) for v in value) + "]"
    if isinstance(value, bool):  # asked first: 1 == True
        return "true" if value else "false"
    return "null" if value is None else str(value)
