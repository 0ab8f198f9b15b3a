"""`regard models` and `regard data`: what there is, one line each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any

import typer
from rich.text import Text

from regard.cli.terminal import bold, console, dim, draw_progress, plain_table, to_yaml
from regard.config import mapping, with_settings
from regard.data.builtin import BUILTIN
from regard.data.caption_config import CaptionConfig
from regard.data.config import DataConfig
from regard.data.labelled_config import LabelledConfig
from regard.data.pair_grammar import is_grammar
from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError
from regard.models.table import MODELS, model_entry
from regard.text.config import TokenizerConfig


def models(
    name: Annotated[str | None, typer.Argument(help="A model, for everything that can be set.")] = None,
) -> None:
    """List the models; with a name, everything that can be set in its recipe.

    Examples:
      regard models
      regard models lstm
    """
    _print_models(name)


def data(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE", help="A file, folder, built-in or hub:NAME; or two aligned files of pairs."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="Change how it is read: data.field=body (repeatable)."),
    ] = None,
) -> None:
    """List the built-in texts and the forms a source may have; with a source, its size, splits and first lines.

    Examples:
      regard data
      regard data python-docs
      regard data 'notes/*.md'
      regard data train.en train.de
      regard data posts.csv --set data.field=body
      regard data grammar --n 1000 --out toy
    """
    given = with_settings({}, settings or [], "data.field=body")
    if unknown := given.keys() - {"data"}:
        raise RegardError(f"--set {unknown.pop()}: only settings of data are used here, such as data.field=body.")
    _print_data(sources or [], mapping(given, "data"))


def _print_models(name: str | None) -> None:
    """The table of models, or everything that can be set for one."""
    if name is None:
        table = plain_table("model", "what it is", "paper")
        for key, entry in MODELS.items():
            table.add_row(bold(key), entry.summary, dim(entry.paper))
        console.print(table)
        console.print(dim("`regard models NAME` lists everything that can be set for one of them."))
        return
    entry = model_entry(name)
    console.print(bold(name) + f"  {entry.summary}  " + dim(f"({entry.paper})"))
    _print_settings(name)


def _print_settings(name: str) -> None:
    """Every setting of a model's recipe, but for those that do nothing for it."""
    from regard.tasks.table import example_config, list_settings, task_of  # with torch, which takes long to start

    config = example_config(name)
    task = task_of(config)
    for section, lines in list_settings(config).items():
        table = plain_table(f"{section}.", "default", "kind", "meaning")
        for line in lines:
            default = "required" if line.default is MISSING else to_yaml(line.default)
            table.add_row(bold(line.name), default, dim(line.kind), line.doc)
        console.print(table)
    for key in task.folders:
        console.print(bold(key) + "  null  " + dim("a run or a GPT-2 folder to begin as"))
    console.print(dim(f"Example: regard train --model {name} {task.example} --set data.p_valid=0.1"))


def _print_data(sources: Sequence[str], settings: Mapping[str, Any]) -> None:
    """The built-in texts and the forms of a source, or what the named sources hold."""
    from regard.data.preview import choose_config  # with numpy, which takes long to start

    if sources:
        config = choose_config(sources, settings)
        if isinstance(config, PairsConfig):
            _print_pairs(config)
        elif isinstance(config, LabelledConfig):
            _print_labelled(config)
        elif isinstance(config, CaptionConfig):
            _print_captions(config)
        else:
            _print_text(config)
        return
    table = plain_table("built-in", "what it is")
    for name, builtin in BUILTIN.items():
        table.add_row(bold(name), builtin.description)
    pairs = "pairs to translate, of any two of en, de and fr; en-trees to parse; dates, numbers, reversal, copying"
    table.add_row(bold("grammar:en-de"), pairs)
    labelled = "labelled sentences, for --task; also en-stars, en-pos, en-ner, in de- and fr- too, and questions"
    table.add_row(bold("grammar:en-sentiment"), labelled)
    console.print(table)
    table = plain_table("your own", "what --data takes")
    for form, meaning in (
        ("my.txt", "a text file, UTF-8; also .gz, .xz, .zst"),
        ("notes/", "every file of a folder"),
        ("'notes/*.md'", "a glob; quote it"),
        ("posts.jsonl", "one JSON object a line; data.field names the text (default: text)"),
        ("posts.csv", "a table with a header, also .tsv; data.field names the column"),
        ("a.en a.de", "pairs: two files aligned line by line; also one .tsv, .csv or .jsonl"),
        ("tags.conll", "labelled texts, for --task: also .conllu, .tsv, .csv, .jsonl, .json (SQuAD)"),
        ("-", "standard input"),
        ("hub:NAME/CONFIG", "a Hugging Face data set (needs the extra: pip install 'regard[hub]')"),
    ):
        table.add_row(bold(form), meaning)
    console.print(table)
    console.print(dim("`regard data SOURCE` shows what one of them holds."))


def _print_text(config: DataConfig) -> None:
    from regard.data.prepared_text import prepare_text  # with numpy and tokenizers, which take long to start

    with draw_progress() as progress:
        prepared = prepare_text(config, TokenizerConfig(kind="byte"), progress=progress)
    table = plain_table("split", "documents", "bytes", "words", right=("documents", "bytes", "words"))
    for name in ("train", "valid", "test"):
        stream = getattr(prepared, name)
        table.add_row(name, f"{stream.n_documents:,}", f"{stream.n_bytes:,}", f"{stream.n_words:,}")
    console.print(table)
    for note in prepared.notes:
        console.print(dim(note), soft_wrap=True)
    console.print(dim("It begins:"))
    console.print(Text(prepared.train.text_sample(400)))


def _print_labelled(config: LabelledConfig) -> None:
    """How many examples each split has, what was left out, and the first few with their labels."""
    from regard.data.preview import N_FIRST, preview_labelled, show_example  # with numpy, which takes long to start

    with draw_progress() as progress:
        kind, found = preview_labelled(config, progress)
    table = plain_table("split", "examples", right=("examples",))
    for split in ("train", "valid", "test"):
        table.add_row(split, f"{len(getattr(found, split)):,}")
    console.print(table)
    for kind_left_out, n in found.skipped.items():
        console.print(dim(f"Left out: {kind_left_out}: {n:,}"))
    for text, label in map(show_example, found.train[:N_FIRST]):
        console.print(Text(text), soft_wrap=True)
        console.print(Text(f"  {label}", "bold"), soft_wrap=True)
    verb = {"classes": "classify", "numbers": "rate", "tags": "tag", "answers": "answer"}[kind]
    named = [(name, getattr(config, name)) for name in ("text", "second", "label")]
    words = [word for name, given in named if given is not None for word in ("--set", f"data.{name}={given}")]
    data = shlex.join(["--data", str(config.train), *words])
    console.print(dim(f"To learn them: regard train lstm --task {verb} {data}"), soft_wrap=True)
    if kind == "numbers":
        console.print(Text("To learn the numbers as classes: --task classify instead.", "dim"), soft_wrap=True)
    if isinstance(config.train, str) and config.train.endswith((".tsv", ".csv", ".jsonl", ".ndjson")):
        others = "As pairs: --set data.source_field=NAME --set data.target_field=NAME; as text: --set data.field=NAME."
        console.print(Text(others, "dim"), soft_wrap=True)


def _print_captions(config: CaptionConfig) -> None:
    """How many pictures and captions each split has, what was left out, and the first captions."""
    from regard.data.prepared_captions import READING, load_captions  # with numpy and Pillow, which take long to start

    with draw_progress() as progress:
        found = load_captions(config, None, None if progress is None else lambda n: progress(READING, n, None))
    table = plain_table("split", "pictures", "captions", right=("pictures", "captions"))
    for split in ("train", "valid", "test"):
        part = getattr(found, split)
        table.add_row(split, f"{len(part):,}", f"{part.n_captions:,}")
    console.print(table)
    for kind, n in found.skipped.items():
        console.print(dim(f"Left out: {kind}: {n:,}"))
    for name, captions in zip(found.train.names[:3], found.train.captions[:3], strict=True):
        console.print(Text(f"{name}  {captions[0]}"), soft_wrap=True)
    data = shlex.join(["--data", config.pictures, "--data", config.captions])
    console.print(dim(f"To learn them: regard train --model captioner {data}"), soft_wrap=True)


def _print_pairs(config: PairsConfig) -> None:
    """How many pairs there are, what was left out, and the first few of each split."""
    from regard.data.preview import preview_pairs  # with numpy, which takes long to start

    with draw_progress() as progress:
        found = preview_pairs(config, progress=progress)
    table = plain_table("split", "pairs", right=("pairs",))
    for split, n_pairs, _ in found.splits:
        table.add_row(split, f"{n_pairs:,}")
    console.print(table)
    if found.summary:
        console.print(dim(f"{found.summary}."), soft_wrap=True)
    for split, _, first in found.splits:
        if first:
            console.print(dim(f"{split} begins:"))
        for source, target in first:
            console.print(Text(source), soft_wrap=True)
            console.print(Text(f"  {target}", "bold"), soft_wrap=True)
    if len(found.splits) > 1:
        names = [config.train] if isinstance(config.train, str) else config.train
        changed = [
            line.name for line in config.help() if line.name != "train" and getattr(config, line.name) != line.default
        ]
        words = [word for name in names for word in ("--data", str(name))]
        words += [word for name in changed for word in ("--set", f"data.{name}={to_yaml(getattr(config, name))}")]
        data = shlex.join(words)
        console.print(dim(f"To learn them: regard train --model seq2seq {data}"), soft_wrap=True)
        if isinstance(config.train, str) and not is_grammar(config.train):
            labels = shlex.join(["regard", "train", "lstm", "--task", "classify", "--data", config.train])
            console.print(dim(f"If the second column is a label: {labels}"), soft_wrap=True)
