"""Forced decoding: how probable models find a target that they are made to write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.pair_batches import pad
from regard.data.pair_copying import NOT_COPIED
from regard.decode.lines import decode_lines
from regard.decode.translate import Ids, Sentence, Translator, flatten_rows, words_of
from regard.errors import RegardError
from regard.kernels.device import sdpa_backend_for_any_shape
from regard.layers.taps import Taps
from regard.models.next_token import check_numbers
from regard.models.seq2seq import Seq2Seq
from regard.score.scored import Scored, join_tokens
from regard.text.tokenizer import Tokenizer

Nats = NDArray[np.float64]


@dataclass(frozen=True)
class ForcedPair:
    """A source, and the target that is to be written for it."""

    source: Sentence
    text: str
    ids: Ids
    """Of the target, without its end; V + k: the k-th unknown word of the source, where words are copied."""

    def __len__(self) -> int:
        return len(self.source) + len(self.ids) + 1 if len(self.source) else 0


def read_pair(translator: Translator, source: str, target: str) -> ForcedPair:
    """Encode a pair as the models of a translator read and write it."""
    sentence = translator.read(source)
    return ForcedPair(sentence, target.strip(), translator.read_target(target, sentence))


@torch.inference_mode()
@sdpa_backend_for_any_shape()
def force_targets(
    model: Seq2Seq, tokenizer: Tokenizer, pairs: Sequence[ForcedPair], record: Taps | None = None
) -> list[Nats]:
    """Compute -log P(y_t | y_1 .. y_(t-1), source) of every target's tokens and of its end, in one batch.

    Where a target leaves the model no room for its end, as one does that was cut off when it was written, the end does
    not count. `tokenizer` is the target's.
    """
    room, eos, V = model.target.max_context, tokenizer.eos, tokenizer.vocab_size
    unknown = 1 if tokenizer.unk is None else tokenizer.unk
    predicted = [pair.ids if len(pair.ids) == room else np.append(pair.ids, eos) for pair in pairs]
    known = [np.where(ids < V, ids, unknown) for ids in predicted]  # what is copied is read as <unk>
    read = [np.concatenate([[tokenizer.start], ids[:-1]]) for ids in known]
    device = model.embedding.device
    source, source_mask = pad(flatten_rows([pair.source.ids for pair in pairs]))
    words = pad(flatten_rows([words_of(pair.source) for pair in pairs]), NOT_COPIED)[0] if model.copies else None
    (inputs, mask), (targets, _) = pad(flatten_rows(read)), pad(flatten_rows(predicted))
    encoded = model.eval().encode(
        torch.from_numpy(source).to(device),
        torch.from_numpy(source_mask).to(device),
        None if words is None else torch.from_numpy(words).to(device),
        record,
    )
    h, _ = model.target.hidden(torch.from_numpy(inputs).to(device), encoded, None, record)
    if record is not None:
        model.target.log_probs_of_all(h, record)
    nats = model.target.nats_each(h, torch.from_numpy(targets).to(device)).double().cpu().numpy()  # (B, T)
    return [row[real] for row, real in zip(nats, mask, strict=True)]


def score_pairs(
    translator: Translator,
    pairs: Iterable[tuple[str, str]],
    *,
    skips_bad: bool = False,
    max_tokens: int = 8192,
    window: int = 2000,
) -> Iterator[Scored | None]:
    """Score every token of every target, its end included, in the pairs' order and in bounded memory.

    Several models write together: P = 1/n Σ_i P_i of every token, as when they translate. A pair without any text has
    no score but None; so has one that cannot be scored, where `skips_bad`, which is else an error with its number.
    """

    def read(numbered: tuple[int, tuple[str, str]]) -> ForcedPair | None:
        number, (source, target) = numbered
        pair = read_pair(translator, source, target)
        if (fault := _find_fault(translator, pair)) is None:
            return pair
        if not skips_bad:
            raise RegardError(f"Line {number} {fault} Change it, or leave it out: --skip-bad (in Python: skips_bad).")
        return None

    def score(batch: list[ForcedPair]) -> list[Scored | None]:
        each = [force_targets(model, translator.target_tokenizer, batch) for model in translator.models]
        return [_make_scored(translator.target_tokenizer, pair, nats) for pair, *nats in zip(batch, *each, strict=True)]

    return decode_lines(enumerate(pairs, start=1), read, score, empty=None, max_tokens=max_tokens, window=window)


def _find_fault(translator: Translator, pair: ForcedPair) -> str | None:
    """Say why a pair cannot be scored; None where it can."""
    if pair.text and not len(pair.source):
        return "has a target and no source."
    sides = (("source", len(pair.source), translator.max_source), ("target", len(pair.ids), translator.max_target))
    for side, n, limit in sides:
        if limit is not None and n > limit:
            return f"has {n} tokens in its {side}, and the model takes at most {limit}."
    return None


def _make_scored(tokenizer: Tokenizer, pair: ForcedPair, nats: Sequence[Nats]) -> Scored:
    mean = math.log(len(nats)) - np.logaddexp.reduce([-each for each in nats])  # -log (1/n Σ_i P_i)
    check_numbers(mean)
    return join_tokens(pair.text, tokenizer.encode_with_offsets(pair.text)[1] if pair.text else [], mean)
