"""What run.json says of the files beside it: whether they belong together and are as they were written."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from regard import __version__
from regard.data.checksums import sha256_of
from regard.errors import RegardError
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import MODEL
from regard.training.weights import read_checked_tensors, read_tensors
from regard.untrusted.fields import FieldError, decode_fields
from regard.untrusted.small_files import MAX_NOTE, DamagedFileError, read_json
from regard.untrusted.values import quote

FORMAT = 1
CONFIG, FACTS = "config.yaml", "run.json"
IMPORTED = "imported"
"""Stands for the data fingerprint of a run that was not trained here."""


@dataclass(frozen=True)
class RunFacts:
    """What run.json says: enough to tell whether the files beside it belong together."""

    format: int
    regard: str
    model: str
    vocab_size: int
    tokenizer: str
    data: str
    """The fingerprint of the data, or IMPORTED for a run that was not trained here."""
    n_parameters: int
    flops_per_token: int
    started_from: str | None = None
    """The folder its first weights, or its decoder's, came from, and the sha256 of these; None: from random numbers."""
    started_weights: str | None = None
    target_vocab_size: int | None = None
    """Of a run with two vocabularies: the target's, whose hash is `target_tokenizer`."""
    target_tokenizer: str | None = None
    opening: str = ""
    """Of a language model: the break in its text after which a text without a prompt begins; empty: after <eos>."""
    checksums: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files beside it, written when training has ended, and of what run.json says itself (`digest_of`);
    none of a file: training has not ended, or an earlier version did."""

    def check(self) -> None:
        """Refuse a fingerprint that is none: it becomes the name of a folder in the cache."""
        if self.data != IMPORTED and not re.fullmatch("[0-9a-f]{32}", self.data):
            raise FieldError(f"'data' must be 32 hexadecimal digits, not {quote(self.data, 40)}")


def digest_of(said: Mapping[str, Any]) -> str:
    """The SHA-256 of all that run.json says but for this digest, however it is laid out."""
    sums = {name: digest for name, digest in said.get("checksums", {}).items() if name != FACTS}
    return hashlib.sha256(json.dumps({**said, "checksums": sums}, sort_keys=True).encode()).hexdigest()


def read_facts(folder: Path, is_compared: bool = True) -> RunFacts:
    """What run.json says; one that has changed since it was written is refused, unless `is_compared` is False."""
    path = folder / FACTS
    if not path.exists():
        raise RegardError(f"'{folder}' is not a complete run folder: {FACTS} is missing. Take it from a copy.")
    try:
        found = read_json(path, MAX_NOTE)
        version = found["format"]
    except (OSError, DamagedFileError, KeyError, TypeError):
        raise RegardError(
            f"'{path}' is damaged: it holds no JSON object with a run's format. Restore it from a copy, or train again."
        ) from None
    if version != FORMAT:
        raise RegardError(
            f"'{path.parent}' has run format {quote(version)}, written by Regard "
            f"{found.get('regard', '?')!s:.20}; this is Regard {__version__}, which reads format {FORMAT}. Use that "
            "version, or train the run again."
        )
    try:
        facts = decode_fields(RunFacts, found)
        facts.check()
    except FieldError as error:
        raise RegardError(f"'{path}' is damaged ({error}); the run folder cannot be used.") from None
    digest = digest_of(found)
    if is_compared and facts.checksums.get(FACTS, digest) != digest:
        raise RegardError(
            f"'{path}' has changed since it was written: it does not match the checksum in it. It was damaged or "
            f"edited; take it from a copy. If you changed it yourself, say so: regard check {folder} --trust"
        )
    return facts


def read_digest(folder: Path) -> str:
    """The SHA-256 of what run.json says, as its own checksum should be; the file was read before."""
    return digest_of(read_json(folder / FACTS, MAX_NOTE))


def check_file(folder: Path, facts: RunFacts, name: str, sha256: str | None = None) -> None:
    """Refuse a file that is not the one that was written; where there is no checksum there is nothing to compare.

    `sha256` is the file's, where it is known already.
    """
    wanted, path = facts.checksums.get(name), folder / name
    if wanted is None or not path.is_file() or (sha256 or sha256_of(path)) == wanted:
        return
    raise RegardError(
        f"'{path}' has changed since it was written: its SHA-256 is not the one in run.json. It was damaged or "
        f"replaced; take it from a copy. If you replaced it yourself, say so: regard check {folder} --trust"
    )


def check_has_weights(folder: Path) -> None:
    """Refuse a run whose training was stopped before it had any."""
    if (folder / MODEL).is_file():
        return
    if MODEL in read_facts(folder).checksums:
        raise RegardError(
            f"'{folder}' has lost its {MODEL}. Take it from a copy; or resume the run, which writes the weights of its "
            f"saved state: regard train --resume --out {folder}"
        )
    raise RegardError(
        f"'{folder}' has no {MODEL} yet: its training has not reached the first evaluation. Continue it with: "
        f"regard train --resume --out {folder}"
    )


def read_run_weights(folder: Path, facts: RunFacts, sha256: str | None = None) -> dict[str, Tensor]:
    """The weights of a run; refused where they are not those that were written.

    They are compared with the SHA-256 in run.json, which `regard check --trust` writes for what is there; where it has
    none, since training has not ended, with the CRC-32 in their own file. `sha256` is the file's, where it is known
    already.
    """
    path = folder / MODEL
    if MODEL not in facts.checksums:
        return read_checked_tensors(
            path,
            "Take it from a copy, or go on with its training, which puts back the weights of its saved state: regard "
            f"train --resume --out {folder}. If you replaced it yourself, say so: regard check {folder} --trust",
        )
    tensors = read_tensors(path)
    check_file(folder, facts, MODEL, sha256)
    return tensors


def open_run_tokenizer(folder: Path, name: str, vocab_size: int, digest: str) -> Tokenizer:
    """A tokenizer of a run; refused where it is not the one that its weights were trained with."""
    path = folder / name
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocab_size != vocab_size or tokenizer.hash != digest:
        raise RegardError(
            f"The tokenizer in '{path.parent}' does not fit its weights: {path.name} has {tokenizer.vocab_size} tokens "
            f"(hash {tokenizer.hash[:12]}), the weights were trained with {vocab_size} "
            f"(hash {digest[:12]}). Put the original {path.name} back."
        )
    return tokenizer
