"""The same few functions for every model: train, generate, score, trace, evaluate, save and load."""

import typing
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import regard
from regard.lens.trace import trace_text
from regard.tasks.table import TASKS
from regard.training.progress import Silent

RUNS = ("lstm_run", "transformer_run", "ngram_run")


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> regard.LanguageModelRun:
    return regard.load(request.getfixturevalue(request.param))


def test_the_package_offers_its_public_names() -> None:
    """Also after every module is imported: a submodule of the same name would take a function's place."""
    import pkgutil

    for module in pkgutil.iter_modules(regard.__path__):
        if module.name != "__main__":  # which runs
            import_module(f"regard.{module.name}")
    for name in regard.__all__:
        assert isinstance(getattr(regard, name), ModuleType) == (name == "api")
    assert set(regard.__all__) == set(dir(regard))
    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'trian'"):
        regard.trian  # noqa: B018


def test_generation_begins_with_the_prompt_and_repeats_with_its_seed(run: regard.LanguageModelRun) -> None:
    text = run.generate("the cat", max_tokens=10, seed=4)
    assert text.startswith("the cat")
    assert run.generate("the cat", max_tokens=10, seed=4) == text
    assert run.generate("the cat", n=2, max_tokens=10, seed=4)[0] == text
    assert "".join(piece for _, piece in run.stream("the cat", max_tokens=10, seed=4)) == text.removeprefix("the cat")


def test_score_agrees_with_evaluate_on_one_document(run: regard.LanguageModelRun, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("the cat sat on the moon.\nmy aunt left.\n")
    scored, evaluated = run.score(path.read_text()), run.evaluate(str(path))
    assert scored.total == pytest.approx(evaluated.nats, abs=1e-9)
    assert len(scored.tokens) == evaluated.n_tokens
    assert scored.n_bytes == evaluated.n_bytes
    assert scored.bits_per_byte == pytest.approx(evaluated.bits_per_byte, abs=1e-12)


def test_other_text_is_read_as_the_runs_own_was(tmp_path: Path, text: Path) -> None:
    lines = text.read_text().splitlines()
    for name, part in (("train", lines[:300]), ("test", lines[300:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(part) + "\n")
    data = {"train": str(tmp_path / "train.txt"), "test": str(tmp_path / "test.txt"), "document": "line"}
    given = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 3}, "data": data}
    run = regard.train(given, out=tmp_path / "run")
    assert run.evaluate(str(tmp_path / "test.txt")) == run.evaluate()


def test_a_trace_has_a_row_for_every_token(run: regard.LanguageModelRun) -> None:
    trace = run.trace("the cat sat")
    assert len(trace.nats) == len(trace.tokens)
    for name, array in trace.taps.items():
        axis = -2 if name.endswith("attention") or array.ndim > 1 else 0
        assert array.shape[axis] == len(trace.tokens), name
    costs = run.score("the cat sat").nats[:-1]
    # Two paths in float32: a few units in the last place of a logit. In float64 a test of the lens holds them equal.
    assert np.allclose(trace.nats[-len(costs) :], costs, rtol=0, atol=2e-6)


def test_traced_attention_is_causal_and_sums_to_one(transformer_run: Path) -> None:
    weights = regard.load(transformer_run).trace("the cat sat").attention["layers.0.attention"]
    assert np.allclose(weights.sum(-1), 1, rtol=0, atol=1e-6)
    assert np.all(np.triu(weights, 1) == 0)


def test_a_trace_of_an_lstm_has_its_gates_and_cells(lstm_run: Path) -> None:
    trace = regard.load(lstm_run).trace("the cat")
    forget, cell = trace["layers.0.gates.forget"], trace.cells["layers.0.cell"]
    assert forget.min() > 0
    assert forget.max() < 1
    assert cell.shape == forget.shape
    with pytest.raises(
        regard.RegardError, match=r"There is no tap 'layers.9.cell' in this trace; there are: embedding"
    ):
        trace["layers.9.cell"]


def test_a_trace_of_an_ngram_model_tells_how_much_it_knew(ngram_run: Path) -> None:
    orders = regard.load(ngram_run).trace("the cat qqq")["matched_order"]
    assert orders.max() == 3
    assert orders[-1] <= 1


def test_the_trace_block_records_inside_and_not_outside(lstm_run: Path) -> None:
    model = regard.load(lstm_run).model
    ids = torch.tensor([[0, 260, 261]])
    plain, _ = model(ids)
    with regard.trace(model) as record:
        traced, _ = model(ids)
        traced[0, -1].sum().backward()
    assert torch.allclose(plain, traced, rtol=0, atol=1e-6)
    assert record.gradient("layers.0.hidden").abs().sum() > 0
    model(ids[:, :1])
    assert record["logits"].shape[1] == 3


def test_what_cannot_be_traced_is_said(transformer_run: Path, ngram_run: Path) -> None:
    run = regard.load(transformer_run)
    with pytest.raises(regard.RegardError, match=r"sees at most 15 at once. Shorten it"):
        run.trace("the cat sat on the mat, and then")
    with pytest.raises(regard.RegardError, match="The text to trace is empty"):
        trace_text(run.model, run.tokenizer, "")
    with (
        pytest.raises(regard.RegardError, match="An n-gram model has no activations"),
        regard.trace(regard.load(ngram_run)),
    ):
        pass


def test_resuming_on_changed_text_is_refused(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    mine = tmp_path / "mine.txt"
    mine.write_text(text.read_text())
    given = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 2}, "data": {"train": str(mine)}}
    regard.train(given, out=tmp_path / "run")
    mine.write_text(text.read_text() + "one more line\n")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "other-cache"))
    with pytest.raises(regard.RegardError, match=r"mine.txt are not those that .* was begun with"):
        regard.train(given, out=tmp_path / "run", resume=True)


def test_a_run_loads_in_bfloat16_and_scores_about_the_same(run: regard.LanguageModelRun) -> None:
    low = regard.load(run.folder, precision="bf16")
    if isinstance(low.model, torch.nn.Module):
        assert {p.dtype for p in low.model.parameters()} == {torch.bfloat16}
    text = "the cat sat on the moon."
    assert low.score(text).bits_per_byte == pytest.approx(run.score(text).bits_per_byte, rel=0.02)
    assert low.generate("the cat", max_tokens=5).startswith("the cat")


def test_a_precision_that_is_none_is_refused(lstm_run: Path) -> None:
    with pytest.raises(regard.RegardError, match="precision must be one of float32, bf16, not 'fp8'"):
        regard.load(lstm_run, precision="fp8")


def test_a_score_inside_a_trace_block_is_recorded(lstm_run: Path) -> None:
    run = regard.load(lstm_run)
    plain = run.score("the cat sat")
    with regard.trace(run) as record:
        traced = run.score("the cat sat")
    assert traced.bits_per_byte == pytest.approx(plain.bits_per_byte, rel=1e-6)
    found = run.trace("the cat sat")
    np.testing.assert_allclose(record["layers.0.cell"][0].numpy(), found.cells["layers.0.cell"], rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def novel_run(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    """Trained on one document, so that <eos> was hardly ever read; a vocabulary with all bytes."""
    folder = tmp_path_factory.mktemp("novel")
    (folder / "novel.txt").write_text("It was cold. It was late.\nNo one came.\n\n" * 200)
    given = {
        "data": {"train": str(folder / "novel.txt")},
        "tokenizer": {"kind": "bpe", "vocab_size": 300},
        "model": {"name": "lstm", "d_model": 32, "n_layers": 1},
        "train": {"max_steps": 150, "n_batch": 4, "n_context": 16, "eval_every": 150},
        "optimizer": {"lr": 0.01},
        "checkpoint": {"has_tensorboard": False},
    }
    return regard.train(given, out=folder / "run").folder


def test_without_a_prompt_a_run_of_one_document_begins_as_a_paragraph_does(novel_run: Path) -> None:
    texts = regard.load(novel_run).generate(n=20, max_tokens=1)
    assert {text[0] for text in texts} <= set("IN")
    assert sum(text[0] in "I" for text in texts) > 10


def test_threads_share_a_loaded_run(novel_run: Path) -> None:
    prompts = [f"It was {word}. No {word} came" for word in ("cold", "late", "one", "on", "no", "it", "was")] * 4
    expected = [regard.load(novel_run).generate(prompt, max_tokens=3, seed=1) for prompt in prompts]
    run = regard.load(novel_run)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda prompt: run.generate(prompt, max_tokens=3, seed=1), prompts)) == expected


def test_train_and_load_say_which_runs_they_return(lstm_run: Path) -> None:
    """So that an editor completes `run.translate(...)`; with `kind`, a type checker knows which run it is."""
    assert typing.get_type_hints(regard.train)["return"] == regard.Run
    assert set(typing.get_args(regard.Run)) == {task.run_type for task in TASKS.values()}
    assert isinstance(regard.load(lstm_run, kind=regard.LanguageModelRun), regard.LanguageModelRun)
    with pytest.raises(
        regard.RegardError, match=r"is a run of lstm that predicts the next token of a text, and one that"
    ):
        regard.load(lstm_run, kind=regard.TranslationRun)


def test_what_is_no_kind_of_run_no_text_and_no_number_is_refused_in_a_sentence(lstm_run: Path) -> None:
    with pytest.raises(regard.RegardError, match=r"kind must be one of regard\.LanguageModelRun, .*or be left out"):
        regard.load(lstm_run, kind=int)
    run = regard.load(lstm_run, kind=regard.LanguageModelRun)
    for call in (run.trace, run.score, run.generate):
        with pytest.raises(regard.RegardError, match=r"The (text|prompt) must be a str, not 3\."):
            call(3)  # type: ignore[arg-type]
    for n in (0, 1.5, True):
        with pytest.raises(regard.RegardError, match="a whole number from 1 to 10,000"):
            run.generate("the", n=n)  # type: ignore[arg-type]


def test_a_recipe_that_comes_with_regard_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    way_out = r"It comes with Regard: regard recipes lstm --copy recipes/lstm\.yaml"
    with pytest.raises(regard.RegardError, match=way_out):
        regard.train("recipes/lstm.yaml")


def test_what_a_language_model_cannot_do_is_said_with_what_it_can(lstm_run: Path) -> None:
    run: typing.Any = regard.load(lstm_run)
    with pytest.raises(regard.RegardError, match=r"predicts the next token of a text, and has no 'translate'\. It can"):
        run.translate("A dog runs.")


def test_a_finished_count_is_not_made_again(text: Path, tmp_path: Path) -> None:
    class Notes(Silent):
        def __init__(self) -> None:
            self.told: list[str] = []

        def note(self, text: str) -> None:
            self.told.append(text)

    given = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 2}, "data": {"train": str(text)}}
    regard.train(given, out=tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    told = Notes()
    regard.train(out=tmp_path / "run", resume=True, reporter=told)
    assert told.told == ["Nothing was left to do: the run is finished, all of its text is counted."]
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before
    fewer = ["train.max_tokens=500"]
    regard.train(out=tmp_path / "run", resume=True, settings=fewer, reporter=told)
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns != before
