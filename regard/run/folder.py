"""The run folder: what lies in it, how one is begun, and what can be wrong with it.

    config.yaml        complete, every default written out
    run.json           format, version, tokenizer hash, data fingerprint, sizes
    tokenizer.json     Hugging Face `tokenizers` loads it
    target_tokenizer.json  of a run that reads pairs with two vocabularies; tokenizer.json is then the source's
    model.safetensors  the best weights so far
    state/             what resuming needs
    metrics.jsonl      one JSON object an evaluation or log line; TensorBoard events beside it in tensorboard/
    README.md          a model card

A folder without config.yaml is no run yet: everything before it may be half there and is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from regard import __version__
from regard.config import RunConfig, read_yaml
from regard.data.locks import LOCK, hold_folder
from regard.errors import RegardError, suggest_path
from regard.files import check_is_text, make_folder, refuse_non_file, write_atomically
from regard.run.begun_mark import (
    BEFORE_CONFIG,
    CARD,
    TOKENIZERS,
    check_lock,
    find_leftovers,
    is_marked,
    mark_begun,
    remove_leftovers,
    remove_mark,
)
from regard.tasks.initial_weights import InitialWeights
from regard.tasks.run_facts import (
    CONFIG,
    FACTS,
    FORMAT,
    IMPORTED,
    RunFacts,
    check_file,
    check_has_weights,
    digest_of,
    open_run_tokenizer,
    read_facts,
    read_run_weights,
)
from regard.tasks.table import build_config, task_of
from regard.tasks.task import OpenRun
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.training.checkpoint import MODEL, latest_checkpoint
from regard.training.config import MAY_CHANGE_ON_RESUME
from regard.training.metrics import METRICS
from regard.training.snapshots import FOLDER as SNAPSHOTS
from regard.untrusted.small_files import MAX_NOTE, read_bytes

_FILES = (LOCK, CONFIG, FACTS, *TOKENIZERS, MODEL, METRICS, "test.json", CARD)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Nobody else trains in `folder` inside this block. The system takes the lock away however the process ends.

    Where the block ends before there is a config.yaml, what it has written is removed, and files of others stay.
    """
    make_folder(folder)
    refuse_links(folder)
    refusal = f"Another process is training in '{folder}'. Wait for it, or choose another folder."
    check_lock(folder)
    with hold_folder(folder, refusal, lambda: (folder / CONFIG).exists() or is_marked(folder)):
        if (folder / CONFIG).exists():
            remove_mark(folder)  # of a start that was killed in the moment after its config.yaml
        try:
            yield
        finally:
            with suppress(OSError, RegardError):  # the folder was deleted, or may not be written any more
                if not (folder / CONFIG).exists():
                    remove_leftovers(folder)


def refuse_links(folder: Path) -> None:
    """Refuse links, pipes and devices where a run reads and writes, which a folder from elsewhere may have."""
    for name in _FILES:
        refuse_non_file(folder / name, "a run")
    for name in ("state", "tensorboard", SNAPSHOTS):
        refuse_non_file(folder / name, "a run")
        for above, folders, files in os.walk(folder / name):  # which follows no links
            for below in (*folders, *files):
                refuse_non_file(Path(above) / below, "a run")


def begin(
    folder: Path, config: RunConfig, tokenizers: Sequence[Tokenizer], facts: RunFacts, force: bool = False
) -> None:
    """Write what is known before training; config.yaml last, since it is what makes the folder a run."""
    check_free(folder, force=force)  # once more: another process may have begun one since
    mark_begun(folder, (FACTS, *TOKENIZERS[: len(tokenizers)]))
    write_tokenizers(folder, tokenizers)
    write_facts(folder, facts)
    write_config(folder, config)
    remove_mark(folder)


def write_tokenizers(folder: Path, tokenizers: Sequence[Tokenizer]) -> None:
    for tokenizer, name in zip(tokenizers, TOKENIZERS, strict=False):
        tokenizer.save(folder / name)


def write_config(folder: Path, config: RunConfig) -> None:
    write_atomically(folder / CONFIG, config.to_yaml())


def state_facts(
    config: RunConfig,
    tokenizers: Sequence[Tokenizer],
    fingerprint: str,
    n_parameters: int,
    flops_per_token: int,
    start: InitialWeights | None = None,
    more: Mapping[str, Any] | None = None,
) -> RunFacts:
    """What run.json will say of a run of this config."""
    has_two = len(tokenizers) == 2
    return RunFacts(
        format=FORMAT,
        regard=__version__,
        model=config.model_name,
        vocab_size=tokenizers[0].vocab_size,
        tokenizer=tokenizers[0].hash,
        data=fingerprint,
        n_parameters=n_parameters,
        flops_per_token=flops_per_token,
        started_from=None if start is None else str(start.path),
        started_weights=None if start is None else start.sha256,
        target_vocab_size=tokenizers[1].vocab_size if has_two else None,
        target_tokenizer=tokenizers[1].hash if has_two else None,
        **(more or {}),
    )


def write_facts(folder: Path, facts: RunFacts) -> None:
    """Write run.json, with a checksum of what it says."""
    said = asdict(facts)
    said["checksums"][FACTS] = digest_of(said)
    write_atomically(folder / FACTS, json.dumps(said, indent=2) + "\n")


def check_free(folder: Path, can_resume: bool = True, force: bool = False) -> None:
    """Refuse a folder that holds a run or, without `force`, anything that a run did not leave there."""
    check_is_text(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RegardError(f"'{folder}' is a file; give a folder that does not exist yet.")
    if (folder / CONFIG).exists() and not (folder / FACTS).exists():
        raise RegardError(
            f"'{folder}' holds a {CONFIG} and no {FACTS}: it is no run, or one that cannot be continued. Choose "
            f"another folder; or put {FACTS} back from a copy, if it is a run of yours."
        )
    if (folder / CONFIG).exists():
        way_out = "Continue it with --resume (in Python: resume=True), or choose" if can_resume else "Choose"
        raise RegardError(f"'{folder}' already holds a run. {way_out} another folder.")
    check_lock(folder)
    left = find_leftovers(folder)
    names = sorted(path.name for path in folder.iterdir() if path.name not in {LOCK, *left})
    if names and not force:
        raise RegardError(
            f"'{folder}' is not empty (it holds {names[0]}); choose another folder, or add --force (in Python: "
            f"force=True) to write into this one.{say_what_to_remove(folder)}"
        )
    if MODEL in names:
        raise RegardError(
            f"'{folder}' holds weights that a run would write over, also with --force: {MODEL}. Move them, or choose "
            "another folder."
        )
    if latest_checkpoint(folder) is not None:
        raise RegardError(
            f"'{folder}' holds saved states of a run in state/, but not its config.yaml. Put config.yaml back to "
            "resume that run, move state/ away, or choose another folder."
        )


def say_what_to_remove(folder: Path) -> str:
    """A sentence for a folder in which an earlier version may have been killed: its lock file had no mark."""
    left = [name for name in BEFORE_CONFIG if (folder / name).exists()]
    is_further = any((folder / name).exists() for name in (METRICS, "state"))  # than the start: work would be lost
    if not left or is_further or not (folder / LOCK).exists() or is_marked(folder):
        return ""
    return (
        f" If an earlier version of Regard was killed here as it began a run, remove what it left: {', '.join(left)}."
    )


def check_resumable(folder: Path) -> None:
    """Refuse to resume what was never trained here."""
    if not (folder / FACTS).exists() or read_facts(folder).data != IMPORTED:
        return
    counts = read_facts(folder).flops_per_token == 0
    further = "" if counts else f" Train it further with: regard train --from {folder} --data my.txt --out runs/mine"
    raise RegardError(f"'{folder}' was imported, not trained here: there is nothing to resume.{further}")


def check_same(folder: Path, config: RunConfig) -> None:
    """Refuse to resume a run with another config than it was begun with, but for what may change; name the first."""
    begun = load_config(folder / CONFIG)
    complete = task_of(begun).complete
    before, now = complete(begun).to_dict(), complete(config.take_open(begun)).to_dict()
    for section in now:
        old, new = before[section], now[section]
        if not isinstance(new, dict) or not isinstance(old, dict):
            _check_equal(folder, section, old, new)
            continue
        for key in {**old, **new}:
            _check_equal(folder, f"{section}.{key}", old.get(key), new.get(key))


def _check_equal(folder: Path, key: str, old: object, new: object) -> None:
    if old != new and key not in MAY_CHANGE_ON_RESUME:
        raise RegardError(
            f"'{folder}' was begun with {key} = {old!r}, and now {key} = {new!r} is asked for. Resume it without this "
            "change, or train the new config in another folder."
        )


def check_is_run(folder: Path) -> None:
    """Refuse what is no run folder, or one without run.json."""
    if not folder.exists():
        raise RegardError(f"There is no run folder '{folder}'.{suggest_path(folder, is_folder=True)}")
    if not folder.is_dir():
        raise RegardError(f"'{folder}' is a file, not a run folder; give the folder that `regard train` wrote.")
    _refuse_other_folders(folder)
    _check_there(folder, FACTS)


def open_folder(folder: Path, is_compared: bool = True) -> OpenRun:
    """Config, facts and tokenizers of a run, or a sentence that says what is missing, damaged or foreign.

    Without `is_compared` a config.yaml and a run.json that have changed since they were written are taken as they are.
    """
    check_is_run(folder)
    for name in (CONFIG, TOKENIZERS[0]):
        _check_there(folder, name)
    facts = read_facts(folder, is_compared)
    if not read_bytes(folder / CONFIG, MAX_NOTE).rstrip().endswith(b"..."):
        raise RegardError(f"'{folder}/config.yaml' was cut short: it does not end with '...'. Restore the whole file.")
    if is_compared:
        check_file(folder, facts, CONFIG)
    config = load_config(folder / CONFIG)
    tokenizers = [open_run_tokenizer(folder, TOKENIZERS[0], facts.vocab_size, facts.tokenizer)]
    if facts.target_tokenizer is not None and facts.target_vocab_size is not None:
        _check_there(folder, TARGET_TOKENIZER)
        tokenizers.append(open_run_tokenizer(folder, TOKENIZERS[1], facts.target_vocab_size, facts.target_tokenizer))
    return OpenRun(folder, config, facts, tuple(tokenizers))


def _refuse_other_folders(folder: Path) -> None:
    """Tell a folder that is something else from a run that lacks a file."""
    if (folder / CONFIG).exists():
        return
    if (folder / "compare.json").exists() or (folder / "plan.yaml").exists():
        runs = f" Its runs are in {folder / 'runs'}." if (folder / "runs").is_dir() else ""
        raise RegardError(f"'{folder}' holds a comparison, not a run.{runs} Draw it again with: regard report {folder}")
    if (folder / "config.json").exists():
        raise RegardError(
            f"'{folder}' is a Hugging Face folder, not a run. Make a run of it with: regard import {folder} --out RUN"
        )
    if not any((folder / name).exists() for name in (FACTS, TOKENIZERS[0], MODEL, "state")):
        raise RegardError(f"'{folder}' is not a run folder. Give a folder that `regard train` wrote.")


def _check_there(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise RegardError(
            f"'{folder}' is not a complete run folder: {name} is missing. Take it from a copy, or train "
            "again in another folder."
        )


def load_config(path: Path) -> RunConfig:
    """The config that a run folder's `config.yaml` describes."""
    return build_config(read_yaml(path), is_complete=True)


def read_weights(folder: Path, facts: RunFacts) -> dict[str, Tensor]:
    """The weights in a run folder; refused where they are not those that were written."""
    check_has_weights(folder)
    return read_run_weights(folder, facts)
