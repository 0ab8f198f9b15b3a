"""From sources to memory-mapped token streams, once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.data.config import DataConfig
from regard.data.stream import Stream
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress, train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.text.units import words_of


@dataclass(frozen=True)
class Prepared:
    """A text ready to train on. `fingerprint` names content, split and tokenizer."""

    tokenizer: Tokenizer
    train: Stream
    valid: Stream
    test: Stream
    fingerprint: str


def prepare(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    n_processes: int | None = None,
) -> Prepared:
    """Read, split, learn the tokenizer on the training split, encode; a second call finds it all in the cache."""
    paths = [data.train] if isinstance(data.train, str) else list(data.train)
    text = "".join(Path(p).read_text(encoding="utf-8") for p in paths)
    a, b = int(len(text) * (1 - data.p_valid - data.p_test)), int(len(text) * (1 - data.p_test))
    learned = train_tokenizer(tokenizer, [text[:a]], progress)
    streams = []
    for part in (text[:a], text[a:b], text[b:]):
        ids = learned.encode_documents([(part, True)])
        n_words = len(words_of(part)) + part.count("\n") + (not part.endswith("\n"))
        streams.append(Stream.of(ids, n_bytes=len(part.encode()), n_words=n_words, sample=part[:20_000]))
    return Prepared(learned, *streams, fingerprint=learned.hash)
