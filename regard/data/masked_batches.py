"""Batches for a masked language model, as a pure function of one integer, which is the whole position in the data.

    with pairs       [CLS] a_1 ... a_m [SEP] b_1 ... b_n [SEP]     half of the b follow a, half are from elsewhere
    without          [CLS] x_1 ... x_n [SEP]

Rows are windows of the text, each as long as the model is trained on: documents follow each other with [SEP] between
them, so that nothing is padding (Liu et al. 2019, "full sentences"). The border between a and b is a sentence's end
near a random place in the middle half of the window, and never that of a document: what "follows" is of one document.
A b from elsewhere begins after a sentence of another document. Which tokens are masked is drawn for every row of every
epoch anew ("dynamic masking", Liu et al. 2019), from hashes of the seed and the batch's number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.data.batches import Batches, hash_each
from regard.data.masked_config import MaskingConfig
from regard.data.stream import Stream
from regard.errors import RegardError
from regard.text.marks import Marks
from regard.text.tokenizer import Tokenizer

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
SENTENCE_ENDS = (".", "!", "?", "。")
N_TRIES = 8  # places that are looked at for a text from another document
N_AHEAD = 64  # tokens within which a sentence is to end, before a text from elsewhere begins


@dataclass(frozen=True)
class MaskedBatch:
    """B rows of T tokens, of which K at most are asked for: targets[b, k] stood at places[b, k]."""

    tokens: Ids  # (B, T), as the model reads them
    segments: Ids  # (B, T)
    places: Ids  # (B, K)
    targets: Ids  # (B, K)
    is_there: Mask  # (B, K); False: fewer were masked in this row
    is_next: Ids  # (B,); 1: the second segment follows the first


class MaskedBatches:
    """Batch i of a stream, for any i >= 0."""

    def __init__(
        self,
        stream: Stream,
        tokenizer: Tokenizer,
        masking: MaskingConfig,
        *,
        n_batch: int,
        n_context: int,
        has_pairs: bool,
        seed: int = 0,
    ) -> None:
        marks = tokenizer.marks
        assert marks is not None, "the task refused others"
        self.stream, self.masking, self.marks = stream, masking, marks
        self.has_pairs, self.n_context, self.seed = has_pairs, n_context, seed
        self.n_text = n_context - marks.count_in_frame(has_pairs)
        if self.n_text < 4:
            raise RegardError(f"train.n_context is {n_context}, which leaves no room for text between the marks.")
        self.windows = Batches(stream, n_batch=n_batch, n_context=self.n_text, seed=seed, order="shuffle")
        self.per_epoch = self.windows.per_epoch
        self.n_masked = max(1, round(masking.p_masked * self.n_text))  # K
        self._vocabulary = Vocabulary(tokenizer, marks)
        if not len(self._vocabulary.words):
            raise RegardError(
                f"The vocabulary holds marks such as {marks.mask_name} alone, and no word or piece of one, so that "
                "nothing can be masked. Give text with words, or a vocabulary that has some in tokenizer.path."
            )

    def at(self, index: int) -> MaskedBatch:
        """Batch `index`; the same arguments give the same arrays, whatever was asked before."""
        text = self.windows.at(index).targets  # (B, L)
        is_next = np.ones(len(text), dtype=np.int64)
        if self.has_pairs:
            text, border, is_next = self._pair(text, index)
            tokens, segments = frame_pairs(text, border, self.marks)
        else:
            tokens = np.pad(text, ((0, 0), (1, 1)))
            tokens[:, 0], tokens[:, -1] = self.marks.first, self.marks.separator
            segments = np.zeros_like(tokens)
        places, is_there = self._choose(tokens, index)
        targets = np.take_along_axis(tokens, places, axis=1)
        np.put_along_axis(tokens, places, self._hide(targets, is_there, index), axis=1)
        return MaskedBatch(tokens, segments, places, targets, is_there, is_next)

    def draw(self, purpose: str, index: int, n: int) -> NDArray[np.float64]:
        """Numbers in [0, 1), (B, n), that depend on the seed, the batch and what they are for."""
        B = self.windows.n_batch
        key = hash_each(np.array([index], dtype=np.uint64), self.seed * 8 + PURPOSES.index(purpose))[0]
        bits = hash_each(np.arange(B * n, dtype=np.uint64), int(key))
        return (bits >> np.uint64(11)).reshape(B, n) / 2.0**53

    def _pair(self, text: Ids, index: int) -> tuple[Ids, Ids, Ids]:
        """Rows whose second part follows the first or is from elsewhere, where it begins, and whether it follows."""
        L = text.shape[1]
        border = self._choose_borders(text, self.draw("border", index, 1)[:, 0])
        is_next = (self.draw("next", index, 1)[:, 0] < 0.5).astype(np.int64)
        at_border = (self.windows.starts(index) + border) % len(self.stream)
        others = self._find_elsewhere(at_border, self.draw("elsewhere", index, N_TRIES))
        text = text.copy()
        for row in np.flatnonzero(is_next == 0).tolist():
            if others[row] < 0:  # there is no other place
                is_next[row] = 1
                continue
            n = L - int(border[row])
            text[row, border[row] :] = self._read_sentence(int(others[row]), n)
        return text, border, is_next

    def _choose_borders(self, text: Ids, draws: NDArray[np.float64]) -> Ids:
        """How many tokens the first part has: up to the end of the sentence that is nearest to a random place."""
        L = text.shape[1]
        low, high = max(1, L // 4), max(2, L - L // 4)
        wanted = low + np.floor(draws * (high - low)).astype(np.int64)
        before = text[:, low - 1 : high - 1]  # (B, high - low), the last token of the first part for every border
        ends_document = (before == self.marks.separator) | (text[:, low:high] == self.marks.separator)
        far = np.abs(np.arange(low, high)[None] - wanted[:, None])
        # A sentence's end beats any other place, and any place beats the end of a document.
        cost = far + 2 * L * ~self._vocabulary.ends_sentence[before] + 8 * L * ends_document
        borders: Ids = low + cost.argmin(axis=1)
        return borders

    @cached_property
    def _document_ends(self) -> Ids:
        ends, begin = [np.zeros(0, dtype=np.int64)], 0
        for shard in self.stream.shards:
            ends.append(begin + np.flatnonzero(shard == self.marks.separator))
            begin += len(shard)
        return np.concatenate(ends)

    def _find_elsewhere(self, places: Ids, draws: NDArray[np.float64]) -> Ids:
        """For each place one of another document; of a text of one document one a window away. -1: there is none."""
        n = len(self.stream)
        tries = np.floor(draws * n).astype(np.int64)  # (B, N_TRIES)
        here = np.searchsorted(self._document_ends, places)[:, None]
        first, last = (np.searchsorted(self._document_ends, at) for at in (tries, tries + N_AHEAD))
        is_other = (here < first) | (here > last)  # wherever within N_AHEAD the text will begin
        if len(self._document_ends) < 2:
            away = np.abs(tries - places[:, None])
            is_other = np.minimum(away, n - away) > self.n_text
        found = is_other.argmax(axis=1)
        rows = np.arange(len(places))
        chosen: Ids = np.where(is_other[rows, found], tries[rows, found], -1)
        return chosen

    def _read_sentence(self, start: int, n: int) -> Ids:
        """n tokens from the first sentence on that begins after `start`; the text is a ring."""
        ahead = self._read(start, N_AHEAD + n + 1)
        ends = self._vocabulary.ends_sentence[ahead[:N_AHEAD]]
        first = int(ends.argmax()) + 1 if ends.any() else 0
        first += int(ahead[first] == self.marks.separator)
        return ahead[first : first + n]

    def _read(self, start: int, n: int) -> Ids:
        L = len(self.stream)
        parts, at = [], start % L
        while n > 0:
            part = self.stream[at : min(at + n, L)]
            parts.append(part)
            n, at = n - len(part), 0
        return np.concatenate(parts)

    def _choose(self, tokens: Ids, index: int) -> tuple[Ids, Mask]:
        """The K places of each row that are asked for, in order, and which of them there are."""
        order = self.draw("mask", index, tokens.shape[1])
        is_text = ~self._vocabulary.is_mark[tokens]
        if self.masking.takes_words:
            return choose_words(order, is_text, self._vocabulary.begins_word[tokens], self.n_masked)
        order = np.where(is_text, order, 2.0)
        K = min(self.n_masked, tokens.shape[1])
        places = np.sort(np.argpartition(order, K - 1, axis=1)[:, :K], axis=1)
        return places, np.take_along_axis(is_text, places, axis=1)

    def _hide(self, targets: Ids, is_there: Mask, index: int) -> Ids:
        """What is read in place of the targets: mostly [MASK], sometimes another token, sometimes the target."""
        masking, vocabulary = self.masking, self._vocabulary
        K = targets.shape[1]
        kind, which = self.draw("kind", index, K), self.draw("wrong", index, K)
        # Among all tokens but the marks and the target itself: numbers from the target's on are one higher.
        wrong = np.floor(which * (len(vocabulary.words) - 1)).astype(np.int64)
        wrong += wrong >= vocabulary.number_of[targets]
        read = np.where(kind < masking.p_mark, self.marks.mask, targets)
        is_wrong = (kind >= masking.p_mark) & (kind < masking.p_mark + masking.p_wrong)
        read = np.where(is_wrong, vocabulary.words[wrong % len(vocabulary.words)], read)
        hidden: Ids = np.where(is_there, read, targets)
        return hidden


PURPOSES = ("border", "next", "elsewhere", "mask", "kind", "wrong")


class Vocabulary:
    """What masking must know of each token: whether it is a mark, begins a word, ends a sentence."""

    def __init__(self, tokenizer: Tokenizer, marks: Marks) -> None:
        n = tokenizer.vocab_size
        names = [""] * n
        for name, i in tokenizer.hf.get_vocab().items():
            names[i] = name
        self.is_mark = np.zeros(n, dtype=np.bool_)
        self.is_mark[list(marks.ids)] = True
        self.words = np.flatnonzero(~self.is_mark)
        self.number_of = np.full(n, n, dtype=np.int64)  # of each word among the words
        self.number_of[self.words] = np.arange(len(self.words))
        is_wordpiece = tokenizer.kind == "wordpiece"
        self.begins_word = np.array(
            [
                not name.startswith("##") if is_wordpiece else name.startswith("Ġ") or not name[:1].isalnum()
                for name in names
            ]
        )
        self.ends_sentence = np.array([name in SENTENCE_ENDS for name in names])


def frame_pairs(text: Ids, border: Ids, marks: Marks) -> tuple[Ids, Ids]:
    """[CLS] text up to the border [SEP] the rest [SEP], row by row, and the segments 0 and 1.

    >>> tokens, segments = frame_pairs(np.array([[7, 8, 9]]), np.array([2]), Marks(("",) * 5, 0, 1, 2, 3, 4))
    >>> tokens.tolist(), segments.tolist()
    ([[2, 7, 8, 3, 9, 3]], [[0, 0, 0, 0, 1, 1]])
    """
    L = text.shape[1]
    column = np.arange(L + 3)[None]
    is_second = column > border[:, None] + 1
    source = np.clip(column - 1 - is_second, 0, L - 1)
    tokens = np.take_along_axis(text, source, axis=1)
    tokens[:, 0], tokens[:, -1] = marks.first, marks.separator
    np.put_along_axis(tokens, border[:, None] + 1, marks.separator, axis=1)
    return tokens, is_second.astype(np.int64)


def choose_words(order: NDArray[np.float64], is_text: Mask, begins: Mask, n_masked: int) -> tuple[Ids, Mask]:
    """Places of whole words in random order, as many words as have `n_masked` pieces or fewer together.

    A first word that is longer is cut: something must be asked for.

    >>> order = np.array([[0.5, 0.3, 0.9, 0.1]])
    >>> begins = np.array([[True, False, True, True]])
    >>> choose_words(order, np.ones_like(begins), begins, 3)
    (array([[0, 1, 3]]), array([[ True,  True,  True]]))
    """
    B, T = order.shape
    word = np.cumsum(begins | ~is_text | np.roll(~is_text, 1, axis=1), axis=1) - 1  # a mark stands apart
    word = np.maximum(word, 0)
    first = np.concatenate([np.ones((B, 1), dtype=np.bool_), word[:, 1:] != word[:, :-1]], axis=1)
    key = np.full((B, T), 2.0)
    rows = np.nonzero(first)[0]
    key[rows, word[first]] = np.where(is_text[first], order[first], 2.0)
    key = np.take_along_axis(key, word, axis=1)  # of each token that of its word
    by_word = np.argsort(key, axis=1, kind="stable")
    sorted_words = np.take_along_axis(word, by_word, axis=1)
    ends = np.concatenate([sorted_words[:, 1:] != sorted_words[:, :-1], np.ones((B, 1), dtype=np.bool_)], axis=1)
    counted = np.arange(1, T + 1)[None]
    # The number of pieces up to the end of each one's word: from the right, the next end.
    through = np.minimum.accumulate(np.where(ends, counted, T + 1)[:, ::-1], axis=1)[:, ::-1]
    K = min(n_masked, T)
    is_first_word = np.take_along_axis(word, by_word, axis=1) == sorted_words[:, :1]
    taken = ((through <= K) | is_first_word) & np.take_along_axis(is_text, by_word, axis=1)
    places, is_there = by_word[:, :K], taken[:, :K]
    order_of = np.argsort(np.where(is_there, places, T), axis=1, kind="stable")
    return np.take_along_axis(places, order_of, axis=1), np.take_along_axis(is_there, order_of, axis=1)
