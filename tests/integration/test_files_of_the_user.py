"""Files that Regard did not write are never written over, and a run folder from elsewhere leads nowhere else."""

from __future__ import annotations

import os
import re
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
from regard.report.look_pictures import KINDS, PICTURES
from regard.report.page_folder import CAPTIONS, LOOK, TREES, begin_page, check_page_folder, finish_page, study_drawing
from regard.run.begun_mark import BEFORE_CONFIG, mark_begun
from regard.run.folder import lock_folder
from regard.training.checkpoint import link
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
    (tmp_path / ".lock").touch()  # killed before it was marked
    mark_begun(tmp_path, BEFORE_CONFIG)
    for name in ("tokenizer.json", ".partial-run.json-1-0123abcd"):
        (tmp_path / name).touch()
    regard.train({**GIVEN, "data": {"train": str(text)}}, out=tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_lock_file_of_another_program_makes_no_file_a_leftover(
    text: Path, ngram_run: Path, tmp_path: Path, is_imported: bool
) -> None:
    mine = dict.fromkeys(("model.safetensors", "tokenizer.json", "README.md"), "mine") | {".lock": ""}
    for name, said in mine.items():
        (tmp_path / name).write_text(said)
    words = tmp_path.with_name(f"{tmp_path.name}.arpa")
    regard.api.export(ngram_run, words)

    def begin(force: bool = False) -> None:
        if is_imported:
            regard.api.import_run(words, tmp_path, force=force)
        else:
            regard.train({**GIVEN, "data": {"train": str(text)}}, out=tmp_path, force=force)

    left = "remove what it left: tokenizer.json, model.safetensors, README.md"
    with pytest.raises(RegardError, match=f"is not empty .*{left}"):
        begin()
    with pytest.raises(RegardError, match=r"holds weights that a run would write over.*: model\.safetensors\. Move"):
        begin(force=True)
    (tmp_path / ".lock").write_text("[package]")
    with pytest.raises(RegardError, match="was written by another program, and a run needs a file of this name"):
        begin(force=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == mine | {".lock": "[package]"}


def test_files_of_the_user_are_no_leftovers_of_a_start_with_force_that_failed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**GIVEN, "data": {"train": str(text)}}
    (tmp_path / "README.md").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr("regard.run.folder.write_config", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            regard.train(given, out=tmp_path, force=True)
        assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
        patch.setattr("regard.run.folder.remove_leftovers", lambda _: 1 / 0)  # as kill -9 keeps it from happening
        with pytest.raises(ZeroDivisionError):
            regard.train(given, out=tmp_path, force=True)
    assert (tmp_path / "tokenizer.json").exists()
    with pytest.raises(RegardError, match=r"is not empty \(it holds README\.md\).* write into this one\.$"):
        regard.train(given, out=tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    regard.train(given, out=tmp_path, force=True)
    assert not (tmp_path / ".lock").exists()


def test_files_that_are_put_beside_a_killed_start_of_a_training_are_no_leftovers(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = {**GIVEN, "data": {"train": str(text)}}, tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("regard.run.folder.write_config", lambda *_: 1 / 0)
        patch.setattr("regard.run.folder.remove_leftovers", lambda _: 1 / 0)  # as kill -9 keeps it from happening
        with pytest.raises(ZeroDivisionError):
            regard.train(given, out=out)
    for name in ("README.md", "model.safetensors"):
        (out / name).write_text("mine")
    with pytest.raises(RegardError, match="is not empty"):
        regard.train(given, out=out)
    assert [(out / name).read_text() for name in ("README.md", "model.safetensors")] == ["mine", "mine"]


def test_a_run_whose_config_goes_away_while_it_is_trained_keeps_its_files(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out, killed = {**GIVEN, "data": {"train": str(text)}}, tmp_path / "run", tmp_path / "killed"

    def lose_config(*_: Any) -> None:
        (out / "config.yaml").unlink()
        shutil.copytree(out, killed)  # as kill -9 would leave it
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("regard.run.engine._finish", lose_config)
        with pytest.raises(KeyboardInterrupt):
            regard.train(given, out=out)
    for folder in (out, killed):
        with pytest.raises(RegardError, match=r"is not empty .*write into this one\.$"):
            regard.train(given, out=folder)
        assert {"run.json", "tokenizer.json", "model.safetensors"} <= {path.name for path in folder.iterdir()}


def test_a_run_that_an_older_version_or_another_machine_trains_is_left_alone(lstm_run: Path, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    run = Path(shutil.copytree(lstm_run, tmp_path / "run"))
    with open(run / ".lock", "wb") as file:  # they lock this file, and not the folder
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RegardError, match="Another process is training in"):
            regard.train(out=run, resume=True)
        assert (run / ".lock").exists()
    with lock_folder(run):
        pass
    assert not (run / ".lock").exists()


@pytest.mark.parametrize("form", ["folder", "pipe"])
def test_a_lock_that_is_no_file_is_refused(text: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / ".lock").mkdir() if form == "folder" else os.mkfifo(out / ".lock")
    with pytest.raises(RegardError, match=r"\.lock' (cannot be read|is no)"):
        regard.train({**GIVEN, "data": {"train": str(text)}}, out=out)


def test_saved_states_without_a_config_are_refused_before_anything_is_written(
    lstm_run: Path, text: Path, tmp_path: Path
) -> None:
    shutil.copytree(lstm_run / "state", tmp_path / "state")
    with pytest.raises(RegardError, match=r"holds saved states of a run in state/, but not its config\.yaml"):
        regard.train({**GIVEN, "data": {"train": str(text)}}, out=tmp_path, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_training_begins_where_an_import_was_killed(ngram_run: Path, text: Path, tmp_path: Path) -> None:
    words, out = tmp_path / "words.arpa", tmp_path / "run"
    regard.api.export(ngram_run, words)
    out.mkdir()
    mark_begun(out, BEFORE_CONFIG)
    whole = regard.api.import_run(words, tmp_path / "whole").folder
    for path in whole.iterdir():
        if path.name != "config.yaml":
            shutil.copyfile(path, out / path.name)
    run = regard.train({**GIVEN, "data": {"train": str(text)}}, out=out)
    assert run.config.model_name == "gru"


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


def test_a_page_of_ours_does_not_make_the_files_beside_it_ours(
    regard: Callable[..., Any], ngram_run: Path, lstm_run: Path, tmp_path: Path
) -> None:
    vectors, few = tmp_path / "few.vec", ("some", "more", "good", "words")
    vectors.write_text("4 2\n" + "".join(f"{word} {i} {i * i}\n" for i, word in enumerate(few)))
    look = ["look", lstm_run, "--text", "the cat", "--view"]
    drawn: list[tuple[str, str, list[Any]]] = [
        ("index.html", "look.json", ["next", ngram_run, "the cat"]),
        ("index.html", "surprise.png", [*look, "surprise"]),
        ("report.html", "numbers.json", ["vectors", "map", vectors]),
        ("report.html", "figure.png", ["vectors", "map", vectors]),
    ]
    for number, (page, name, words) in enumerate(drawn):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / page).write_text("<p>Made by Regard.")
        (folder / name).write_text("mine")
        refused = regard(*words, "--out", folder)
        told = f"holds {name}, of which its page does not say that it was drawn with it: an earlier version of Regard"
        assert (refused.code, told in " ".join(refused.err.split())) == (2, True), refused.err
        assert (folder / name).read_text() == "mine"
        assert regard(*words, "--out", folder, "--force").code == 0
        assert regard(*words, "--out", folder).code == 0, "what a page of ours lists is drawn anew"
    assert regard(*look, "layers", "--out", tmp_path / "1").code == 0
    assert regard(*look, "surprise", "--out", tmp_path / "1").code == 0, "a page knows what was drawn before it too"


def test_a_page_that_was_killed_knows_what_it_began_to_draw(tmp_path: Path) -> None:
    begin_page(tmp_path, LOOK, ["look.json"])
    (tmp_path / "look.json").write_text("half")
    begin_page(tmp_path, LOOK, ["look.json", "-->.png"])
    (tmp_path / "-->.png").touch()
    finish_page(tmp_path, "<p>Made by Regard.", LOOK, ["look.json", "-->.png"])
    assert (tmp_path / "index.html").read_text().count("-->") == 1
    begin_page(tmp_path, LOOK, ["look.json", "-->.png", "cells.png"])
    (tmp_path / "cells.png").touch()
    check_page_folder(tmp_path, LOOK)
    (tmp_path / "layers.png").touch()
    with pytest.raises(RegardError, match=r"did not draw \(layers.png\)"):
        begin_page(tmp_path, LOOK, ["look.json"])


def test_all_pictures_of_a_look_are_known_before_it_is_computed() -> None:
    names = {f"{name}{number}.{kind}" for name in PICTURES for number in ("", "-2") for kind in KINDS}
    assert all(re.fullmatch(LOOK.beside, name) for name in names)
    assert not re.fullmatch(LOOK.beside, "mine.png")


def test_a_page_takes_the_place_of_one_of_its_own_kind_only(regard: Callable[..., Any], tmp_path: Path) -> None:
    vectors = tmp_path / "few.vec"
    vectors.write_text("4 2\n" + "".join(f"{word} {i} {i * i}\n" for i, word in enumerate("abcd")))
    map_words, study = ["vectors", "map", vectors, "--out"], ["study", "by-hand", "--out"]
    assert regard(*study, tmp_path / "one").code == 0
    numbers = (tmp_path / "one" / "numbers.json").read_bytes()
    refused = regard(*map_words, tmp_path / "one")
    told = "holds a page of the study by-hand, and one of word vectors would take its place"
    assert (refused.code, told in " ".join(refused.err.split())) == (2, True), refused.err
    assert (tmp_path / "one" / "numbers.json").read_bytes() == numbers
    assert regard(*map_words, tmp_path / "one", "--force").code == 0
    assert "holds a page of word vectors" in regard(*study, tmp_path / "one").err


def test_a_page_of_a_strangers_is_one_sentence(regard: Callable[..., Any], ngram_run: Path, tmp_path: Path) -> None:
    """What it lists is deep, names another folder, or is no list."""
    for number, listed in enumerate(
        ("{" * 100_000, '{"kind": "what models compute", "files": ["../x", "' + "y" * 5000 + '", 3]}', '{"files": 7}')
    ):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "index.html").write_text(f"Made by Regard\n<!-- Drawn beside this page: {listed} -->\n")
        done = regard("next", ngram_run, "the", "--out", folder)
        assert (done.code, done.err) == (0, "")


def test_a_study_is_drawn_over_no_page_or_picture_of_the_user(regard: Callable[..., Any], tmp_path: Path) -> None:
    study = ["study", "by-hand", "--out"]
    assert regard(*study, tmp_path / "one").code == 0
    for name in ("report.html", "figure.png"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(tmp_path / "one" / "numbers.json", folder)
        (folder / name).write_text("mine")
        refused = regard(*study, folder)
        assert (refused.code, "holds files that Regard did not draw" in refused.err) == (2, True), refused.err
        assert (folder / name).read_text() == "mine"
    refused = regard("study", "ablate", "--out", tmp_path / "one")
    assert "holds a page of the study by-hand, and one of the study ablate would take its place" in " ".join(
        refused.err.split()
    )
    begin_page(tmp_path / "begun", study_drawing("by-hand"), ["numbers.json", "figure.png"])
    assert regard(*study, tmp_path / "begun").code == 0
    assert regard(*study, tmp_path / "begun").code == 0


def test_a_page_is_there_first_so_that_a_killed_command_can_draw_again(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    begin_page(folder, TREES)
    (folder / "1.svg").touch()
    (folder / ".partial-attention.png-1-0123abcd").touch()
    check_page_folder(folder, TREES)
    (folder / "report.html").unlink()
    with pytest.raises(RegardError, match=r"did not draw \(1.svg\)"):
        check_page_folder(folder, TREES)
    check_page_folder(folder, TREES, force=True)


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
    assert not list((tmp_path / "again").iterdir())
    mark_begun(tmp_path / "again", BEFORE_CONFIG)
    for path in whole.iterdir():
        if path.name != "config.yaml":
            shutil.copyfile(path, tmp_path / "again" / path.name)
    (tmp_path / "again" / ".partial-model.safetensors-1-0123abcd").touch()
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
    drawing = CaptionDrawing(tmp_path)
    (tmp_path / "0001-cat.png").touch()
    drawing.files.append("0001-cat.png")
    CaptionDrawing(tmp_path)  # the first was killed
    finish_page(tmp_path, "<p>Made by Regard.", CAPTIONS, drawing.files)
    CaptionDrawing(tmp_path)
    (tmp_path / "0002-cow.png").touch()
    CaptionDrawing(tmp_path)  # one that drew again was killed
    (tmp_path / "0002-cow.png").unlink()
    finish_page(tmp_path, "<p>Made by Regard.", CAPTIONS, drawing.files)
    (tmp_path / "dog.png").touch()  # of which no drawing has the name
    for name in ("0002-dog.png", "sheet.png"):
        (tmp_path / name).touch()
        with pytest.raises(RegardError, match=rf"did not draw \({name}\)"):
            CaptionDrawing(tmp_path)
        (tmp_path / name).unlink()
    (tmp_path / "index.html").write_text("my page")
    with pytest.raises(RegardError, match=r"files that Regard did not draw .*Choose another folder, or add --force"):
        CaptionDrawing(tmp_path)
    CaptionDrawing(tmp_path, force=True)


FILES = (".lock", "metrics.jsonl", "model.safetensors", "README.md", "run.json", "state/step-00000006/best.safetensors")


@pytest.mark.parametrize(
    "name", [*FILES, "state", "tensorboard", "tensorboard/a/b", "state/step-00000009", "snapshots"]
)
def test_a_link_in_a_run_folder_is_not_followed(lstm_run: Path, tmp_path: Path, name: str) -> None:
    run, precious = tmp_path / "run", tmp_path / "precious"
    shutil.copytree(lstm_run, run)
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name in FILES:
        shutil.copyfile(path if path.exists() else run / "config.yaml", precious)
        path.unlink(missing_ok=True)
    else:
        precious.mkdir()
        (precious / ".partial-mine").write_text("mine")
        shutil.rmtree(path, ignore_errors=True)
    before = precious.read_bytes() if precious.is_file() else b"mine"
    path.symlink_to(precious)
    with pytest.raises(RegardError, match="is a link, and a run has files and folders of its own only"):
        regard.train(out=run, resume=True, settings=["train.max_steps=1000000"])
    kept = precious if precious.is_file() else precious / ".partial-mine"
    assert kept.read_bytes() == before


def test_a_mode_is_never_given_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.touch(mode=0o600)
    write_atomically(tmp_path / "new", lambda aside: aside.symlink_to(precious))
    write_folder_atomically(tmp_path / "folder", lambda folder: (folder / "new").symlink_to(precious))
    assert stat.S_IMODE(precious.stat().st_mode) == 0o600
    with pytest.raises(RegardError, match="If it is a link, copy the file that it leads to"):
        link(tmp_path / "new", tmp_path / "second")


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


@pytest.mark.parametrize(("mode", "is_private"), [(0o755, True), (0o775, True), (0o2775, False), (0o777, False)])
def test_a_cache_that_others_may_read_but_not_write_keeps_texts_private(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_private: bool
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    monkeypatch.setenv("REGARD_CACHE", str(cache))
    regard.plan({**GIVEN, "data": {"train": str(text)}})
    pairs = {**GIVEN, "model": {"name": "seq2seq", "d_model": 8}, "data": {"train": "grammar:en-de:200"}}
    regard.plan({**pairs, "tokenizer": {"kind": "word"}})
    modes = {folder.name: stat.S_IMODE(folder.stat().st_mode) for folder in cache.iterdir() if folder.is_dir()}
    assert {"encoded", "documents", "tokenizers", "pair-texts"} <= modes.keys()
    assert all((found & 0o077 == 0) == is_private for found in modes.values()), modes
