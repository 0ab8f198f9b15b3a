"""The notebooks run from top to bottom, made small, and show what they promise."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = ("language-models", "translation", "transfer")
RUN = """
import ast, sys
from pathlib import Path

def show(value):
    shown = getattr(value, "_repr_html_", None)
    print("[html]" + shown()[:60] if shown else repr(value)[:400])

space = {}
for path in map(Path, sys.argv[1:]):  # a cell each; the value of its last line is shown, as a notebook does
    tree = ast.parse(path.read_text(encoding="utf-8"))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, path.name, "exec"), space)
    if last is not None and (value := eval(compile(ast.Expression(last.value), path.name, "eval"), space)) is not None:
        show(value)
"""


def read_cells(name: str) -> list[dict[str, object]]:
    return list(json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"])


def read_code(name: str) -> list[str]:
    return ["".join(cell["source"]) for cell in read_cells(name) if cell["cell_type"] == "code"]  # type: ignore[arg-type]


def run_small(name: str, folder: Path, sizes: dict[str, object]) -> str:
    """What the cells of a notebook print and show, in a process of its own, with other values in its first cell."""
    first, *cells = read_code(name)
    named = [target.id for line in ast.parse(first).body for target in line.targets]  # type: ignore[attr-defined]
    assert named == list(sizes), "the first cell sets the sizes and nothing else"
    paths = []
    for number, cell in enumerate(["\n".join(f"{key} = {value!r}" for key, value in sizes.items()), *cells]):
        paths.append(folder / f"cell-{number}.py")
        paths[-1].write_text(cell, encoding="utf-8")
    temporary = folder / "temporary"
    temporary.mkdir()
    root = str(FOLDER.parent)
    surroundings = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, *map(str, paths)],
        cwd=folder, env=surroundings, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    made = done.stdout.splitlines()[-1]  # each ends with the folder of its runs
    assert Path(made).parent == temporary
    assert (Path(made)).is_dir()
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_valid_and_holds_no_output(name: str) -> None:
    whole = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert whole["metadata"]["kernelspec"]["name"] == "python3"
    identities = [cell["id"] for cell in whole["cells"]]
    assert len(set(identities)) == len(identities)
    for cell in whole["cells"]:
        assert set(cell) >= {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    opening = "".join(whole["cells"][0]["source"])
    assert whole["cells"][0]["cell_type"] == "markdown"
    assert re.search(r"\d+ s .*2026-\d\d-\d\d", opening, re.DOTALL), "says how long it takes, where and when that was"


def test_there_is_no_notebook_that_is_not_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.heavy  # a whole notebook in a process of its own, torch included
def test_the_notebook_about_language_models_runs(text: Path, tmp_path: Path) -> None:
    sizes = {"DATA": str(text), "PROMPT": "the cat", "SENTENCE": "a dog sat on the moon.", "WIDTH": 16, "STEPS": 4}
    shown = run_small("language-models", tmp_path, sizes)
    assert len(re.findall(r"<LanguageModelRun .*: (ngram|lstm|transformer),", shown)) == 3
    assert shown.count("[html]<iframe srcdoc=") == 5  # what comes next, twice; cells; attention; the study
    assert "is best at" in shown  # the comparison
    assert shown.count("--- temperature") == 3
    assert "Same weights, same z: (8, 8) (8, 4)" in shown
    assert len(re.findall(r"without head \d of layer \d: log P\('", shown)) == 8
    assert all(method in shown for method in ("gradient-input", "integrated-gradients", "erasure"))
    assert re.search(r"'Attention .*'", shown)


@pytest.mark.heavy  # a whole notebook in a process of its own, torch included
def test_the_notebook_about_translation_runs(tmp_path: Path) -> None:
    numbers = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
    pairs = [((a, b, c), (numbers[a], numbers[b], numbers[c])) for a in numbers for b in numbers for c in numbers]
    lines = [f"{' '.join(source)}\t{' '.join(target)}\n" for source, target in pairs]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "long.tsv").write_text(
        "".join(f"{a} {b}\t{x} {y}\n" for (a, x), (b, y) in zip(
            [line.rstrip("\n").split("\t") for line in lines[:30]],
            [line.rstrip("\n").split("\t") for line in lines[30:60]], strict=True)), encoding="utf-8",
    )  # fmt: skip
    sizes = {"PAIRS": "pairs.tsv", "LONG": "long.tsv", "SOURCE": "one two three", "TARGET": "eins zwei drei",
             "WRONG": "eins zwei vier", "WIDTH": 16, "STEPS": 60}  # fmt: skip
    shown = run_small("translation", tmp_path, sizes)
    assert shown.count("<TranslationRun ") == 2
    assert shown.count("[html]<iframe srcdoc=") == 2  # the study of lengths, the alignment
    assert len(re.findall(r"looked at .* of its weight", shown)) == 4  # three words and the end
    assert re.search(r"^\d-0 \d-1 \d-2$", shown, re.MULTILINE)
    assert "has no attention to align words by" in shown
    assert len(re.findall(r"^beam +\d+: log P +-", shown, re.MULTILINE)) == 4
    assert len(re.findall(r"BLEU \{'plain': .*, 'attending': ", shown)) == 3
    assert shown.count('[html]<pre style="white-space:pre-wrap">') == 2


@pytest.mark.heavy  # a whole notebook in a process of its own, torch included
def test_the_notebook_about_transfer_runs(tmp_path: Path) -> None:
    sizes = {
        "N_SENTENCES": 300,
        "N_LABELLED": 10,
        "TEST": 10,
        "WORD": "left",
        "WIDTH": 16,
        "EPOCHS": 1,
        "PRETRAIN_STEPS": 2,
        "STEPS": 2,
    }
    shown = run_small("transfer", tmp_path, sizes)
    assert all(f"<{kind} " in shown for kind in ("LanguageModelRun", "BidirectionalRun", "MaskedLanguageModelRun"))
    assert re.search(r"^green +\w+ -?\d\.\d\d, ", shown, re.MULTILINE)
    assert len(re.findall(r"^[a-z -]+ accuracy, % +\d+\.\d \(", shown, re.MULTILINE)) == 7
    assert "Four/" in shown
    assert "rows: the true class, columns: the class given" in shown
    assert (
        shown.count("[html]<iframe srcdoc=") == 4
    )  # a word in several contexts, the study of layers, influence, faithfulness
