"""Runs out to other programs, and in from them: ARPA files, Hugging Face and CTranslate2 folders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from regard.config import RunConfig
from regard.errors import RegardError
from regard.files import write_atomically
from regard.models.bert import Bert
from regard.run import folder as run_folder
from regard.run.card import write_card
from regard.run.engine import load
from regard.run.initial_weights import find_limit, open_initial_weights
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
from regard.tasks.table import build_config, task_of
from regard.tasks.task import IMPORTED, OpenRun, RunFacts
from regard.text.tokenizer import Tokenizer
from regard.training.weights import save_tensors
from regard.weights import hugging_face
from regard.weights.arpa import read_arpa

Imported = LanguageModelRun | MaskedLanguageModelRun


def export_run(run: Any, to: Path | str) -> None:
    """Write a run for another program: ARPA, a Hugging Face folder or one of CTranslate2, as suits its model."""
    task_of(run.config).export(run, Path(to))


def import_run(
    source: Path | str, folder: Path | str, tell: Callable[[str], None] | None = None, *, force: bool = False
) -> Imported:
    """Make a run folder of an ARPA file, packed by gzip or not, or of a Hugging Face folder of GPT-2 or BERT's family.

    `tell` is called with a sentence where something in the folder is not taken as it stands. `force` writes into a
    folder that holds other files.
    """
    source, folder = Path(source), Path(folder)
    run_folder.check_free(folder, can_resume=False, force=force)
    write = partial(_write, folder, force)
    if not hugging_face.is_for_hugging_face(source):
        return _import_arpa(source, write)
    return _import_hugging_face(source, write, tell or (lambda note: None))


def _import_arpa(path: Path, write: Callable[..., Imported]) -> Imported:
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
    return write(config, tokenizer, facts, lambda aside: save_file(model.tensors(), aside))


def _import_hugging_face(path: Path, write: Callable[..., Imported], tell: Callable[[str], None]) -> Imported:
    """Make a run folder of a Hugging Face folder: the same model, not trained any further."""
    hugging_face.check_folder(path)
    if not hugging_face.is_hugging_face(path):
        raise RegardError(f"'{path}' is a run already; there is nothing to import.")
    start = open_initial_weights(path)
    weights, outline = start.weights, start.outline()
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
    limit = find_limit(outline) or 1
    flops = outline.flops(limit) // limit if isinstance(outline, Bert) else outline.flops_per_token(limit)
    sizes = outline.n_parameters, flops
    facts = run_folder.state_facts(config, [start.tokenizer], IMPORTED, *sizes, start)
    return write(config, start.tokenizer, facts, lambda aside: save_tensors(weights, aside), start.note)


def _write(
    folder: Path,
    force: bool,
    config: RunConfig,
    tokenizer: Tokenizer,
    facts: RunFacts,
    save: Callable[[Path], None],
    note: str = "",
) -> Imported:
    """Weights first: a folder is a run once config.yaml is there."""
    with run_folder.lock_folder(folder):
        write_atomically(folder / "model.safetensors", save)
        run_folder.begin(folder, config, [tokenizer], facts, force)
    write_card(OpenRun(folder, config, facts, (tokenizer,)), None, None, note)
    run = load(folder)
    assert isinstance(run, LanguageModelRun | MaskedLanguageModelRun)
    return run
