"""How much of a text a vocabulary has no word for: whole words, subwords and characters side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config import mapping, read_yaml
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.known_sources import is_unread
from regard.data.prepared_text import prepare_text
from regard.errors import RegardError
from regard.models.word_vectors import WordVectors
from regard.tasks.run_facts import CONFIG, check_file, read_facts
from regard.tasks.task import check_sources
from regard.tasks.vectors_as_embedding import load_vectors
from regard.tasks.word_vectors_run import PLAIN_WORDS
from regard.text.config import SMALLEST_BPE, TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer

MAX_TEXT = 20_000_000
"""Bytes of a text that are looked at; enough to know shares to a hundredth of a per cent."""


@dataclass(frozen=True)
class Coverage:
    """What one vocabulary has of a text."""

    unit: str
    vocab_size: int
    missing_words: float
    """The share of running words that it has no way to write, or not without <unk>."""
    missing_types: float
    """The share of different words."""
    tokens_per_word: float
    n_words: int
    n_types: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure_coverage(source: str | Path, data: str | Sequence[str] | None = None) -> list[Coverage]:
    """What the words of a run or a file of vectors have of a text; of a run, beside subwords and characters.

    `data` is the text; without it, the test split of a run's own. Subwords and characters are learned from the run's
    training text: BPE and WordPiece with as many tokens as the run has words.
    """
    vectors, config = load_vectors(source), _data_of(Path(source))
    if data is None and config is None:
        raise RegardError(f"'{source}' is a file and has no text of its own; name one with --data.")
    if data is not None:
        text = "\n".join(read_documents(DataConfig(train=tuple([data] if isinstance(data, str) else data),
                                                   max_bytes=MAX_TEXT)))  # fmt: skip
        counts = _count(train_tokenizer(PLAIN_WORDS, [text]), text)
    else:
        assert config is not None
        split = prepare_text(config, PLAIN_WORDS)
        tokens = split.test.tokens
        counts = Counter(split.tokenizer.token_text(i) for i in tokens[tokens > 1].tolist())
        counts["<unk>"] += int((tokens == 1).sum())
    if not counts.total():
        raise RegardError("The text has no words: there is nothing to look for.")
    found = [_cover_words(vectors, counts)]
    if config is not None:
        size = max(SMALLEST_BPE, len(vectors))
        for kind, n in (("wordpiece", size), ("bpe", size), ("char", None)):
            tokenizer = prepare_text(config, TokenizerConfig(kind=kind, vocab_size=n)).tokenizer
            found.append(_cover_pieces(kind, tokenizer, counts))
    return found


def _data_of(path: Path) -> DataConfig | None:
    """The data of a run, which may be read here; None of a file."""
    if not path.is_dir():
        return None
    facts = read_facts(path)
    check_file(path, facts, CONFIG)
    data = DataConfig.from_complete(mapping(read_yaml(path / CONFIG), "data"), "data")
    alone = f"regard vectors convert {path} my.vec, then regard vectors coverage my.vec --data FILE"
    check_sources(path, data, facts, f"Look at its words alone: {alone}")
    if is_unread(data.to_dict(), facts.data):
        raise RegardError(
            f"The data that '{path}' names were not compared yet with those it was trained on. Do it once: regard eval "
            f"{path}"
        )
    return data


def _count(tokenizer: Tokenizer, text: str) -> Counter[str]:
    ids = tokenizer.encode(text)
    return Counter(tokenizer.token_text(i) for i in ids[ids > 1].tolist())


def _cover_words(vectors: WordVectors, counts: Counter[str]) -> Coverage:
    missing = [word for word in counts if vectors.find(word) is None]
    return _sum_up("words", len(vectors), counts, missing, counts.total())


def _cover_pieces(kind: str, tokenizer: Tokenizer, counts: Counter[str]) -> Coverage:
    """A word counts as missing where one of its tokens is <unk>, or a byte where characters are meant."""
    missing, n_tokens = [], 0
    for word, count in counts.items():
        ids = tokenizer.encode(word if kind == "char" else f" {word}")
        n_tokens += count * len(ids)
        spelled_in_bytes = kind == "char" and any(1 <= i <= 256 for i in ids.tolist())
        if spelled_in_bytes or (tokenizer.unk is not None and (ids == tokenizer.unk).any()):
            missing.append(word)
    names = {"char": "characters", "bpe": "subwords (BPE)", "wordpiece": "subwords (WordPiece)"}
    return _sum_up(names[kind], tokenizer.vocab_size, counts, missing, n_tokens)


def _sum_up(unit: str, size: int, counts: Counter[str], missing: Sequence[str], n_tokens: int) -> Coverage:
    n_words, n_types = counts.total(), len(counts)
    return Coverage(
        unit, size, sum(counts[word] for word in missing) / n_words, len(missing) / n_types, n_tokens / n_words,
        n_words, n_types,
    )  # fmt: skip
