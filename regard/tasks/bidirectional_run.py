"""Trained language models of both directions in the hands of a user: vectors of words in their context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.config import DataConfig
from regard.data.prepared_text import encode_text
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.prediction import Place, Prediction, TokenChoices, choose_row, choose_target
from regard.lens.trace import Trace, take_arrays
from regard.models.elmo import AHEAD, BACK, DIRECTIONS, EOS, BothWays, Elmo, OneDirection
from regard.models.next_token import check_numbers
from regard.score.scored import Scored, join_tokens
from regard.score.two_way import TwoWayEvaluation
from regard.tasks.base_run import Run, check_text, list_items
from regard.tasks.bidirectional_objective import evaluate_both_ways
from regard.tasks.task import OpenRun, Task, check_split, reopen_data
from regard.text.extended import ExtendedVocabulary

N_TOKENS_AT_ONCE = 4096


class WordVectors(NamedTuple):
    """The words of a text, and the vectors (L + 1, T, D) that every layer has for each, the embeddings first."""

    words: tuple[str, ...]
    layers: NDArray[np.float32]


class BidirectionalRun(Run):
    """Two trained language models, one each way: embed words, score, evaluate, look inside."""

    model: Elmo
    verbs = ("embed", "score", "evaluate", "trace", "prediction")

    def __init__(self, task: Task, opened: OpenRun, model: Elmo) -> None:
        super().__init__(task, opened, model)
        self.tokenizer = opened.tokenizers[0]
        self.words = ExtendedVocabulary(self.tokenizer)
        """Words that the tokenizer does not have are told apart, and read by their characters."""
        model.learn_words(self.words)
        self.next_token = BothWays(model)

    def embed(self, texts: str | Iterable[str]) -> list[WordVectors]:
        """The vectors of every word of each text, by layer; each text is read by itself.

        A line end within a text is a word too; the one that ends it is left out.
        """
        return list(self.embed_each(list_items(texts, "text")))

    @torch.inference_mode()
    def embed_each(self, texts: Iterable[str]) -> Iterator[WordVectors]:
        """`embed`, text by text, as they are asked for."""
        for text in texts:
            ids, offsets = self.words.encode_with_offsets(check_text(text).rstrip("\n"))
            if not len(ids):
                yield WordVectors((), np.zeros((self.model.n_layers + 1, 0, self.model.d_model), dtype=np.float32))
                continue
            tokens = torch.from_numpy(ids)[None].to(self.model.device)
            layers = self.model.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))
            vectors = torch.stack([layer[0] for layer in layers]).float().cpu().numpy()
            yield WordVectors(tuple(text[a:b] for a, b in offsets), vectors)

    def score(self, text: str) -> Scored:
        """What every word of `text` costs, its end included: the mean of what it costs each of the two models."""
        ids, spans = self.words.encode_with_offsets(check_text(text))
        has_end = len(ids) > 0 and ids[-1] == EOS
        nats = self.next_token.nats(ids if has_end else np.append(ids, EOS))
        check_numbers(nats)
        return join_tokens(text, spans, nats)

    def predict(self, items: Iterable[str]) -> Iterator[Scored]:
        """What every word of each text costs, text by text."""
        return map(self.score, items)

    def other_text(self, source: str | Sequence[str]) -> DataConfig:
        """Another source, read the way the run's own text was: the same documents, format and field."""
        train = source if isinstance(source, str) else tuple(source)
        own = self.config.section("data", DataConfig)
        return own.replace(train=train, valid=None, test=None, max_bytes=None, boundaries=None)

    def evaluate(self, data: str | Sequence[str] | None = None, *, split: str = "test") -> TwoWayEvaluation:
        """Perplexities read ahead and back, on other text or on a split of the text the run was trained on."""
        check_split(split)
        if data is not None:
            stream = encode_text(self.tokenizer, self.other_text(data))
        else:
            stream = getattr(reopen_data(self.task, self.opened), split)
        return self.evaluate_stream(stream)

    def evaluate_stream(self, stream: Stream) -> TwoWayEvaluation:
        """Perplexities of a text that is encoded already."""
        if not len(stream):
            raise RegardError("There is nothing to evaluate on: the text has no tokens.")
        found = evaluate_both_ways(self.next_token, stream)
        check_numbers([found.nats_per_token])
        return found

    def trace(self, text: str) -> Trace:
        """What the two models computed on `text`: gates, cells and states, under `ahead.` and `back.`, by word.

        Row 0 is the end of the text that stands before its first word, or read back, after its last.
        """
        ids, spans = self.words.encode_with_offsets(check_text(text))
        if not len(ids):
            raise RegardError("The text to trace is empty; give at least one word.")
        record = Taps()
        for direction in DIRECTIONS:
            order = ids if direction == AHEAD else ids[::-1]
            seen = torch.from_numpy(np.append(EOS, order))[None].to(self.model.device)
            with torch.no_grad():
                self.model.hidden(seen, direction, None, record)
        taps = {
            name: rows if name.startswith(AHEAD) else _turn_round(rows) for name, rows in take_arrays(record).items()
        }
        nats = self.next_token.nats(ids) if self.model.head is not None else np.zeros(len(ids))
        tokens = (self.tokenizer.end_mark, *map(self.words.token_text, ids.tolist()))
        return Trace(tokens, np.append(0.0, nats), taps, (None, *spans))

    def prediction(
        self, text: str, *, at: int | None = None, target: int | str | None = None, direction: str = AHEAD
    ) -> Prediction:
        """The word that one of the two models expects next, as a prediction to be explained.

        Read ahead, it is the word after row `at` of `trace(text)` (None: after the text), row 0 being the start of the
        text; read back, the word before it (None: before the text), row 0 being its end. `target` is the word whose
        probability is explained, by its text or id; None: the most probable one.
        """
        if direction not in DIRECTIONS:
            raise RegardError(f"direction is {AHEAD} or {BACK}, not {direction!r:.60}.")
        found, offsets = self.words.encode_with_offsets(check_text(text))
        words, spans, n = found.tolist(), list(offsets), len(found) + 1
        row = choose_row(at, n, "row 0 is where the reading begins, row t the t-th word")
        if direction == BACK:
            words, spans = words[::-1], spans[::-1]
            row = row if at in (None, 0) else n - row
        seen, one_way = [EOS, *words[:row]], OneDirection(self.model, direction)

        def compute(inputs: Sequence[int | None], taps: Taps | None) -> Tensor:
            given = torch.tensor([[i for i in inputs if i is not None]], device=self.model.device)
            h, _ = self.model.eval().hidden(given, direction, None, taps)
            return one_way.log_probs(h[:, -1])[0]

        prediction = Prediction(
            what="the next word" if direction == AHEAD else "the word before",
            text=text,
            tokens=(self.tokenizer.end_mark, *map(self.words.token_text, words[:row])),
            spans=(None, *spans[:row]),
            choices=TokenChoices(self.tokenizer, self.model.n_vocab),
            target=0,
            inputs=tuple(seen),
            model=compute,
            places=tuple((Place(f"{direction}.embedding", i),) for i in range(len(seen))),
            stand_ins=(self.tokenizer.unk,) * len(seen),
        )
        return choose_target(prediction, target)


def _turn_round(rows: NDArray[Any]) -> NDArray[Any]:
    """Row 0 as it is, and the others from the last to the first."""
    return np.concatenate([rows[:1], rows[:0:-1]])
