"""Vocabularies with BERT's marks: learned by frequency or likelihood, or read from a vocab.txt."""

from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.text.bert_tokenizer import read_vocab_txt
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.likely_pieces import PairCounts, join_by_likelihood
from regard.text.marks import BERT_MARKS, find_marks
from regard.text.tokenizer import Tokenizer

TEXTS = ["the cat sat on the mat.", "the dogs sat unhappily."] * 3


@pytest.mark.parametrize("by", ["frequency", "likelihood"])
def test_a_learned_vocabulary_begins_with_the_marks(by: str) -> None:
    made = train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=80, has_marks=True, joins_by=by), TEXTS)
    assert made.marks is not None
    assert made.marks.ids == (0, 1, 2, 3, 4)
    assert (made.eos, made.unk, made.end_mark) == (3, 1, "[SEP]")
    assert made.decode([2, *made.encode("the cat sat."), 3, 0]) == "the cat sat."
    assert made.encode("日")[0] == 1
    assert Tokenizer.from_json(made.json).hash == made.hash
    spelled = made.encode("[SEP] [MASK]").tolist()
    assert not set(spelled) & {2, 3, 4}  # a text that spells a mark stays text


def test_likelihood_joins_what_is_hardly_seen_apart() -> None:
    words = {"qu": 2, "ea": 50, "eb": 50, "ba": 50, "bc": 50}
    counts = PairCounts(words)
    best = counts.best(1)
    assert best is not None
    assert [counts.pieces[i] for i in best] == ["q", "##u"]  # 2 / (2 * 2) is the highest score
    best = counts.best(min_count=3)
    assert best is not None
    assert [counts.pieces[i] for i in best] == ["b", "##c"]  # 50 / (100 * 50)


def test_counts_after_joins_are_those_of_the_joined_words() -> None:
    words = {"banana": 3, "bandana": 2, "nab": 5}
    counts = PairCounts(words)
    for _ in range(4):
        pair = counts.best(1)
        assert pair is not None
        counts.join(*pair)
        for piece in range(len(counts.pieces)):
            n = sum(word.count(piece) * count for word, count in zip(counts.words, counts.counts, strict=True))
            assert counts.n_piece[piece] == n
        for (a, b), at in counts.numbers.items():
            n = sum(
                count * sum(word[i : i + 2] == [a, b] for i in range(len(word) - 1))
                for word, count in zip(counts.words, counts.counts, strict=True)
            )
            assert counts.n_pair[at] == n
    assert join_by_likelihood(words, 1000)[-1] in ("banana", "bandana", "nab")


def test_settings_for_wordpiece_are_refused_elsewhere() -> None:
    with pytest.raises(RegardError, match="has_marks is for wordpiece, not for bpe"):
        TokenizerConfig(kind="bpe", has_marks=True)
    with pytest.raises(RegardError, match="joins_by likelihood is for wordpiece"):
        TokenizerConfig(kind="word", joins_by="likelihood")


def test_the_key_of_an_older_setting_is_the_one_it_had() -> None:
    assert set(TokenizerConfig().key()) == {"kind", "vocab_size", "min_count", "lowercase", "max_bytes", "path"}
    assert TokenizerConfig(kind="wordpiece", has_marks=True).key()["has_marks"] is True


def test_a_vocab_txt_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("the\ncat\n")
    with pytest.raises(RegardError, match=r"lacks \[PAD\], \[UNK\]"):
        read_vocab_txt(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT_MARKS, "a", "a"]))
    with pytest.raises(RegardError, match="has a piece twice"):
        read_vocab_txt(tmp_path)


def test_marks_of_two_families_are_told_apart() -> None:
    roberta = find_marks({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 9})
    assert roberta is not None
    assert roberta.frame([5], [6]) == ([0, 5, 2, 2, 6, 2], [0] * 6)
    assert roberta.count_in_frame(is_pair=True) == 4
