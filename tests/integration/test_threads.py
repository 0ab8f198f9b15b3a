"""A loaded run gives several threads what it gives one: the verbs of every kind of run, all at once."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from tiny_served import BY_WORD, SHORT, WORD, train_all, write_data

import regard
from regard import api

N_THREADS = 4
MORE: dict[str, dict[str, Any]] = {
    "elmo": {
        "model": {"name": "elmo", "d_model": 8, "d_hidden": 12, "d_character": 4, "filters": [4, 8]},
        **SHORT,
    },
    "pointer": {"model": {"name": "pointer", "d_model": 16, "n_layers": 1}, "tokenizer": WORD, **SHORT},
    "tagger by characters": {
        "task": "tagging", "data": {"train": "FOLDER/names.conll"}, **BY_WORD,
        "words": {"d_word": 8, "filters": [4, 4]},
    },
}  # fmt: skip
"""Runs that meet new words and that copy them, which the local page's tests have no need of."""
KINDS = ["lstm", "transformer", "ngram", "bert", "translator", "parser", "tagger", "answerer", "classifier", "rater"]
KINDS += ["vectors", "captioner", *MORE]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of all runs."""
    folder = tmp_path_factory.mktemp("runs")
    write_data(folder)
    found = dict(train_all())
    for name, recipe in MORE.items():
        data = recipe.get("data", {"train": "FOLDER/my.txt"})["train"].replace("FOLDER", str(folder))
        found[name] = Path(api.train({**recipe, "data": {"train": data}}, out=folder / name, is_tested=False).folder)
    return found


@pytest.fixture(autouse=True)
def _many_turns() -> Iterator[None]:
    """Let threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def list_calls(run: Any, kind: str, pictures: list[Path], n: int) -> dict[str, Callable[[], Any]]:
    """What the n-th call asks a run of this kind: its verbs by name. Every call has words that no other has."""
    text = f"the cat{n} sat on the blick{n} , and then my aunt left {n}"
    by_kind: Mapping[str, Callable[[], dict[str, Callable[[], Any]]]] = {
        "translator": lambda: {
            "translate": lambda: run.translate(text, beam=2 + n % 2, max_length=6),
            "draw": lambda: run.translate(text, sampling={"seed": n}, max_length=6),
            "score": lambda: run.score(text, "der Hund schläft"),
            "align": lambda: run.align(text, "der Hund schläft"),
            "trace": lambda: run.trace(text, "der Hund schläft"),
            "prediction": lambda: run.prediction(text, "der Hund schläft", at=1).log_probs(),
        },
        "parser": lambda: {"parse": lambda: run.parse(f"the cat{n}", beam=1)},
        "captioner": lambda: {
            "caption": lambda: run.caption(pictures[n % len(pictures)], max_length=4),
            "trace": lambda: run.trace(pictures[n % len(pictures)], "a red square"),
        },
        "vectors": lambda: {
            "nearest": lambda: run.nearest("cat"),
            "analogy": lambda: run.analogy("cat", "dog", "aunt"),
        },
        "bert": lambda: {
            "fill": lambda: run.fill("the [MASK] " + text),
            "generate": lambda: run.generate("the", max_tokens=4, seed=n),
            "trace": lambda: run.trace(text),
        },
        "elmo": lambda: {
            "embed": lambda: run.embed([text, text + " again"]),
            "score": lambda: run.score(text),
            "trace": lambda: run.trace(text),
        },
        "answerer": lambda: {
            "predict": lambda: list(run.predict([(f"who sees the blick{n} ?", text)])),
            "trace": lambda: run.trace((f"who sees the blick{n} ?", text)),
        },
    }
    language_model: dict[str, Callable[[], Any]] = {
        "score": lambda: run.score(text),
        "generate": lambda: run.generate(text, max_tokens=6, seed=n),
        "search": lambda: run.generate(text, max_tokens=4, beam=2),
        "next": lambda: run.predict_next(text),
        "trace": lambda: run.trace(text),
    }
    labelled: dict[str, Callable[[], Any]] = {
        "predict": lambda: list(run.predict([text, text + " again"])),
        "trace": lambda: run.trace(text),
    }
    is_language_model = kind in ("lstm", "transformer", "ngram", "pointer")
    calls = dict(by_kind[kind]()) if kind in by_kind else language_model if is_language_model else labelled
    if kind not in ("vectors", "ngram", "parser"):
        calls["record"] = lambda: record(run, next(iter(calls.values())))
    return calls


def record(run: Any, call: Callable[[], Any]) -> dict[str, torch.Tensor]:
    """What the model computes where its last state is replaced by zeros."""
    with regard.trace(run) as kept:
        call()
    name = next(name for name in kept if name.endswith("hidden"))
    with regard.trace(run, replace={name: 0.0}) as kept:
        call()
    return {name: kept[name] for name in kept}


def to_plain(value: Any) -> Any:
    """Lists, dicts, arrays and words."""
    if isinstance(value, torch.Tensor):
        return value.detach().double().numpy()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, str | int | float | np.ndarray | None):
        return value
    return to_plain(vars(value)) if hasattr(value, "__dict__") else repr(value)


def check_equal(found: Any, expected: Any, where: str) -> None:
    """Compare two plain values; the order in which new words came may round sums otherwise."""
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            check_equal(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            check_equal(one, other, f"{where}[{i}]")
    elif isinstance(expected, float) or (isinstance(expected, np.ndarray) and expected.dtype.kind == "f"):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=where)
    else:
        assert np.array_equal(found, expected), where


@pytest.mark.parametrize("kind", KINDS)
def test_threads_get_what_one_thread_gets(folders: dict[str, Path], kind: str) -> None:
    alone, shared = regard.load(folders[kind]), regard.load(folders[kind])
    pictures = sorted((folders["elmo"].parent / "drawn" / "pictures").iterdir())[:3]
    names = list(list_calls(alone, kind, pictures, 0))
    # Every thread asks all verbs, each begins with another one.
    asked = [(n, names[(n + i) % len(names)]) for n in range(N_THREADS) for i in range(len(names))]
    expected = {each: to_plain(list_calls(alone, kind, pictures, each[0])[each[1]]()) for each in asked}
    barrier = Barrier(N_THREADS)

    def ask(n: int) -> dict[tuple[int, str], Any]:
        barrier.wait()
        mine = [each for each in asked if each[0] == n]
        return {each: to_plain(list_calls(shared, kind, pictures, n)[each[1]]()) for each in mine}

    with ThreadPoolExecutor(N_THREADS) as threads:
        for found in threads.map(ask, range(N_THREADS)):
            for each, answer in found.items():
                check_equal(answer, expected[each], f"{kind}: {each[1]} of thread {each[0]}")
