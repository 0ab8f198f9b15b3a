"""Files, scores, subwords and one update of word2vec against gensim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.models.subwords import bucket_ids
from regard.models.word2vec import word2vec_loss
from regard.models.word_vectors import WordVectors
from regard.score.word_tests import read_word_test, score_word_test
from regard.weights.word_vectors import read_vectors, write_vectors

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # gensim leaves a file open
]
gensim = pytest.importorskip("gensim")
from gensim.models import KeyedVectors, Word2Vec  # noqa: E402
from gensim.models.fasttext import ft_ngram_hashes  # noqa: E402

RANDOM = np.random.default_rng(0)
WORDS = ["the", "café", *(f"w{i}" for i in range(30))]
VECTORS = WordVectors(WORDS, RANDOM.normal(size=(len(WORDS), 7)).astype(np.float32))


@pytest.mark.parametrize(("name", "more"), [("a.vec", {}), ("a.bin", {"binary": True}), ("a.txt", {"no_header": True})])
def test_gensim_reads_what_we_write_and_we_read_what_it_writes(
    tmp_path: Path, name: str, more: dict[str, bool]
) -> None:
    write_vectors(VECTORS, tmp_path / name)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / name), **more)
    assert theirs.index_to_key == WORDS
    assert theirs.vectors.tobytes() == VECTORS.matrix.tobytes()
    writes = {"write_header": False} if "no_header" in more else more
    theirs.save_word2vec_format(str(tmp_path / f"again-{name}"), **writes)
    again = read_vectors(tmp_path / f"again-{name}")
    assert again.words == WORDS
    assert again.matrix.tobytes() == VECTORS.matrix.tobytes()


def test_nearest_words_pairs_and_analogies_are_scored_as_by_gensim(tmp_path: Path) -> None:
    write_vectors(VECTORS, tmp_path / "a.bin")
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "a.bin"), binary=True)
    found, wanted = VECTORS.nearest("w3", 5), theirs.most_similar("w3", topn=5)
    assert [word for word, _ in found] == [word for word, _ in wanted]
    assert [c for _, c in found] == pytest.approx([c for _, c in wanted], abs=1e-6)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(
        "".join(f"w{RANDOM.integers(30)}\tw{RANDOM.integers(30)}\t{RANDOM.integers(8)}\n" for _ in range(60))
    )
    ours = score_word_test(VECTORS, read_word_test(pairs)).value
    assert ours == pytest.approx(100 * theirs.evaluate_word_pairs(str(pairs))[1].statistic, abs=1e-6)
    questions = tmp_path / "questions.txt"
    lines = [" ".join(f"w{i}" for i in RANDOM.choice(30, 4, replace=False)) for _ in range(300)]
    lines += [f"{a} {b} {c} {VECTORS.analogy(a, b, c, 1)[0][0]}" for a, b, c, _ in map(str.split, lines[:20])]
    questions.write_text(": some\n" + "\n".join(lines) + "\n")
    share, _ = theirs.evaluate_word_analogies(str(questions), case_insensitive=False)
    assert score_word_test(VECTORS, read_word_test(questions)).value == pytest.approx(100 * share)
    assert share > 0.05


@pytest.mark.parametrize("word", ["cat", "naïve", "日本語", "a", "don't"])
def test_ngrams_have_the_rows_that_gensims_fasttext_gives_them(word: str) -> None:
    assert sorted(bucket_ids(word, 3, 6, 2000)) == sorted(ft_ngram_hashes(word, 3, 6, 2000))


def test_one_update_is_gensims() -> None:
    """A line of two words, and one negative sample that is always `often`: its counts outweigh all others.

    gensim looks σ up in a table of 1000 steps from -6 to 6, hence the tolerance: a step changes σ by 0.003.
    """
    lr, lines = 0.5, [["often"]] * 2000 + [["one", "two"]]
    theirs = Word2Vec(
        vector_size=5, window=1, negative=1, sample=0, min_count=1, sg=1, ns_exponent=20, workers=1, seed=3
    )
    theirs.build_vocab(lines)
    row = theirs.wv.key_to_index
    theirs.wv.vectors[:] = RANDOM.normal(size=(3, 5))
    theirs.syn1neg[:] = RANDOM.normal(size=(3, 5))
    v, u = (torch.tensor(rows.copy(), dtype=torch.float64) for rows in (theirs.wv.vectors, theirs.syn1neg))
    theirs.train([["one", "two"]], total_examples=1, epochs=1, start_alpha=lr, end_alpha=lr)
    # It takes pair after pair: first "two" predicts "one", then "one" predicts "two".
    often = row["often"]
    for word, context in (("two", "one"), ("one", "two")):
        rows = [v[[row[word]]], u[[row[context]]], u[[often]]]
        blocks = [rows[0][None].repeat(1, 3, 1), rows[1][None].repeat(1, 3, 1), rows[2][None]]
        leaves = [each.clone().requires_grad_() for each in blocks]
        near = torch.tensor([[[False, False, True]]])
        slopes = torch.autograd.grad(word2vec_loss(*leaves, near, 1, False), leaves)
        v[row[word]] -= lr * slopes[0].sum(dim=(0, 1))
        u[row[context]] -= lr * slopes[1].sum(dim=(0, 1))
        u[often] -= lr * slopes[2].sum(dim=(0, 1))
    np.testing.assert_allclose(theirs.wv.vectors, v.numpy(), rtol=0, atol=0.01)
    np.testing.assert_allclose(theirs.syn1neg, u.numpy(), rtol=0, atol=0.01)
