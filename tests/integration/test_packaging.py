"""Regard as somebody has it who installed it with pip: a wheel, its recipes, and what the shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))


@pytest.mark.slow
def test_a_wheel_installs_with_its_recipes_and_its_pages(tmp_path: Path) -> None:
    source, wheels, target = tmp_path / "source", tmp_path / "wheels", tmp_path / "target"
    source.mkdir()
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("regard", "recipes"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = wheels.glob("regard-*.whl")
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    assert sorted(path.stem for path in (target / "regard" / "recipes").glob("*.yaml")) == RECIPES
    pages = {path.relative_to(ROOT) for kind in ("css", "js") for path in (ROOT / "regard").rglob(f"*.{kind}")}
    assert pages
    assert all((target / path).is_file() for path in pages)
    called = [sys.executable, "-m", "regard", "recipes", "lstm", "--copy", "mine.yaml"]
    subprocess.run(called, check=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(target)}, timeout=120)
    assert (tmp_path / "mine.yaml").read_bytes() == (ROOT / "recipes" / "lstm.yaml").read_bytes()


def test_recipes_are_listed_with_what_they_are(regard: Callable[..., Any]) -> None:
    done = regard("recipes")
    assert done.code == 0
    assert all(name in done.out for name in RECIPES)
    words = " ".join(done.out.split())
    assert "gru Gated recurrent units, two layers." in words
    assert "dilated as in WaveNet (van den Oord et al. 2016)." in words  # "al." ends no sentence


def test_a_recipe_is_printed_as_it_is(regard: Callable[..., Any]) -> None:
    assert regard("recipes", "lstm").out == (ROOT / "recipes" / "lstm.yaml").read_text()
    assert regard("recipes", "lstm.yaml").out == (ROOT / "recipes" / "lstm.yaml").read_text()


def test_recipes_are_copied_one_or_all_and_never_over_a_file(regard: Callable[..., Any], tmp_path: Path) -> None:
    assert regard("recipes", "lstm", "--copy", tmp_path / "new" / "mine.yaml").out == f"{tmp_path}/new/mine.yaml\n"
    assert regard("recipes", "gru", "--copy", tmp_path / "new").code == 0
    assert regard("recipes", "--copy", tmp_path / "all").code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["gru.yaml", "mine.yaml"]
    assert sorted(path.stem for path in (tmp_path / "all").iterdir()) == RECIPES
    (tmp_path / "new" / "gru.yaml").write_text("my own")
    done = regard("recipes", "gru", "--copy", tmp_path / "new")
    assert done.code == 2
    assert "gru.yaml' exists already and is not overwritten" in done.err
    assert (tmp_path / "new" / "gru.yaml").read_text() == "my own"


def test_a_recipe_that_is_not_there_is_refused_with_the_nearest(regard: Callable[..., Any]) -> None:
    done = regard("recipes", "lstn")
    assert done.code == 2
    assert done.err == "regard: There is no recipe 'lstn'. Did you mean 'lstm'? `regard recipes` lists them.\n"
    assert regard("recipes", "../README").code == 2


def complete(*words: str) -> list[str]:
    """What bash is offered for the last of `words`."""
    asked = {"_REGARD_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    call = "import sys; from regard.cli import main; sys.argv = ['regard']; main()"
    done = subprocess.run(
        [sys.executable, "-c", call], env=os.environ | asked, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.split()


def test_the_shell_completes_verbs_options_and_recipes() -> None:
    assert complete("regard", "tra") == ["train", "translate"]
    assert complete("regard", "train", "--res") == ["--resume"]
    assert complete("regard", "recipes", "gpt2-") == ["gpt2-finetune", "gpt2-tiny"]


def test_the_script_for_the_shell_is_shown() -> None:
    call = "import sys; from regard.cli import main; sys.argv = ['regard', '--show-completion', 'bash']; main()"
    shown = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell is named, not looked for
    done = subprocess.run(
        [sys.executable, "-c", call], env=os.environ | shown, capture_output=True, text=True, timeout=120, check=True
    )
    assert "complete -o default -F _regard_completion regard" in done.stdout
