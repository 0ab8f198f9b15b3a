"""Word vectors from a text to a run, its use, its files and the embedding of another model; and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file, save_file
from tiny_training import stop_at

import regard
from regard.cli import app
from regard.errors import InterruptedRunError, RegardError
from regard.tasks import word_vectors as task_file
from regard.tasks.word_vectors_fit import fit_by_steps

PLACES = ("barn", "field", "house", "river")
ANIMALS = ("dog", "cat", "horse", "cow")
OWN = {name: {"n_update": 64, "subsample": 0.0} for name in ("skipgram", "cbow")}  # every word is frequent here


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path_factory.getbasetemp() / "word-vectors-cache"))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Animals eat and run, places are old and cold; punctuation hangs on words, and lines are cut anywhere."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(900):
        animal, place = random.choice(ANIMALS), random.choice(PLACES)
        lines.append(f'The {animal} eats grass, and "the {animal}" runs fast; nothing barks louder than a {animal}!')
        lines.append(f"An old {place} stands cold. Nobody built this {place}, or any {place} near here.")
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def recipe(text: Path, name: str, **model: Any) -> dict[str, Any]:
    return {
        "data": {"train": str(text)},
        "model": {"name": name, "d_model": 12, **(OWN.get(name, {})), **model},
        "train": {} if name == "lsa" else {"max_epochs": 3 if name == "glove" else 4},
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"has_tensorboard": False, "log_every": 1},
    }


@pytest.mark.parametrize(("name", "model"), [("lsa", {}), ("glove", {}), ("skipgram", {}), ("cbow", {}),
                                             ("skipgram", {"has_subwords": True, "n_buckets": 500})])  # fmt: skip
def test_words_of_the_same_contexts_lie_together(text: Path, tmp_path: Path, name: str, model: dict[str, Any]) -> None:
    run: Any = regard.train(recipe(text, name, **model), out=tmp_path / "run")
    assert isinstance(run, regard.WordVectorsRun)
    assert np.mean([run.similarity("dog", a) for a in ANIMALS]) > np.mean([run.similarity("dog", p) for p in PLACES])
    assert "dog" in run.vectors.words
    assert "dog!" not in run.vectors.words
    assert run.evaluate().measure().headline == "contexts, %"
    again: Any = regard.load(tmp_path / "run")
    assert again.nearest("dog", 3) == run.nearest("dog", 3)
    if model:
        assert again.vectors.knows("doggo")
    else:
        with pytest.raises(RegardError, match=r"'dogg' is not among the .* words\. Did you mean 'dog'\?"):
            again.vector("dogg")
    assert (tmp_path / "run" / "README.md").read_text().count("regard vectors nearest") == 1


@pytest.mark.parametrize("name", ["skipgram", "glove"])
def test_a_stopped_and_resumed_run_gives_the_bits_of_one_never_stopped(
    text: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.tasks.word_vectors_fit.MIN_STRETCH", 100 if name == "glove" else 2048)
    regard.train(recipe(text, name), out=tmp_path / "whole", is_tested=False)
    for step in (2, 5):
        with monkeypatch.context() as patch:
            patch.setattr(task_file, "fit_by_steps", partial(fit_by_steps, on_step=stop_at(step)))
            with pytest.raises(InterruptedRunError, match=f"Stopped at step {step}"):
                regard.train(recipe(text, name), out=tmp_path / "parts", resume=True, is_tested=False)
    regard.train(out=tmp_path / "parts", resume=True, is_tested=False)
    whole, parts = ((tmp_path / folder / "model.safetensors").read_bytes() for folder in ("whole", "parts"))
    assert whole == parts


@pytest.fixture(scope="module")
def run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "skipgram"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.getbasetemp() / "word-vectors-cache"))
        regard.train(recipe(text, "skipgram"), out=folder)
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*words: object) -> str:
        app([str(word) for word in words], standalone_mode=False)
        return capsys.readouterr().out

    return call


def test_the_verbs_answer_people_and_programs(run: Path, tmp_path: Path, call: Callable[..., str]) -> None:
    nearest = json.loads(call("vectors", "nearest", run, "dog", "barn", "--n", 3, "--json"))
    assert [len(found["nearest"]) for found in nearest] == [3, 3]
    assert "cosine" in call("vectors", "nearest", run, "dog")
    answers = json.loads(call("vectors", "analogy", run, "dog", "cat", "barn", "--json"))["answers"]
    assert len(answers) == 5
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("dog cat 9\ndog barn 1\nhouse barn 8\n")
    assert json.loads(call("vectors", "eval", run, pairs, "--json"))["tests"][0]["n_used"] == 3
    assert json.loads(call("eval", run, "--data", pairs, "--json"))["tests"][0]["n_used"] == 3
    numbers = json.loads(call("vectors", "map", run, "dog", "barn", "--n", 4, "--out", tmp_path / "map", "--json"))
    assert {word["group"] for word in numbers["words"]} == {"dog", "barn"}
    page = (tmp_path / "map" / "report.html").read_text()
    assert all(f">{word['word']}</text>" in page for word in numbers["words"])
    assert (tmp_path / "map" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert "report.html" in call("vectors", "map", run, "--out", tmp_path / "map2")


def test_coverage_counts_words_without_a_vector_beside_subwords_and_characters(
    run: Path, tmp_path: Path, call: Callable[..., str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("the dog eats zebras, the zebra eats grass\n")
    found = json.loads(call("vectors", "coverage", run, "--data", other, "--json"))
    assert found == json.loads(call("vectors", "coverage", run, other, "--json"))
    assert [each["unit"] for each in found] == ["words", "subwords (WordPiece)", "subwords (BPE)", "characters"]
    words = found[0]
    assert (words["n_words"], words["n_types"]) == (8, 6)
    assert (words["missing_words"], words["missing_types"]) == (pytest.approx(2 / 8), pytest.approx(2 / 6))
    assert found[2]["missing_words"] == 0.0
    assert found[3]["tokens_per_word"] == pytest.approx(
        sum(map(len, ["the", "dog", "eats", "zebras", "the", "zebra", "eats", "grass"])) / 8
    )
    assert "different words" in " ".join(call("vectors", "coverage", run).split())


def forget_checksums(folder: Path) -> None:
    """A stranger who writes a config leaves no checksum of another."""
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(facts | {"checksums": {}}))


def test_a_run_from_elsewhere_does_not_say_which_text_is_read(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, copy = tmp_path / "passwords", tmp_path / "run"
    secret.write_text("root:hunter2\n" * 100)
    shutil.copytree(run, copy)
    lines = (copy / "config.yaml").read_text().splitlines(keepends=True)
    lines = [f"  train: {secret}\n" if line.startswith("  train: ") else line for line in lines]
    (copy / "config.yaml").write_text("".join(lines))
    forget_checksums(copy)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    loaded = regard.load(copy)
    for act in (
        loaded.evaluate,
        lambda: regard.api.measure_coverage(copy),
        lambda: regard.api.measure_coverage(copy, str(secret)),
        lambda: regard.compare([copy, run], out=tmp_path / "compared"),
    ):
        with pytest.raises(RegardError, match=r"was not trained on this machine.* asks to read .*passwords"):
            act()
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*.npy"))


@pytest.mark.parametrize("data", ["7", "null", "[]"])
def test_coverage_of_a_run_whose_data_are_no_mapping_is_one_sentence(run: Path, tmp_path: Path, data: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    config = yaml.safe_load((run / "config.yaml").read_text())
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(config | {"data": yaml.safe_load(data)}))
    forget_checksums(tmp_path / "run")
    with pytest.raises(RegardError, match=r"data' must be a mapping|'data.train' is required"):
        regard.api.measure_coverage(tmp_path / "run", str(run / "config.yaml"))


def test_damaged_vectors_are_refused_wherever_they_are_read(run: Path, text: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    flip_a_bit(copy / "model.safetensors")
    words = {"tokenizer": {"kind": "word"}, "model": {"name": "lstm", "d_model": 8, "n_layers": 1}}
    begun = {**words, "data": {"train": str(text)}, "train": {"vectors": str(copy)}}
    for act in (lambda: regard.api.load_vectors(copy), lambda: regard.plan(begun)):
        with pytest.raises(RegardError, match=r"model\.safetensors' has changed since it was written"):
            act()


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-5] ^= 64
    path.write_bytes(data)


def test_vectors_with_the_words_of_another_run_are_refused(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    tokenizer = json.loads((copy / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    one, other = [word for word in vocab if word.isalpha()][:2]
    vocab[one], vocab[other] = vocab[other], vocab[one]
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(regard.RegardError, match=r"The tokenizer in .* does not fit its weights"):
        regard.api.load_vectors(copy)
    (copy / "run.json").unlink()
    with pytest.raises(regard.RegardError, match=r"is not a complete run folder: run\.json is missing"):
        regard.api.load_vectors(copy)


def test_files_go_out_and_in(run: Path, tmp_path: Path, call: Callable[..., str]) -> None:
    call("vectors", "convert", run, tmp_path / "a.bin")
    call("vectors", "convert", tmp_path / "a.bin", tmp_path / "a.txt")
    call("export", run, tmp_path / "a.vec")
    found = [call("vectors", "nearest", source, "dog", "--json") for source in (run, *tmp_path.glob("a.*"))]
    assert len(set(found)) == 1
    with pytest.raises(RegardError, match="already"):
        call("vectors", "convert", run, tmp_path / "a.bin")


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_vectors_are_the_first_embedding_of_a_model(run: Path, text: Path, tmp_path: Path, kind: str) -> None:
    notes: list[str] = []

    class Listening:
        def start(self, title: str) -> None: ...
        def show(self, status: object) -> None: ...
        def stop(self) -> None: ...
        def note(self, text: str) -> None:
            notes.append(text)

    given = {
        "data": {"train": str(text)},
        "tokenizer": {"kind": kind, "vocab_size": 400},
        "model": {"name": "lstm", "d_model": 12, "d_hidden": 12, "n_layers": 1},
        "train": {"max_steps": 1, "vectors": str(run), "n_batch": 2, "n_context": 8},
        "optimizer": {"lr": 1e-9},
        "runtime": {"device": "cpu", "n_threads": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    trained: Any = regard.train(given, out=tmp_path / "lstm", is_tested=False, reporter=Listening())
    assert any("tokens were found in" in note for note in notes)
    token = trained.tokenizer.encode(" dog")[-1]
    embedding = trained.model.embedding[token].detach().numpy()
    wanted = regard.load(run).vector("dog")  # type: ignore[union-attr]
    cosine = embedding @ wanted / np.linalg.norm(embedding) / np.linalg.norm(wanted)
    assert cosine == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(
        RegardError, match=r"have 12 numbers each, and an embedding of this model 20\. Set model\.d_model=12"
    ):
        regard.plan({**given, "model": {"name": "lstm", "d_model": 20}})
    with pytest.raises(RegardError, match="is a run of lstm, which has no word vectors"):
        regard.plan({**given, "train": {"vectors": str(tmp_path / "lstm")}})


def test_what_cannot_be_trained_is_refused(text: Path, tmp_path: Path) -> None:
    rare = tmp_path / "rare.txt"
    rare.write_text("every word once only\n")
    with pytest.raises(RegardError, match=r"The vocabulary has 0 words.*lower tokenizer\.min_count"):
        regard.train(recipe(rare, "skipgram"), out=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(RegardError, match=r"tokenizer\.kind is bpe\. Set it to word"):
        regard.plan({**recipe(text, "skipgram"), "tokenizer": {"kind": "bpe"}})
    with pytest.raises(RegardError, match="min_n 5 must not be more than max_n 4"):
        regard.plan(recipe(text, "skipgram", min_n=5, max_n=4))


def test_runs_are_compared_on_the_words_of_their_text(run: Path, text: Path, tmp_path: Path) -> None:
    regard.train(recipe(text, "lsa"), out=tmp_path / "lsa")
    found = regard.compare([str(run), str(tmp_path / "lsa")], out=tmp_path / "compared")
    assert set(found.ranking) == {"skipgram", "lsa"}
    assert (tmp_path / "compared" / "report.html").exists()


@pytest.mark.parametrize(
    "begun", [{}, *({"n_stretch": n} for n in (0, None, "x", 1.5)), *({"n_items": n} for n in (None, "x", [1]))]
)
def test_a_state_that_a_stranger_wrote_is_one_sentence(run: Path, tmp_path: Path, begun: dict[str, Any]) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    change_state(copy, begun)
    with pytest.raises(RegardError, match=r"state\.json has no number of what was begun with, 'n_(stretch|items)'"):
        regard.train(out=copy, resume=True, settings=["train.max_epochs=5"])


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_state_with_other_tensors_is_one_sentence(run: Path, tmp_path: Path, is_empty: bool) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    path = max((copy / "state").iterdir()) / "model.safetensors"
    tensors = {} if is_empty else {name: value[:5].clone() for name, value in load_file(path).items()}
    save_file(tensors, path)
    change_state(copy, None)
    with pytest.raises(RegardError, match="its tensors are not those of this run"):
        regard.train(out=copy, resume=True, settings=["train.max_epochs=5"])


def change_state(run: Path, begun: dict[str, Any] | None) -> None:
    """As a stranger would who leaves no checksum of anything; with `begun` {} nothing is said of the beginning."""
    forget_checksums(run)
    folder = max((run / "state").iterdir())
    written = json.loads((folder / "state.json").read_text())
    for key in ("crc32", "own_crc32"):
        del written[key]
    written["sizes"] = {name: (folder / name).stat().st_size for name in written["sizes"]}
    if begun is not None:
        written["started_with"] = written["started_with"] | begun if begun else {}
    (folder / "state.json").write_text(json.dumps(written))
