"""Sources in, targets out: reading, searching and writing put together, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.pair_batches import pad
from regard.data.pair_copying import NOT_COPIED, CopiedWords
from regard.data.pairs import find_tags
from regard.data.rows import encode_line, encode_source
from regard.decode.beam import Hypothesis, beam_search
from regard.decode.config import BeamConfig, SamplingConfig
from regard.decode.generate import sample_texts
from regard.decode.lines import LinesDone, batches_by_tokens, decode_lines
from regard.decode.stepper import Constraint, Ensemble, Stepper
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_next_token import Translating
from regard.text.tokenizer import Tokenizer

Ids = NDArray[np.int64]
Constrain = Callable[[Sequence["Sentence"]], Constraint]
"""What may be written for these sources."""
Search = Callable[[Sequence[Sequence[int]], BeamConfig, Sequence[int]], list[list[Hypothesis]]]
"""The best targets of sources, each of at most its limit of tokens."""
MaxLengths = Callable[[Sequence["Sentence"]], list[int]]
"""The longest target of each, its end included."""


@dataclass(frozen=True)
class Sentence:
    """A source as a model reads it."""

    text: str
    ids: Ids
    words: Ids | None
    """Its words as ids of the target's extended vocabulary, where words are copied."""
    unknown: tuple[str, ...] = ()
    """The words behind V, V + 1, ..."""
    number: int = 0
    """Where it stands among the lines: what is drawn for it depends on that and the seed alone."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Translation:
    """One target for a source. `tokens` are without the end mark; `score` is log P over the length penalty."""

    text: str
    tokens: tuple[int, ...]
    log_prob: float
    score: float


UNLIMITED = 4096
"""Tokens that a recurrent model reads of a line, unless batches are larger. Its target may have three times as many:
what takes minutes and comes to nothing looks like a program that hangs."""
NOTHING = Translation("", (), 0.0, 0.0)
"""What an empty line becomes."""


class Translator:
    """One model, or several whose probabilities are averaged, with the vocabularies they were trained with."""

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        config: BeamConfig,
        *,
        tag: str | None = None,
        constrain: Constrain | None = None,
        max_lengths: MaxLengths | None = None,
        sampling: SamplingConfig | None = None,
        search: Search | None = None,
    ) -> None:
        """`tag` is put before every source that is read with none of its own; `max_lengths` are else the config's.

        With `sampling` n_best targets a source are drawn, in the order in which they come, and not searched for; of the
        config then count n_best, the penalty, the guards and the limits of length. `search` is another engine's, for
        one model that copies nothing, instead of our own.
        """
        self.models, self.config, self.constrain, self.tag = models, config, constrain, tag
        self.search = search
        self.sampling = _check_sampling(sampling, config)
        self.max_lengths = max_lengths or (lambda sentences: config.max_lengths(map(len, sentences)))
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        if len({model.copies for model in models}) > 1:
            raise RegardError("Some of these models copy words and some do not; they cannot write one text together.")
        self._copied = CopiedWords(target_tokenizer, source_tokenizer) if models[0].copies else None

    @property
    def max_target(self) -> int | None:
        """The longest target that all can write, in tokens, its end included."""
        return min((m.target.max_context for m in self.models if m.target.max_context is not None), default=None)

    @property
    def max_source(self) -> int | None:
        """The longest source that all can read, in tokens."""
        return min((m.encoder.max_context for m in self.models if m.encoder.max_context is not None), default=None)

    def longest_line(self, max_tokens: int) -> int:
        """The longest source that is read from lines: where a model has no limit, still no book that lost its ends."""
        return max(max_tokens, UNLIMITED) if self.max_source is None else self.max_source

    def read(self, text: str, tag: str | None = None) -> Sentence:
        """Encode a source as the models read it, without white space around it."""
        text, tag = text.strip(), tag or self.tag
        ids = encode_source(self.source_tokenizer, text).astype(np.int64) if text else np.zeros(0, dtype=np.int64)
        words, unknown = None, tuple[str, ...]()
        if self._copied is not None:
            words, spelled = self._copied.number_source(text)
            unknown = tuple(spelled)
        if tag is not None and len(ids):
            ids = np.concatenate([find_tags(self.source_tokenizer, [tag]), ids])
            words = None if words is None else np.concatenate([[NOT_COPIED], words])
        return Sentence(text, ids, words, unknown)

    def read_target(self, text: str, source: Sentence) -> Ids:
        """Encode a target as the models write it, without its end; they may copy the words of the source it is for."""
        text = text.strip()
        if not text:
            return np.zeros(0, dtype=np.int64)
        if self._copied is not None:
            return self._copied.number_target(text, source.unknown)
        return encode_line(self.target_tokenizer, text).astype(np.int64)

    def translate(self, sentences: Sequence[Sentence]) -> list[list[Translation]]:
        """Translate one batch: the best targets of each source, best first, or those that are drawn."""
        limits = self.max_lengths(sentences)
        if self.max_target is not None:
            limits = [min(limit, self.max_target) for limit in limits]
        if self.search is not None:
            found = self.search([sentence.ids.tolist() for sentence in sentences], self.config, limits)
        else:
            found = self._decode(sentences, limits)
        return [
            [self._make_translation(hypothesis, sentence) for hypothesis in best]
            for best, sentence in zip(found, sentences, strict=True)
        ]

    def _decode(self, sentences: Sequence[Sentence], limits: Sequence[int]) -> list[list[Hypothesis]]:
        """Search, or draw, by the models themselves."""
        ids, mask = pad(flatten_rows([sentence.ids for sentence in sentences]))
        words = None
        if self._copied is not None:
            words = pad(flatten_rows([words_of(sentence) for sentence in sentences]), NOT_COPIED)[0]
        eos, start = self.target_tokenizer.eos, self.target_tokenizer.start
        steppers = [Translating(model, start=start, is_start_written=start == eos) for model in self.models]
        tensors = torch.from_numpy(ids), torch.from_numpy(mask), None if words is None else torch.from_numpy(words)
        begun: list[tuple[torch.Tensor, Any]] = [stepper.begin(*tensors, max(limits)) for stepper in steppers]
        stepper: Stepper = steppers[0]
        log_probs, state = begun[0]
        if len(steppers) > 1:
            stepper = together = Ensemble(steppers)
            log_probs, state = together.start(begun)
        if self.sampling is not None:
            return self._draw(stepper, log_probs, state, sentences, limits, self.sampling)
        constraint = None if self.constrain is None else self.constrain(sentences)
        return beam_search(stepper, log_probs, state, self.config, max_lengths=limits, stop=eos, constraint=constraint)

    def _draw(
        self,
        stepper: Stepper,
        log_probs: torch.Tensor,
        state: Any,
        sentences: Sequence[Sentence],
        limits: Sequence[int],
        sampling: SamplingConfig,
    ) -> list[list[Hypothesis]]:
        """Draw n_best texts for each source, which is read once."""
        n = self.config.n_best
        assert n is not None, "refused before"
        rows = torch.arange(len(sentences), device=log_probs.device).repeat_interleave(n)
        if n > 1:
            log_probs, state = log_probs[rows], stepper.reorder(state, rows)
        copies = [sentence for sentence in sentences for _ in range(n)]
        texts = sample_texts(
            stepper,
            log_probs,
            state,
            sampling,
            max_lengths=[limits[row] for row in rows.tolist()],
            stop=self.target_tokenizer.eos,
            min_length=self.config.min_length,
            no_repeat_ngram=self.config.no_repeat_ngram,
            constraint=None if self.constrain is None else self.constrain(copies),
            numbers=[(sentence.number, i) for sentence in sentences for i in range(n)],
        )
        drawn = [
            Hypothesis(tuple(tokens), log_prob, log_prob / self.config.penalty(len(tokens)))
            for tokens, log_prob in texts
        ]
        return [drawn[i : i + n] for i in range(0, len(drawn), n)]

    def all(
        self,
        sentences: Sequence[Sentence],
        max_tokens: int = 4096,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """Translate any number of sources, batch by batch, in their order; an empty one gives `NOTHING`.

        `progress` is told after every batch how many are translated.
        """
        results = [[NOTHING] for _ in sentences]
        lengths = [len(sentence) for sentence in sentences]
        n_done = 0
        for batch in batches_by_tokens([i for i, n in enumerate(lengths) if n], lengths, max_tokens):
            numbered = [replace(sentences[i], number=i) for i in batch]
            for i, found in zip(batch, self.translate(numbered), strict=True):
                results[i] = found
            n_done += len(batch)
            if progress is not None:
                progress(n_done)
        return results

    def lines(
        self,
        lines: Iterable[str],
        *,
        max_tokens: int = 4096,
        window: int = 2000,
        skips_long: bool = False,
        progress: Callable[[LinesDone], None] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translate lines that come one after another, in their order and in bounded memory."""
        numbers = count()
        return decode_lines(
            lines,
            lambda line: replace(self.read(line), number=next(numbers)),
            self.translate,
            empty=[NOTHING],
            max_tokens=max_tokens,
            window=window,
            max_line=self.longest_line(max_tokens),
            skips_long=skips_long,
            progress=progress,
        )

    def _make_translation(self, hypothesis: Hypothesis, sentence: Sentence) -> Translation:
        tokens = tuple(token for token in hypothesis.tokens if token != self.target_tokenizer.eos)
        return Translation(self._spell_line(tokens, sentence), tokens, hypothesis.log_prob, hypothesis.score)

    def _spell_line(self, tokens: Sequence[int], sentence: Sentence) -> str:
        """Always one line: bytes can spell a line end, and then one more line would come out than went in."""
        return self._spell(tokens, sentence).replace("\r", " ").replace("\n", " ")

    def _spell(self, tokens: Sequence[int], sentence: Sentence) -> str:
        V = self.target_tokenizer.vocab_size
        if all(token < V for token in tokens):
            return self.target_tokenizer.decode(tokens)
        known = self.target_tokenizer.token_text
        return " ".join(known(token) if token < V else sentence.unknown[token - V] for token in tokens)


def _check_sampling(sampling: SamplingConfig | None, config: BeamConfig) -> SamplingConfig | None:
    if sampling is not None and sampling.beam is not None:
        raise RegardError("sampling draws texts and sampling.beam searches for them: leave out one of the two.")
    if sampling is not None and config.n_best is None:
        raise RegardError("n_best is null, and sampling could draw texts without end: say how many you want.")
    return sampling


def words_of(sentence: Sentence) -> Ids:
    """The words of a sentence, for a model that copies."""
    assert sentence.words is not None, "a model that copies reads words"
    return sentence.words


def flatten_rows(rows: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Put rows one after the other; returns them and how long each is."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.concatenate(rows), lengths
