"""ELMo as what a task reads its texts through."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard import api
from regard.errors import RegardError
from regard.models.elmo import Elmo

SMALL = {"d_model": 8, "d_hidden": 12, "d_character": 4, "filters": [4, 8], "max_characters": 10}
QUICK: dict[str, Any] = {
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"every_seconds": None, "has_tensorboard": False},
}
SENTENCES = [f"the {noun} {verb} here" for noun in ("cat", "dog", "cow") for verb in ("sat", "ran", "slept", "ate")]


@pytest.fixture(scope="module")
def elmo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elmo")
    (folder / "my.txt").write_text("\n".join(SENTENCES * 4) + "\n")
    recipe = {
        "model": {"name": "elmo", **SMALL},
        "train": {"max_steps": 4, "eval_every": 2, "n_batch": 4, "n_context": 8},
        **QUICK,
    }
    api.train(recipe, data=str(folder / "my.txt"), out=folder / "run", is_tested=False)
    return folder / "run"


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words that ELMo never saw: what they are is in their last letters alone."""
    path = tmp_path_factory.mktemp("tags") / "my.conll"
    lines = []
    for i in range(60):
        words = [(f"w{i}{'ing' if (i + k) % 3 else 'X'}", "V" if (i + k) % 3 else "N") for k in range(4)]
        lines += [*(f"{word} {tag}" for word, tag in words), ""]
    path.write_text("\n".join(lines) + "\n")
    return path


def train(elmo: Path, tagged: Path, out: Path, layers: str, n_steps: int = 120) -> Any:
    recipe = {
        "task": "tagging",
        "encoder_from": str(elmo),
        "encoder": {"frozen": True, "layers": layers},
        "optimizer": {"lr": 0.1},
        "train": {"max_steps": n_steps, "eval_every": n_steps, "n_batch": 16},
        **QUICK,
    }
    return api.train(recipe, data=str(tagged), out=out)


def test_a_frozen_elmo_tells_words_apart_that_it_never_saw(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    run = train(elmo, tagged, tmp_path / "tags", "mix")
    assert isinstance(run.model.encoder, Elmo)
    before, after = api.load(elmo).model.state_dict(), run.model.encoder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    test = run.ending.test
    accuracy = {figure.name: figure.value for figure in test.figures}["accuracy, %"]
    assert accuracy > 95  # by <unk> alone every word would look the same: 67
    mixed = [note for note in test.notes if "mix of layers" in note]
    assert len(mixed) == 1
    assert "of the embeddings" in mixed[0]
    items = ["w999ing w999X"]
    assert [p.to_dict() for p in api.load(run.folder).predict(items)] == [p.to_dict() for p in run.predict(items)]


def test_the_vectors_of_texts_go_into_a_file_and_unknown_words_have_their_own(elmo: Path, tmp_path: Path) -> None:
    """It raised where no task had told ELMo how words are spelled."""
    texts = ["the dog Zorblatt", "the dog Quimby"]
    api.embed(elmo, texts, tmp_path / "v.npz", pool="none")
    found = np.load(tmp_path / "v.npz")
    run = api.load(elmo)
    expected = [words.layers[-1] for words in run.embed(texts)]
    assert found["lengths"].tolist() == [len(vectors) for vectors in expected]
    np.testing.assert_allclose(found["vectors"], np.concatenate(expected), atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 1e-6


def test_one_layer_alone_is_described_by_no_mix(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    run = train(elmo, tagged, tmp_path / "tags", "last", n_steps=2)
    assert not any("mix of layers" in note for note in run.ending.test.notes)


def test_a_tagger_reads_elmo_beside_vectors_and_characters_of_its_own(elmo: Path, tagged: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "my.vec"
    vectors.write_text("3 4\nw1ing 1 0 0 0\nw2x 0 1 0 0\nnever 0 0 1 0\n")
    recipe = {
        "task": "tagging",
        "encoder_from": str(elmo),
        "encoder": {"frozen": True, "layers": "mix"},
        "words": {"d_character": 4, "filters": [2, 3], "max_characters": 10},
        "mixer": {"d_model": 8, "p_dropout": 0.1},
        "head": {"has_crf": True},
        "optimizer": {"lr": 0.02},
        "train": {"max_steps": 30, "eval_every": 15, "n_batch": 16, "vectors": str(vectors)},
        **QUICK,
    }
    run = api.train(recipe, data=str(tagged), out=tmp_path / "tags", is_tested=False)
    words = run.model.words
    assert words.config.n_fixed >= 1
    assert words.fixed.abs().sum() > 0
    vectors.unlink()  # a run has all that it needs
    text = "w1ing NEVER blick wug"
    (there,), (here,) = (list(each.predict([text])) for each in (run, api.load(tmp_path / "tags")))
    assert there == here
    assert 0 < here.probability <= min(here.probabilities)
    longer = {**recipe, "train": {**recipe["train"], "max_steps": 40}}
    api.train(longer, data=str(tagged), out=tmp_path / "tags", resume=True, is_tested=False)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"words": {}}, "Set mixer"),
        ({"encoder_from": None, "encoder": {}, "model": {"name": "lstm"}, "mixer": {}}, "none is named. Leave it out"),
        (
            {"encoder_from": None, "encoder": {}, "model": {"name": "lstm"}, "words": {}, "tokenizer": {"kind": "bpe"}},
            "tokenizer.kind is bpe. Set it to word",
        ),
    ],
)
def test_words_and_layers_without_a_place_are_refused(
    elmo: Path, tagged: Path, tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    recipe = {"task": "tagging", "encoder_from": str(elmo), "encoder": {"frozen": True}, **QUICK, **changes}
    with pytest.raises(RegardError, match=why):
        api.train(recipe, data=str(tagged), out=tmp_path / "tags")
