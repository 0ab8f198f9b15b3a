"""Every command that README shows works as it stands; only budgets are made smaller here."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_bert import write_hf_bert
from tiny_gpt2 import write_hf_folder

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
COMMANDS = [
    line.split("  #")[0].strip()
    for language, block in BLOCKS
    if language == "sh"
    for line in block.splitlines()
    if line.startswith("regard ")
]
QUICK = {
    "train": ["--set", "train.max_steps=3", "--set", "tokenizer.vocab_size=300", "--set", "model.d_model=16"],
    "compare": ["--budget", "3ktokens", "--params", "30k", "--tokenizer", "char", "--seeds", "1"],
}


@pytest.mark.slow
def test_readme_commands_work_in_the_order_they_are_shown(
    regard: Callable[..., object], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(text, "my.txt")
    shutil.copy(text, "other.txt")
    shutil.copytree(ROOT / "recipes", "recipes")
    write_hf_folder(tmp_path / "gpt2")
    write_hf_bert(tmp_path / "bert-base-uncased")
    reviews = [
        f"{label}\tI {verb} the {noun}" for label, verb in (("good", "love"), ("bad", "hate")) for noun in range(30)
    ]
    Path("reviews.tsv").write_text("\n".join(["label\ttext", *reviews, ""]))
    words_of_two = [f"{a} {b} {c} ." for a in "abcdefg" for b in "hijklm" for c in "nopqr"]
    for name in ("train.en", "train.de", "test.en", "test.de"):
        lines = words_of_two if name.startswith("train") else words_of_two[:20]
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    assert {command.split()[1] for command in COMMANDS} >= {"compare", "train", "generate", "score", "eval"}
    for command in COMMANDS:
        words = shlex.split(command)[1:]
        quick = QUICK.get(words[0], []) if "--resume" not in words else []
        if "--from" in words or words[1].startswith("runs/"):  # its model and tokenizer are given
            quick = quick[:2]
        quick = [*quick, "--data", "my.txt"] if "recipes/skipgram.yaml" in words else quick
        quick = [*quick, "--data", "grammar:en-de:200"] if "recipes/grammar.yaml" in words else quick
        if ">" in words:  # in this process there is no shell: the file to read is named, and what is printed is written
            *words, _, source, _, written = words
            done = regard(*words, source)
            Path(written).write_text(done.out)
            assert done.code == 0, (command, done.err)
            continue
        if "--budget" in quick and "--budget" in words:
            del words[words.index("--budget") : words.index("--budget") + 2]
        done = regard(*words, *quick)
        assert done.code == 0, (command, done.err)
    assert (tmp_path / "runs" / "mine" / "model.safetensors").exists()
    assert list(tmp_path.glob("compare/*/report.html"))


def test_readme_python_runs(lstm_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    block = next(block for language, block in BLOCKS if language == "python")
    shutil.copytree(lstm_run, tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})


def test_readme_and_docs_link_to_files_that_are_there() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_names_make_targets_that_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
