"""Every model of the table through every task it is for, in one harness: a line in the table is what tests a model.

A task brings tiny data in files (`BENCHES`). A model whose parts can be put together in several ways brings these
(`VARIANTS`); one that brings nothing is tested as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tiny_captions
import tiny_pairs
import torch
import yaml
from tiny_parsing import LINES
from tiny_training import same_runs, stop_at

from regard import api
from regard.config import RunConfig
from regard.count.ngram import NgramModel
from regard.data.masked_batches import MaskedBatches
from regard.data.masked_config import MaskingConfig
from regard.data.prepared_text import PreparedText
from regard.data.tree_lines import to_brackets
from regard.data.trees import parse_trees
from regard.errors import InterruptedRunError
from regard.models.encoder_from_scratch import FROM_SCRATCH
from regard.models.table import MODELS, model_config, models_for
from regard.run.folder import state_facts
from regard.tasks import gradient
from regard.tasks.masked_objective import as_tensors
from regard.tasks.table import TASKS, build_config, example_config, list_settings, task_of
from regard.tasks.task import Fitting, OpenRun
from regard.training.loop import train_by_gradient
from regard.training.objective import HostBatch
from regard.training.progress import Silent
from regard.training.weights import named_weights, read_tensors, write_weights

CPU = torch.device("cpu")
STATE = ("model", "average", "optimizer", "random", "best")
Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Bench:
    """What a task needs to be tested: eight items in files, and the settings of a model that is small."""

    write: Callable[[Path], tuple[dict[str, Any], list[str]]]
    """Writes the files; the plain `data` section, and the items that predictions are made of."""
    tiny: Mapping[str, Any]
    """Settings of the model, where it has them."""
    wide: Mapping[str, Any]
    """Those with which it can memorise."""
    sections: Sections
    answer: Callable[[Any], str] | None = None
    """The text in a prediction, which is the item's own once that is memorised; None: what is predicted is no text."""
    truth: tuple[str, ...] = ()
    rows: Callable[[Any], HostBatch] | None = None
    """The eight items as one batch; None: the first batch holds them."""
    lr: float = 1e-2
    n_steps: int = 300
    nats: float = 0.05
    """A token costs less than this after so many steps."""


@dataclass(frozen=True)
class Case:
    """A model, its variant and the task it is trained for."""

    task: str
    name: str
    model: Mapping[str, Any] = field(default_factory=dict)
    sections: Sections = field(default_factory=dict)
    can_memorise: bool = True

    def given(self, files: Files, model: Mapping[str, Any], sections: Sections) -> dict[str, Any]:
        """The plain config."""
        bench, known = BENCHES[self.task], {line.name for line in MODELS[self.name].config.help()}
        settings = {key: value for key, value in {**bench.tiny, **self.model, **model}.items() if key in known}
        whole: dict[str, Any] = {"task": self.task, "model": {"name": self.name, **settings}}
        for part in ({"data": files[self.task][0]}, COMMON, bench.sections, self.sections, sections):
            for name, section in part.items():
                if name in COMMON or name in TASKS[self.task].sections:
                    whole[name] = {**whole.get(name, {}), **section}
        return whole

    def config(self, files: Files, model: Mapping[str, Any] | None = None, sections: Sections | None = None) -> Any:
        return build_config(self.given(files, model or {}, sections or {}))


Files = Mapping[str, tuple[dict[str, Any], list[str]]]
COMMON: Sections = {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "optimizer": {"lr": 0.01},
    "schedule": {"n_warmup": 2},
    "train": {"max_steps": 6, "eval_every": 3},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"every_seconds": None, "log_every": 2, "has_tensorboard": False},
}
EVERYTHING: Sections = {
    "train": {"average": "ema", "average_decay": 0.9, "n_accumulate": 2},
    "teaching": {"mode": "scheduled", "decay": "linear", "n_half": 4},
    "checkpoint": {"every_steps": 3},
}
"""All that draws random numbers or remembers something."""


def write_text(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Each line starts with a word of its own, so even a bag can tell them apart; the rest is random."""
    draws = torch.Generator().manual_seed(0)
    rest = torch.randint(0, 24, (8, 7), generator=draws).tolist()
    lines = [" ".join([f"first{i}", *(f"word{n}" for n in row)]) for i, row in enumerate(rest)]
    for name, some in (("train", lines), ("valid", lines[:3][::-1])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in some))
    return {"train": str(folder / "train.txt"), "valid": str(folder / "valid.txt"), "p_test": 0}, lines


def write_words(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The lines of `write_text`, and their first words."""
    data, lines = write_text(folder)
    return data, [line.split()[0] for line in lines]


def text_rows(data: PreparedText) -> HostBatch:
    """A line a row, of its eight words."""
    ids = torch.from_numpy(data.train[:]).long().reshape(8, 9)[:, :8]  # and the end of the line, which stays out
    return HostBatch((ids[:, :-1], ids[:, 1:], torch.ones(8, 7, dtype=torch.bool)), 8 * 7, is_fresh=True)


def text_rows_both_ways(data: PreparedText) -> HostBatch:
    """A line a row, read from either end."""
    (inputs, targets, mask), n_tokens, _ = text_rows(data)
    return HostBatch((inputs, targets, targets.flip(1), inputs.flip(1), mask), 2 * n_tokens, is_fresh=True)


def write_masked(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The lines of `write_text` as documents of their own; what is predicted of each is its second word."""
    data, lines = write_text(folder)
    words = [line.split() for line in lines]
    return data | {"document": "line"}, [" ".join([row[0], "[MASK]", *row[2:]]) for row in words]


def masked_rows(data: PreparedText) -> HostBatch:
    """Eight rows in which the same places are always masked."""
    objective = MaskedBatches(data.train, data.tokenizer, MaskingConfig(), n_batch=8, n_context=24, has_pairs=True)
    batch = objective.at(0)
    return HostBatch(as_tensors(batch), int(batch.is_there.sum()), is_fresh=True)


CHOSEN = tiny_pairs.TEXTS[1::3]


def write_texts(folder: Path) -> tuple[dict[str, Any], list[str]]:
    some = {"train": CHOSEN, "valid": tiny_pairs.TEXTS[:4]}
    files = {name: [str(path) for path in tiny_pairs.write_pairs(folder, some[name], name)] for name in some}
    return {**files, "p_test": 0}, [source for source, _ in CHOSEN]


TREES = [*LINES, *(line.replace("dog", "town") for line in LINES[:2])]


def write_trees(folder: Path) -> tuple[dict[str, Any], list[str]]:
    for name, lines in (("train", TREES), ("valid", LINES[:2])):
        (folder / f"{name}.mrg").write_text("\n".join(lines) + "\n")
    files = {name: str(folder / f"{name}.mrg") for name in ("train", "valid")}
    words = [" ".join(tree.words) for tree in parse_trees(TREES)]
    return {**files, "p_test": 0, "tree_words": "tag"}, words


def write_pictures(folder: Path) -> tuple[dict[str, Any], list[str]]:
    pictures, captions = tiny_captions.write_pictures(folder)
    lines = captions.read_text().splitlines(keepends=True)[::2]  # one of what is said of each
    captions.write_text("".join(lines))
    names = [line.partition("#")[0] for line in lines]
    splits = {"train": names[:8], "valid": names[8:10], "test": names[10:]}
    for split, some in splits.items():
        (folder / f"{split}.txt").write_text("".join(f"{name}\n" for name in some))
    named = {split: str(folder / f"{split}.txt") for split in splits}
    data = {"pictures": str(pictures), "captions": str(captions), **named, "size": tiny_captions.SIZE}
    return data, [str(pictures / name) for name in splits["train"]]


SENTENCES = [
    "Anna saw a dog",
    "the dog slept",
    "Bo ran far",
    "a cat sat",
    "Cy met Anna",
    "it rains",
    "we left",
    "go on now",
]
LABELS = ["good", "bad", "so", "good", "bad", "so", "good", "bad"]


def write_labelled(folder: Path, lines: list[str], items: list[str], ending: str) -> tuple[dict[str, Any], list[str]]:
    for name, some in (("train", lines), ("valid", lines[:3])):
        (folder / f"{name}.{ending}").write_text("\n".join(some) + "\n")
    files = {name: str(folder / f"{name}.{ending}") for name in ("train", "valid")}
    return {**files, "p_test": 0}, items


def write_classes(folder: Path) -> tuple[dict[str, Any], list[str]]:
    lines = [f"{text}\t{label}" for text, label in zip(SENTENCES, LABELS, strict=True)]
    return write_labelled(folder, lines, SENTENCES, "tsv")


def write_numbers(folder: Path) -> tuple[dict[str, Any], list[str]]:
    lines = [f"{text}\t{i % 3}" for i, text in enumerate(SENTENCES)]
    return write_labelled(folder, lines, SENTENCES, "tsv")


def write_tags(folder: Path) -> tuple[dict[str, Any], list[str]]:
    lines = ["\n".join(f"{w} {'B-PER' if w[0].isupper() else 'O'}" for w in text.split()) + "\n" for text in SENTENCES]
    return write_labelled(folder, lines, SENTENCES, "conll")


def write_questions(folder: Path) -> tuple[dict[str, Any], list[str]]:
    def question(i: int, text: str) -> dict[str, Any]:
        asked = {"id": str(i), "question": f"which word is {i % 2} ?"}
        words = text.split()
        place = sum(len(word) + 1 for word in words[: i % 2])
        return {"context": text, "qas": [{**asked, "answers": [{"text": words[i % 2], "answer_start": place}]}]}

    for name, n in (("train", 8), ("valid", 3)):
        paragraphs = [question(i, text) for i, text in enumerate(SENTENCES[:n])]
        (folder / f"{name}.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    items = [f"which word is {i % 2} ?\t{text}" for i, text in enumerate(SENTENCES)]
    return {**{name: str(folder / f"{name}.json") for name in ("train", "valid")}, "p_test": 0}, items


READER = {"d_model": 8, "d_hidden": 12, "d_ff": 12, "n_layers": 2, "n_heads": 2, "max_context": 16, "p_dropout": 0.0}
WIDE = {"d_model": 32, "d_hidden": 32}


def reader_bench(write: Callable[[Path], tuple[dict[str, Any], list[str]]], **head: Any) -> Bench:
    sections: Sections = {"train": {"n_batch": 8}, "head": {"p_dropout": 0.0, **head}, "encoder": {"pool": "attention"}}
    return Bench(write=write, tiny=READER, wide=WIDE, sections=sections)


BENCHES: dict[str, Bench] = {
    "classification": reader_bench(write_classes, labels=["bad", "good", "so"]),
    "rating": reader_bench(write_numbers, centre=1.0, spread=0.8),
    "tagging": reader_bench(write_tags, labels=["B-PER", "O"], select_by="f1"),
    "answering": reader_bench(write_questions, allows_none=False),
    "language-model": Bench(
        write=write_text,
        tiny={
            "d_model": 8, "d_hidden": 12, "d_ff": 12, "n_layers": 2, "n_heads": 2, "max_context": 7, "n_window": 3,
            "p_dropout": 0.0, "max_memory": 4,
        },
        wide={"d_model": 64, "d_hidden": 64, "n_window": 7},
        sections={"train": {"n_batch": 4, "n_context": 7}},
        rows=text_rows,
    ),
    "bidirectional-language-model": Bench(
        write=write_text,
        tiny={
            "d_model": 8, "d_hidden": 12, "d_character": 4, "filters": [4, 8], "max_characters": 10, "p_dropout": 0.0,
        },
        wide={"d_model": 32, "d_hidden": 64},
        sections={"train": {"n_batch": 4, "n_context": 7}},
        rows=text_rows_both_ways,
    ),
    "translation": Bench(
        write=write_texts,
        tiny=tiny_pairs.TINY,
        wide={"d_model": 32},
        sections={"teaching": {"max_tokens": 1000}},
        answer=lambda best: str(best[0].text),
        truth=tuple(target for _, target in CHOSEN),
    ),
    "parsing": Bench(
        write=write_trees,
        tiny=tiny_pairs.TINY | {"max_context": 60, "tying": "target"},  # words and brackets are two vocabularies
        wide={"d_model": 32},
        sections={"teaching": {"max_tokens": 1000}},
        answer=lambda parse: to_brackets(parse.tree),
        truth=tuple(TREES),
    ),
    "captions": Bench(
        write=write_pictures,
        tiny=tiny_captions.TINY,
        wide={"d_model": 32},
        sections={"train": {"n_batch": 8}},
        answer=lambda best: str(best[0].text),
        truth=tuple(tiny_captions.said(*thing)[0] for thing in tiny_captions.THINGS[:8]),
        lr=5e-3,
        n_steps=200,
        nats=0.03,
    ),
    "masked-language-model": Bench(
        write=write_masked,
        tiny={
            "d_model": 8, "d_ff": 12, "n_layers": 2, "n_heads": 2, "max_context": 24, "p_dropout": 0.0,
        },
        wide={"d_model": 64, "d_ff": 64},
        sections={
            "tokenizer": {"kind": "wordpiece", "vocab_size": 200},
            "train": {"n_batch": 4, "n_context": 24},
        },
        rows=masked_rows,
        lr=5e-3,
    ),
    "word-vectors": Bench(
        write=write_words,
        tiny={"d_model": 8, "n_buckets": 50, "subsample": 0.0, "lr": 0.05},
        wide={},
        sections={"tokenizer": {"min_count": 1}},
    ),
}  # fmt: skip

VARIANTS: dict[str, dict[str, Mapping[str, Any]]] = {
    "attention": {"": {}, "averaged heads": {"heads": "averaged"}},
    "transformer": {"": {}, "without parts": {"without": ["feed-forward", "values", "scale"]}},
    "seq2seq": {variant: model for variant, (name, model) in tiny_pairs.GRID.items() if name == "seq2seq"},
    "captioner": tiny_captions.GRID,
    "elmo": {"": {}, "of tokens, clipped": {"input": "tokens", "cell_clip": 3.0, "projection_clip": 3.0}},
    "skipgram": {"": {}, "subwords": {"has_subwords": True}},
}


TWO_VOCABULARIES: Sections = {"target_tokenizer": {"kind": "word", "vocab_size": None}}


LISTED = "\n".join(["<unk>", "<eos>", *{word.lower() for text in SENTENCES for word in text.split()}])
WORDS_AND_CHARACTERS: Sections = {
    "words": {
        "d_word": 6, "min_count": 1, "d_character": 4, "filters": [2, 3], "max_characters": 8,
        "n_learned": LISTED.count("\n") + 1, "n_fixed": 0, "n_bytes": len(LISTED),
    },
}  # fmt: skip


def list_cases() -> dict[str, Case]:
    """Every name in every task it is for; its variants in one of them."""
    cases: dict[str, Case] = {}
    for name, entry in MODELS.items():
        variants = VARIANTS.get(name, {"": {}})
        for task in entry.tasks:
            chosen = variants if task == entry.tasks[-1] else dict([next(iter(variants.items()))])
            cases |= {f"{task}: {name} {variant}".strip(): Case(task, name, chosen[variant]) for variant in chosen}
    plain = {"encoder": "transformer", "decoder": "lstm", "attention": "bilinear", "tying": "none"}
    cases["translation: seq2seq with two vocabularies"] = Case("translation", "seq2seq", plain, TWO_VOCABULARIES)
    for task, names in READERS.items():
        cases |= {f"{task}: {name}": Case(task, name) for name in names}
    cases["tagging: gru with a CRF"] = Case("tagging", "gru", {}, {"head": {"has_crf": True}})
    cases["tagging: lstm over words and characters"] = Case("tagging", "lstm", {}, WORDS_AND_CHARACTERS)
    cases["answering: bag"] = Case("answering", "bag", can_memorise=False)  # it cannot tell which word is the first
    # A frozen network of random numbers stands in for the published one, and needs room to see two places.
    key = "captions: captioner frozen efficientnet to lstm"
    cases[key] = replace(cases[key], sections={"data": {"size": 64}}, can_memorise=False)
    key = "captions: captioner patches to rnn, no attention"
    cases[key] = replace(cases[key], can_memorise=False)  # all it knows of a picture is a mean
    return cases


READERS = {
    "classification": FROM_SCRATCH,
    "rating": ("convolution",),
    "tagging": ("lstm", "transformer"),
    "answering": ("lstm", "transformer"),
}
"""Which encoders are tested in which task with labels: all of them in one."""

CASES = list_cases()
EACH = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
GRADIENT = {key: case for key, case in CASES.items() if not MODELS[case.name].is_counted}
EACH_WITH_GRADIENTS = pytest.mark.parametrize("case", GRADIENT.values(), ids=GRADIENT)
MEMORISED = {key: case for key, case in GRADIENT.items() if case.can_memorise}
# One variant of every model in every task: how its parts are chosen, resuming does not ask.
RESUMED = list({(case.task, case.name): key for key, case in reversed(GRADIENT.items())}.values())
RESUMED.append("captions: captioner patches to transformer")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    """The data of every task, and a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr("regard.tasks.captions.find_published", lambda: None)
        patch.setattr("regard.tasks.captions.load_published", lambda network: None)
        yield {task: bench.write(tmp_path_factory.mktemp(task)) for task, bench in BENCHES.items()}


def build(config: RunConfig, data: Any, seed: int = 7) -> Any:
    task: Any = task_of(config)
    torch.manual_seed(seed)
    return task.build(config, task.tokenizers(data))


def opened(config: RunConfig, data: Any) -> OpenRun:
    """What a run folder would say, and there is none."""
    tokenizers = task_of(config).tokenizers(data)
    return OpenRun(Path("nowhere"), config, state_facts(config, tokenizers, data.fingerprint, 0, 0), tokenizers)


def test_every_task_has_a_bench_and_every_name_of_the_table_a_case() -> None:
    assert set(BENCHES) == set(TASKS)
    assert {name for name, _ in tiny_pairs.GRID.values()} == set(models_for("translation"))  # which other tests go by
    wanted = {(t, n) for n, e in MODELS.items() for t in e.tasks} | {(t, n) for t in READERS for n in READERS[t]}
    assert {(case.task, case.name) for case in CASES.values()} >= wanted


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_says_what_it_means(name: str) -> None:
    assert all(line.doc for lines in list_settings(example_config(name)).values() for line in lines)


@EACH
def test_a_config_round_trips_through_yaml(files: Files, case: Case) -> None:
    config = case.config(files)
    again = build_config(yaml.safe_load(config.to_yaml()))
    assert again.to_dict() == config.to_dict()
    assert again == config or MODELS[case.name].is_counted  # how it would be descended is not written
    for model in (config.model, MODELS[case.name].config()):
        assert model_config(case.name, yaml.safe_load(yaml.safe_dump(model.to_dict()))) == model


@EACH_WITH_GRADIENTS
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(files: Files, case: Case) -> None:
    """In free running too, where what is read has no gradient but what is written has. What is frozen gets none."""
    modes = ("teacher", "free") if "teaching" in TASKS[case.task].sections else ("teacher",)
    vocabularies = ({}, TWO_VOCABULARIES) if "target_tokenizer" in TASKS[case.task].optional else ({},)
    for mode, two in product(modes, vocabularies):
        config = case.config(files, {"tying": "none"} if two else {}, {"teaching": {"mode": mode}, **two})
        task: Any = task_of(config)
        data = task.prepare(config)
        model = build(config, data)
        objective = task.objective(config, model, data)
        objective.loss(model, objective.body(model), objective.at(0).tensors, None).goal.backward()
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                assert parameter.grad is None, (mode, name)
                continue
            assert parameter.grad is not None, (mode, name)
            assert parameter.grad.isfinite().all(), (mode, name)
            assert parameter.grad.abs().max() > 0, (mode, name)


@pytest.mark.parametrize("case", MEMORISED.values(), ids=MEMORISED)
def test_eight_items_can_be_memorised_and_are_given_back(files: Files, case: Case) -> None:
    bench = BENCHES[case.task]
    config = case.config(files, bench.wide, {"teaching": {"smoothing": 0.0}})
    task: Any = task_of(config)
    data = task.prepare(config)
    model = build(config, data)
    objective = task.objective(config, model, data)
    optimizer = torch.optim.Adam(model.parameters(), lr=bench.lr)
    for index in range(bench.n_steps):
        tensors, n_tokens, _ = objective.at(index) if bench.rows is None else bench.rows(data)
        loss = objective.loss(model, objective.body(model), tensors, None)
        optimizer.zero_grad()
        (loss.goal / n_tokens).backward()
        optimizer.step()
        if loss.nats.item() / n_tokens < bench.nats:
            break
    else:
        pytest.fail(f"still {loss.nats.item() / n_tokens:.3f} nats a token after {bench.n_steps} steps")
    assert len(tensors[0]) == 8
    if bench.answer is not None:
        run = task.run_type(task, opened(config, data), model.eval())
        for beam in (1, 4):
            found = [bench.answer(each) for each in run.predict(files[case.task][1], beam=beam)]
            assert tuple(found) == bench.truth


@EACH
def test_saved_and_loaded_it_predicts_the_same(files: Files, case: Case, tmp_path: Path) -> None:
    config, items = case.config(files), files[case.task][1]
    task: Any = task_of(config)
    data = task.prepare(config)
    path, folder = tmp_path / "model.safetensors", opened(config, data)
    if MODELS[case.name].is_counted:
        config = task.complete(config)
        task.fit(config, data, Fitting(tmp_path, None, False, nullcontext, Silent()))
        model: Any = fit_again(config, data, folder, tmp_path / "again")
    else:
        model = build(config, data).eval()
        write_weights(named_weights(model), path)
        other = task.run_type(task, folder, build(config, data, seed=8).eval())
    before = list(task.run_type(task, folder, model).predict(items))
    assert len(before) == 8
    assert list(task.load(folder, read_tensors(path), CPU, torch.float32).predict(items)) == before
    assert MODELS[case.name].is_counted or list(other.predict(items)) != before


def fit_again(config: RunConfig, data: Any, folder: OpenRun, place: Path) -> Any:
    """A model that its task fits, fitted a second time."""
    if config.model_name == "ngram":
        return NgramModel.fit(config.model, data.train[:], data.tokenizer.vocab_size, None)  # type: ignore[arg-type]
    place.mkdir()
    task: Any = task_of(config)
    task.fit(config, data, Fitting(place, None, False, nullcontext, Silent()))
    return task.load(folder, read_tensors(place / "model.safetensors"), CPU, torch.float32).model


@pytest.mark.parametrize("case", [CASES[key] for key in RESUMED], ids=RESUMED)
def test_a_stopped_and_resumed_run_gives_the_bits_of_one_never_stopped(
    files: Files, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, scheduled sampling, an average and parts; of pairs with BPE dropout, of pictures with cuts."""
    own: dict[str, Sections] = {
        "translation": {"tokenizer": {"kind": "bpe", "vocab_size": 300}, "teaching": {"p_bpe_dropout": 0.3}},
        "captions": {"data": {"n_margin": 4, "flips": True}, "teaching": {"select_by": "bleu"}},
    }
    more = own.get(case.task, {})
    sections = {name: {**EVERYTHING.get(name, {}), **more.get(name, {})} for name in {**EVERYTHING, **more}}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    given = case.given(files, {"p_dropout": 0.2, "p_picture_dropout": 0.1}, sections)
    api.train(given, out=whole, is_tested=False)
    for step in (2, 4):
        with monkeypatch.context() as patch:
            patch.setattr(gradient, "train_by_gradient", partial(train_by_gradient, on_step=stop_at(step)))
            with pytest.raises(InterruptedRunError, match=f"Stopped at step {step}"):
                api.train(given, out=parts, resume=True, is_tested=False)
        torch.rand(5)  # whatever the process does in between must not matter
    resumed = api.train(out=parts, resume=True, is_tested=False)
    assert same_runs(whole, parts)
    for file in STATE:
        a, b = (folder / "state" / "step-00000006" / f"{file}.safetensors" for folder in (whole, parts))
        assert a.read_bytes() == b.read_bytes(), file
    assert list(resumed.predict(files[case.task][1])) == list(api.load(whole).predict(files[case.task][1]))
