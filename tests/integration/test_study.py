"""`regard study`, end to end at a tiny size, through the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard as package

TINY = {
    "gradients": ["n_steps=2", "d_model=8", "max_distance=6", "n_texts=4", "n_seeds=1"],
    "ab": ["lengths=[4, 6]", "n_steps=3", "d_model=4", "n_test=10", "n_batch=4", "n_seeds=1"],
    "cost": ["lengths=[16, 32, 64]", "widths=[4, 8]", "n_fixed=16", "d_fixed=4", "n_window=4", "n_repeats=1",
             "device=cpu"],
    "recency": ["n_steps=2", "d_model=8", "max_distance=10", "n_texts=4", "n_seeds=1"],
    "ablate": ["n_steps=2", "d_model=8", "n_layers=1", "n_context=8", "parts=[mask]", "rates=[0.01]", "n_texts=4",
               "widths=[4, 8]", "n_seeds=1"],
    "explode": ["n_steps=3", "d_model=4", "max_distance=6", "radii=[0.5, 1.5]", "n_texts=2", "n_batch=2", "n_seeds=1"],
    "window": ["n_steps=2", "d_model=4", "models=[rnn]", "lengths=[2, 4]", "reach=8", "n_texts=4", "n_seeds=1"],
}  # fmt: skip
Command = Callable[..., Any]


def with_settings(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.parametrize("name", TINY)
def test_every_study_prints_its_sentence_and_writes_its_page(
    regard: Command, text: Path, tmp_path: Path, name: str
) -> None:
    data = [f"data={text}"] if name in ("gradients", "recency", "ablate", "window") else []
    out = tmp_path / name
    seeds = () if name == "cost" else ("--seeds", 2)
    done = regard("study", name, "--out", out, *seeds, *with_settings(TINY[name] + data))
    assert done.code == 0, done.err
    found = json.loads((out / "numbers.json").read_text())
    assert ("once" if name == "cost" else "Over 2 seeds (95% intervals in brackets)") in found["sentence"]
    printed = " ".join(done.out.split())
    assert found["sentence"] in printed
    assert str(out / "report.html") in done.out
    page = (out / "report.html").read_text()
    assert page.count("<svg") >= 2
    assert found["question"] in page
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in out.iterdir()) == ["figure.png", "numbers.json", "report.html"]


@pytest.mark.parametrize("name", ["gradients", "ab", "recency"])
def test_a_model_whose_size_is_one_setting_is_small_in_a_study_too(
    text: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.models import table

    sizes: list[int] = []
    build = table.build_model

    def measured(*given: Any, **named: Any) -> Any:
        with torch.device("meta"):
            sizes.append(build(*given, **named).n_parameters)
        assert sizes[-1] < 20_000
        return build(*given, **named)

    for module in ("regard.tasks.gradient", "regard.studies.ab", "regard.studies.gradients"):
        monkeypatch.setattr(f"{module}.build_model", measured)
    data = [] if name == "ab" else [f"data={text}"]
    package.study(name, settings=[*TINY[name], "models=[gpt2]", *data], out=tmp_path / name)
    assert sizes


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gradients", ["models=[attention, transformer, bag]"]),
        ("recency", ["models=[attention, transformer, bag]"]),
        ("ab", ["models=[transformer, bag]"]),
    ],
)
def test_no_study_reads_a_position_that_was_never_trained(
    text: Path, tmp_path: Path, name: str, settings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every mixer with a limit is watched: how many tokens it saw at most while it learned, and afterwards."""
    from regard.models.language_model import LanguageModel

    trained: dict[str, int] = {}
    measured: dict[str, int] = {}
    hidden = LanguageModel.hidden

    def watch(model: Any, tokens: Any, state: Any = None, *rest: Any) -> Any:
        if model.mixer.max_context is not None:
            kind, seen = type(model.mixer).__name__, trained if model.training else measured
            seen[kind] = max(seen.get(kind, 0), tokens.shape[1])
        return hidden(model, tokens, state, *rest)

    monkeypatch.setattr(LanguageModel, "hidden", watch)
    data = [] if name == "ab" else [f"data={text}"]
    package.study(name, settings=[*TINY[name], *settings, *data], out=tmp_path / name)
    assert measured
    assert {kind: n for kind, n in measured.items() if n > trained[kind]} == {}


@pytest.mark.parametrize("name", ["gradients", "recency"])
def test_a_model_that_sees_one_token_has_a_page_too(text: Path, tmp_path: Path, name: str) -> None:
    given = {
        "tokenizer": {"kind": "char"},
        "model": {"name": "transformer", "d_model": 8, "n_layers": 1, "n_heads": 2, "max_context": 1},
        "train": {"max_steps": 1, "n_batch": 4, "eval_every": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    run = package.train(given, data=str(text), out=tmp_path / "run")
    study = package.study(name, runs=run.folder, settings=["n_texts=8"], out=tmp_path / name)
    assert (
        study.sentence
        == {
            "gradients": "Trained once: no gradient reaches back beyond the token just read in run (transformer).",
            "recency": "Trained once (95% intervals over texts in brackets): a replaced token keeps at least 1% of the "
            "last token's effect up to distance 1 or more in run (transformer).",
        }[name]
    )
    assert len(study.finding.notes) == 1
    assert "run (transformer) was trained on too few tokens at once for max_distance 64" in study.finding.notes[0]


def test_recency_of_a_model_that_copies_words_it_does_not_know(text: Path, tmp_path: Path) -> None:
    given = {
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "pointer", "d_model": 8, "n_layers": 1, "n_vocab": 6, "max_memory": 12},
        "train": {"max_steps": 2, "n_batch": 4, "n_context": 16, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }
    run = package.train(given, data=str(text), out=tmp_path / "run")
    study = package.study("recency", runs=run.folder, settings=["n_texts=8", "max_distance=20"], out=tmp_path / "r")
    assert study.numbers["curves"][0]["nats"][0] > 0
    assert "counts as <unk>" in dict(study.finding.method)["Effect"]


def test_studies_leave_the_random_numbers_of_the_caller_alone(text: Path, tmp_path: Path) -> None:
    for name in ("gradients", "cost"):
        torch.manual_seed(5)
        before = torch.get_rng_state()
        data = [] if name == "cost" else [f"data={text}", "models=[rnn]"]
        package.study(name, settings=[*TINY[name], *data], out=tmp_path / name)
        assert torch.equal(torch.get_rng_state(), before)


def test_the_same_study_gives_the_same_numbers(text: Path, tmp_path: Path) -> None:
    settings = [*TINY["recency"], f"data={text}"]
    first = package.study("recency", settings=settings, out=tmp_path / "a")
    again = package.study("recency", settings=settings, out=tmp_path / "a")  # over the first page
    assert first.numbers == again.numbers


def test_recency_looks_at_runs_of_every_kind(
    regard: Command, ngram_run: Path, lstm_run: Path, transformer_run: Path, tmp_path: Path
) -> None:
    runs = [word for run in (ngram_run, lstm_run, transformer_run) for word in ("--run", run)]
    small = with_settings(["max_distance=30", "n_texts=20"])
    done = regard("study", "recency", *runs, "--out", tmp_path / "r", *small)
    assert done.code == 0, done.err
    curves = json.loads((tmp_path / "r" / "numbers.json").read_text())["numbers"]["curves"]
    by_name = {curve["model"]: curve for curve in curves}
    ngram = by_name["ngram"]
    assert all(n == 0 for d, n in zip(ngram["distances"], ngram["nats"], strict=True) if d > 2)  # of order 3
    assert ngram["nats"][0] > 0
    assert by_name["lstm"]["distances"][-1] == 30
    assert by_name["transformer"]["distances"][-1] == 15  # it sees 16 tokens, one of them the start
    note = "transformer was trained on too few tokens at once for max_distance 30: tokens up to 15 back were replaced."
    assert note in " ".join(done.out.split())
    assert note in (tmp_path / "r" / "report.html").read_text()


def test_gradients_looks_at_runs_with_a_gradient_and_refuses_the_others(
    regard: Command, ngram_run: Path, lstm_run: Path, tmp_path: Path
) -> None:
    small = with_settings(["max_distance=10", "n_texts=8"])
    done = regard("study", "gradients", "--run", lstm_run, "--out", tmp_path / "g", *small)
    assert done.code == 0, done.err
    (curve,) = json.loads((tmp_path / "g" / "numbers.json").read_text())["numbers"]["curves"]
    assert [len(curve["inputs"][0]), len(curve["state"][0])] == [11, 11]
    assert min(curve["state"][0]) > 0
    refused = regard("study", "gradients", "--run", ngram_run, "--out", tmp_path / "n")
    assert refused.code == 2
    assert "no gradient flows through it" in refused.err
    assert "regard study recency" in refused.err
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gradient",), "Did you mean 'gradients'?"),
        (("ab", "--set", "lenghts=[3]"), "Did you mean 'lengths'?"),
        (("ab", "--set", "lengths=[1]"), "lengths must be at least 2"),
        (("ab", "--set", "d_model=6"), "multiple of 4"),
        (("ab", "--set", "models=[ngram]"), "is counted"),
        (("ab", "--set", "models=[lsmt]"), "Did you mean 'lstm'?"),
        (("cost", "--set", "lengths=[64, 32]"), "each larger than the one before"),
        (("cost", "--set", "device=foo"), "device must be auto, cpu, cuda or cuda:N, not 'foo'"),
        (("ab", "--set", "models=lstm"), "models must be list of text, not 'lstm'. Write a list in brackets: [lstm]."),
        (("ab", "--set", "lengths=[]"), "lengths must name at least one"),
        (("recency", "--set", "max_distance"), "such as max_distance=32, not 'max_distance'"),
        (("gradients", "--run", "nowhere"), "There is no run folder 'nowhere'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = regard("study", *words)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "study").exists()


def test_runs_are_refused_where_a_study_makes_its_own_models(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    done = regard("study", "ab", "--run", lstm_run, "--out", tmp_path / "x")
    assert done.code == 2
    assert "takes no --run" in done.err
    assert "`regard eval RUN`" in done.err


def test_an_imported_run_needs_a_text_by_the_option_that_a_study_has(
    regard: Command, lstm_run: Path, text: Path, tmp_path: Path
) -> None:
    imported = tmp_path / "imported"
    shutil.copytree(lstm_run, imported)
    facts = json.loads((imported / "run.json").read_text())
    (imported / "run.json").write_text(json.dumps({**facts, "data": "imported", "checksums": {}}))
    words = "study", "recency", "--run", imported, "--out", tmp_path / "x", *with_settings(["n_texts=4"])
    refused = regard(*words)
    assert (refused.code, "Name data of yours with --set data=FILE" in refused.err) == (2, True)
    done = regard(*words, "--set", f"data={text}", "--set", "max_distance=8")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "x" / "numbers.json").read_text())
    assert found["numbers"]["curves"][0]["model"] == "imported (lstm)"
    assert set(found["settings"]) == {"data", "max_distance", "n_texts", "threshold", "seed"}
    assert found["numbers"]["units"] == "characters"  # of the run's tokenizer
    page = (tmp_path / "x" / "report.html").read_text()
    assert "n_steps" not in page
    assert "d_model" not in page


def test_one_run_twice_and_settings_of_models_that_are_not_made_are_refused(
    regard: Command, lstm_run: Path, tmp_path: Path
) -> None:
    out = "--out", tmp_path / "x"
    twice = regard("study", "recency", "--run", lstm_run, "--run", lstm_run.parent / "." / lstm_run.name, *out)
    assert (twice.code, "is given twice" in twice.err) == (2, True)
    both = regard("study", "gradients", "--run", lstm_run, "--set", "models=[rnn]", *out)
    assert (both.code, "--set models is about the models that the study makes" in both.err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_a_folder_that_holds_something_else_is_left_alone(regard: Command, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    done = regard("study", "ab", "--out", tmp_path, *with_settings(TINY["ab"]))
    assert done.code == 2
    assert "Choose another --out" in done.err
    assert (tmp_path / "report.html").read_text() == "mine"


def test_without_a_name_studies_and_their_settings_are_listed(regard: Command) -> None:
    done = regard("study")
    assert done.code == 0
    for name in TINY:
        assert name in done.out
    assert "max_distance" in done.out


def test_an_interrupted_study_writes_nothing(regard: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.studies import ab

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ab, "_attempt", interrupt)
    done = regard("study", "ab", "--out", tmp_path / "ab", *with_settings(TINY["ab"]))
    assert done.code == 130
    assert "wrote nothing" in done.err
    assert not (tmp_path / "ab").exists()


def test_the_help_of_a_study_shows_its_settings_and_an_example(regard: Callable[..., Any]) -> None:
    done = regard("study", "gradients", "--help")
    assert (done.code, done.err) == (0, "")
    assert "how the gradient of a prediction fades" in done.out
    assert "n_steps" in done.out
    assert 'regard study gradients --set "n_steps=100" --out gradients-mine' in done.out
    assert "regard study gradients --seeds 1" in done.out
    assert "cost" not in done.out
    assert "Show what the lectures claim" in regard("study", "--help").out
