"""Models and vectors that a stranger made for other programs: only their own files are read, in little memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from torture.corpus import write_elmo

from regard import api
from regard.cli.look import MAX_SEARCHED, _read_file
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.lens.cells import MAX_CHARS
from regard.score.alignment import Alignment
from regard.serve.server import bind
from regard.text.checking import check_ids

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"


@pytest.fixture
def elmo(tmp_path: Path) -> Path:
    write_elmo(tmp_path / "elmo")
    return tmp_path / "elmo"


def replace_array(folder: Path, name: str, value: Any = None, **described: Any) -> None:
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file[name]
        if described:
            file.create_dataset(name, **described)
        else:
            file[name] = value


def import_folder(folder: Path) -> None:
    api.import_run(folder, folder.with_name(f"run-{len(list(folder.parent.iterdir()))}"))


def test_numbers_of_elmo_are_read_from_its_own_file_only(elmo: Path, tmp_path: Path) -> None:
    import_folder(elmo)
    secret = tmp_path / "passwords"
    secret.write_bytes(b"hunter2!" * 500)
    replace_array(elmo, "char_embed", shape=(261, 3), dtype="f4", external=[(str(secret), 0, 261 * 12)])
    with pytest.raises(RegardError, match="its numbers lie in another file, and no other is read"):
        import_folder(elmo)
    write_elmo(tmp_path / "other")
    replace_array(elmo, "char_embed", h5py.ExternalLink(str(tmp_path / "other" / "weights.hdf5"), "/char_embed"))
    with pytest.raises(RegardError, match="it is a link, and links may lead to other files"):
        import_folder(elmo)
    layout = h5py.VirtualLayout(shape=(261, 3), dtype="f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other" / "weights.hdf5"), "char_embed", shape=(261, 3))
    with h5py.File(elmo / "weights.hdf5", "a") as file:
        del file["char_embed"]
        file.create_virtual_dataset("char_embed", layout)
    with pytest.raises(RegardError, match="its numbers lie in another file"):
        import_folder(elmo)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("char_embed", "a text", "it is no array of numbers"),
        ("char_embed", np.zeros((1,), dtype=[("a", "i4"), ("b", "f4")]), "it is no array of numbers"),
        (CELL, np.float32(3), f"has no {CELL} of 8 x 24 numbers"),
        (CELL, np.zeros((8, 23), np.float32), r"it has the shape \(8, 23\)"),
    ],
)
def test_arrays_of_elmo_that_are_none_are_one_sentence(elmo: Path, name: str, value: Any, why: str) -> None:
    replace_array(elmo, name, value)
    with pytest.raises(RegardError, match=why):
        import_folder(elmo)


@pytest.mark.parametrize(
    ("section", "changes", "why"),
    [
        ("char_cnn", {"filters": [[1, 2], [10**9, 4]]}, "they have 1 to 100"),
        ("lstm", {"dim": 10**9, "projection_dim": 10**8}, "numbers: it has the shape"),
        ("lstm", {"n_layers": 10**8}, "there is none of this name"),
    ],
)
def test_options_of_elmo_take_no_memory_before_the_arrays_are_compared(
    elmo: Path, section: str, changes: dict[str, Any], why: str
) -> None:
    options = json.loads((elmo / "options.json").read_text())
    options[section] |= changes
    (elmo / "options.json").write_text(json.dumps(options))
    with pytest.raises(RegardError, match=why):
        import_folder(elmo)


def test_an_array_of_terabytes_in_a_kilobyte_is_refused(tmp_path: Path) -> None:
    write_elmo(tmp_path / "elmo", has_words=True)
    many = {"shape": (2**40, 4), "dtype": "f4", "chunks": (2**10, 4), "compression": "gzip"}
    replace_array(tmp_path / "elmo", "embedding", **many)
    with pytest.raises(RegardError, match="describes many times more numbers than it holds"):
        import_folder(tmp_path / "elmo")


def test_weights_that_are_a_pipe_are_refused(elmo: Path) -> None:
    (elmo / "weights.hdf5").unlink()
    os.mkfifo(elmo / "weights.hdf5")
    with pytest.raises(RegardError, match="is no regular file but a pipe"):
        import_folder(elmo)


def test_a_page_of_a_text_without_end_is_refused(lstm_run: Path) -> None:
    with pytest.raises(RegardError, match=r"has 200,000 characters, and a page shows at most 20,000.*--last 1000"):
        api.look(lstm_run, "word " * 40_000)


def test_a_text_to_search_is_read_as_far_as_it_is_searched(tmp_path: Path) -> None:
    assert MAX_SEARCHED == MAX_CHARS
    with pytest.raises(RegardError, match="is no regular file"):
        _read_file(Path("/dev/zero"))
    (tmp_path / "large.txt").write_bytes(b"the cat sat. " * 100_000 + b"\xff")  # what is not read may be anything
    assert len(_read_file(tmp_path / "large.txt") or "") >= MAX_SEARCHED


def test_links_of_any_number_of_digits_are_one_sentence() -> None:
    with pytest.raises(RegardError, match="is no link"):
        Alignment.of("9" * 5000 + "-0")


def test_a_vocabulary_with_a_token_without_a_number_is_one_sentence() -> None:
    with pytest.raises(RegardError, match="gives every token a whole number from 0 on, and gives one None"):
        check_ids({"the": 0, "cat": None}, "tokenizer.json")


def test_a_host_that_no_machine_has_is_one_sentence() -> None:
    with pytest.raises(RegardError, match="--host is the name or the address of this machine"):
        bind("\udcff", 0)


def test_a_length_penalty_that_overflows_is_refused() -> None:
    with pytest.raises(RegardError, match="alpha"):
        BeamConfig(alpha=1e18)


def test_a_preview_of_a_word_of_a_million_characters_is_short(regard, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(("a" * 200_000, "b" * 200_000, "c" * 200_000)) * 40)
    settings = ("tokenizer.kind=word", "model.d_model=8", "train.n_context=2", "data.p_valid=0.3")
    given = [word for one in settings for word in ("--set", one)]
    done = regard("train", "--dry-run", "--model", "lstm", "--data", tmp_path / "words.txt", *given)
    assert done.code == 0, done.err
    assert len(done.out) < 60_000
