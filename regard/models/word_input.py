"""A vector for each word of a text: a row of a table, and what its characters say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.layers.character_cnn import CharacterCNN
from regard.layers.taps import Taps, keep
from regard.mixers.recurrent_encoder import RecurrentEncoder
from regard.models.word_input_config import MixerConfig, WordsConfig
from regard.models.word_vectors import WordVectors
from regard.text.extended import MEETING_WORDS, ExtendedVocabulary
from regard.text.spelling import N_CHARACTERS, spell_words
from regard.text.tokenizer import EOS, UNK, Tokenizer

UNKNOWN, END = 0, 1
"""Rows of words that are in no list, and of the mark that ends a text."""
STD = 0.3
"""The spread of rows that begin at random: as in the language models, gates need loud words."""


class WordList(NamedTuple):
    """Words in the order of their rows: those whose vectors are learned, then those whose vectors stay."""

    learned: tuple[str, ...]
    fixed: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """All words, one a line."""
        return "\n".join((*self.learned, *self.fixed)).encode()


def list_words(
    texts: Iterable[str], tokenizer: Tokenizer, config: WordsConfig, vectors: WordVectors | None
) -> WordList:
    """The words of the training texts, the most frequent first, and those that `vectors` has besides."""
    vocabulary, counts = ExtendedVocabulary(tokenizer), Counter[int]()
    for text in texts:
        counts.update(vocabulary.encode(text).tolist())
    spelled = [*map(tokenizer.token_text, range(tokenizer.vocab_size)), *vocabulary.words]
    folded = Counter[str]()
    for token, n in counts.items():
        if token not in (tokenizer.eos, tokenizer.unk):
            folded[_fold(spelled[token], config)] += n
    words = sorted(folded, key=lambda word: (-folded[word], word))
    known = set() if vectors is None else {word for word in words if vectors.find(word) is not None}
    learned = (UNK, EOS, *(word for word in words if folded[word] >= config.min_count or word in known))
    others = [] if vectors is None else dict.fromkeys(_fold(word, config) for word in vectors.words)
    taken = {*learned, ""}
    fixed = [word for word in others if word not in taken and "\n" not in word]
    return WordList(learned, tuple(fixed[: config.max_fixed]))


def _fold(word: str, config: WordsConfig) -> str:
    return word.lower() if config.lowercase else word


class WordInput(nn.Module):
    """x_t = [E w_t; cnn(characters of w_t)]   (Ma & Hovy 2016)

    w_t is the word in lower case, where `lowercase` says so; its characters keep their case. Rows of E are learned but
    for those of words that training never shows, which stay as a file of vectors had them.
    """

    def __init__(self, config: WordsConfig) -> None:
        super().__init__()
        assert config.d_word is not None, "filled in before"
        assert config.n_learned is not None, "counted before"
        self.config = config
        self.vocabulary: ExtendedVocabulary | None = None
        self.embedding = nn.Parameter(torch.empty(config.n_learned, config.d_word))  # E
        nn.init.normal_(self.embedding, std=STD)
        self.register_buffer("fixed", torch.zeros(config.n_fixed or 0, config.d_word))
        self.register_buffer("spelled", torch.zeros(config.n_bytes or 0, dtype=torch.uint8))
        # What a token of the vocabulary is: its row, and its characters.
        self.register_buffer("rows", torch.zeros(0, dtype=torch.int64), persistent=False)
        self.register_buffer("characters", torch.zeros(0, config.max_characters, dtype=torch.int16), persistent=False)
        self.fixed: Tensor
        self.spelled: Tensor
        self.rows: Tensor
        self.characters: Tensor
        filters = [(width, n) for width, n in enumerate(config.filters, start=1) if n]
        d_characters = sum(config.filters)
        self.cnn = None
        if d_characters:
            self.cnn = CharacterCNN(N_CHARACTERS, config.d_character, filters, 0, d_characters)
        self.d_out = config.d_word + d_characters

    @torch.no_grad()
    def keep_words(self, words: WordList) -> None:
        """Be told which word each row is."""
        self.spelled.copy_(torch.from_numpy(np.frombuffer(words.to_bytes(), dtype=np.uint8).copy()))
        self.rows = self.rows[:0]

    def hear_of(self, vocabulary: Tokenizer | ExtendedVocabulary) -> ExtendedVocabulary:
        """Be told whose tokens will be read; what a text is to be encoded with, which has no unknown words."""
        tokenizer = vocabulary if isinstance(vocabulary, Tokenizer) else vocabulary.tokenizer
        with MEETING_WORDS:
            if self.vocabulary is None or self.vocabulary.tokenizer is not tokenizer:
                self.vocabulary = ExtendedVocabulary(tokenizer) if isinstance(vocabulary, Tokenizer) else vocabulary
                self.rows, self.characters = self.rows[:0], self.characters[:0]
            return self.vocabulary

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T E"]:
        # Shapes alone need no words.
        all_rows, characters = (self.rows, self.characters) if tokens.is_meta else self._meet()
        rows, n = all_rows[tokens], len(self.embedding)
        x = functional.embedding(rows.clamp_max(n - 1), self.embedding)
        if len(self.fixed):
            others = functional.embedding((rows - n).clamp_min(0), self.fixed)
            x = torch.where((rows < n)[..., None], x, others)
        return x if self.cnn is None else torch.cat([x, self._read_characters(tokens, characters)], dim=-1)

    def _read_characters(self, tokens: Int[Tensor, "B T"], characters: Int[Tensor, "V L"]) -> Float[Tensor, "B T C"]:
        """What the characters say; on a CPU a word that comes several times is read once."""
        assert self.cnn is not None
        if tokens.is_meta or tokens.is_cuda:  # nobody asks the device how many words are the same
            return self.cnn(characters[tokens.flatten()].long()).view(*tokens.shape, -1)  # type: ignore[no-any-return]
        words, places = torch.unique(tokens, return_inverse=True)
        return functional.embedding(places, self.cnn(characters[words].long()))

    def _meet(self) -> tuple[Int[Tensor, " V"], Int[Tensor, "V L"]]:
        """The rows and characters of all tokens; those that the vocabulary has had since the last time are added."""
        assert self.vocabulary is not None, "nobody said whose tokens these are: hear_of"
        if len(self.rows) != self.vocabulary.vocab_size:  # a lock at every step would cut a compiled model
            with MEETING_WORDS:
                if len(self.rows) != self.vocabulary.vocab_size:
                    self._add_words(self.vocabulary)
        return self.rows, self.characters

    def _add_words(self, vocabulary: ExtendedVocabulary) -> None:
        """Look up and spell the tokens of the vocabulary that are new."""
        done, tokenizer = len(self.rows), vocabulary.tokenizer
        V, index = tokenizer.vocab_size, {word: row for row, word in enumerate(self._list())}
        new = [*(tokenizer.token_text(i) for i in range(done, V)), *vocabulary.list_words(max(0, done - V))]
        rows = [index.get(_fold(word, self.config), index.get(word.lower(), UNKNOWN)) for word in new]
        if not done:
            rows[tokenizer.eos] = END
        device = self.rows.device
        spelled = torch.from_numpy(spell_words(new, self.config.max_characters)).to(device)
        self.characters = torch.cat([self.characters[:done], spelled])
        # Last: other threads take as many rows as the vocabulary has tokens for a sign that all is there.
        self.rows = torch.cat([self.rows, torch.tensor(rows, dtype=torch.int64, device=device)])

    def _list(self) -> list[str]:
        """The words, in the order of their rows."""
        return self.spelled.cpu().numpy().tobytes().decode().split("\n")

    def flops(self) -> int:
        """Forward cost of a word that comes once."""
        return 0 if self.cnn is None else self.cnn.flops(self.config.max_characters)


def build_projection(d_in: int, d_out: int) -> nn.Linear:
    """A layer whose output is as loud as its input when it is young."""
    layer = nn.Linear(d_in, d_out)
    nn.init.normal_(layer.weight, std=d_in**-0.5)
    nn.init.zeros_(layer.bias)
    return layer


class UpperLayers(nn.Module):
    """z = mixer(W dropout([h; x]) + b): h is what a pre-trained encoder gives, x are words of the task's own, if any.

    The mixer is a recurrent network that reads both ways (Peters et al. 2018, section 3.3).
    """

    def __init__(self, config: MixerConfig, d_encoder: int, words: WordInput | None) -> None:
        super().__init__()
        self.words, self.d_out = words, config.d_model
        self.project = build_projection(d_encoder + (0 if words is None else words.d_out), config.d_model)  # W, b
        self.dropout = nn.Dropout(config.p_dropout)
        self.layers = RecurrentEncoder(config.cell, config.d_model, config.n_layers, True, config.p_dropout, False)

    def forward(
        self,
        h: Float[Tensor, "B T E"],
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        taps: Taps | None = None,
    ) -> Float[Tensor, "B T D"]:
        if self.words is not None:
            h = torch.cat([h, keep(taps, "words", self.words(tokens))], dim=-1)
        return self.layers.read_layers(self.project(self.dropout(h)), mask, taps)[-1]

    def flops(self, n_tokens: int) -> int:
        own = 0 if self.words is None else self.words.flops()
        own += 2 * self.project.in_features * self.project.out_features
        return n_tokens * own + self.layers.flops(n_tokens)
