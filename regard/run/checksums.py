"""The SHA-256 of a run's files, in run.json: a bit that flips in the weights changes every answer without a word."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import RunConfig
from regard.data.known_sources import (
    are_known,
    are_starts_known,
    list_sources,
    list_starts,
    remember_sources,
    remember_starts,
)
from regard.run.begun_mark import TOKENIZERS
from regard.run.folder import open_folder, write_facts
from regard.tasks.run_facts import IMPORTED, RunFacts, sha256_of
from regard.training.checkpoint import MODEL
from regard.untrusted.values import quote

SEALED = ("config.yaml", *TOKENIZERS, MODEL)
"""Files that do not change any more when training has ended."""


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

    @property
    def is_damaged(self) -> bool:
        return any(file.is_damaged for file in self.files)

    def describe_data(self) -> str:
        """One sentence."""
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
    sums = {} if config is None else {"config.yaml": hashlib.sha256(config.to_yaml().encode()).hexdigest()}
    sums |= {name: sha256_of(folder / name) for name in SEALED if name not in sums and (folder / name).is_file()}
    facts = replace(facts, checksums=sums)
    write_facts(folder, facts)
    return facts


def unseal(folder: Path, facts: RunFacts) -> None:
    """Take the checksums out of run.json before the files change: training goes on."""
    if facts.checksums:
        write_facts(folder, replace(facts, checksums={}))


def check_run(folder: Path) -> Checked:
    """Compare every file of a run with the checksum that was written for it."""
    opened = open_folder(folder)
    sums, found = opened.facts.checksums, []
    for name in SEALED:
        path = folder / name
        if name not in sums:
            if path.is_file():
                found.append(FileState(name, "there; no checksum was written for it", False))
        elif not path.is_file():
            found.append(FileState(name, "missing", True))
        else:
            is_same = sha256_of(path) == sums[name]
            state = "as it was written" if is_same else "changed since it was written"
            found.append(FileState(name, state, not is_same))
    config, data, fingerprint = opened.config.to_dict(), opened.config.data.to_dict(), opened.facts.data
    sources = () if fingerprint == IMPORTED else (*list_sources(data), *list_starts(config))
    may_read = not sources or (are_known(data, fingerprint) and are_starts_known(config, fingerprint))
    return Checked(tuple(found), sources, may_read)


def trust_run(folder: Path) -> None:
    """Take a run's files and data for what they should be: checksums are written anew, and its data may be read."""
    opened = open_folder(folder)
    seal(folder, opened.facts)
    if opened.facts.data != IMPORTED:
        remember_sources(opened.config.data.to_dict(), opened.facts.data)
        remember_starts(opened.config.to_dict(), opened.facts.data)
