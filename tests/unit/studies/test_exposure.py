"""The study of exposure bias: both losses against a plain loop, what is read off them, and the study at a tiny size."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_seq2seq import VARIANTS, Pair, pairs, tiny_seq2seq

import regard
from regard.data.pair_batches import PairBatch
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq, write_own_inputs
from regard.studies.exposure import Exposure, by_place, exposure_sentence, figures_of, losses
from regard.studies.fits import Spread
from regard.studies.table import study_config
from regard.tasks.translation import TranslationRun

NAN = np.nan


def batch_of(pair: Pair) -> PairBatch:
    return PairBatch(
        pair.source.numpy(),
        pair.mask.numpy(),
        pair.inputs.numpy(),
        pair.targets.numpy(),
        pair.target_mask.numpy(),
        None if pair.words is None else pair.words.numpy(),
    )


def log_probs(model: Seq2Seq, pair: Pair, row: int, read: list[int]) -> torch.Tensor:
    """log P of what follows the words that were read, by the whole model and for one pair alone."""
    n = int(pair.mask[row].sum())
    source, mask = pair.source[row : row + 1, :n], pair.mask[row : row + 1, :n]
    words = None if pair.words is None else pair.words[row : row + 1, :n]
    encoded = model.encode(source, mask, words)
    h, _ = model.target.hidden(torch.tensor([read]), encoded)
    last = type(h)(*(None if part is None else part[:, -1:] for part in h)) if isinstance(h, tuple) else h[:, -1:]
    return model.target.log_probs(last, model.target.n_words(pair.words))[0]


@pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())) or "base")
def test_both_losses_are_those_of_a_plain_loop_over_words(changes: dict[str, object]) -> None:
    model = tiny_seq2seq(**changes).eval()
    pair = pairs(1, [5, 3], [6, 4], model.copies)
    with torch.no_grad():
        forced, free, is_same = losses(model, batch_of(pair))
        for row in range(2):
            own, so_far = [0], True
            for t in range(int(pair.target_mask[row].sum())):
                target = int(pair.targets[row, t])
                after_true = log_probs(model, pair, row, pair.inputs[row, : t + 1].tolist())
                after_own = log_probs(model, pair, row, own)
                assert float(forced[row, t]) == pytest.approx(-float(after_true[target]), abs=1e-10)
                assert float(free[row, t]) == pytest.approx(-float(after_own[target]), abs=1e-10)
                assert bool(is_same[row, t]) == so_far
                own.append(int(after_own.argmax()))
                so_far = so_far and own[-1] == target


@given(st.integers(0, 1000))
def test_until_the_texts_differ_both_losses_are_one_number(seed: int) -> None:
    model = tiny_seq2seq(seed, encoder="lstm", decoder="lstm", attention="mlp", n_layers=1).eval()
    pair = pairs(seed, [4, 2, 3], [5, 5, 5])
    encoded = model.encode(pair.source, pair.mask)
    with torch.no_grad():  # the reference is what the model writes, but for one word
        read = write_own_inputs(model.target, encoded, pair.inputs, torch.ones_like(pair.inputs, dtype=torch.bool))
        targets = read.roll(-1, dims=1)
        targets[:, 2] = (targets[:, 2] + 1) % 11
    read[:, 1:] = targets[:, :-1]
    forced, free, is_same = losses(model, batch_of(pair._replace(inputs=read, targets=targets)))
    assert is_same.tolist() == [[True, True, True, False, False]] * 3
    torch.testing.assert_close(forced[is_same], free[is_same], rtol=0, atol=1e-10)
    assert (forced - free).abs()[~is_same].max() > 1e-6


def made_up(bleu: float = 31.25) -> Exposure:
    """Two texts of three and two words; the first is another from its second word on, the second is the reference."""
    return Exposure(
        forced=np.array([[1.0, 2.0, 0.5], [1.0, 0.5, NAN]]),
        free=np.array([[1.0, 2.0, 3.5], [1.0, 0.5, NAN]]),
        is_same=np.array([[True, True, False], [True, True, False]]),
        bleu=bleu,
    )


def test_what_is_read_off_the_losses_by_hand() -> None:
    e = made_up()
    assert e.gap == pytest.approx(3.0 / 5)
    assert e.after_drift() == (0.5, 3.5)
    assert e.p_same == 0.5
    assert e.places() == {0, 1}  # the third is reached by one text of two
    first, second = by_place([e])
    assert first == (1, 2, 1.0, 1.0, Spread(0.0, 0.0, 0.0), 1.0)
    assert second == (2, 2, 1.25, 1.25, Spread(0.0, 0.0, 0.0), 1.0)


def test_the_interval_of_a_gap_is_its_mean_and_two_standard_errors() -> None:
    free = np.array([[1.0], [3.0], [2.0], [2.0]])  # gaps 0, 2, 1, 1: mean 1, variance 2/3
    e = Exposure(np.ones((4, 1)), free, np.ones((4, 1), dtype=bool), 0.0)
    (row,) = by_place([e])
    half = 1.96 * (2 / 3 / 4) ** 0.5
    assert (row.gap.mean, row.gap.low, row.gap.high) == pytest.approx((1.0, 1.0 - half, 1.0 + half))


def test_a_text_that_never_differs_has_nothing_after_it() -> None:
    same = Exposure(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2), dtype=bool), 100.0)
    assert same.after_drift() is None
    assert same.gap == 0


def test_the_sentence_says_what_the_numbers_say() -> None:
    other = Exposure(np.full((2, 1), 3.0), np.full((2, 1), 3.25), np.ones((2, 1), dtype=bool), 4.0)
    assert exposure_sentence({"teacher forcing": figures_of([made_up()]), "free running": figures_of([other])}, 1) == (
        "Trained once: reading its own words in place of the true ones costs a model 0.60 nats a token with teacher "
        "forcing and 0.25 with free running; BLEU of their own texts is 31.2 and 4.0."
    )


def test_seeds_are_averaged_and_have_an_interval() -> None:
    found = [made_up(bleu=30.0), made_up(bleu=32.0)]
    sentence = exposure_sentence({"teacher forcing": figures_of(found)}, 2)
    assert sentence.startswith("Over 2 seeds (95% intervals in brackets): reading its own words")
    assert sentence.endswith("0.60 nats a token with teacher forcing; BLEU of its own texts is 31.0 "
                             "(18.3 to 43.7).")  # fmt: skip
    assert by_place(found)[1] == by_place(found[:1])[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"modes": ["techer"]}, "modes must be out of teacher, free, scheduled, not 'techer'. Did you mean 'teacher'?"),
        ({"modes": []}, "modes must name at least one"),
        ({"modes": ["free", "free"]}, "modes names free twice"),
        ({"d_model": 7}, "d_model must be even, half for each direction of the encoder, not 7."),
    ],
)
def test_settings_that_mean_nothing_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(RegardError, match=re.escape(said)):
        study_config("exposure", given)


# The study, at a tiny size

SMALL = ["n_steps=2", "d_model=8", "n_pairs=60", "n_texts=8", "n_seeds=1"]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tsv(tmp_path_factory: pytest.TempPathFactory, own_cache: None) -> Path:
    """Sixty pairs of words and the same backwards."""
    words = ["red", "green", "blue", "old", "new"]
    rows = [(a, b, c) for a in words for b in words for c in words[:3]]
    path = tmp_path_factory.mktemp("pairs") / "backwards.tsv"
    path.write_text("".join(f"{' '.join(row)}\t{' '.join(reversed(row))}\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def run(tsv: Path, tmp_path_factory: pytest.TempPathFactory) -> TranslationRun:
    given = {
        "data": {"train": str(tsv), "p_test": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "seq2seq", "d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_context": 8},
        "teaching": {"mode": "scheduled"},
        "train": {"max_steps": 2, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }
    made: TranslationRun = regard.train(given, out=tmp_path_factory.mktemp("runs") / "mine", is_tested=False)
    return made


def test_every_way_of_teaching_is_measured_on_the_same_texts(tmp_path: Path) -> None:
    found = regard.study("exposure", settings=SMALL, out=tmp_path / "e")
    assert len(found.finding.charts) == 3
    models = found.numbers["models"]
    assert [m["model"] for m in models] == ["teacher forcing", "scheduled sampling", "free running"]
    assert [m["n_texts"] for m in models] == [8, 8, 8]
    for m in models:
        first = m["by_place"][0]
        assert first["forced"] == pytest.approx(first["free"], abs=1e-5)  # before any word there is none of its own
        assert (first["n_texts"], first["p_same"], first["gap"]) == (8, 1.0, pytest.approx(0.0, abs=1e-5))
    assert found.sentence in (tmp_path / "e" / "report.html").read_text()
    assert (tmp_path / "e" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "e" / "numbers.json").read_text())["settings"]["n_pairs"] == 60


def test_the_same_study_gives_the_same_numbers_and_teaching_tells(tmp_path: Path, tsv: Path) -> None:
    settings = [*SMALL, "modes=[teacher, free]", f"data={tsv}"]
    first = regard.study("exposure", settings=settings, out=tmp_path / "a")
    again = regard.study("exposure", settings=settings, out=tmp_path / "b")
    assert first.numbers == again.numbers
    teacher, free = first.numbers["models"]
    assert teacher["forced"] != free["forced"]
    assert dict(first.finding.method)["Pairs"] == f"{tsv}, the part held out for test; 4 at most"


def test_runs_of_the_user_are_measured_as_they_are(tmp_path: Path, run: TranslationRun, tsv: Path) -> None:
    found = regard.study("exposure", runs=run.folder, out=tmp_path / "own")
    (model,) = found.numbers["models"]
    assert model["model"] == "mine (scheduled sampling)"
    loss = run.evaluate(is_translated=False)
    assert model["forced"] == pytest.approx(loss.nats_per_token, abs=1e-5)
    assert model["n_texts"] == loss.n_pairs
    assert set(found.settings) == {"data", "n_texts"}
    other = regard.study("exposure", runs=run.folder, settings=[f"data={tsv}", "n_texts=5"], out=tmp_path / "other")
    assert other.numbers["models"][0]["n_texts"] == 5


def test_pairs_that_are_too_long_are_left_out_and_told(tmp_path: Path, run: TranslationRun) -> None:
    long = tmp_path / "long.tsv"
    long.write_text("red green\tgreen red\n" + "red " * 9 + "\tred\n" + "old\told " + "new " * 7 + "\n")
    found = regard.study("exposure", runs=run.folder, settings=[f"data={long}"], out=tmp_path / "x")
    assert found.finding.notes == (
        "Held-out pairs left out, since they are longer than mine (scheduled sampling) reads: 2.",
    )
    long.write_text("red " * 9 + "\tred\n")
    with pytest.raises(RegardError, match="Every pair is longer than the 8 tokens that"):
        regard.study("exposure", runs=run.folder, settings=[f"data={long}"], out=tmp_path / "y")


def test_a_run_that_held_nothing_out_needs_pairs(tmp_path: Path, tsv: Path) -> None:
    given = {
        "data": {"train": str(tsv), "p_test": 0.0, "p_valid": 0.0},
        "model": {"name": "seq2seq", "d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 8},
        "tokenizer": {"kind": "char"},
        "train": {"max_steps": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    whole = regard.train(given, out=tmp_path / "whole", is_tested=False)
    with pytest.raises(RegardError, match=r"held out no pairs to measure on\. Name some with --set data=PAIRS"):
        regard.study("exposure", runs=whole.folder, out=tmp_path / "x")


def test_what_a_run_decides_cannot_be_set(tmp_path: Path, run: TranslationRun) -> None:
    with pytest.raises(RegardError, match="--set n_steps is about the models that the study makes"):
        regard.study("exposure", runs=run.folder, settings=["n_steps=3"], out=tmp_path / "x")


def test_a_language_model_is_refused(tmp_path: Path, tsv: Path) -> None:
    given = {
        "model": {"name": "rnn", "d_model": 4, "n_layers": 1},
        "tokenizer": {"kind": "char"},
        "train": {"max_steps": 1, "n_batch": 2, "n_context": 8},
        "checkpoint": {"has_tensorboard": False},
    }
    plain = tmp_path / "text.txt"
    plain.write_text(tsv.read_text())
    text = regard.train(given, data=str(plain), out=tmp_path / "lm", is_tested=False)
    with pytest.raises(RegardError, match="that predicts the next token of a text"):
        regard.study("exposure", runs=text.folder, out=tmp_path / "x")
