"""Word vectors from a file or a run, and as the first embedding of a model's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from regard.config import mapping, read_yaml
from regard.errors import RegardError
from regard.files import expand_home
from regard.models.table import model_config, models_for
from regard.models.trained_vectors import compose_vectors
from regard.models.word_vectors import WordVectors
from regard.tasks.run_facts import (
    CONFIG,
    check_file,
    check_has_weights,
    open_run_tokenizer,
    read_facts,
    read_run_weights,
)
from regard.text.tokenizer import Tokenizer
from regard.weights.word_vectors import read_vectors

Embeddings = Sequence[tuple[Tensor, Tokenizer]]
"""Tables of a model, with a row a token, and whose tokens these are."""


def load_vectors(source: str | Path) -> WordVectors:
    """The word vectors of a run folder, or of a file of word2vec, GloVe or fastText."""
    path = expand_home(source)
    if path.is_file():
        return _read_once(path, path.stat().st_mtime_ns)
    if not path.is_dir():
        return read_vectors(path)
    if not (path / "config.yaml").is_file():
        raise RegardError(f"'{source}' is a folder and no run. Give a run of word vectors, or a file of them.")
    model = dict(mapping(read_yaml(path / "config.yaml"), "model"))
    name = str(model.pop("name", None))
    if name not in models_for("word-vectors"):
        raise RegardError(
            f"'{source}' is a run of {name}, which has no word vectors. Give a run of "
            f"{', '.join(models_for('word-vectors'))}, or a file of vectors."
        )
    facts = read_facts(path)
    check_has_weights(path)
    check_file(path, facts, CONFIG)
    tokenizer = open_run_tokenizer(path, "tokenizer.json", facts.vocab_size, facts.tokenizer)
    return compose_vectors(model_config(name, model), read_run_weights(path, facts), tokenizer)


@lru_cache(maxsize=1)
def _read_once(path: Path, modified: int) -> WordVectors:
    """A file is asked for several times when a run begins, and a large one takes seconds."""
    return read_vectors(path)


def check_width(vectors: WordVectors, source: str, embeddings: Embeddings) -> None:
    """Refuse vectors that are not as wide as the rows that they are to fill."""
    for table, _ in embeddings:
        if table.shape[1] != vectors.width:
            raise RegardError(
                f"The vectors in '{source}' have {vectors.width} numbers each, and an embedding of this model "
                f"{table.shape[1]}. Set model.d_model={vectors.width}, or take other vectors."
            )


def fill_embeddings(vectors: WordVectors, source: str, embeddings: Embeddings) -> list[str]:
    """Give every token that is a word with a vector that vector; the others keep their row. Says how many were found.

    Rows are scaled, all by one number, so that those that were found are as long on average as they were before: what
    the model's rates were chosen for.
    """
    notes = []
    for table, tokenizer in embeddings:
        rows = [(i, row) for i in range(tokenizer.vocab_size) if (row := _find(vectors, tokenizer, i)) is not None]
        found_of = f"{len(rows):,} of {tokenizer.vocab_size:,} tokens"
        notes.append(f"Vectors of {found_of} were found in '{source}'; the others begin as random numbers.")
        if not rows:
            continue
        tokens, found = torch.tensor([i for i, _ in rows]), torch.from_numpy(vectors.matrix[[row for _, row in rows]])
        with torch.no_grad():
            before, now = table[tokens].norm(dim=1).mean(), found.norm(dim=1).mean().clamp(min=1e-12)
            table[tokens] = (found * (before / now)).to(table)
    return notes


def _find(vectors: WordVectors, tokenizer: Tokenizer, token: int) -> int | None:
    """The row of a token's word; white space around it, and the case, do not matter."""
    text = tokenizer.token_text(token).strip()
    return vectors.find(text) if text and token != tokenizer.eos and token != tokenizer.unk else None
