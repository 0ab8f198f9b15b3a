"""A comparison that nobody ran, with the shape of a real one: for looking at the report without training anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from regard.compare.rank import put_in_order
from regard.compare.result import (
    Comparison,
    Contender,
    CurvePoint,
    Failure,
    RunResult,
    Score,
    Setup,
    Training,
)
from regard.lens.views import AttentionView, CellTrace, CellView, Continuation, PositionPoint, Span, Views
from regard.score.judges import BitsPerByte
from regard.score.significance import Sample, explain, take_sample

PASSAGE = """If the iterable is empty, return an empty list. The optional key argument specifies
a function of one argument that is used to extract a comparison key from each
element ("case-insensitive", say). The default value is None.

   >>> sorted("This is a test string from Andrew".split(), key=str.lower)
   ['a', 'Andrew', 'from', 'is', 'string', 'test', 'This']

Unlike list.sort(), which modifies the list in-place and returns None to avoid
confusion, sorted() builds a new list; the original one stays as it was."""

# name, final bits per byte, bits at the start, how fast, how much it gains from context, FLOPs a token
SHAPES = {
    "ngram": (2.31, 4.2, 0.30, 0.10, 0.0),
    "window": (2.52, 4.4, 0.28, 0.12, 2.1e6),
    "rnn": (2.34, 4.3, 0.33, 0.35, 4.3e6),
    "lstm": (2.16, 4.5, 0.42, 0.55, 5.2e6),
    "transformer": (2.05, 4.4, 0.47, 0.80, 6.4e6),
    "bag": (3.05, 4.0, 0.2, 0.02, 1.5e6),
    "gru": (2.17, 4.4, 0.41, 0.50, 5.0e6),
    "rnn-attention": (2.15, 4.4, 0.42, 0.60, 5.9e6),
    "pointer": (2.14, 4.4, 0.42, 0.62, 6.1e6),
    "convolution": (2.26, 4.3, 0.40, 0.30, 4.8e6),
    "restricted": (2.13, 4.4, 0.44, 0.45, 5.6e6),
    "attention": (2.27, 4.4, 0.43, 0.55, 5.5e6),
    "lstm-wide": (2.161, 4.5, 0.42, 0.55, 5.2e6),
    "transformer-8-heads": (2.052, 4.4, 0.47, 0.80, 6.4e6),
    "gru-dropout": (2.165, 4.4, 0.41, 0.50, 5.0e6),
    "pointer-with-a-sentinel-and-a-long-name": (2.142, 4.4, 0.42, 0.62, 6.1e6),
}
SIXTEEN = tuple(SHAPES)
TWELVE = SIXTEEN[:12]
ATTENDING = ("transformer", "rnn-attention", "pointer", "restricted", "attention")
RECURRENT = ("rnn", "gru", "lstm", "rnn-attention", "pointer")
SAMPLES = {
    "ngram": " is a list of the same as the first argument is not a valid option. The return value of the function.",
    "window": " the type of the object to be used by the type of the function is the same value, and the default.",
    "rnn": " be a string or a tuple of strings. If the file is not given, the default is to use the current module.",
    "lstm": " return the number of bytes written.\n\nChanged in version 3.4: It may be any bytes-like object.",
    "transformer": " be called with a single argument, the exception instance. If it returns true, the exception is "
    "ignored and the next handler is tried.",
    "bag": " the the of a to the in, is function of the and value for.",
}


BLOCK_BYTES = (4096,) * 40
JUDGE = BitsPerByte(BLOCK_BYTES)


def made_up_comparison(
    names: tuple[str, ...] = ("ngram", "window", "rnn", "lstm", "transformer"),
    *,
    n_seeds: int = 3,
    failing: tuple[str, ...] = (),
    passage: str = PASSAGE,
    prompt: str = "The function should",
    lossy: Mapping[str, str] = {},
    n_documents: int = 20,
) -> Comparison:
    rng = np.random.default_rng(0)
    hardness = rng.normal(1.0, 0.12, size=40)
    contenders, samples = [], {}
    for name in names:
        contender, sample = _contender(name, n_seeds, hardness, passage, rng, n_documents, lossy.get(name, ""))
        if name in failing:
            reason = "the loss became NaN at step 320"
            failures = tuple(Failure(seed=s, reason=reason) for s in range(n_seeds))
            nothing = {"runs": (), "score": None, "curve": (), "valid": None, "views": Views()}
            contender = replace(contender, failures=failures, **nothing)
        else:
            samples[name] = sample
        contenders.append(contender)
    interval, test = explain(n_documents, 40, "blocks of text", [n_seeds])
    setup = Setup(
        task="language-model",
        items="blocks of text",
        metric="bits per byte",
        is_higher_better=False,
        signature=JUDGE.signature,
        other_signatures={},
        watched="bits per byte",
        is_watched_upwards=False,
        data="the test split of python-docs: 164kB in 40 blocks",
        data_hash="9f2c1a77b0de4431" * 2,
        n_tested=40,
        n_documents=n_documents,
        n_left_out=0,
        decoding="",
        interval=interval,
        test=test,
        training=Training(
            data="python-docs: 4.35M tokens to train on, 240k tokens to watch, 238k tokens to test on",
            budget="2 min",
            n_parameters=1_000_000,
            match="total",
            seeds=tuple(range(n_seeds)),
            batch="the same data in the same order and batches for every contender (n_batch 16, n_context 128)",
            seconds=1894.0,
        ),
        passage=passage,
        prompt=prompt,
        sampling="temperature 0.8, top-p 0.95, seed 0",
        notes=(),
        versions={"regard": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"},
        hardware="2 cores of an x86_64 CPU, 8 GB of memory",
        date="2026-03-14 15:09",
        command="regard compare ngram window rnn lstm transformer --data python-docs --budget 2min --seeds 3",
    )
    return put_in_order(contenders, samples, setup)


def _contender(
    name: str, n_seeds: int, hardness: np.ndarray, passage: str, rng: np.random.Generator, n_documents: int, lossy: str
) -> tuple[Contender, Sample]:
    """A contender with a score, and the sample that it is from."""
    final, start, speed, memory, cost = SHAPES[name.partition("[")[0].partition(":")[0]]
    is_count = name == "ngram"
    runs, counts, curves = [], [], []
    for seed in range(1 if is_count else n_seeds):
        shift = 0.0 if is_count else float(rng.normal(0, 0.008))
        nats = (final + shift) * hardness * np.array(BLOCK_BYTES) * math.log(2) + rng.normal(0, 25, size=40)
        n_tokens = 1_300_000 if is_count else int(5.2e6 * 1e6 / (cost + 1e6) * (1 + 0.02 * rng.random()))
        seconds = 3.1 if is_count else 120.0
        shares = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0] if is_count else [k / 24 for k in range(1, 25)]
        fall = [(start - final) * (0.04 / (p + 0.04 - 0.02)) ** (1 + speed) * 0.4 for p in shares]
        end = (start - final) * (0.04 / 1.02) ** (1 + speed) * 0.4
        bits = [final + shift + 0.03 + height - end for height in fall]
        curves.append(
            [(n_tokens * p, 3 * cost * n_tokens * p, seconds * p, b) for p, b in zip(shares, bits, strict=True)]
        )
        counts.append(np.stack([nats, np.array(BLOCK_BYTES)], axis=1))
        spent = {"tokens": n_tokens, "flops": 3 * cost * n_tokens, "seconds": seconds}
        score = JUDGE.score(counts[-1].sum(axis=0))
        runs.append(RunResult(run=f"runs/{name}-seed{seed}", seed=seed, score=score, **spent))
    sample = take_sample(JUDGE.score, np.stack(counts), [block * n_documents // 40 for block in range(40)])
    low, high = sample.estimate.interval
    lr = {"name": "adamw", "lr": 0.002, "is_fused": True}
    model = {"order": 5} if is_count else {"d_model": 132, "n_layers": 2}
    contender = Contender(
        name=name,
        model=name,
        about=f"{name}, bpe 4,096",
        config={"model": {"name": name, **model}, "optimizer": lr, "schedule": {"name": "cosine"}},
        n_parameters=2_411_000 if is_count else 1_003_000,
        n_non_embedding=None if is_count else 603_000,
        size_note="as many n-grams as the text holds; not matched" if is_count else "",
        lossy=lossy,
        has_seeds=not is_count,
        runs=tuple(runs),
        failures=(),
        score=Score(value=sample.estimate.value, low=low, high=high, others={"perplexity": 48.2}),
        valid=float(np.mean([min(point[-1] for point in curve) for curve in curves])),
        baseline=4.5,
        curve=tuple(_mean_point(step, points) for step, points in enumerate(zip(*curves, strict=True), start=1)),
        views=_views(name, final, memory, passage, rng),
    )
    return contender, sample


def _mean_point(step: int, points: tuple[tuple[float, ...], ...]) -> CurvePoint:
    tokens, flops, seconds, score = (float(np.mean(column)) for column in zip(*points, strict=True))
    scores = [point[-1] for point in points]
    return CurvePoint(
        step=step, tokens=tokens, flops=flops, seconds=seconds, score=score, low=min(scores), high=max(scores)
    )


def _views(name: str, final: float, memory: float, passage: str, rng: np.random.Generator) -> Views:
    tokens = tokenized(passage)
    surprise = tuple(
        Span(start=a, end=b, bits=float(max(0.05, rng.gamma(1.3, 2.4) * (b - a) ** 0.4 * final / 2.1)))
        for a, b in tokens
    )
    return Views(
        sample=SAMPLES.get(name, SAMPLES["lstm"]),
        next_words=(Continuation(word="string", probability=0.25), Continuation(word="<list>", probability=0.125)),
        positions=tuple(
            PositionPoint(n_bytes_before=b, bits_per_byte=bits, low=bits - 0.02, high=bits + 0.02)
            for b in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
            for bits in (final + 0.9 * math.exp(-b / 6) + memory * math.exp(-b / 160),)
        ),
        surprise=surprise,
        attention=_attention(tuple(passage[a:b] for a, b in tokens)[:34], rng) if name in ATTENDING else None,
        cells=_cells(passage, tokens) if name in RECURRENT else None,
    )


def tokenized(passage: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r" ?\w{1,7}| ?[^\w\s]+|\s", passage)]


def _attention(tokens: tuple[str, ...], rng: np.random.Generator) -> AttentionView:
    def rows(kind: int) -> tuple[tuple[float, ...], ...]:
        result = []
        for q in range(len(tokens)):
            scores = rng.normal(0, 0.5, size=q + 1)
            scores[q] += 1.0 * (kind % 3 == 0)
            scores[max(0, q - 1)] += 3.0 * (kind % 3 == 1)
            scores += 2.5 * (kind % 3 == 2) * np.array([t.strip() == tokens[q].strip() for t in tokens[: q + 1]])
            weights = np.exp(scores) / np.exp(scores).sum()
            result.append(tuple(float(round(w, 3)) for w in weights))
        return tuple(result)

    return AttentionView(
        tokens=tokens, weights=tuple(tuple(rows(2 * layer + head) for head in range(4)) for layer in range(3))
    )


def _cells(passage: str, tokens: list[tuple[int, int]]) -> CellView:
    def column(i: int) -> float:
        return min(1.0, (i - passage.rfind("\n", 0, i)) / 80) * 2 - 1

    def quoted(i: int) -> float:
        return 0.9 if passage.count('"', 0, i) % 2 or passage.count("'", 0, i) % 2 else -0.2

    traces = tuple(
        CellTrace(
            layer=layer, unit=unit, feature=what, score=score, values=tuple(round(f(b - 1), 3) for _, b in tokens)
        )
        for layer, unit, what, score, f in (
            (1, 57, "position in the line", 0.83, column),
            (0, 12, "inside quotes", 0.61, quoted),
        )
    )
    return CellView(tap="cell", tokens=tuple(passage[a:b] for a, b in tokens), traces=traces)
