"""ELMo's published files: the original's equations written out, and the vectors that the original program gave."""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard import api
from regard.errors import RegardError
from regard.models.elmo import AHEAD, BACK, DIRECTIONS, Elmo
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import word_tokenizer
from regard.training.weights import load_weights
from regard.weights.elmo import read_elmo

FIXTURE = Path(os.environ.get("REGARD_DATA", "absent")) / "elmo_fixture"
H, P, E = 6, 4, 3
OPTIONS = {
    "lstm": {
        "cell_clip": 0.5, "proj_clip": 0.4, "use_skip_connections": True, "n_layers": 2, "projection_dim": P, "dim": H
    },
    "char_cnn": {
        "embedding": {"dim": E}, "filters": [[1, 2], [3, 4]], "n_highway": 1, "n_characters": 262,
        "max_characters_per_token": 7, "activation": "relu",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model in the original's files."""
    path, draws = tmp_path_factory.mktemp("elmo"), np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "char_embed": (261, E),
        "CNN/W_cnn_0": (1, 1, E, 2), "CNN/b_cnn_0": (2,), "CNN/W_cnn_1": (1, 3, E, 4), "CNN/b_cnn_1": (4,),
        "CNN_high_0/W_carry": (6, 6), "CNN_high_0/b_carry": (6,),
        "CNN_high_0/W_transform": (6, 6), "CNN_high_0/b_transform": (6,),
        "CNN_proj/W_proj": (6, P), "CNN_proj/b_proj": (P,),
    }  # fmt: skip
    for way in (0, 1):
        for layer in (0, 1):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * P, 4 * H), f"{cell}/B": (4 * H,), f"{cell}/W_P_0": (H, P)}
    with h5py.File(path / "my_weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            file[name] = draws.normal(size=shape).astype(np.float32)
    (path / "my_options.json").write_text(json.dumps(OPTIONS))
    return path


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 / (1 + np.exp(-x)))


def original(path: Path, sentence: list[str]) -> NDArray[Any]:
    """The states [→h; ←h] of both layers, (2, T, 2 P), by the original program's equations, in float64."""
    with h5py.File(path / "my_weights.hdf5", "r") as file:
        weights = {}
        file.visititems(
            lambda name, item: weights.update({name: item[...].astype(float)} if hasattr(item, "shape") else {})
        )

    def characters(word: str) -> list[int]:
        marks = {"<S>": [256], "</S>": [257]}.get(word, list(word.encode())[:5])
        return ([258, *marks, 259] + [260] * 7)[:7]

    def embed(word: str) -> NDArray[Any]:
        c = weights["char_embed"][characters(word)]  # (7, E)
        found = []
        for i, width in enumerate((1, 3)):
            W, b = weights[f"CNN/W_cnn_{i}"][0], weights[f"CNN/b_cnn_{i}"]
            found.append(
                np.max([np.einsum("ke,ken->n", c[t : t + width], W) + b for t in range(7 - width + 1)], axis=0)
            )
        y = np.maximum(np.concatenate(found), 0)
        high = "CNN_high_0"
        carry = sigmoid(y @ weights[f"{high}/W_carry"] + weights[f"{high}/b_carry"])
        transform = np.maximum(y @ weights[f"{high}/W_transform"] + weights[f"{high}/b_transform"], 0)
        y = carry * transform + (1 - carry) * y
        return np.asarray(y @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"])

    states = []
    for way, words in enumerate((["<S>", *sentence], ["</S>", *sentence[::-1]])):
        inputs, layers = [embed(word) for word in words], []
        for layer in (0, 1):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            h, c, outputs = np.zeros(P), np.zeros(H), []
            for x in inputs:
                i, j, f, o = np.split(np.concatenate([x, h]) @ weights[f"{cell}/W_0"] + weights[f"{cell}/B"], 4)
                c = np.clip(sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j), -0.5, 0.5)
                h = np.clip((sigmoid(o) * np.tanh(c)) @ weights[f"{cell}/W_P_0"], -0.4, 0.4)
                outputs.append(h + x if layer else h)
            inputs = outputs
            layers.append(np.stack(outputs[1:] if way == 0 else outputs[:0:-1]))
        states.append(np.stack(layers))
    return np.concatenate(states, axis=-1)


def load(path: Path, reads_tokens: bool = False) -> tuple[Elmo, ExtendedVocabulary]:
    config, words, tensors = read_elmo(path, reads_tokens)
    model = Elmo(config, len(words)).eval()
    load_weights(model, tensors)
    vocabulary = ExtendedVocabulary(word_tokenizer(words))
    model.learn_words(vocabulary)
    return model, vocabulary


def test_vectors_are_those_of_the_original_equations(folder: Path) -> None:
    model, words = load(folder)
    model.double()
    sentence = "Don 't congratulate Zoë !"
    ids = torch.from_numpy(words.encode(sentence))[None]
    states = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    found = torch.stack([state[0] for state in states[1:]]).detach().numpy()
    np.testing.assert_allclose(found, original(folder, sentence.split()), rtol=0, atol=1e-12)


def test_an_imported_folder_is_a_run_that_gives_vectors(folder: Path, tmp_path: Path) -> None:
    run: Any = api.import_run(folder, tmp_path / "run")
    vectors = run.embed("A wug sat")[0]
    assert vectors.words == ("A", "wug", "sat")
    expected = original(folder, ["A", "wug", "sat"])
    np.testing.assert_allclose(vectors.layers[1:], expected, rtol=0, atol=1e-5)
    with pytest.raises(RegardError, match="came without a softmax"):
        run.score("A wug sat")


def test_files_that_do_not_fit_are_refused(folder: Path, tmp_path: Path) -> None:
    def write(options: Any) -> Path:
        (tmp_path / "options.json").write_text(json.dumps(options))
        (tmp_path / "weights.hdf5").write_bytes((folder / "my_weights.hdf5").read_bytes())
        return tmp_path

    with pytest.raises(RegardError, match=r"is no options.json of ELMo: KeyError\('lstm'\)"):
        read_elmo(write({}))
    deeper = {**OPTIONS, "lstm": {**OPTIONS["lstm"], "n_layers": 3}}
    with pytest.raises(RegardError, match="has no RNN_0/RNN/MultiRNNCell/Cell2/LSTMCell/W_0 of 8 x 24 numbers"):
        read_elmo(write(deeper))
    with pytest.raises(RegardError, match="n_characters 90"):
        read_elmo(write({**OPTIONS, "char_cnn": {**OPTIONS["char_cnn"], "n_characters": 90}}))
    with pytest.raises(RegardError, match=r"must have one file \*vocab\*.txt, and has none"):
        read_elmo(write(OPTIONS), reads_tokens=True)
    (tmp_path / "weights.hdf5").write_bytes(b"nothing")
    with pytest.raises(RegardError, match="is no whole HDF5 file"):
        read_elmo(tmp_path)
    with pytest.raises(RegardError, match="is no folder of ELMo"):
        read_elmo(tmp_path / "elsewhere")


def read_on(model: Elmo, ids: Tensor, states: dict[str, Any]) -> Tensor:
    """The last layer's vectors of one sentence, after those before it; the original carries its state."""
    found = []
    for number, way in enumerate(DIRECTIONS):
        order = ids if way == AHEAD else ids.flip(1)
        rows = model.rows_of(torch.nn.functional.pad(order, (1, 0)), way)
        rows = torch.nn.functional.pad(rows, (0, 1), value=1 - number)  # and the other end of the sentence
        outputs, states[way] = model.read(model.embed(rows)[None], (way,), states[way])
        found.append(outputs[-1][0, :, 1:-1] if way == AHEAD else outputs[-1][0, :, 1:-1].flip(1))
    return torch.cat(found, dim=-1)[0]


@pytest.mark.data
@pytest.mark.skipif(not FIXTURE.is_dir(), reason="needs elmo_fixture under REGARD_DATA")
@pytest.mark.parametrize("reads_tokens", [False, True])
def test_vectors_are_those_that_the_original_program_wrote(reads_tokens: bool) -> None:
    """All 30 sentences in three rows of ten, each row with its state carried; and the first of each, padded."""
    model, words = load(FIXTURE, reads_tokens)
    rows = json.loads((FIXTURE / "sentences.json").read_text())
    texts = [[torch.from_numpy(words.encode(sentence)) for sentence in row] for row in rows]
    tokens = torch.nn.utils.rnn.pad_sequence([row[0] for row in texts], batch_first=True, padding_value=-1)
    with torch.no_grad():
        together = model.encode(tokens, tokens >= 0)[-1]
    for number, row in enumerate(texts):
        states: dict[str, Any] = {AHEAD: None, BACK: None}
        with h5py.File(FIXTURE / f"lm_embeddings_{number}.hdf5", "r") as file, torch.no_grad():
            expected = [np.concatenate(list(file[str(i)][...]), axis=-1) for i in range(10)]
            for ids, vectors in zip(row, expected, strict=True):
                np.testing.assert_allclose(read_on(model, ids[None], states).numpy(), vectors, rtol=0, atol=3e-6)
        np.testing.assert_allclose(together[number, : len(row[0])].numpy(), expected[0], rtol=0, atol=3e-6)
