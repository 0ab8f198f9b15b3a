"""What runs are called on a server, which tokens it takes, and what folders of other programs can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_gpt2 import write_hf_folder
from tiny_served import train_all

from regard.errors import RegardError

pytest.importorskip("fastapi", reason="needs the extra serve")
from regard.serve.served import ServedRuns
from regard.serve.server import RunServer, ServeOptions


@pytest.mark.parametrize("token", ["", "two words", "a;b", "\u00fc"])
def test_a_token_that_would_be_none_is_refused(token: str) -> None:
    with pytest.raises(RegardError, match="--token is made of letters, digits"):
        RunServer([train_all()["ngram"]], ServeOptions(port=0, token=token))


def test_a_run_is_called_by_its_folder_wherever_one_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(train_all()["ngram"])
    served = ServedRuns.open(["."])
    assert list(served.runs) == ["ngram"]
    assert served.hide_folders("'.' is a run. It is.") == "'ngram' is a run. It is."
    assert served.hide_folders(f"'{train_all()['ngram']}'") == f"'{train_all()['ngram']}'"  # it was not named so


def test_a_hugging_face_folder_is_served_without_what_it_has_no_data_for(tmp_path: Path) -> None:
    write_hf_folder(tmp_path / "published")
    served = ServedRuns.open([tmp_path / "published"])
    assert served.verbs == {"published": ["score", "next", "embed", "generate", "trace"]}
    run = served.find("published")
    assert served.hide_folders(f"'{run.opened.folder}', '{run.folder}'") == "'published', 'published'"
