"""docs/lineage.md and docs/lectures.md run from top to bottom: every command, each learning for a moment only."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_gpt2 import write_hf_folder

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from run_page import PAGES, list_commands, shorten  # noqa: E402  (a script beside the pages)


@pytest.mark.pages  # a hundred commands each: a quarter of an hour on a core
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_top_to_bottom(
    page: str, regard: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(page).mkdir()
    shutil.copytree(ROOT / "recipes", "recipes")
    write_hf_folder(tmp_path / "gpt2")  # which the page asks the reader to bring
    n_run, wrong = 0, []
    for command in list_commands((ROOT / "docs" / f"{page}.md").read_text()):
        if command.is_endless or any(not Path(name).exists() for name in command.reads if "/" not in name):
            continue
        words = shlex.split(shorten(command).text)
        if words[0] != "regard":
            subprocess.run(["bash", "-c", command.text], check=True)
            continue
        written = words.index(">") if ">" in words else len(words)
        done = regard(*words[1:written], *words[written + 2 :])
        if written < len(words):
            Path(words[written + 1]).write_text(done.out)
        if done.code:
            wrong.append((command.text, done.err[-300:]))
        elif command.writes is not None and not Path(command.writes).exists():
            wrong.append((command.text, f"it did not write {command.writes}"))
        n_run += 1
    assert wrong == []
    assert n_run > 60
