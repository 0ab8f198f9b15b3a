"""Models and vectors that a stranger made for other programs: only their own files are read, in little memory."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from tiny_bert import write_hf_bert
from torture.corpus import write_elmo

from regard import api, cli
from regard.cli.look import MAX_SEARCHED, _read_file
from regard.cli.terminal import command_line
from regard.data.labelled import _read_number
from regard.data.reading import BadLine
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.lens.cells import MAX_CHARS
from regard.models.trained_vectors import compose_vectors
from regard.models.word_vectors_config import Word2VecConfig
from regard.score.alignment import Alignment
from regard.serve.server import bind
from regard.tasks.table import TASKS, build_config
from regard.text.checking import check_ids
from regard.text.learning import word_tokenizer
from regard.untrusted.small_files import parse_yaml
from regard.weights.weight_files import list_weight_files

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
        (CELL, np.zeros((8, 24, 2), np.float32), r"it has the shape \(8, 24, 2\)"),
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


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face folder of BERT with a head, as it was written years ago."""
    folder = tmp_path_factory.mktemp("bert") / "hf"
    model = write_hf_bert(folder, kind="ForSequenceClassification")
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def write_pickle(folder: Path, program: bytes) -> None:
    """Put another program into a .bin."""
    with zipfile.ZipFile(folder / "pytorch_model.bin") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, program if name.endswith("data.pkl") else data)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (b"\x80\x02" + b"(t" * 400_000 + b".", "holds no dict of tensors"),  # was searched from its beginning each time
        (b"\x80\x02})" + b"\x85" * 200_000 + b"K\x01s.", "a name that is no text"),  # ended the process
    ],
)
def test_a_program_in_a_bin_neither_hangs_nor_ends_the_process(
    bert: Path, tmp_path: Path, program: bytes, why: str
) -> None:
    shutil.copytree(bert, tmp_path / "hf")
    write_pickle(tmp_path / "hf", program)
    with pytest.raises(RegardError, match=why):
        import_folder(tmp_path / "hf")


def test_tensors_that_share_their_numbers_take_no_memory_beyond_the_file(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "hf")
    numbers = torch.zeros(1000, 1000)
    torch.save({f"layer.{i}": numbers for i in range(1000)}, tmp_path / "hf" / "pytorch_model.bin")
    with pytest.raises(RegardError, match="its tensors together are many times larger than it is"):
        import_folder(tmp_path / "hf")


def test_a_bin_that_is_a_pipe_is_refused(bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "hf")
    (tmp_path / "hf" / "pytorch_model.bin").unlink()
    os.mkfifo(tmp_path / "hf" / "pytorch_model.bin")
    with pytest.raises(RegardError, match="is no regular file but a pipe"):
        import_folder(tmp_path / "hf")


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"num_hidden_layers": 10**7}, "The model has more than"), ({"hidden_size": 12 * 10**5}, "must be")],
)
def test_layers_of_a_folder_are_compared_before_vectors_are_computed(
    bert: Path, tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    shutil.copytree(bert, tmp_path / "hf")
    config = json.loads((bert / "config.json").read_text())
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(RegardError, match=why):
        api.embed(tmp_path / "hf", ["the cat"], tmp_path / "out.npz")
    with pytest.raises(RegardError, match=why):
        import_folder(tmp_path / "hf")


def test_a_run_with_a_saved_state_reads_no_vectors_again(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("the cat sat on the mat\n" * 200)
    (tmp_path / "my.vec").write_text("2 8\nthe" + " 1" * 8 + "\ncat" + " 2" * 8 + "\n")
    given = {
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "lstm", "d_model": 8, "n_layers": 1},
        "train": {"max_steps": 2, "n_batch": 2, "n_context": 8, "eval_every": 2, "vectors": str(tmp_path / "my.vec")},
        "checkpoint": {"has_tensorboard": False},
    }
    api.train(given, data=str(tmp_path / "my.txt"), out=tmp_path / "run")
    (tmp_path / "my.vec").unlink()
    run = api.train(out=tmp_path / "run", resume=True, settings=["train.max_steps=4"])
    assert run.config.train.vectors == str(tmp_path / "my.vec")


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
    with pytest.raises(RegardError, match=r"--host .* is empty here; 0\.0\.0\.0 means all"):
        bind("", 0)


def test_what_was_typed_is_shown_on_a_page_whatever_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["regard", "next", "--out", "\udcff\x1b[2J"])
    assert command_line().encode() == b"regard next --out '\\udcff\\x1b[2J'"


def test_a_beam_without_end_and_memory_that_torch_does_not_find_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RegardError, match="beam must be"):
        BeamConfig(beam=2**63)
    monkeypatch.setattr(cli, "app", lambda: torch.empty(2**58))
    with pytest.raises(SystemExit):
        cli.main()
    assert "this needs more memory than there is" in capsys.readouterr().err


def test_half_a_character_in_yaml_is_refused() -> None:
    with pytest.raises(ValueError, match="half a character"):
        parse_yaml('path: "\\uD800"')
    assert parse_yaml('path: "\\u00e9"') == {"path": "é"}


def test_an_index_of_shards_names_files_only(tmp_path: Path) -> None:
    for wrong in ({"a": "x.safetensors", "b": 1}, {"a": []}, {"a": "../x.safetensors"}):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": wrong}))
        with pytest.raises(RegardError, match="must have a weight_map from tensors to names of files"):
            list_weight_files(tmp_path)


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


@pytest.mark.parametrize("setting", ["train.n_batch", "tokenizer.vocab_size"])
def test_a_size_beyond_any_machine_is_refused_before_memory_is_taken(setting: str) -> None:
    section, key = setting.split(".")
    with pytest.raises(RegardError, match=rf"{key} must be between \d+ and 16,777,216, not 9223372036854775808"):
        api.plan({"model": {"name": "lstm"}, section: {key: 2**63}}, data="python-docs")


def test_a_context_in_superscript_is_one_sentence(regard, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "few.txt").write_text("the cat sat on the mat.\n" * 40)
    done = regard("compare", "ngram", "--data", tmp_path / "few.txt", "--context", "²", "--out", tmp_path / "out")
    assert done.code == 2
    assert "--context takes a number of tokens from 2 on, or own, not '²'" in done.err


def test_an_export_needs_a_name(lstm_run: Path) -> None:
    with pytest.raises(RegardError, match=r"'\.' is a folder that is there; give the name of what is to be written"):
        api.export(lstm_run, ".", force=True)


def test_nothing_is_drawn_into_a_run(regard, lstm_run: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = regard("next", lstm_run, "the cat", "--out", lstm_run, "--force")
    assert done.code == 2
    assert "is a run, and nothing else is drawn into it" in done.err.replace("\n", " ")


def test_vectors_of_other_words_than_the_tokenizers_are_refused() -> None:
    tokenizer = word_tokenizer(["<eos>", "<unk>", "cat", "dog"])
    with pytest.raises(RegardError, match=r"The tokenizer has 4 words, and there are vectors of 3"):
        compose_vectors(Word2VecConfig(), {"words": torch.zeros(3, 2)}, tokenizer)


def test_vectors_that_are_not_there_are_one_sentence() -> None:
    tokenizer = word_tokenizer(["<eos>", "<unk>", "cat"])
    with pytest.raises(RegardError, match=r"have no 'words', which these vectors are made of"):
        compose_vectors(Word2VecConfig(), {"vectors": torch.zeros(3, 2)}, tokenizer)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_labels_that_a_run_lacks_are_one_sentence(task: str) -> None:
    config = build_config({"task": task, "model": {"name": "lstm"}, "data": {"train": "few.tsv"}})
    with pytest.raises(RegardError, match=r"config\.yaml names no labels \(head\.labels\)"):
        TASKS[task].build(config, (word_tokenizer(["<eos>", "<unk>"]),))


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_head_without_any_label_is_refused(task: str) -> None:
    given = {"task": task, "model": {"name": "lstm"}, "data": {"train": "few.tsv"}, "head": {"labels": []}}
    with pytest.raises(RegardError, match=r"head\.labels must name one label or more"):
        build_config(given)


@pytest.mark.parametrize("given", [7, "BertModel", {"a": 1}, [None]])
def test_architectures_that_are_no_list_of_names_are_one_sentence(bert: Path, tmp_path: Path, given: Any) -> None:
    shutil.copytree(bert, tmp_path / "hf")
    config = json.loads((bert / "config.json").read_text())
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config | {"architectures": given}))
    with pytest.raises(RegardError, match=r'has "architectures": .*, which must be a list of names'):
        import_folder(tmp_path / "hf")


def test_a_label_beyond_all_numbers_is_none() -> None:
    found = _read_number(10**400)
    assert isinstance(found, BadLine)
    assert "is no number" in found.why
