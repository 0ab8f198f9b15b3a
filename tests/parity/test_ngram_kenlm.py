"""KenLM: the same n-grams and numbers as its estimator, the same scores as its reader."""

import os
from pathlib import Path

import numpy as np
import pytest
from sentences import UNK, find_words, number_words

from regard.count.arpa import token_names
from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel

kenlm = pytest.importorskip("kenlm")

DATA = Path(os.environ.get("REGARD_DATA", "absent"))
REFERENCE = DATA.parent / "reference" / "kenlm"
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="KenLM's own ARPA files are not there")
needs_ptb = pytest.mark.skipif(not (DATA / "ptb").is_dir(), reason="needs the Penn Treebank under REGARD_DATA")


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def fit(lines: list[str], order: int, smoothing: str = "kneser-ney") -> tuple[NgramModel, list[str]]:
    ids, words = number_words(lines)
    return NgramModel.fit(NgramConfig(order=order, smoothing=smoothing), ids, len(words), UNK), words


def kenlm_log10(arpa: Path, lines: list[str]) -> np.ndarray:
    """What KenLM gives each word and each sentence end."""
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    model = kenlm.Model(str(arpa), config)
    return np.array([log10 for line in lines for log10, _, _ in model.full_scores(line)])


def random_lines(rng: np.random.Generator, n_words: int, n_lines: int) -> list[str]:
    """Zipfian words, sentences of 0 to 12 of them, some said twice."""
    p = 1 / np.arange(1, n_words + 1)
    lines = [" ".join(f"w{i}" for i in rng.choice(n_words, rng.integers(0, 13), p=p / p.sum())) for _ in range(n_lines)]
    return [*lines, *lines[: n_lines // 5]]


@needs_reference
@pytest.mark.data
@pytest.mark.parametrize("order", [3, 5])
def test_ngrams_and_numbers_are_kenlms_own(order):
    model, words = fit(read(REFERENCE / "train.txt"), order)
    theirs, their_words = NgramModel.read_arpa(REFERENCE / f"{order}.arpa.gz")
    assert words == their_words
    assert all(np.array_equal(a, b) for a, b in zip(model.trie.keys, theirs.trie.keys, strict=True))
    for ours, reference in (
        *zip(model.estimate.log_probs, theirs.estimate.log_probs, strict=True),
        *zip(model.estimate.log_backoffs, theirs.estimate.log_backoffs, strict=True),
    ):
        assert np.abs(ours - reference).max() / np.log(10) < 1e-5  # KenLM computes in 32 bits


@needs_reference
@pytest.mark.data
@pytest.mark.parametrize("order", [3, 5])
def test_perplexities_are_those_kenlm_reports(order):
    reported = [line.split(":\t") for line in read(REFERENCE / f"{order}.summary.txt")]
    with_unknown, without_unknown, n_unknown, n_tokens = (float(value) for _, value in reported)
    model, words = fit(read(REFERENCE / "train.txt"), order)
    ids = find_words(read(REFERENCE / "test.txt"), words)
    nats = model.nats(ids)
    assert (len(ids), (ids == UNK).sum()) == (n_tokens, n_unknown)
    assert np.exp(nats.mean()) == pytest.approx(with_unknown, rel=1e-6)
    assert np.exp(nats[ids != UNK].mean()) == pytest.approx(without_unknown, rel=1e-6)


@pytest.mark.parametrize("order", [2, 3, 5, 6])
@pytest.mark.parametrize("ending", [".arpa", ".arpa.gz"])
def test_kenlm_reading_our_file_gives_our_scores(tmp_path, order, ending):
    rng = np.random.default_rng(order)
    model, words = fit(random_lines(rng, n_words=150, n_lines=400), order)
    model.write_arpa(tmp_path / f"model{ending}", words)
    lines = random_lines(rng, n_words=300, n_lines=200)  # half of the words are unknown
    ids = find_words(lines, words)
    assert (ids == UNK).sum() > 100
    log10 = kenlm_log10(tmp_path / f"model{ending}", lines)
    assert np.abs(log10 + model.nats(ids) / np.log(10)).max() < 1e-5


def test_kenlm_gives_our_scores_where_unknown_words_were_counted(tmp_path):
    rng = np.random.default_rng(1)
    seen = [line.replace("w7", "<unk>") for line in random_lines(rng, n_words=60, n_lines=300)]
    model, words = fit(seen, 4)
    model.write_arpa(tmp_path / "model.arpa", words)
    lines = random_lines(rng, n_words=90, n_lines=100)
    log10 = kenlm_log10(tmp_path / "model.arpa", lines)
    assert np.abs(log10 + model.nats(find_words(lines, words)) / np.log(10)).max() < 1e-5


def test_kenlm_gives_our_add_k_scores(tmp_path):
    rng = np.random.default_rng(2)
    model, words = fit(random_lines(rng, n_words=50, n_lines=200), 4, "add-k")
    model.write_arpa(tmp_path / "model.arpa", words)
    lines = random_lines(rng, n_words=70, n_lines=100)
    log10 = kenlm_log10(tmp_path / "model.arpa", lines)
    assert np.abs(log10 + model.nats(find_words(lines, words)) / np.log(10)).max() < 1e-5


def test_kenlm_finds_impossible_what_mle_finds_impossible(tmp_path):
    rng = np.random.default_rng(3)
    model, words = fit(random_lines(rng, n_words=20, n_lines=300), 3, "mle")
    model.write_arpa(tmp_path / "model.arpa", words)
    lines = random_lines(rng, n_words=20, n_lines=100)
    log10, nats = kenlm_log10(tmp_path / "model.arpa", lines), model.nats(find_words(lines, words))
    possible = np.isfinite(nats)
    assert possible.any()
    assert not possible.all()
    assert np.abs(log10 + nats / np.log(10))[possible].max() < 1e-5
    assert (log10[~possible] < -98).all()


def test_kenlm_scores_tokens_whose_names_had_to_be_escaped(tmp_path):
    words = ["<eos>", " the", "\n", "<s>", "", "<0x20>", "é", "ordinary"]
    rng = np.random.default_rng(4)
    ids = rng.integers(0, len(words), 400)
    ids[-1] = 0
    model = NgramModel.fit(NgramConfig(order=3), ids, len(words), unk=None)
    model.write_arpa(tmp_path / "model.arpa", words)
    names = token_names(words, unk=None)
    sentences = np.split(ids, np.flatnonzero(ids == 0) + 1)[:-1]
    lines = [" ".join(names[i] for i in sentence[:-1]) for sentence in sentences]
    log10 = kenlm_log10(tmp_path / "model.arpa", lines)
    assert np.abs(log10 + model.nats(ids) / np.log(10)).max() < 1e-5


@needs_ptb
@pytest.mark.data
def test_penn_treebank_5gram_perplexity_is_kenlms():
    model, words = fit(read(DATA / "ptb" / "ptb.train.txt"), 5)
    nats = model.nats(find_words(read(DATA / "ptb" / "ptb.test.txt"), words))
    assert len(nats) == 82430
    assert np.exp(nats.mean()) == pytest.approx(141.19, abs=0.05)
