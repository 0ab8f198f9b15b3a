"""A trained language model in the hands of a user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.count.ngram import NgramModel
from regard.data.config import DataConfig
from regard.data.documents import read_documents
from regard.data.opening import encode_opening
from regard.data.prepared_text import encode_text
from regard.data.stream import Stream
from regard.decode.alternatives import Watched
from regard.decode.config import SamplingConfig
from regard.decode.generate import StopText, check_n_texts, generate
from regard.errors import RegardError
from regard.layers.taps import is_recorded
from regard.lens.prediction import Prediction, predict_next
from regard.lens.trace import Trace, trace_text
from regard.lens.whole_words import Opened, rank_tokens
from regard.models.gradient_model import GradientModel
from regard.models.gradient_next_token import as_next_token
from regard.models.next_token import NextToken, check_numbers
from regard.models.pointer import PointerModel
from regard.score.evaluate import Evaluation, evaluate
from regard.score.scored import Scored, join_tokens
from regard.tasks.base_run import Run, check_text
from regard.tasks.task import OpenRun, Task, check_split, reopen_data
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2_engine import GeneratorEngine


@dataclass(frozen=True)
class WrittenToken:
    """A token of the continuation `row`: the text that is certain since it came, and what else was probable there."""

    row: int
    text: str
    token: str = ""
    """The token by itself; empty for text that was held back and comes at the end."""
    probability: float | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    """The most probable tokens at its place with their probabilities, the model's own, the best first."""

    @classmethod
    def read(
        cls, words: Tokenizer | ExtendedVocabulary, row: int, token: int, text: str, watched: Watched | None
    ) -> WrittenToken:
        if watched is None:
            return cls(row, text, words.token_text(token))
        log_prob, step = watched.read(row, token)
        pairs = zip(step.tokens, step.log_probs, strict=True)
        others = tuple((words.token_text(other), math.exp(value)) for other, value in pairs)
        return cls(row, text, words.token_text(token), math.exp(log_prob), others)


class LanguageModelRun(Run):
    """A trained language model: generate, score, evaluate, look inside."""

    model: GradientModel | NgramModel
    verbs = ("generate", "stream", "score", "evaluate", "trace", "prediction")

    def __init__(self, task: Task, opened: OpenRun, model: GradientModel | NgramModel) -> None:
        super().__init__(task, opened, model)
        self.tokenizer = opened.tokenizers[0]
        self.next_token: NextToken = as_next_token(model, self.tokenizer.eos)
        self.engine: GeneratorEngine | None = None
        """What writes texts instead of the model itself."""

    def use_ctranslate2(self, precision: str) -> None:
        """Write texts by CTranslate2 from now on; scores are still the model's own."""
        name, config = self.config.model_name, self.config.model
        self.engine = GeneratorEngine(self.model, name, config, self.tokenizer, precision, f"'{self.folder}'")

    def generate(self, prompt: str = "", n: int = 1, **sampling: Any) -> str | list[str]:
        """A continuation of `prompt`, prompt included; a list of them where n > 1.

        `sampling`: temperature, top_k, top_p, min_p, beam, max_tokens, seed, stop (texts to stop before).
        """
        texts = [prompt] * check_n_texts(n)
        for index, piece in self.stream(prompt, n, **sampling):
            texts[index] += piece
        return texts[0] if n == 1 else texts

    def stream(
        self, prompt: str = "", n: int = 1, *, stop: Sequence[str] = (), **sampling: Any
    ) -> Iterator[tuple[int, str]]:
        """(which continuation, next piece of its text), as soon as whole characters are there."""
        written = self.stream_tokens(prompt, n, stop=stop, **sampling)
        return ((token.row, token.text) for token in written if token.text)

    def stream_tokens(
        self, prompt: str = "", n: int = 1, *, stop: Sequence[str] = (), alternatives: int = 0, **sampling: Any
    ) -> Iterator[WrittenToken]:
        """Every token of n continuations as it is written, with the `alternatives` most probable ones at its place.

        A token's text may be empty until its characters are whole, or for ever where it ends the text. What is searched
        for by a beam, or written by CTranslate2, has no alternatives.
        """
        check_n_texts(n)
        config = SamplingConfig.from_dict(sampling)
        words = self._vocabulary_of_a_text()
        ids = words.encode(check_text(prompt, "prompt")) if prompt else self._opening()
        prompts = torch.from_numpy(ids.astype(np.int64)).expand(n, -1)
        decoders = [words.stream_decoder(after=ids) for _ in range(n)]
        stops = [StopText(stop) for _ in range(n)]
        # For words, <eos> is only the end of a line; elsewhere the document ends with it.
        end = None if self.tokenizer.kind == "word" else self.tokenizer.eos
        is_stopped = [False] * n
        watched = Watched(self.next_token, alternatives) if alternatives and config.beam is None else None
        tokens: Iterable[tuple[int, int]]
        if self.engine is None or is_recorded(self.model):
            tokens = generate(watched or self.next_token, prompts, config, stop=end, is_done=is_stopped.__getitem__)
        else:
            texts = self.engine.generate(ids.tolist(), n, config, end)
            tokens, watched = ((row, token) for row, text in enumerate(texts) for token in text), None
        for row, token in tokens:
            if is_stopped[row]:
                continue
            piece = stops[row].push(decoders[row].push(token))
            yield WrittenToken.read(words, row, token, piece, watched)
            is_stopped[row] = stops[row].is_stopped
        for row in range(n):
            if piece := stops[row].push(decoders[row].flush()) + stops[row].flush():
                yield WrittenToken(row, piece)

    def write_as_long(self, text: str, prompt: str = "", **sampling: Any) -> str:
        """A text of its own that begins with `prompt`, as many characters as `text` at most."""
        own = prompt
        for _, piece in self.stream(prompt, **{**sampling, "max_tokens": max(1, len(text))}):
            own += piece
            if len(own) >= len(text):
                break
        return own[: len(text)]

    def _opening(self) -> NDArray[np.int32]:
        """What is read before a text without a prompt begins: <eos> alone, or a break between paragraphs."""
        limit = self.next_token.max_context
        return encode_opening(self.facts.opening, self.tokenizer, None if limit is None else limit - 1)

    def predict_next(self, prefix: str, n: int = 5) -> list[tuple[str, float]]:
        """The n most probable tokens after `prefix`, and their probabilities."""
        opened = self.open_text(prefix)
        return rank_tokens(opened.log_probs, opened.vocabulary, n)

    def open_text(self, prefix: str) -> Opened:
        """Read a text to go on from, as much of its end as the model sees."""
        words = self._vocabulary_of_a_text()
        ids = words.encode(check_text(prefix, "prefix")) if prefix else self._opening()
        limit = self.next_token.max_context
        if limit is not None:
            ids = ids[-(limit - 1) :] if limit > 1 else ids[:0]
        log_probs, state = self.next_token.start(torch.from_numpy(ids.astype(np.int64))[None])
        return Opened(self.next_token, log_probs, state, words, prefix)

    def score(self, text: str) -> Scored:
        """What every token of `text` costs, the end of the text included."""
        return self.scores([text])[0]

    def scores(self, texts: Sequence[str]) -> list[Scored]:
        """What every token of each text costs, the end of the text included; the texts are read side by side."""
        encoded = [self._vocabulary_of_a_text().encode_with_offsets(check_text(text)) for text in texts]
        eos = self.tokenizer.eos
        ended = [ids if len(ids) > 0 and ids[-1] == eos else np.append(ids, eos) for ids, _ in encoded]
        found = self.next_token.nats_of_texts(ended)
        for nats in found:
            check_numbers(nats)
        return [join_tokens(text, spans, nats) for text, (_, spans), nats in zip(texts, encoded, found, strict=True)]

    def predict(self, items: Iterable[str]) -> Iterator[Scored]:
        """What every token of each text costs, text by text."""
        return map(self.score, items)

    def score_source(self, source: str) -> Iterator[Scored]:
        """Every document of a source (a path, a glob, - for standard input), scored."""
        return self.predict(read_documents(self.other_text(source)))

    def other_text(self, source: str | Sequence[str]) -> DataConfig:
        """Another source, read the way the run's own text was: the same documents, format and field."""
        train = source if isinstance(source, str) else tuple(source)
        own = self.config.section("data", DataConfig)
        return own.replace(train=train, valid=None, test=None, max_bytes=None, boundaries=None)

    def evaluate(
        self, data: str | Sequence[str] | None = None, *, split: str = "test", stride: int | None = None
    ) -> Evaluation:
        """Loss, perplexities and bits per byte on other text, or on a split of the text the run was trained on."""
        result = evaluate(self.next_token, self.text_of(data, split), stride=stride)
        check_numbers([result.nats])
        unknown = "Words that the tokenizer does not have all count as one <unk> here; `regard score` tells them apart."
        return replace(result, notes=(unknown,)) if self.can_copy_words else result

    def text_of(self, data: str | Sequence[str] | None, split: str = "test") -> Stream:
        """Another text, or a split of the run's own, under its tokenizer."""
        check_split(split)
        if data is not None:
            return encode_text(self.tokenizer, self.other_text(data))
        found: Stream = getattr(reopen_data(self.task, self.opened), split)
        return found

    def trace(self, text: str) -> Trace:
        """What the model computed on `text`: surprise, attention, gates, cells and hidden states, by token."""
        return trace_text(self.model, self._vocabulary_of_a_text(), check_text(text))

    def prediction(self, text: str, *, at: int | None = None, target: int | str | None = None) -> Prediction:
        """The next token after row `at` of `trace(text)` (None: after the text) as a prediction to be explained.

        `target` is the token whose probability is explained, by its text or id; None: the most probable one.
        """
        if isinstance(self.model, NgramModel):
            raise RegardError(
                f"'{self.folder}' is an n-gram model: it computes nothing that could be taken apart but its counts. "
                "run.trace(text) has the n-gram that each token was found by."
            )
        return predict_next(self.model, self._vocabulary_of_a_text(), check_text(text), at, target)

    def _vocabulary_of_a_text(self) -> Tokenizer | ExtendedVocabulary:
        """The tokenizer; where the model can copy words, one that tells those of a text apart that it does not have."""
        return ExtendedVocabulary(self.tokenizer) if self.can_copy_words else self.tokenizer

    @property
    def can_copy_words(self) -> bool:
        """Whether words that the tokenizer does not have are told apart, in `score`, `generate` and `trace`.

        `evaluate` reads ids that were encoded before, where they are all one <unk>.
        """
        return isinstance(self.model, PointerModel) and self.tokenizer.kind == "word"
