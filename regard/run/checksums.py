"""The SHA-256 of a run's files, in run.json: a bit that flips in the weights changes every answer without a word."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import RunConfig
from regard.data.checksums import sha256_of
from regard.data.known_sources import (
    are_known,
    are_starts_known,
    list_sources,
    list_starts,
    remember_starts,
    trust_sources,
)
from regard.errors import RegardError
from regard.run.begun_mark import TOKENIZERS
from regard.run.folder import check_is_run, lock_folder, open_folder, write_facts
from regard.tasks.run_facts import CONFIG, FACTS, IMPORTED, RunFacts, check_file, read_digest, read_facts
from regard.training.checkpoint import MODEL
from regard.training.metrics import METRICS
from regard.training.weights import matches_checksum
from regard.untrusted.values import quote

SEALED = (CONFIG, *TOKENIZERS, MODEL, METRICS)
"""Files that do not change any more when training has ended."""

UNKNOWN = "there; no checksum was written for it"
STATES = {True: ("as it was written", False), False: ("changed since it was written", True)}
"""How a file is described that is the same, or not, and whether that is damage."""


@dataclass(frozen=True)
class FileState:
    """What became of one file of a run."""

    name: str
    state: str
    """As it was written, changed, missing, or without a checksum."""
    is_damaged: bool


@dataclass(frozen=True)
class Checked:
    """What became of the files of a run, and which data it names."""

    files: tuple[FileState, ...]
    sources: tuple[str, ...]
    """Names of files, folders and sets, those it begins with too; none where the run was imported."""
    may_read: bool
    """Whether they were named on this machine before, or are built in."""
    refusal: str = ""
    """Why the run cannot be opened, so that it is not known which data it names; empty: it can."""

    @property
    def is_damaged(self) -> bool:
        return any(file.is_damaged for file in self.files)

    def describe_data(self) -> str:
        """One sentence."""
        if self.refusal:
            return "Which data it names is not known: it cannot be opened."
        if not self.sources:
            return "It names no data: it was imported."
        allowed = "may be read here" if self.may_read else "is not read here unless you add --trust"
        return f"What it reads, {quote(', '.join(self.sources), 200)}, {allowed}."

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"is_damaged": self.is_damaged}


def seal(folder: Path, facts: RunFacts, config: RunConfig | None = None) -> RunFacts:
    """Write run.json with the checksums of the files that are there; returns what it says.

    `config` is what config.yaml will say, where it is written last of all.
    """
    sums = {} if config is None else {CONFIG: hashlib.sha256(config.to_yaml().encode()).hexdigest()}
    sums |= {name: sha256_of(folder / name) for name in SEALED if name not in sums and (folder / name).is_file()}
    facts = replace(facts, checksums=sums)
    write_facts(folder, facts)
    return facts


def check_sealed(folder: Path, facts: RunFacts, has_state: bool) -> None:
    """Refuse to go on with files that are not those that were written.

    Weights are not compared where there is a saved state: they are put back from it, and it has checksums of its own.
    """
    for name in SEALED:
        if name != MODEL or not has_state:
            check_file(folder, facts, name)


def unseal(folder: Path, facts: RunFacts) -> None:
    """Take the checksums out of run.json before the files change: training goes on."""
    if facts.checksums.keys() - {FACTS}:
        write_facts(folder, replace(facts, checksums={}))


def check_run(folder: Path) -> Checked:
    """Compare every file of a run with the checksum that was written for it, also where the run cannot be opened."""
    check_is_run(folder)
    facts = read_facts(folder, is_compared=False)
    files = tuple(state for name in (FACTS, *SEALED) if (state := _compare(folder, facts, name)) is not None)
    try:
        opened = open_folder(folder, is_compared=False)
    except RegardError as error:
        return Checked(files, (), False, str(error))
    config, data, fingerprint = opened.config.to_dict(), opened.config.data.to_dict(), opened.facts.data
    sources = () if fingerprint == IMPORTED else (*list_sources(data), *list_starts(config))
    may_read = not sources or (are_known(data, fingerprint) and are_starts_known(config, fingerprint))
    return Checked(files, sources, may_read)


def _compare(folder: Path, facts: RunFacts, name: str) -> FileState | None:
    """What became of a file; None where it is not there and need not be."""
    path, wanted = folder / name, facts.checksums.get(name)
    if wanted is None:
        if not path.is_file():
            return None
        is_same = _compare_own(path) if name == MODEL else None
        return FileState(name, *((UNKNOWN, False) if is_same is None else STATES[is_same]))
    if not path.is_file():
        return FileState(name, "missing", True)
    is_same = wanted == (read_digest(folder) if name == FACTS else sha256_of(path))
    return FileState(name, *STATES[is_same])


def _compare_own(path: Path) -> bool | None:
    """Whether weights have the checksum in their own file, which is there before training ends; None: it has none."""
    try:
        return matches_checksum(path)
    except RegardError:  # no whole file
        return False


def trust_run(folder: Path) -> None:
    """Take a run's files and data for what they should be: checksums are written anew, and its data may be read.

    Where the checksums are right nothing is written, and where they are missing and cannot be: the data of a run that
    you may only read, or that has links in place of files, can be trusted too.
    """
    opened, files = open_folder(folder, is_compared=False), check_run(folder).files
    may_stay = not any(file.is_damaged for file in files)
    if not may_stay or any(file.name not in opened.facts.checksums for file in files):
        with suppress(*([RegardError] if may_stay else [])), lock_folder(folder):
            opened = open_folder(folder, is_compared=False)  # a run that is being trained writes its checksums itself
            seal(folder, opened.facts)
    if opened.facts.data != IMPORTED:
        trust_sources(opened.config.data.to_dict(), opened.facts.data)
        remember_starts(opened.config.to_dict(), opened.facts.data)
