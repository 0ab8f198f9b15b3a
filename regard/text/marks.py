"""The marks that BERT and its family read in and around texts, and how texts are put between them.

They are entries of the vocabulary and nothing else: a document that happens to spell "[SEP]" stays text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BERT_MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Padding, unknown word, before a text, after a text, a place to fill (Devlin et al. 2019); the ids 0 to 4 of those
that are learned here."""
ROBERTA_MARKS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
"""What RoBERTa (Liu et al. 2019) calls the same five."""


@dataclass(frozen=True)
class Marks:
    """Ids of the five marks.

    >>> marks = Marks(BERT_MARKS, 0, 1, 2, 3, 4)
    >>> marks.frame([7, 8], [9])
    ([2, 7, 8, 3, 9, 3], [0, 0, 0, 0, 1, 1])
    """

    names: tuple[str, ...]
    padding: int
    unknown: int
    first: int
    separator: int
    mask: int

    @property
    def ids(self) -> tuple[int, ...]:
        return self.padding, self.unknown, self.first, self.separator, self.mask

    @property
    def unprinted(self) -> frozenset[int]:
        """Those that stand for no text."""
        return frozenset((self.padding, self.first, self.separator))

    @property
    def mask_name(self) -> str:
        return self.names[4]

    @property
    def is_roberta(self) -> bool:
        """Whether a pair has two separators between its texts, and no segments."""
        return self.names == ROBERTA_MARKS

    def count_in_frame(self, is_pair: bool = False) -> int:
        """How many marks `frame` adds."""
        return 2 if not is_pair else 4 if self.is_roberta else 3

    def frame(self, text: Sequence[int], second: Sequence[int] | None = None) -> tuple[list[int], list[int]]:
        """[CLS] text [SEP], or [CLS] text [SEP] second [SEP], as ids, and the segment of each.

        Segments are 0 up to the first separator and 1 after it; RoBERTa has <s> text </s></s> second </s> and one
        segment.
        """
        ids = [self.first, *text, self.separator]
        segments = [0] * len(ids)
        if second is not None:
            more = [self.separator] * self.is_roberta + [*second, self.separator]
            ids += more
            segments += [0 if self.is_roberta else 1] * len(more)
        return ids, segments


def find_marks(vocab: Mapping[str, int]) -> Marks | None:
    """The marks of a vocabulary; None where it has not all five of one family.

    >>> find_marks({"a": 0, "[PAD]": 1}) is None
    True
    """
    for names in (BERT_MARKS, ROBERTA_MARKS):
        if all(name in vocab for name in names):
            return Marks(names, *(vocab[name] for name in names))
    return None
