"""Files that Regard did not write are never written over, and a run folder from elsewhere leads nowhere else."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

import regard
from regard.data.recipes import copy_recipes
from regard.errors import RegardError
from regard.files import write_atomically, write_folder_atomically
from regard.report.captions import CaptionDrawing
from regard.report.page_folder import begin_page, check_page_folder
from regard.training.weights import read_tensors

GIVEN: dict[str, Any] = {
    "tokenizer": {"kind": "char"},
    "model": {"name": "gru", "d_model": 8, "n_layers": 1},
    "train": {"max_steps": 2, "n_batch": 2, "n_context": 8, "eval_every": 1},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}


@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "tokenizer.json", "run.json", ".env", "state"])
def test_a_folder_with_files_of_the_user_is_refused(text: Path, ngram_run: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    given = {**GIVEN, "data": {"train": str(text)}}
    with pytest.raises(RegardError, match=r"is not empty \(it holds .*choose another folder, or add --force"):
        regard.train(given, out=tmp_path)
    words = tmp_path.with_name(f"{tmp_path.name}.arpa")
    regard.api.export(ngram_run, words)
    with pytest.raises(RegardError, match="is not empty"):
        regard.api.import_run(words, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_force_writes_beside_files_of_the_user_and_never_over_a_run(text: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    given = {**GIVEN, "data": {"train": str(text)}}
    regard.train(given, out=tmp_path, force=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(RegardError, match="already holds a run"):
        regard.train(given, out=tmp_path, force=True)


def test_a_run_that_was_killed_before_its_config_is_begun_again(text: Path, tmp_path: Path) -> None:
    for name in (".lock", "tokenizer.json", ".partial-run.json-1-ab"):
        (tmp_path / name).touch()
    regard.train({**GIVEN, "data": {"train": str(text)}}, out=tmp_path)
    assert (tmp_path / "model.safetensors").exists()


def test_an_export_writes_over_no_file(regard: Callable[..., Any], ngram_run: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.arpa"
    words.write_text("mine")
    refused = regard("export", ngram_run, words)
    assert (refused.code, "is there already. Choose another name, or add --force" in refused.err) == (2, True)
    assert words.read_text() == "mine"
    assert regard("export", ngram_run, words, "--force").code == 0
    assert "\\data\\" in words.read_text()


def test_an_export_writes_no_tokenizer_over_a_file(regard: Callable[..., Any], ngram_run: Path, tmp_path: Path) -> None:
    words, beside = tmp_path / "words.arpa", tmp_path / "words.arpa.tokenizer.json"
    beside.write_text("mine")
    refused = regard("export", ngram_run, words)
    assert (refused.code, f"'{beside}' is there already" in refused.err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == [beside.name]
    assert regard("export", ngram_run, words, "--force").code == 0
    words.unlink()  # as if it had been killed before it wrote the counts
    assert regard("export", ngram_run, words).code == 0


def test_an_export_takes_the_place_of_an_earlier_one_and_of_no_other_folder(
    regard: Callable[..., Any], transformer_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "gpt2"
    assert regard("export", transformer_run, folder).code == 0
    refused = regard("export", transformer_run, folder)
    assert (refused.code, "is written again with --force" in refused.err) == (2, True)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").chmod(0o600)
    assert regard("export", transformer_run, folder, "--force").code == 0
    assert (folder / "model.safetensors").read_bytes() == weights
    assert [path.name for path in tmp_path.iterdir()] == ["gpt2"]
    (folder / "notes.txt").write_text("mine")
    refused = regard("export", transformer_run, folder, "--force")
    assert (refused.code, "files that Regard did not write (notes.txt)" in refused.err) == (2, True)
    (folder / "notes.txt").unlink()
    trained = {name: 2 * tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(trained, folder / "model.safetensors", metadata={"format": "pt"})  # by another program
    assert "is there already" in regard("export", transformer_run, folder, "--force").err
    assert [path.name for path in tmp_path.iterdir()] == ["gpt2"]


def test_an_export_that_has_changed_is_imported_with_a_word(
    regard: Callable[..., Any], transformer_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "gpt2"
    assert regard("export", transformer_run, folder).code == 0
    said = "is not as Regard exported it (regard-export.json has another checksum)"
    for n, place in enumerate((None, -3)):  # the second: a bit of one weight
        if place is not None:
            whole = bytearray((folder / "model.safetensors").read_bytes())
            whole[place] ^= 1
            (folder / "model.safetensors").write_bytes(whole)
        done = regard("import", folder, "--out", tmp_path / f"run{n}")
        assert (done.code, said in " ".join((done.out + done.err).split())) == (0, place is not None)
    (folder / "regard-export.json").write_text("[]")
    done = regard("import", folder, "--out", tmp_path / "other")
    assert (done.code, said in " ".join((done.out + done.err).split())) == (0, False)


def test_pages_are_drawn_over_no_file_of_the_user(
    regard: Callable[..., Any], ngram_run: Path, lstm_run: Path, tmp_path: Path
) -> None:
    vectors, few = tmp_path / "few.vec", ("some", "more", "good", "words")
    vectors.write_text("4 2\n" + "".join(f"{word} {i} {i * i}\n" for i, word in enumerate(few)))
    drawn: dict[str, list[Any]] = {
        "index.html": ["look", lstm_run, "--text", "the cat", "--view", "surprise"],
        "report.html": ["vectors", "map", vectors],
        "look.json": ["next", ngram_run, "the cat"],
    }
    for name, words in drawn.items():
        folder = tmp_path / words[0]
        folder.mkdir()
        (folder / name).write_text("mine")
        refused = regard(*words, "--out", folder)
        assert (refused.code, f"holds files that Regard did not draw ({name})" in refused.err) == (2, True)
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, "mine")]
        assert regard(*words, "--out", folder, "--force").code == 0
        assert (folder / name).read_text() != "mine"
        assert regard(*words, "--out", folder).code == 0, "a page of ours is drawn anew"


def test_a_page_is_there_first_so_that_a_killed_command_can_draw_again(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    begin_page(folder)
    (folder / "look.json").touch()
    (folder / ".partial-attention.png-1-ab").touch()
    check_page_folder(folder)
    (folder / "index.html").unlink()
    with pytest.raises(RegardError, match=r"did not draw \(look.json\)"):
        check_page_folder(folder)
    check_page_folder(folder, force=True)


def test_an_import_that_was_killed_before_its_config_is_made_again(
    ngram_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tmp_path / "words.arpa"
    regard.api.export(ngram_run, words)
    whole = regard.api.import_run(words, tmp_path / "whole").folder
    with monkeypatch.context() as patch:
        patch.setattr("regard.run.folder.write_config", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            regard.api.import_run(words, tmp_path / "again")
    for name in (".lock", ".partial-model.safetensors-1-ab"):
        (tmp_path / "again" / name).touch()
    again = regard.api.import_run(words, tmp_path / "again").folder
    assert sorted(path.name for path in again.iterdir()) == sorted(path.name for path in whole.iterdir())
    assert (again / "run.json").read_bytes() == (whole / "run.json").read_bytes()
    assert not regard.api.check(again).is_damaged


def test_recipes_that_were_copied_in_part_are_copied_to_the_end(tmp_path: Path) -> None:
    first, *others = copy_recipes(None, tmp_path)
    others[0].unlink()
    assert len(copy_recipes(None, tmp_path)) == 1 + len(others)
    first.write_text("mine")
    with pytest.raises(RegardError, match="exists already and is not overwritten"):
        copy_recipes(None, tmp_path)


def test_captions_are_drawn_over_no_file_of_the_user(tmp_path: Path) -> None:
    CaptionDrawing(tmp_path)
    (tmp_path / "index.html").write_text("my page")
    with pytest.raises(RegardError, match=r"files that Regard did not draw .*Choose another folder, or add --force"):
        CaptionDrawing(tmp_path)
    CaptionDrawing(tmp_path, force=True)
    (tmp_path / "index.html").write_text("<p>Made by Regard.")
    (tmp_path / "0001-dog.png").touch()
    CaptionDrawing(tmp_path)
    (tmp_path / "dog.png").touch()
    with pytest.raises(RegardError, match="did not draw"):
        CaptionDrawing(tmp_path)


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "state", "tensorboard", "state/step-00000009", "snapshots"])
def test_a_link_in_a_run_folder_is_not_followed(lstm_run: Path, tmp_path: Path, name: str) -> None:
    run, precious = tmp_path / "run", tmp_path / "precious"
    shutil.copytree(lstm_run, run)
    link = run / name
    if name.startswith("state") or name in ("tensorboard", "snapshots"):
        precious.mkdir()
        (precious / ".partial-mine").write_text("mine")
        shutil.rmtree(link, ignore_errors=True)
    else:
        precious.write_text("mine")
        link.unlink(missing_ok=True)
    link.symlink_to(precious)
    with pytest.raises(RegardError, match="is a link, and a run writes to files in its own folder only"):
        regard.train(out=run, resume=True, settings=["train.max_steps=1000000"])
    kept = precious if precious.is_file() else precious / ".partial-mine"
    assert kept.read_text() == "mine"


def test_files_and_folders_are_written_with_the_modes_that_the_umask_allows(tmp_path: Path) -> None:
    def write_private(path: Path) -> None:
        path.touch(mode=0o600)

    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "weights", write_private)
        write_folder_atomically(tmp_path / "state", lambda folder: write_private(folder / "weights"))
    finally:
        os.umask(before)
    for path in (tmp_path / "weights", tmp_path / "state" / "weights"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state", "weights"]


def test_weights_that_may_not_be_read_are_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    path.touch(mode=0o000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything
    with pytest.raises(RegardError, match=r"is there, but you may not read it\. Ask its owner"):
        read_tensors(path)


def test_a_private_text_stays_private_in_the_cache(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "new" / "cache"))
    mine = tmp_path / "diary.txt"
    mine.write_text(text.read_text())
    mine.chmod(0o600)
    regard.plan({**GIVEN, "data": {"train": str(mine)}})
    assert stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700


@pytest.mark.parametrize(("mode", "is_private"), [(0o755, True), (0o775, False)])
def test_a_cache_that_others_may_read_but_not_write_keeps_texts_private(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_private: bool
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    monkeypatch.setenv("REGARD_CACHE", str(cache))
    regard.plan({**GIVEN, "data": {"train": str(text)}})
    pairs = {**GIVEN, "model": {"name": "seq2seq", "d_model": 8}, "data": {"train": "grammar:en-de"}}
    regard.plan({**pairs, "tokenizer": {"kind": "word"}})
    modes = {folder.name: stat.S_IMODE(folder.stat().st_mode) for folder in cache.iterdir() if folder.is_dir()}
    assert {"encoded", "documents", "tokenizers", "pair-texts"} <= modes.keys()
    assert all((found & 0o077 == 0) == is_private for found in modes.values()), modes
