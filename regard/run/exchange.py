"""Runs out to other programs, and in from them: ARPA files, folders of Hugging Face, ELMo and CTranslate2."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from regard.config import RunConfig
from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.files import check_not_there, replace_folder, write_atomically
from regard.models.outline import outline_for, outline_model
from regard.run import folder as run_folder
from regard.run.begun_mark import BEFORE_CONFIG, TOKENIZERS, mark_begun, remove_mark
from regard.run.card import write_card
from regard.run.checksums import seal
from regard.run.engine import load
from regard.run.initial_weights import open_initial_weights
from regard.tasks.labelled import LabelledTask
from regard.tasks.run_facts import IMPORTED, RunFacts
from regard.tasks.table import TASKS, AnyRun, build_config, task_of
from regard.tasks.task import OpenRun
from regard.text.config import TokenizerConfig
from regard.text.learning import word_tokenizer
from regard.text.marian_tokenizer import FILES
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.training.checkpoint import MODEL
from regard.training.weights import named_weights, save_arrays, save_tensors
from regard.weights import hugging_face
from regard.weights.arpa import read_arpa
from regard.weights.ctranslate2 import is_our_ctranslate2
from regard.weights.elmo import find_options, read_elmo
from regard.weights.marian import holds_marian, read_marian, read_marian_weights
from regard.weights.weight_files import read_shapes


def export_run(run: Any, to: Path | str, is_marian: bool = False, force: bool = False) -> None:
    """Write a run for another program: a name in .onnx as that, else ARPA, a folder of Hugging Face or CTranslate2.

    `is_marian`: one that translates is written for Hugging Face, as Marian, and not for CTranslate2. `force` writes
    over files that are there, and over a folder that an earlier export wrote.
    """
    task, to = task_of(run.config), Path(to)
    if not to.name:
        raise RegardError(f"'{to}' is a folder that is there; give the name of what is to be written.")
    check_not_there(to, force)
    if not force:
        _check_tokenizer_beside(run, to)
    write = task.export_marian if is_marian else task.export_onnx if to.suffix == ".onnx" else task.export
    if force and to.is_dir() and (hugging_face.is_our_export(to) or is_our_ctranslate2(to)):
        replace_folder(to, lambda beside: write(run, beside))
    else:
        write(run, to)


def _check_tokenizer_beside(run: Any, to: Path) -> None:
    """Refuse to write a tokenizer over a file with another vocabulary, or with none."""
    if to.suffix == ".onnx":
        beside = to.with_suffix(".tokenizer.json")
    elif isinstance(run.model, NgramModel) and run.tokenizer.kind != "word":
        beside = to.with_name(f"{to.name}.tokenizer.json")
    else:
        return
    if not beside.exists():
        return
    try:  # that of an export of this run that was killed
        is_same = Tokenizer.load(beside).hf.get_vocab() == run.tokenizers[0].hf.get_vocab()
    except RegardError:
        is_same = False
    if not is_same:
        check_not_there(beside, force=False)


def import_run(
    source: Path | str,
    folder: Path | str,
    tell: Callable[[str], None] | None = None,
    *,
    force: bool = False,
    is_pair: bool = False,
) -> AnyRun:
    """Make a run folder of an ARPA file, packed by gzip or not, of a Hugging Face folder or of an ELMo folder.

    `tell` is called with a sentence where something in the folder is not taken as it stands. `force` writes into a
    folder that holds other files. `is_pair`: the classifier in a Hugging Face folder reads two texts, which its files
    do not say.
    """
    source, folder = Path(source), Path(folder)
    run_folder.check_free(folder, can_resume=False, force=force)
    write = partial(_write, folder, force)
    if find_options(source) is not None:
        return _import_elmo(source, write)
    if not hugging_face.is_for_hugging_face(source):
        return _import_arpa(source, write)
    return _import_hugging_face(source, is_pair, write, tell or (lambda note: None))


def open_model(folder: Path | str, device: str = "auto") -> AnyRun:
    """Open a run folder, or a Hugging Face GPT-2 or BERT as it is: it is made a run aside, and nothing is kept."""
    folder = Path(folder)
    if not (folder / "config.json").exists() or not hugging_face.is_hugging_face(folder):
        return load(folder, device)
    with tempfile.TemporaryDirectory(prefix="regard-") as aside:
        import_run(folder, Path(aside) / folder.resolve().name)
        run = load(Path(aside) / folder.resolve().name, device)
    run.folder = folder
    return run


def _import_arpa(path: Path, write: Callable[..., AnyRun]) -> AnyRun:
    """Make a run folder of an ARPA file and its tokenizer."""
    model, tokenizer = read_arpa(path)
    config = build_config(
        {
            "data": {"train": str(path)},
            "tokenizer": {"kind": tokenizer.kind},
            "model": {"name": "ngram", "order": model.order},
        }
    )
    facts = run_folder.state_facts(config, [tokenizer], IMPORTED, sum(model.n_ngrams), 0)
    return write(config, (tokenizer,), facts, partial(save_arrays, model.tensors()))


def _import_hugging_face(
    path: Path, is_pair: bool, write: Callable[..., AnyRun], tell: Callable[[str], None]
) -> AnyRun:
    """Make a run folder of a Hugging Face folder: the same model, not trained any further."""
    hugging_face.check_folder(path)
    if not hugging_face.is_hugging_face(path):
        raise RegardError(f"'{path}' is a run already; there is nothing to import.")
    if holds_marian(path):
        return _import_marian(path, write)
    if (found := hugging_face.read_config(path)).head is not None:
        return _import_reader(path, found, is_pair, write, tell)
    start = open_initial_weights(path)
    weights, model = start.weights, start.outline()
    if start.note:
        tell(start.note)
    config = build_config(
        {
            "start_from": str(path),
            "data": {"train": str(path)},
            "tokenizer": start.tokenizer_settings,
            "model": {"name": start.model_name, **start.model.to_dict()},
        }
    )
    sizes = model.n_parameters, model.flops_per_token(model.max_positions or 1)
    facts = run_folder.state_facts(config, [start.tokenizer], IMPORTED, *sizes, start)
    return write(config, (start.tokenizer,), facts, partial(save_tensors, weights, has_checksum=True), start.note)


def _import_reader(
    path: Path, found: hugging_face.Described, is_pair: bool, write: Callable[..., AnyRun], tell: Callable[[str], None]
) -> AnyRun:
    """Make a run folder of a Hugging Face folder with the head of a task: a run that predicts as that model does."""
    head, start = found.head, open_initial_weights(path)
    assert head is not None, "or it is imported as what its layers were trained for"
    task = TASKS[head.task]
    assert isinstance(task, LabelledTask), "of heads"
    config = build_config(
        {
            "task": head.task,
            "encoder_from": str(path),
            "data": {"train": str(path), **({"second": "second"} if is_pair else {})},
            "tokenizer": start.tokenizer_settings,
            "encoder": {"pool": head.pool},
            "head": task.describe_trained_head(head.labels),
            "model": {"name": found.model_name, **found.reader_config.to_dict()},
        }
    )
    config = task.complete(config)
    reader = outline_for(read_shapes(path), lambda: task.build(config, (found.tokenizer,)))
    weights = hugging_face.read_reader_weights(path, head, named_weights(reader))
    if found.note:
        tell(found.note)
    n = reader.max_positions or 1
    sizes = reader.n_parameters, reader.flops(n) // n
    facts = run_folder.state_facts(config, [found.tokenizer], IMPORTED, *sizes, start)
    return write(config, (found.tokenizer,), facts, partial(save_tensors, weights, has_checksum=True), found.note)


def _import_marian(path: Path, write: Callable[..., AnyRun]) -> AnyRun:
    """Make a run folder of a Marian: a Transformer that translates as it does."""
    settings, tokenizers = read_marian(path)
    files = ("tokenizer.json", TARGET_TOKENIZER) if tokenizers[0].pieces is None else FILES
    sections = {
        name: TokenizerConfig(kind=each.kind, vocab_size=each.vocab_size, path=str(path / file)).to_dict()
        for name, file, each in zip(("tokenizer", "target_tokenizer"), files, tokenizers, strict=False)
    }
    config = build_config(
        {"data": {"train": str(path)}, "model": {"name": "seq2seq", **settings.to_dict()}, **sections}
    )
    sizes = tokenizers[-1].vocab_size, tokenizers[0].vocab_size if len(tokenizers) == 2 else None
    model = outline_model("seq2seq", settings, *sizes)
    weights = read_marian_weights(path, named_weights(model), settings.d_model)
    n = settings.max_context
    facts = run_folder.state_facts(config, tokenizers, IMPORTED, model.n_parameters, model.flops_per_pair(n, n) // n)
    return write(config, tokenizers, facts, partial(save_tensors, weights, has_checksum=True))


def _import_elmo(path: Path, write: Callable[..., AnyRun]) -> AnyRun:
    """Make a run folder of ELMo's options.json and HDF5 weights: vectors of words, and no softmax."""
    settings, words, weights = read_elmo(path)
    tokenizer = word_tokenizer(words)
    config = build_config(
        {
            "data": {"train": str(path)},
            "tokenizer": {"kind": "word", "vocab_size": None},
            "model": {"name": "elmo", **settings.to_dict()},
        }
    )
    outline = outline_model("elmo", settings, tokenizer.vocab_size)
    facts = run_folder.state_facts(config, [tokenizer], IMPORTED, outline.n_parameters, outline.flops_per_token(1))
    return write(config, (tokenizer,), facts, partial(save_tensors, weights, has_checksum=True))


def _write(
    folder: Path,
    force: bool,
    config: RunConfig,
    tokenizers: tuple[Tokenizer, ...],
    facts: RunFacts,
    save: Callable[[Path], None],
    note: str = "",
) -> AnyRun:
    """Write config.yaml last: with it the folder is a run, which lacks nothing then and is not imported again."""
    with run_folder.lock_folder(folder):
        run_folder.check_free(folder, can_resume=False, force=force)  # once more: another process may have begun one
        unused = TOKENIZERS[len(tokenizers) :]
        mark_begun(folder, [name for name in BEFORE_CONFIG if name not in unused])
        write_atomically(folder / MODEL, save)
        run_folder.write_tokenizers(folder, tokenizers)
        facts = seal(folder, facts, config)
        write_card(OpenRun(folder, config, facts, tokenizers), None, None, note)
        run_folder.write_config(folder, config)
        remove_mark(folder)
    return load(folder)
