"""The study of copying: distances and means by hand, and the study at a tiny size."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.errors import RegardError
from regard.studies.copying import copying_sentence
from regard.studies.fits import Spread
from regard.studies.repeated_words import (
    ALL,
    NEW,
    RARE,
    SEEN,
    Losses,
    cut_distances,
    cut_passages,
    find_distances,
    mean_gap,
    mean_loss,
)

# Two passages of tokens 9 4 9 9 and 4 4 0 9, of which 0 is a mark; the first token of each is not predicted.
WINDOWS = np.array([[9, 4, 9, 9], [4, 4, 0, 9]])


def losses(name: str, nats: list[list[float]]) -> Losses:
    targets = WINDOWS[:, 1:]
    return Losses(name, np.array(nats), find_distances(WINDOWS)[:, 1:], targets != 0, targets >= 5, 10, "word")


def test_groups_and_distances_by_hand() -> None:
    found = losses("lstm", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert found.distances.tolist() == [[0, 2, 1], [1, 0, 0]]
    assert found.nats[found.select(NEW)].tolist() == [1.0, 6.0]
    assert found.nats[found.select(SEEN)].tolist() == [2.0, 3.0, 4.0]
    assert found.nats[found.select(RARE)].tolist() == [2.0, 3.0]
    assert found.nats[found.select(ALL)].tolist() == [1.0, 2.0, 3.0, 4.0, 6.0]  # the mark is no word
    assert found.nats[found.within(1, 1)].tolist() == [3.0, 4.0]


def test_means_are_over_seeds_or_of_one_training_over_passages() -> None:
    one, other = losses("a", [[1, 2, 3], [4, 5, 6]]), losses("a", [[1, 2, 3], [4, 5, 8]])
    both = mean_loss([one, other], [one.select(NEW)] * 2)
    assert both is not None
    assert both.mean == pytest.approx((3.5 + 4.5) / 2)
    alone = mean_loss([one], [one.select(NEW)])  # 1 in the first passage, 6 in the second
    assert alone is not None
    assert alone.mean == 3.5
    assert alone.low is not None
    assert alone.high is not None
    assert alone.low < 1 < 6 < alone.high
    assert mean_loss([one], [one.within(3, 4)]) is None


def test_a_gap_is_what_the_first_saves_at_the_same_places() -> None:
    ours, theirs = losses("pointer", [[3, 1, 1], [1, 1, 3]]), losses("lstm", [[2, 2, 2], [3, 9, 2]])
    gap = mean_gap([ours], [theirs], [ours.select(SEEN)])  # 1, 1 and 2
    assert gap is not None
    assert gap.mean == pytest.approx(4 / 3)
    new = mean_gap([ours], [theirs], [ours.select(NEW)])
    assert new is not None
    assert new.mean == -1.0


def test_the_sentence_says_what_the_numbers_say() -> None:
    gaps = {SEEN: Spread(0.5, 0.4, 0.6), RARE: Spread(1.5), NEW: Spread(-0.2, -0.3, -0.1), ALL: Spread(0.1, -0.1, 0.3)}
    assert copying_sentence(["pointer", "lstm"], {}, gaps, 3, "word") == (
        "Over 3 seeds (95% intervals in brackets): against lstm, pointer pays 0.50 (0.40 to 0.60) nats less for a word "
        "seen before in the passage, 1.5 nats less where that is a rare one, 0.20 (0.10 to 0.30) nats more for a new "
        "one, and about as much (a difference of -0.10, -0.30 to 0.10 nats) for all together."
    )
    alone = {"mine": {SEEN: Spread(2.0), NEW: Spread(6.0)}}
    assert copying_sentence(["mine"], alone, {}, 1, "token") == (
        "Trained once (95% intervals over passages in brackets): tokens seen before in a passage and new ones cost 2.0 "
        "and 6.0 in mine, in nats."
    )


def test_passages_lie_evenly_and_bins_double() -> None:
    assert cut_passages(np.arange(9), 4, 5).tolist() == [[0, 1, 2, 3], [5, 6, 7, 8]]
    assert cut_passages(np.arange(3), 4, 5).shape == (0, 4)
    assert cut_distances(1) == [(1, 1)]


# The study, at a tiny size

SMALL = ["n_steps=3", "d_model=8", "vocab_size=100", "n_texts=6", "n_tokens=24", "max_memory=8"]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def tales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "tales.txt"
    names = [a + b for a in ("ka", "lo", "mi") for b in ("ru", "ta", "ve", "zo")]
    path.write_text("\n\n".join(f"{a} met {b} . {b} asked {a} for bread ." for a in names for b in names) + "\n")
    return path


def test_pointer_and_lstm_are_measured_at_the_same_places(tmp_path: Path, tales: Path) -> None:
    found = regard.study("copying", settings=[*SMALL, "n_seeds=2", f"data={tales}"], out=tmp_path / "c")
    pointer, lstm = found.numbers["models"]
    assert (pointer["model"], lstm["model"]) == ("pointer", "lstm")
    assert abs(pointer["n_parameters"] - lstm["n_parameters"]) < 0.15 * lstm["n_parameters"]  # in steps of two
    gap = found.numbers["gap"]
    assert gap["of"] == ["pointer", "lstm"]
    for group in (SEEN, NEW, ALL):
        difference = lstm["groups"][group]["nats"] - pointer["groups"][group]["nats"]
        assert gap["groups"][group]["nats"] == pytest.approx(difference, abs=1e-9)
    assert gap["by_distance"][0]["from"] == 1
    assert len(found.finding.charts) == 2
    assert found.sentence in (tmp_path / "c" / "report.html").read_text()


def test_runs_of_the_user_are_measured_as_they_are(tmp_path: Path, tales: Path) -> None:
    given = {
        "data": {"train": str(tales)}, "tokenizer": {"kind": "char"},
        "model": {"name": "rnn", "d_model": 8, "n_layers": 1},
        "train": {"max_steps": 1, "n_batch": 2, "n_context": 8}, "checkpoint": {"has_tensorboard": False},
    }  # fmt: skip
    run = regard.train(given, out=tmp_path / "mine", is_tested=False)
    found = regard.study("copying", runs=run.folder, settings=["n_tokens=20", "n_texts=5"], out=tmp_path / "own")
    (model,) = found.numbers["models"]
    assert model["model"] == "mine (rnn)"
    assert found.numbers["gap"]["groups"] == {}
    assert "characters seen before in a passage and new ones cost" in found.sentence
    with pytest.raises(RegardError, match=r"and a passage has 900,001. Lower n_tokens"):
        regard.study("copying", runs=run.folder, settings=["n_tokens=900000"], out=tmp_path / "x")
