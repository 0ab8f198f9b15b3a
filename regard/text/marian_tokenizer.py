"""Marian's tokenizers as they are published: two models of SentencePiece's, and one vocabulary for their pieces.

source.spm cuts what is translated, target.spm what is written, and vocab.json has the id of every piece of both. A
piece that it lacks is <unk>. A source ends with </s>; a target begins after <pad>, which is never written.

As a tokenizer.json, one for each side, entry i of the unigram model is the token with id i. `tokenizers` would cut by
every entry, and a side must be cut by its own pieces alone: the entries of the other side begin with a space, which no
text has once spaces are written as ▁. What is cut from texts and has no id follows an entry that is a space.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.text.charsmap import SPACE, Charsmap
from regard.text.sentencepiece_file import MAX_PIECE, read_sentencepiece
from regard.text.unigram import Unigram
from regard.untrusted.small_files import COPY_AGAIN, DamagedFileError, read_object
from regard.untrusted.values import quote

END, UNK, PAD = MARKS = ("</s>", "<unk>", "<pad>")
"""Ids by these names in vocab.json; they are never cut from a text."""
NO_ID = " "
FILES = ("source.spm", "target.spm")
VOCAB = "vocab.json"
MAX_TOKENS = 2**20
MAX_CHARACTERS = 2**21  # of all tokens; each beginning of a piece is kept, and published ones have half a million
PRE_TOKENIZER = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
    ],
}
"""How tokenizer.json says that words begin with ▁; by it a tokenizer of this kind is known."""


def holds_sentencepiece(folder: Path) -> bool:
    """Whether a folder has a tokenizer of Marian's, or a part of one, and no tokenizer.json."""
    return not (folder / "tokenizer.json").exists() and any((folder / name).exists() for name in FILES)


def read_sides(folder: Path) -> tuple[str, str]:
    """The tokenizer.json of the source and of the target that a published folder stands for."""
    for name in (*FILES, VOCAB):
        if not (folder / name).exists():
            raise RegardError(
                f"'{folder}' lacks {name}: a published Marian has {', '.join((*FILES, VOCAB))}. Copy the whole folder "
                "again."
            )
    if (folder / "target_vocab.json").exists():
        raise RegardError(
            f"'{folder}' has a vocabulary for each side (target_vocab.json), and Regard reads Marians with one "
            f"{VOCAB} for both. Use a folder such as those of Helsinki-NLP/opus-mt."
        )
    names = _read_vocab(folder / VOCAB)
    source, target = (_make_json(folder / name, names) for name in FILES)
    return source, target


def _read_vocab(path: Path) -> list[str]:
    """The tokens in the order of their ids."""
    found, where = read_object(path), f"'{path}'"
    names = dict[Any, str]()
    for token, number in found.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(found) or number in names:
            raise RegardError(
                f"{where} must give each of its {len(found):,} tokens one of the numbers from 0 to {len(found) - 1:,} "
                f"and none twice, and gives {quote(token, 40)} {quote(number, 40)}. {COPY_AGAIN}."
            )
        names[number] = token
    if missing := [mark for mark in MARKS if mark not in found]:
        raise RegardError(f"{where} is no vocabulary of Marian's: it lacks {', '.join(missing)}. {COPY_AGAIN}.")
    if odd := [token for token in found if not token or token.startswith(" ")]:
        raise RegardError(
            f"{where} has the token {quote(odd[0], 40)}, and no piece of SentencePiece's begins with a space or is "
            f"empty. {COPY_AGAIN}."
        )
    return [names[number] for number in range(len(names))]


def _make_json(path: Path, names: list[str]) -> str:
    """The tokenizer.json of one side."""
    model = read_sentencepiece(path)
    if odd := [piece for piece in model.pieces if piece in MARKS or piece.startswith(" ")]:
        raise RegardError(
            f"'{path}' cuts {quote(odd[0], 40)} from texts, which is a mark or begins with a space. {COPY_AGAIN}."
        )
    vocab: list[tuple[str, float]] = [
        (name, model.pieces[name]) if name in model.pieces else (name if name in MARKS else f" {name}", 0.0)
        for name in names
    ]
    if without := sorted(model.pieces.keys() - set(names)):
        vocab += [(NO_ID, 0.0), *((piece, model.pieces[piece]) for piece in without)]
    table = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": table if model.charsmap else None,
            "pre_tokenizer": PRE_TOKENIZER,
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": " "}, "content": ""},
                    {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
                ],
            },
            "model": {"type": "Unigram", "unk_id": names.index(UNK), "vocab": vocab, "byte_fallback": False},
        },
        ensure_ascii=False,
    )


def check_unigram(parsed: Mapping[str, Any], where: str) -> None:
    """Refuse a tokenizer.json of a unigram model that `read_sides` would not have made."""
    model, normalizer = parsed["model"], parsed.get("normalizer")
    vocab = model.get("vocab")
    entries = vocab if isinstance(vocab, list) else []
    if len(entries) > MAX_TOKENS:
        raise RegardError(f"{where} has {len(entries):,} tokens; at most {MAX_TOKENS:,} are read. Use another.")
    if not entries or not all(map(_is_entry, entries)) or len({name for name, _ in entries}) < len(entries):
        raise RegardError(
            f"{where} must list tokens, each once and with a finite number and at most {MAX_PIECE} characters, and "
            "does not. Copy it again from where it came from."
        )
    names = [name for name, _ in entries]
    if (n_characters := sum(map(len, names))) > MAX_CHARACTERS:
        raise RegardError(
            f"{where} has tokens of {n_characters:,} characters in all; at most {MAX_CHARACTERS:,} are read. Use "
            "another."
        )
    with_id = names[: names.index(NO_ID)] if NO_ID in names else names
    if missing := [mark for mark in MARKS if mark not in with_id]:
        raise RegardError(
            f"{where} is no tokenizer of Marian's, the only unigram models that Regard reads: it lacks "
            f"{', '.join(missing)}. Leave out tokenizer.path to learn one from the training text."
        )
    is_plain = normalizer is None or (isinstance(normalizer, Mapping) and normalizer.get("type") == "Precompiled")
    if not is_plain or model.get("byte_fallback") or model.get("unk_id") != names.index(UNK):
        raise RegardError(
            f"{where} changes texts in another way than a published Marian, or has another unknown token than {UNK}. "
            "Leave out tokenizer.path to learn one from the training text."
        )
    MarianPieces(parsed, where)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
        return False
    name, score = entry
    is_number = isinstance(score, int | float) and not isinstance(score, bool) and abs(score) < 1e30
    return is_number and math.isfinite(score) and 0 < len(name) <= 2 * MAX_PIECE


class Cut(NamedTuple):
    """A token of a text, and the characters [start, end) that it came from."""

    id: int
    start: int
    end: int


class MarianPieces:
    """Texts as ids of one side, as transformers' MarianTokenizer has them, without its end mark."""

    def __init__(self, parsed: Mapping[str, Any], where: str = "the tokenizer") -> None:
        entries = parsed["model"]["vocab"]
        self.names = [name for name, _ in entries]
        self.vocab_size = self.names.index(NO_ID) if NO_ID in self.names else len(self.names)
        own = {name: score for name, score in entries if not (name in MARKS or name.startswith(" "))}
        if not own:
            raise DamagedFileError(f"{where} has no piece that a text could be cut into. {COPY_AGAIN}.")
        self._model = Unigram(own)
        table = parsed.get("normalizer") or {}
        try:
            data = base64.b64decode(table.get("precompiled_charsmap") or "", validate=True)
        except (ValueError, TypeError):
            raise DamagedFileError(f"{where} has a table of characters that is not base64. {COPY_AGAIN}.") from None
        self._charsmap = Charsmap(data, where)
        self._unknown = self.names.index(UNK)

    @property
    def texts(self) -> list[str]:
        """The tokens as vocab.json has them, by id."""
        return [name.removeprefix(" ") for name in self.names[: self.vocab_size]]

    @cached_property
    def _ids(self) -> dict[str, int]:
        """Ids of what is cut from a text: the pieces of the other side too, where unknown letters spell one."""
        return {text: number for number, text in enumerate(self.texts) if text not in MARKS}

    def cut(self, text: str) -> list[Cut]:
        """The tokens of a text. A code such as >>fr<< before it, a language to translate into, is one token."""
        begin, found = 0, list[Cut]()
        if text.startswith(">>") and (end := text.find("<<")) >= 0:
            begin = end + 2
            found.append(Cut(self._ids.get(text[:begin], self._unknown), 0, begin))
        normalized, spans = self._charsmap.normalize(text[begin:])
        for start, end, _ in self._model.cut(normalized):
            first = start + 1 if normalized[start] == SPACE and end > start + 1 else start
            number = self._ids.get(normalized[start:end], self._unknown)
            found.append(Cut(number, begin + spans[first][0], begin + spans[end - 1][1]))
        return found

    def encode(self, text: str) -> NDArray[np.int32]:
        """The ids of a text."""
        return np.array([token.id for token in self.cut(text)], dtype=np.int32)
