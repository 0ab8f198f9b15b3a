"""SentencePiece's model files (.spm, .model; Kudo & Richardson 2018): the pieces of a unigram model and their scores.

What is read is what decides how a text is cut. A model that cuts in another way than SentencePiece does by itself
(byte pairs, bytes for unknown letters, pieces that are searched for first) is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from regard.errors import RegardError
from regard.text.charsmap import Charsmap
from regard.untrusted.protobuf import Value, read_fields
from regard.untrusted.small_files import COPY_AGAIN, MB, DamagedFileError, read_bytes
from regard.untrusted.values import quote

MAX_BYTES = 16 * MB  # published ones have one
MAX_PIECE = 256  # characters; SentencePiece learns pieces of at most 16

# Numbers of fields in sentencepiece_model.proto.
PIECES, TRAINER, NORMALIZER, DENORMALIZER = 1, 2, 3, 5
TEXT, SCORE, KIND = 1, 2, 3
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MODEL_TYPE, SPACE_AS_SUFFIX, UNIGRAM = 3, 24, 1
CHARSMAP, DUMMY_PREFIX, NO_EXTRA_SPACES, ESCAPED_SPACES = 2, 3, 4, 5
MODEL_TYPES = {2: "bpe", 3: "word", 4: "char"}

V = TypeVar("V", int, bytes, float)


@dataclass(frozen=True)
class SentencePieceFile:
    """A unigram model of pieces."""

    pieces: Mapping[str, float]
    """log P of each piece that texts are cut into."""
    charsmap: bytes
    """What is done to a text first (`Charsmap`); empty: nothing."""


def read_sentencepiece(path: Path) -> SentencePieceFile:
    """Read a file of SentencePiece's; an error that says what of it Regard does not read."""
    try:
        data = read_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        raise RegardError(f"There is no file {path}. Copy it there from where the model came from.") from None
    except OSError as error:
        raise RegardError(f"{path} cannot be read: {error.strerror}.") from None
    where, pieces = f"'{path}'", dict[str, float]()
    sections: dict[int, dict[int, Value]] = {TRAINER: {}, NORMALIZER: {}, DENORMALIZER: {}}
    for number, value in read_fields(data, where):
        if number == PIECES:
            _add_piece(pieces, _take(value, bytes, where), where)
        elif number in sections:
            sections[number].update(read_fields(_take(value, bytes, where), where))
    if not pieces:
        raise DamagedFileError(f"{where} is no model of SentencePiece's: it has no pieces. {COPY_AGAIN}.")
    _check_trainer(sections[TRAINER], where)
    if _find(sections[DENORMALIZER], CHARSMAP, b"", where):
        raise RegardError(f"{where} changes what is written (denormalizer_spec), which Regard does not. Use another.")
    charsmap = _read_normalizer(sections[NORMALIZER], where)
    Charsmap(charsmap, where)  # which says what is wrong with it
    return SentencePieceFile(pieces, charsmap)


def _add_piece(pieces: dict[str, float], data: bytes, where: str) -> None:
    fields = dict(read_fields(data, where))
    try:
        text = _find(fields, TEXT, b"", where).decode("utf-8")
    except UnicodeDecodeError:
        raise DamagedFileError(f"{where} has a piece that is not UTF-8 text. {COPY_AGAIN}.") from None
    score, kind = _find(fields, SCORE, 0.0, where), _find(fields, KIND, NORMAL, where)
    if kind in (USER_DEFINED, BYTE):
        what = "a piece of the user's, searched for before all others" if kind == USER_DEFINED else "bytes as pieces"
        raise RegardError(f"{where} has {what} ({quote(text, 40)}), which Regard does not read. Use another model.")
    if kind != NORMAL:  # marks, and what is never used
        return
    if not text or text in pieces or len(text) > MAX_PIECE or not math.isfinite(score):
        what = "an empty piece" if not text else f"a piece of more than {MAX_PIECE} characters"
        if text in pieces:
            what = f"the piece {quote(text, 40)} twice"
        elif text and len(text) <= MAX_PIECE:
            what = f"a score of {quote(text, 40)} that is no number"
        raise DamagedFileError(f"{where} has {what}. {COPY_AGAIN}.")
    pieces[text] = score


def _check_trainer(trainer: Mapping[int, Value], where: str) -> None:
    kind = _find(trainer, MODEL_TYPE, UNIGRAM, where)
    if kind != UNIGRAM:
        raise RegardError(
            f"{where} is a model of type {MODEL_TYPES.get(kind, kind)}, and Regard reads unigram models of "
            "SentencePiece's alone. Use a folder whose source.spm and target.spm are unigram models."
        )
    if _find(trainer, SPACE_AS_SUFFIX, 0, where):
        raise RegardError(f"{where} puts spaces behind words (treat_whitespace_as_suffix), which Regard does not read.")


def _read_normalizer(normalizer: Mapping[int, Value], where: str) -> bytes:
    names = {
        DUMMY_PREFIX: "add_dummy_prefix",
        NO_EXTRA_SPACES: "remove_extra_whitespaces",
        ESCAPED_SPACES: "escape_whitespaces",
    }
    for number, name in names.items():
        if not _find(normalizer, number, 1, where):
            raise RegardError(
                f"{where} has {name} = false, and Regard reads models of SentencePiece's with true there."
            )
    return _find(normalizer, CHARSMAP, b"", where)


def _find(fields: Mapping[int, Value], number: int, default: V, where: str) -> V:
    """The last value of a field, which is the one that counts."""
    return _take(fields.get(number, default), type(default), where)


def _take(value: Value, kind: type[V], where: str) -> V:
    if not isinstance(value, kind):
        raise DamagedFileError(f"{where} has a value of another kind than such a file has there. {COPY_AGAIN}.")
    return value
