"""The word vectors that a reader of labelled texts has of its own: which words, how many, and what they begin as."""

from __future__ import annotations

import torch

from regard.config import RunConfig
from regard.data.labelled_splits import PreparedLabelled
from regard.errors import RegardError
from regard.models.encoder_from_scratch import FROM_SCRATCH
from regard.models.word_input import WordInput, WordList, list_words
from regard.models.word_input_config import WordsConfig
from regard.models.word_vectors import WordVectors
from regard.tasks.vectors_as_embedding import load_vectors

D_WORD = 100


def check_words(config: RunConfig) -> None:
    """Refuse `words` and `mixer` where there is nothing that they could do."""
    is_trained = config.folders.get("encoder_from") is not None
    has_words, has_mixer = config.sections["words"] is not None, config.sections["mixer"] is not None
    if has_mixer and not is_trained:
        raise RegardError(
            "mixer lies above an encoder that was trained before, and none is named. Leave it out: "
            f"{config.model_name} mixes by itself; or set encoder_from to a run."
        )
    if not has_words:
        return
    if is_trained and not has_mixer:
        raise RegardError(
            "words are read beside what the model of encoder_from gives, by layers above it, and there are none. Set "
            "mixer, to {} for its defaults, or leave out words."
        )
    if not is_trained and config.model_name not in FROM_SCRATCH:
        raise RegardError(
            f"words are what {', '.join(FROM_SCRATCH)} read, and {config.model_name} has an input of its own. Leave "
            "out words."
        )
    if config.tokenizer.kind != "word":
        raise RegardError(
            f"words needs tokens that are words, and tokenizer.kind is {config.tokenizer.kind}. Set it to word, or "
            "leave out words."
        )


def fill_words(config: RunConfig, data: PreparedLabelled) -> RunConfig:
    """The config with the number of words that the data and `train.vectors` have."""
    words = config.section_or_none("words", WordsConfig)
    if words is None or words.n_learned is not None:
        return config
    listed, vectors = _list(config, data), _load(config)
    d_word = words.d_word or (D_WORD if vectors is None else vectors.width)
    if vectors is not None and vectors.width != d_word:
        raise RegardError(
            f"The vectors in '{config.train.vectors}' have {vectors.width} numbers each, and words.d_word is {d_word}. "
            "Leave it out, or take other vectors."
        )
    sizes = {"n_learned": len(listed.learned), "n_fixed": len(listed.fixed), "n_bytes": len(listed.to_bytes())}
    return config.with_section("words", words.replace(d_word=d_word, **sizes))


def build_words(config: RunConfig) -> WordInput | None:
    """The input of words with fresh weights; None where the config has none."""
    words = config.section_or_none("words", WordsConfig)
    return None if words is None else WordInput(words)


def begin_words(config: RunConfig, words: WordInput, data: PreparedLabelled) -> list[str]:
    """Tell fresh weights which word each row is, and give words their vectors. Says how many were found.

    Vectors are scaled, all by one number, so that those of training words are as long on average as random rows are.
    """
    listed, vectors = _list(config, data), _load(config)
    if len(listed.to_bytes()) != len(words.spelled):
        raise RegardError(
            f"The words in '{config.train.vectors}' are not those that the run was begun with. Restore the file, or "
            "train a new run."
        )
    words.keep_words(listed)
    if vectors is None:
        return []
    found = [(row, at) for row, word in enumerate(listed.learned) if (at := vectors.find(word)) is not None and row > 1]
    notes = [
        f"Vectors of {len(found):,} of {len(listed.learned):,} words of the training texts were found in "
        f"'{config.train.vectors}'; the others begin as random numbers. {len(listed.fixed):,} more words have theirs "
        "from there, which stay as they are."
    ]
    if not found:
        return notes
    rows, matrix = torch.tensor([row for row, _ in found]), torch.from_numpy(vectors.matrix)
    with torch.no_grad():
        theirs = matrix[[at for _, at in found]]
        scale = words.embedding[rows].norm(dim=1).mean() / theirs.norm(dim=1).mean().clamp(min=1e-12)
        words.embedding[rows] = (scale * theirs).to(words.embedding)
        places = [vectors.find(word) for word in listed.fixed]
        words.fixed.copy_(scale * matrix[[0 if at is None else at for at in places]])
    return notes


def _list(config: RunConfig, data: PreparedLabelled) -> WordList:
    words = config.section("words", WordsConfig)
    texts = (text for example in data.train for text in example.texts)
    key = (words.lowercase, words.min_count, words.max_fixed, config.train.vectors)
    return data.keep_words(key, lambda: list_words(texts, data.tokenizer, words, _load(config)))


def _load(config: RunConfig) -> WordVectors | None:
    return None if config.train.vectors is None else load_vectors(config.train.vectors)
