from __future__ import annotations

import numpy as np
import torch

from regard.models.subwords import SubwordIndex, bucket_ids, list_ngrams
from regard.models.word2vec import MAX_REPEATS, Updater, Word2Vec, WordSampler, keep_probabilities
from regard.models.word_vectors_config import Word2VecConfig

CPU = torch.device("cpu")


def make_text(n: int = 4000, vocab: int = 40) -> np.ndarray:
    return np.random.default_rng(0).integers(2, vocab, n)


def sample(config: Word2VecConfig, ids: np.ndarray, seed: int = 0, lines: np.ndarray | None = None):  # type: ignore[no-untyped-def]
    return WordSampler(config, np.bincount(ids, minlength=40), CPU).sample(ids, lines, seed)


def test_every_kept_word_is_learned_from_once_with_its_neighbours() -> None:
    ids = make_text()
    stretch = sample(Word2VecConfig(subsample=0.0, window=2), ids)
    centres = torch.cat([chunk.centres.flatten() for chunk in stretch.chunks])
    assert torch.bincount(centres, minlength=40)[2:].tolist() == np.bincount(ids, minlength=40)[2:].tolist()
    follows = {(a, b) for a, b in zip(ids.tolist(), ids.tolist()[1:], strict=False)}
    for chunk in stretch.chunks:
        block, word, place = (x.tolist() for x in chunk.is_context.nonzero(as_tuple=True))
        for b, t, m in zip(block, word, place, strict=True):
            if m == t + 2 + 1:  # the word after it
                assert (int(chunk.ids[b, t + 2]), int(chunk.ids[b, m])) in follows


def test_contexts_never_reach_over_a_line_end_where_that_is_asked() -> None:
    ids = make_text(300)
    lines = np.arange(300) // 3
    for chunk in sample(Word2VecConfig(subsample=0.0, within_lines=True), ids, lines=lines).chunks:
        assert chunk.is_context.sum(dim=2).max() <= 2


def test_the_same_seed_draws_the_same_and_another_seed_other_numbers() -> None:
    config, ids = Word2VecConfig(), make_text()
    one, again, other = (sample(config, ids, seed) for seed in (3, 3, 4))
    assert all(torch.equal(a.negatives, b.negatives) for a, b in zip(one.chunks, again.chunks, strict=True))
    assert not torch.equal(one.chunks[0].negatives, other.chunks[0].negatives)


def test_negatives_are_words_only_and_follow_the_smoothed_counts() -> None:
    ids = np.repeat(np.array([2, 3]), [1600, 100])
    config = Word2VecConfig(subsample=0.0, smoothing=0.5)
    drawn = torch.cat([chunk.negatives.flatten() for s in range(20) for chunk in sample(config, ids, s).chunks])
    assert set(drawn.tolist()) == {2, 3}
    share = (drawn == 3).float().mean().item()  # √100 of √1600 + √100
    assert abs(share - 0.2) < 0.02


def test_frequent_words_are_kept_as_rarely_as_word2vec_keeps_them() -> None:
    counts = torch.tensor([0.0, 0.0, 100.0, 9900.0])
    kept = keep_probabilities(counts, 0.01)
    assert kept[:3].tolist() == [0.0, 0.0, 1.0]
    assert abs(kept[3].item() - ((0.99 / 0.01) ** 0.5 + 1) * 0.01 / 0.99) < 1e-7
    assert keep_probabilities(counts, 0.0).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_rows_that_an_update_holds_too_often_move_less() -> None:
    ids = np.array([2] * 2000 + [3] * 3 + [4] * 2000)
    stretch = sample(Word2VecConfig(subsample=0.0), ids)
    n_words = sum(1 for _ in stretch.chunks[0].centres.flatten())
    assert abs(stretch.damp_vectors[2].item() - MAX_REPEATS / (n_words * 2000 / 4003)) < 1e-6
    assert stretch.damp_vectors[3].item() == 1.0


def test_words_with_the_same_neighbours_come_to_lie_together() -> None:
    """2 and 3 stand between 10 and 11; 4 and 5 between 12 and 13."""
    random = np.random.default_rng(1)
    parts = [[10, int(random.integers(2, 4)), 11] if random.random() < 0.5 else [12, int(random.integers(4, 6)), 13]
             for _ in range(1000)]  # fmt: skip
    ids, lines = np.array(parts).flatten(), np.repeat(np.arange(1000), 3)
    for is_cbow, has_subwords in ((False, False), (True, False), (False, True)):
        config = Word2VecConfig(d_model=8, subsample=0.0, within_lines=True, has_subwords=has_subwords, n_buckets=50)
        model = Word2Vec.create(config, 14, seed=0)
        index = SubwordIndex.of([f"w{i}" for i in range(14)], 3, 4, 50) if has_subwords else None
        updater = Updater(model, config, is_cbow, index)
        sampler = WordSampler(config, np.bincount(ids, minlength=14), CPU)
        first = updater.measure(sampler.sample(ids, lines, 0).chunks[0])
        for seed in range(12):
            stretch = sampler.sample(ids, lines, seed)
            for chunk in stretch.chunks:
                updater.update(chunk, stretch, 0.025)
        last = updater.measure(sampler.sample(ids, lines, 0).chunks[0])
        assert last[0] / last[1] < 0.9 * first[0] / first[1]
        rows = model.words if index is None else index.compose(model.words, model.subwords, torch.arange(14))
        unit = torch.nn.functional.normalize(rows, dim=1)
        assert unit[2] @ unit[3] > unit[2] @ unit[4] + 0.2
        assert not rows[:2].any() or has_subwords


def test_a_word_is_the_mean_of_its_row_and_its_ngrams_rows() -> None:
    index = SubwordIndex.of(["<eos>", "<unk>", "cat", "a"], 3, 4, 1000)
    own, grams = torch.randn(4, 5, dtype=torch.float64), torch.randn(1000, 5, dtype=torch.float64)
    found = index.compose(own, grams, torch.arange(4))
    rows = torch.stack([own[2], *(grams[i] for i in bucket_ids("cat", 3, 4, 1000))])
    torch.testing.assert_close(found[2], rows.mean(dim=0), rtol=0, atol=1e-14)
    torch.testing.assert_close(found[0], own[0], rtol=0, atol=0)
    assert list_ngrams("a", 3, 4) == ["<a>"]
