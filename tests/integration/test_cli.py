"""The verbs, as a user types them."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path

import pytest

import regard as package
from regard.cli import VERBS, catalog, grammar
from regard.models.table import MODELS

HELP = {verb: function.__doc__ for verbs in VERBS.values() for verb, function in verbs.items()} | {
    "data": catalog.data.__doc__,
    "data grammar": grammar.grammar.__doc__,
}


@pytest.mark.parametrize("verb", HELP)
def test_help_of_every_verb_is_neat_in_80_columns(
    regard: Callable[..., object], verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paragraphs fill the width, and every example stands on a line of its own, indented."""
    monkeypatch.setenv("COLUMNS", "80")
    done = regard(*verb.split(), "--help")
    assert done.code == 0
    shown = [line.rstrip() for line in done.out.splitlines()]
    paragraphs = cleandoc(HELP[verb]).split("\n\n")
    for paragraph in paragraphs:
        heading, *examples = paragraph.split("\n")
        if examples and examples[0].startswith("  "):
            assert f" {heading.removesuffix(':')}" in shown
            assert [f" {line}" for line in examples if f" {line}" not in shown] == []
        else:
            filled = textwrap.wrap(" ".join(paragraph.split("\n")), 78, break_on_hyphens=False)
            assert [f" {line}" for line in filled if f" {line}" not in shown] == []
    assert any(line.strip().startswith(("regard", "echo")) for line in paragraphs[-1].split("\n"))


def test_the_help_of_all_verbs_ends_with_one_line_to_start_with(
    regard: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = regard("--help").out.rstrip().splitlines()
    assert shown[-2].strip() == ""
    assert shown[-1].strip().startswith("Start with: regard compare")


def test_the_help_of_data_lists_what_can_be_typed(regard: Callable[..., object]) -> None:
    shown = regard("data", "--help").out
    assert "--set" in shown
    assert "A file, folder, built-in or hub:NAME" in shown


def test_help_and_import_do_not_import_torch() -> None:
    for code in ("import regard", "import regard.cli", "from regard.models.table import MODELS"):
        check = f"{code}; import sys; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0, code


def test_a_start_does_not_import_the_compiler() -> None:
    """It takes a second, and only runtime.is_compiled needs it."""
    check = "import regard.api, sys; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_version_is_the_packages_own(regard: Callable[..., object]) -> None:
    assert regard("--version").out.strip() == f"regard {package.__version__}"
    pyproject = Path(__file__).parents[2].joinpath("pyproject.toml").read_text()
    assert f'version = "{package.__version__}"' in pyproject


def test_models_lists_every_model_and_every_key_of_one(regard: Callable[..., object]) -> None:
    listing = regard("models").out
    assert all(name in listing for name in MODELS)
    manual = regard("models", "lstm").out
    for key in ("d_model", "max_steps", "lr", "vocab_size", "p_valid", "device"):
        assert key in manual
    assert "Did you mean 'lstm'?" in regard("models", "lsmt").err


def test_data_lists_the_built_in_texts_and_looks_into_a_source(regard: Callable[..., object], text: Path) -> None:
    listing = regard("data").out
    assert "python-docs" in listing
    assert "python-source" in listing
    assert "grammar:en-de" in listing
    assert "regard[hub]" in listing
    seen = regard("data", text).out
    assert "the cat sat on the mat" in seen
    assert f"{text.stat().st_size:,}" in seen.replace("\n", " ") or "train" in seen


def test_dry_run_prints_the_whole_plan_and_writes_nothing(
    regard: Callable[..., object], text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = regard("train", "--model", "transformer", "--data", text, "--dry-run", "--set", "tokenizer.kind=char")
    assert done.code == 0
    for part in (
        "max_grad_norm: 1.0",
        "parameters",
        "FLOPs a token",
        "memory",
        "sat on the",
        "batch, decoded",
        "Nothing was trained",
    ):
        assert part in done.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("run", ["lstm_run", "transformer_run", "ngram_run"])
def test_a_run_of_every_kind_is_evaluated_scored_and_generates(
    run: str, request: pytest.FixtureRequest, regard: Callable[..., object], text: Path
) -> None:
    folder = request.getfixturevalue(run)
    result = json.loads(regard("eval", folder, "--json").out)
    assert 0 < result["bits_per_byte"] < 9
    other = json.loads(regard("eval", folder, "--data", text, "--json").out)
    assert other["n_bytes"] == text.stat().st_size
    written = regard("generate", folder, "--prompt", "the cat", "--max-tokens", 12, "--seed", 3).out
    assert written.startswith("the cat")
    assert regard("generate", folder, "--prompt", "the cat", "--max-tokens", 12, "--seed", 3).out == written
    assert regard("generate", folder, "--n", 3, "--max-tokens", 5).out.count("---") == 6
    assert regard("generate", folder, "--beam", 2, "--max-tokens", 5).code == 0
    coloured = regard("score", folder, text)
    assert "the cat sat on the mat" in coloured.out
    assert "log-probability" in coloured.err
    assert "Surprise in bits" not in coloured.err  # colours that a pipe does not show need no legend


def test_scores_by_token_line_and_document_add_up(regard: Callable[..., object], lstm_run: Path, text: Path) -> None:
    totals = []
    for by in ("token", "line", "document"):
        lines = [json.loads(line) for line in regard("score", lstm_run, text, "--by", by, "--json").out.splitlines()]
        totals.append(sum(line["nats"] for line in lines))
    assert totals == pytest.approx([totals[0]] * 3, abs=1e-6)
    plain = regard("score", lstm_run, text, "--by", "line").out.splitlines()
    assert len(plain) == len(text.read_text().splitlines())
    assert float(plain[0].split("\t")[0]) < 0


def test_text_with_markup_is_printed_as_it_is(regard: Callable[..., object], tmp_path: Path) -> None:
    path = tmp_path / "tags.txt"
    path.write_text("[/b] is [bold] a $HOME `tag` [red]\nmore of [/the] same [/i] text\n" * 60)
    words = ["train", "--model", "ngram", "--data", path, "--set", "tokenizer.kind=char", "--out", tmp_path / "[run]"]
    done = regard(*words)
    assert done.code == 0, done.err
    assert "regard eval '" in done.out
    assert "[/b] is [bold] a $HOME" in regard("score", tmp_path / "[run]", path).out


def test_score_reads_standard_input(regard_process: Callable[..., object], lstm_run: Path) -> None:
    done = regard_process("score", lstm_run, "-", "--by", "document", stdin="the cat sat\n")
    assert done.code == 0, done.err
    assert done.out.split("\t")[1].startswith("the cat sat")


def test_generation_stops_before_a_stop_text(regard: Callable[..., object], lstm_run: Path) -> None:
    words = ("generate", lstm_run, "--prompt", "the", "--max-tokens", 40, "--seed", 5)
    whole = regard(*words).out[:-1]
    stop = whole[12:14]
    assert regard(*words, "--stop", stop).out == whole[: whole.index(stop, 3)] + "\n"


def test_train_in_a_process_of_its_own_then_resume(
    regard_process: Callable[..., object], text: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        f"data: {{train: {text}}}\ntokenizer: {{kind: char}}\nmodel: {{name: gru, d_model: 8, n_layers: 1}}\n"
        "train: {max_steps: 4, n_batch: 2, n_context: 8, eval_every: 2}\n"
    )
    done = regard_process("train", recipe, cwd=tmp_path)
    assert done.code == 0, done.err
    folder = tmp_path / "runs" / "mine"
    names = {p.name for p in folder.iterdir()}
    assert names >= {"config.yaml", "tokenizer.json", "model.safetensors", "state", "metrics.jsonl", "README.md"}
    weights = (folder / "model.safetensors").read_bytes()
    assert regard_process("train", "--resume", "--out", folder).code == 0
    assert (folder / "model.safetensors").read_bytes() == weights


def test_an_ngram_run_goes_out_as_arpa_and_comes_back(
    regard: Callable[..., object], text: Path, tmp_path: Path
) -> None:
    words = ["train", "--model", "ngram", "--data", text, "--set", "tokenizer.kind=word", "--set", "model.order=3"]
    assert regard(*words, "--out", tmp_path / "run").code == 0
    assert regard("export", tmp_path / "run", tmp_path / "words.arpa.gz").code == 0
    assert regard("import", tmp_path / "words.arpa.gz", "--out", tmp_path / "back").code == 0
    before, after = (
        json.loads(regard("eval", tmp_path / name, "--data", text, "--json").out) for name in ("run", "back")
    )
    assert after["nats"] == pytest.approx(before["nats"], rel=1e-6)
    assert after["n_tokens"] == before["n_tokens"]
    refused = regard("eval", tmp_path / "back")
    assert refused.code == 2
    assert "has no text of its own. Name data of yours with --data" in refused.err


def test_only_ngram_models_go_out_as_arpa(regard: Callable[..., object], lstm_run: Path, tmp_path: Path) -> None:
    done = regard("export", lstm_run, tmp_path / "x.arpa")
    assert done.code == 2
    assert "n-gram runs as ARPA files" in done.err


def test_data_shows_the_pairs_of_the_built_in_grammar(regard: Callable[..., object]) -> None:
    seen = regard("data", "grammar:en-de")
    assert seen.code == 0, seen
    assert [line.split() for line in seen.out.splitlines()[1:4]] == [
        ["train", "20,000"], ["valid", "1,000"], ["test", "1,000"]
    ]  # fmt: skip
    assert "--data grammar:en-de" in seen.out
    trees = regard("data", "grammar:en-trees:50@test").out
    assert "50" in trees
    assert "  (S" in trees
    assert "train begins" not in trees
    assert "names no pairs of the built-in grammar" in regard("data", "grammar:en-dd").err


def test_data_shows_pairs_of_files_and_takes_settings(regard: Callable[..., object], tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"a.{side}").write_text("".join(f"{side} {n}\n" for n in range(40)))
    seen = regard("data", tmp_path / "a.en", tmp_path / "a.de")
    assert seen.code == 0, seen.err
    assert "36 pairs for training, 2 for validation, 2 for test" in seen.out
    (tmp_path / "a.csv").write_text("id,review\n" + "".join(f'{n},"Good, {n}."\n' for n in range(40)))
    seen = regard("data", tmp_path / "a.csv", "--set", "data.field=review")
    assert "Good, " in seen.out
    assert "only settings of data are used here" in regard("data", tmp_path / "a.csv", "--set", "train.lr=1").err


def test_a_wrong_option_of_data_names_no_hidden_verb(regard: Callable[..., object]) -> None:
    refused = regard("data", "python-docs", "--out", "x")
    assert refused.code == 2
    assert "No such option: --out" in refused.err
    assert "look" not in refused.err
