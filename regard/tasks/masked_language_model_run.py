"""A trained masked language model in the hands of a user."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.config import DataConfig
from regard.data.masked_config import MaskingConfig
from regard.data.prepared_text import encode_text
from regard.data.stream import Stream
from regard.decode.config import SamplingConfig
from regard.decode.generate import check_n_texts
from regard.decode.repeated_masking import rewrite_masked
from regard.errors import RegardError
from regard.kernels.device import at_least_float32
from regard.layers.taps import Taps
from regard.lens.prediction import Look, Place, Prediction, Span, TokenChoices, choose_row, choose_target
from regard.lens.trace import Trace, take_arrays
from regard.models.bert import Bert
from regard.models.next_token import check_numbers
from regard.tasks.base_run import Run, check_text, list_items
from regard.tasks.masked_objective import MaskedEvaluation, evaluate_masked
from regard.tasks.task import OpenRun, Task, check_split, reopen_data
from regard.text.marks import BERT_MARKS, Marks

N_BATCH = 32


@dataclass(frozen=True)
class Candidate:
    """A token for a masked place; pieces that continue a word begin with ##."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """What stands in the masked places of a text: for each the most probable tokens, independently of the others."""

    text: str
    places: tuple[tuple[Candidate, ...], ...]
    best: str
    """The text with the most probable token in every place."""

    def to_dict(self) -> dict[str, Any]:
        places = [[{"token": c.text, "probability": c.probability} for c in place] for place in self.places]
        return {"text": self.text, "best": self.best, "places": places}

    def __str__(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)


class MaskedLanguageModelRun(Run):
    """A trained BERT: fill masked places, write by repeated masking, score, look inside; and an encoder of texts."""

    model: Bert
    verbs = ("fill", "generate", "predict", "evaluate", "trace", "prediction")

    def __init__(self, task: Task, opened: OpenRun, model: Bert) -> None:
        super().__init__(task, opened, model)
        self.tokenizer = opened.tokenizers[0]
        if self.tokenizer.marks is None:
            raise RegardError(
                f"The tokenizer in '{opened.folder}' has no [MASK]. Put the original tokenizer.json back."
            )
        self.marks: Marks = self.tokenizer.marks

    def fill(self, text: str, top_k: int = 5) -> Filled:
        """The `top_k` most probable tokens for every [MASK] in `text`."""
        return next(self.predict([check_text(text)], top_k))

    def predict(self, items: Iterable[str], top_k: int = 5) -> Iterator[Filled]:
        """Fill the masked places of each text, some texts at a time, in their order."""
        if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= self.tokenizer.vocab_size:
            raise RegardError(
                f"top_k is how many tokens are shown, from 1 to {self.tokenizer.vocab_size}, not {top_k!r}."
            )
        waiting = iter(items)
        while texts := list(islice(waiting, N_BATCH)):
            given = list_items(texts, "text")
            rows = [self.encode_masked(text) for text in given]
            for text, ids, probabilities in zip(given, rows, self._predict_masks(rows), strict=True):
                values, tokens = probabilities.topk(top_k, dim=-1)
                places = tuple(
                    tuple(Candidate(self.tokenizer.token_text(t), p) for t, p in zip(row, chances, strict=True))
                    for row, chances in zip(tokens.tolist(), values.tolist(), strict=True)
                )
                yield Filled(text, places, self._decode(ids, tokens[:, 0].tolist()))

    def encode_masked(self, text: str, needs_mask: bool = True) -> list[int]:
        """The ids of a text between its marks; [MASK], or what the vocabulary calls it, is a place to fill."""
        return self._encode_with_spans(text, needs_mask)[0]

    def _encode_with_spans(self, text: str, needs_mask: bool) -> tuple[list[int], tuple[Span | None, ...]]:
        """The ids of a text between its marks, and the characters of each; None for the two marks around it."""
        name = self.marks.mask_name
        masks = [match.span() for match in re.finditer(f"{re.escape(BERT_MARKS[4])}|{re.escape(name)}", text)]
        if needs_mask and not masks:
            raise RegardError(
                f"There is no {name} in {text!r:.80}. Write it where a word is to be found: The {name} barked."
            )
        ids: list[int] = []
        spans: list[Span | None] = []
        begins, ends = [0, *(end for _, end in masks)], [*(start for start, _ in masks), len(text)]
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            part = text[begin:end]
            if i < len(masks) and self.tokenizer.kind == "bpe":  # a byte-level token brings the space before it along
                part = part.rstrip(" ")
            if part:
                found, offsets = self.tokenizer.encode_with_offsets(part)
                ids += found.tolist()
                spans += [(begin + start, begin + stop) for start, stop in offsets]
            if i < len(masks):
                ids.append(self.marks.mask)
                spans.append(masks[i])
        framed, _ = self.marks.frame(ids)
        limit = self.model.max_positions
        if limit is not None and len(framed) > limit:
            raise RegardError(
                f"The text has {len(framed)} tokens with its marks, and the model reads at most {limit}. Give less of "
                f"it around {name}."
            )
        return framed, (None, *spans, None)

    @torch.no_grad()
    def _predict_masks(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row the probabilities of all tokens at its masked places, (masks, V); marks have none."""
        tokens, mask = self._pad(rows)
        h = self.model.encode(tokens, mask)[-1]
        return [
            self.probabilities(h[i, : len(row)][tokens[i, : len(row)] == self.marks.mask]) for i, row in enumerate(rows)
        ]

    def probabilities(self, states: Tensor) -> Tensor:
        """P of every token at places whose states are given, (M, V), in float32 at least and on the CPU."""
        logits = at_least_float32(self.model.logits(states)[:, : self.tokenizer.vocab_size])
        logits[:, list(self.marks.ids)] = -torch.inf
        found = logits.softmax(dim=-1).cpu()
        check_numbers(found.amax(dim=-1).tolist())
        return found

    def _pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
        """Rows of ids as one tensor, and where there is a token; None: everywhere."""
        T, device = max(map(len, rows)), self.model.embedding.device
        tokens = torch.tensor([[*row, *[self.marks.padding] * (T - len(row))] for row in rows], device=device)
        if all(len(row) == T for row in rows):
            return tokens, None
        lengths = torch.tensor([len(row) for row in rows], device=device)
        return tokens, torch.arange(T, device=device)[None] < lengths[:, None]

    def _decode(self, ids: Sequence[int], fillings: Sequence[int]) -> str:
        """The text of ids whose masks are replaced one after the other."""
        left = iter(fillings)
        return self.tokenizer.decode([next(left) if i == self.marks.mask else i for i in ids])

    def generate(self, prompt: str = "", n: int = 1, *, n_sweeps: int = 4, **sampling: Any) -> str | list[str]:
        """A text that begins with `prompt`, written by repeated masking; a list of them where n > 1.

        A masked language model does not write from left to right: `max_tokens` masks are put after the prompt, then
        each place in random order is masked again and drawn anew, `n_sweeps` times over (Wang & Cho 2019). `sampling`:
        temperature, top_k, top_p, min_p, max_tokens, seed.
        """
        config = SamplingConfig.from_dict({"max_tokens": 20, **sampling})
        start = self.encode_masked(check_text(prompt, "prompt") + " " + self.marks.mask_name * config.max_tokens)
        texts = [
            self.tokenizer.decode(
                rewrite_masked(self.model, start, self.marks, self.tokenizer.vocab_size, config, n_sweeps, number)
            )
            for number in range(check_n_texts(n))
        ]
        return texts[0] if n == 1 else texts

    def evaluate(self, data: str | Sequence[str] | None = None, *, split: str = "test") -> MaskedEvaluation:
        """Loss and accuracy at masked places of other text, or of a split of the text the run was trained on."""
        n_context = self.config.train.n_context or self.model.max_positions
        assert n_context is not None
        masking = self.config.section("masking", MaskingConfig)
        found = evaluate_masked(self.model, self.text_of(data, split), self.tokenizer, masking, n_context, None)
        if found is None:
            raise RegardError("There is nothing to evaluate on: the text has hardly any tokens. Give more of it.")
        return found

    def text_of(self, data: str | Sequence[str] | None, split: str = "test") -> Stream:
        """Another text, or a split of the run's own, under its tokenizer."""
        check_split(split)
        if data is not None:
            own = self.config.section("data", DataConfig)
            train = data if isinstance(data, str) else tuple(data)
            other = own.replace(train=train, valid=None, test=None, max_bytes=None, boundaries=None)
            return encode_text(self.tokenizer, other)
        found: Stream = getattr(reopen_data(self.task, self.opened), split)
        return found

    @torch.no_grad()
    def trace(self, text: str) -> Trace:
        """What the model computed on `text`: attention and hidden states, marks included; and each token's surprise.

        The surprise is -log P of a token when it alone is masked, and zero for the marks (Salazar et al. 2020).
        """
        ids, spans = self._encode_with_spans(check_text(text), needs_mask=False)
        record = Taps()
        tokens, _ = self._pad([ids])
        self.model.encode(tokens, None, None, record)
        nats = np.zeros(len(ids))
        if self.model.masked_head is not None:
            places = [i for i, token in enumerate(ids) if token not in self.marks.ids]
            for begin in range(0, len(places), N_BATCH):
                some = places[begin : begin + N_BATCH]
                rows = [[*ids[:i], self.marks.mask, *ids[i + 1 :]] for i in some]
                h = self.model.encode(self._pad(rows)[0], None)[-1]
                chosen = self.probabilities(h[range(len(some)), some])
                nats[some] = -chosen[range(len(some)), [ids[i] for i in some]].double().log().numpy()
        texts = tuple(self.tokenizer.token_text(token) for token in ids)
        return Trace(texts, nats, take_arrays(record), spans)

    def prediction(self, text: str, *, at: int | None = None, target: int | str | None = None) -> Prediction:
        """The token of a masked place as a prediction to be explained.

        The place is the first [MASK] of `text`, or row `at` of `trace(text)`, which is masked for it. `target` is the
        token whose probability is explained, by its text or id; None: the most probable one.
        """
        ids, spans = self._encode_with_spans(check_text(text), needs_mask=at is None)
        row = ids.index(self.marks.mask) if at is None else choose_row(at, len(ids), "row 0 is the first mark")
        if row in (0, len(ids) - 1):
            raise RegardError(f"Row {row} is a mark around the text, not a token of it: `at` is 1 to {len(ids) - 2}.")
        ids[row] = self.marks.mask

        def compute(inputs: Sequence[int | None], taps: Taps | None) -> Tensor:
            tokens = torch.tensor([[i for i in inputs if i is not None]], device=self.model.embedding.device)
            n_before = sum(i is not None for i in inputs[:row])
            h = self.model.eval().encode(tokens, None, None, taps)[-1][:, n_before]
            logits = at_least_float32(self.model.logits(h)[0, : self.tokenizer.vocab_size])
            is_mark = torch.zeros_like(logits, dtype=torch.bool)
            is_mark[list(self.marks.ids)] = True
            return logits.masked_fill(is_mark, -torch.inf).log_softmax(dim=-1)

        n = len(ids)
        prediction = Prediction(
            what="the masked token",
            text=text,
            tokens=tuple(self.tokenizer.token_text(token) for token in ids),
            spans=spans,
            choices=TokenChoices(self.tokenizer, self.tokenizer.vocab_size),
            target=0,
            inputs=tuple(ids),
            model=compute,
            places=tuple((Place("embedding", i),) for i in range(n)),
            looks=(Look("layers.", ".attention", row),),
            stand_ins=(self.marks.mask,) * n,
        )
        return choose_target(prediction, target)
