"""Names of files with bytes that are no UTF-8 work as paths, and nothing that is written holds half a character."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from regard import api
from regard.errors import RegardError

STRANGE = "few\udcff"
"""What Python makes of the bytes few and 255 in an argument."""
TINY = ("--set", "train.max_steps=3", "--set", "train.n_batch=2", "--set", "tokenizer.kind=char")


@pytest.fixture
def strange_text(text: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(text, tmp_path / f"{STRANGE}.txt"))


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / f"{STRANGE}.vec"
    rows = np.random.default_rng(0).normal(size=(12, 4))
    lines = [" ".join([f"word{i}", *(f"{x:.3f}" for x in row)]) for i, row in enumerate(rows)]
    path.write_text("\n".join(["12 4", *lines]) + "\n")
    return path


def read_all(folder: Path) -> str:
    """Every text that lies in a folder, which must be UTF-8; of JSON what it spells, too."""
    texts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".json", ".yaml", ".txt", ".md", ".svg"):
            texts.append(path.read_text(encoding="utf-8"))
            if path.suffix == ".json":
                texts.append(json.dumps(json.loads(texts[-1]), ensure_ascii=False))
                texts[-1].encode("utf-8")
    return "\n".join(texts)


def test_a_map_of_words_is_drawn_from_such_a_file_into_such_a_folder(regard, vectors: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / f"{STRANGE}-map"
    done = regard("vectors", "map", vectors, "--out", out)
    assert done.code == 0, done.err
    assert "few�" in read_all(out)
    refused = regard("vectors", "map", vectors, "word\udcff", "--out", out)
    assert refused.code == 2
    assert "'word\\udcff' is not among the 12 words" in refused.err


def test_finished_runs_are_compared_on_such_a_file_into_such_a_folder(  # type: ignore[no-untyped-def]
    regard, lstm_run: Path, ngram_run: Path, strange_text: Path, tmp_path: Path
) -> None:
    out = tmp_path / f"{STRANGE}-compared"
    asked = ("compare", lstm_run, ngram_run, "--data", strange_text, "--quiet", "--out", out)
    done = regard(*asked)
    assert done.code == 0, done.err
    assert "few�" in read_all(out)
    for again in (asked, ("report", out)):
        done = regard(*again)
        assert done.code == 0, done.err


@pytest.mark.parametrize("verb", ["look", "next"])
def test_pages_of_a_text_are_drawn_into_such_a_folder(regard, lstm_run: Path, tmp_path: Path, verb: str) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / STRANGE
    given = ("look", lstm_run, "--text", "the cat") if verb == "look" else ("next", lstm_run, "the cat")
    done = regard(*given, "--out", out)
    assert done.code == 0, done.err
    assert "few" in read_all(out)
    refused = regard(*given[:-1], "the cat\udcff", "--out", tmp_path / "other")
    assert refused.code == 2
    assert "The text is no valid Unicode: character 7" in refused.err


def test_a_run_cannot_be_trained_into_such_a_folder(regard, text: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / STRANGE
    why = "holds bytes that are no UTF-8 text, and a run's weights cannot be kept under such a name"
    for given in (("train", "--model", "lstm", *TINY), ("compare", "lstm", "ngram", "--budget", "1e8flops", "--quiet")):
        done = regard(*given, "--data", text, "--out", out)
        assert done.code == 2
        assert why in " ".join(done.err.split())
        assert not out.exists()


def test_a_run_that_was_renamed_so_is_not_called_damaged(regard, lstm_run: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    shutil.copytree(lstm_run, tmp_path / STRANGE)
    done = regard("score", tmp_path / STRANGE, "the cat")
    assert done.code == 2
    assert "cannot be kept under such a name. Rename it" in done.err
    assert "overwritten" not in done.err


@pytest.mark.parametrize("verb", ["train", "compare"])
def test_a_config_names_no_such_file(regard, strange_text: Path, tmp_path: Path, verb: str) -> None:  # type: ignore[no-untyped-def]
    given = ("--model", "lstm", *TINY) if verb == "train" else ("lstm", "ngram", "--budget", "1e8flops", "--quiet")
    done = regard(verb, *given, "--data", strange_text, "--out", tmp_path / "out")
    assert done.code == 2
    assert "data.train must be UTF-8 text" in done.err
    assert "few\\udcff.txt" in done.err
    assert not (tmp_path / "out").exists()


def test_all_files_of_a_config_are_text(text: Path) -> None:
    plain = {"model": {"name": "lstm"}, "data": {"train": str(text)}}
    for more, name in (
        ({"train": {"vectors": STRANGE}}, "train.vectors"),
        ({"tokenizer": {"path": STRANGE}}, "tokenizer.path"),
    ):
        with pytest.raises(RegardError, match=rf"{name} must be UTF-8 text, not 'few\\udcff'"):
            api.plan({**plain, **more})


def test_a_run_is_scored_on_such_a_file(regard, lstm_run: Path, strange_text: Path) -> None:  # type: ignore[no-untyped-def]
    done = regard("eval", lstm_run, "--data", strange_text)
    assert done.code == 0, done.err
