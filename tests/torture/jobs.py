"""Everything that Regard writes to a disk, as tiny command lines: what is killed, and what meets a full disk."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

CACHE = "cache"
OUT = "out"
STEPS: dict[str, Any] = {"max_steps": 6, "n_batch": 4, "eval_every": 2}
TINY: dict[str, Any] = {"d_model": 8, "n_layers": 1}
HEADS: dict[str, Any] = {**TINY, "n_heads": 2}
BY_CHARACTER: dict[str, Any] = {"tokenizer": {"kind": "char"}, "train": {**STEPS, "n_context": 8}}
BY_WORD: dict[str, Any] = {"tokenizer": {"kind": "word", "vocab_size": None}, "train": STEPS}
LONG_WORDS = {**BY_WORD, "train": {**STEPS, "n_context": 8}}
TEXT = {"data": {"train": "data/few.txt"}}
PAIRS = {"data": {"train": "data/pairs.tsv"}}
COUNTED = ("ngram", "lsa")
RUNS = ("lstm", "transformer", "ngram", "skipgram", "bert", "translation", "parsing", "captions", "classify")
"""Recipes whose runs other commands use."""


@dataclass(frozen=True)
class Job:
    """A command line that writes `out`, and the one that goes on with it after a kill; none: the same once more."""

    name: str
    words: str
    again: str = ""
    out: tuple[str, ...] = (OUT,)
    is_refused_when_done: bool = False
    """Whether the same command refuses what is there already, as `import` and `export` do."""
    made: str = ""
    """A folder of the corpus of which `OUT` is a copy when the command begins; empty: there is none."""


def recipes() -> dict[str, dict[str, Any]]:
    """A recipe of every task, and of every way to fit a model."""
    word_model = {"d_model": 6}
    fitted = {"train": {"max_epochs": 2}, "checkpoint": {"every_steps": 1, "log_every": 1}}
    read = {**BY_WORD, "model": {"name": "lstm", **TINY}}
    captions = {"pictures": "pictures", "captions": "data/captions.tsv", "size": 16, "p_valid": 0.2, "p_test": 0.2}
    found: dict[str, dict[str, Any]] = {
        "lstm": {
            **BY_CHARACTER, **TEXT, "model": {"name": "lstm", **TINY, "p_dropout": 0.2},
            "train": {**STEPS, "n_context": 8, "average": "ema"}, "schedule": {"name": "plateau", "patience": 1},
            "checkpoint": {"snapshots": [0, 2, 4], "has_tensorboard": True},
        },
        "transformer": {**BY_CHARACTER, **TEXT, "model": {"name": "transformer", **HEADS, "max_context": 8}},
        "ngram": {"tokenizer": {"kind": "word", "vocab_size": None}, **TEXT, "model": {"name": "ngram", "order": 3}},
        "lsa": {**TEXT, "model": {"name": "lsa", **word_model}},
        "skipgram": {**TEXT, "model": {"name": "skipgram", **word_model, "n_update": 64, "subsample": 0.0}, **fitted},
        "glove": {**TEXT, "model": {"name": "glove", **word_model}, **fitted},
        "elmo": {
            **LONG_WORDS, **TEXT,
            "model": {
                "name": "elmo", "d_model": 4, "d_hidden": 6, "n_layers": 1, "n_vocab": 20, "d_character": 3,
                "filters": [2, 2], "max_characters": 8,
            },
        },
        "bert": {
            **TEXT, "model": {"name": "bert", "size": "tiny", "d_model": 8, "n_layers": 1},
            "tokenizer": {"vocab_size": 80, "lowercase": True}, "train": {**STEPS, "n_context": 12},
        },
        "translation": {**BY_WORD, **PAIRS, "model": {"name": "vaswani", **HEADS}},
        "parsing": {
            **BY_WORD, "data": {"train": "data/few.mrg", "p_valid": 0.2, "p_test": 0.2},
            "model": {"name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", **TINY},
        },
        "captions": {
            **BY_WORD, "data": captions, "model": {"name": "captioner", "d_model": 8, "n_halvings": 3, "d_first": 8},
        },
        "classify": {**read, "task": "classification", "data": {"train": "data/reviews.tsv"}},
        "rate": {**read, "task": "rating", "data": {"train": "data/rated.tsv"}},
        "tag": {**read, "task": "tagging", "data": {"train": "data/tagged.conll"}},
        "answer": {**read, "task": "answering", "data": {"train": "data/squad.json"}},
    }  # fmt: skip
    own = {"every_steps": 2, "every_seconds": None, "log_every": 2, "has_tensorboard": False}
    for name, recipe in found.items():
        recipe["runtime"] = {"device": "cpu", "n_threads": 1}
        recipe["checkpoint"] = own | recipe.get("checkpoint", {})
        if name in COUNTED:
            recipe.pop("checkpoint")
    return found


def list_jobs() -> list[Job]:
    """Trainings of every task, comparisons, encoding into the cache, imports, exports, and files that verbs draw."""
    jobs = [
        Job(f"train {name}", train := f"train recipes/{name}.yaml --out {OUT} --quiet", f"{train} --resume")
        for name in recipes()
    ]
    jobs += [Job(f"encode {name}", f"train recipes/{name}.yaml --dry-run", out=()) for name in ("lstm", "translation")]
    compare = f"--budget 200tokens --jobs 1 --seeds 1 --out {OUT}"
    jobs.append(Job("compare models", f"compare ngram bag --data data/few.txt --tokenizer char --match none {compare}"))
    jobs.append(Job("compare runs", f"compare runs/lstm runs/transformer --data data/few.txt --device cpu --out {OUT}"))
    imported = {"ARPA": "data/few.arpa.gz", "GPT-2": "hf/gpt2", "BERT": "hf/bert", "a classifier": "hf/reader"}
    imported["ELMo"] = "hf/elmo"
    jobs += [
        Job(f"import {name}", f"import {source} --out {OUT}", is_refused_when_done=True)
        for name, source in imported.items()
    ]
    exported = {"runs/ngram": f"{OUT}.arpa.gz", "runs/gpt2": OUT, "runs/translation": OUT, "runs/bert": OUT}
    jobs += [
        Job(f"export {run[5:]}", f"export {run} {to}", out=(to,), is_refused_when_done=True)
        for run, to in exported.items()
    ]
    beside = f"{OUT}.tokenizer.json"
    jobs += [
        Job("export as ONNX", f"export runs/gpt2 {OUT}.onnx", out=(f"{OUT}.onnx", beside), is_refused_when_done=True),
        Job("export characters", f"export runs/characters {OUT}.arpa", is_refused_when_done=True,
            out=(f"{OUT}.arpa", f"{OUT}.arpa.tokenizer.json")),
        Job("export as Marian", f"export runs/translation {OUT} --marian", is_refused_when_done=True),
        Job("embed", f"embed runs/bert data/lines.txt --out {OUT}.npz", out=(f"{OUT}.npz",), is_refused_when_done=True),
        Job("vectors convert", f"vectors convert runs/skipgram {OUT}.bin", out=(f"{OUT}.bin",),
            is_refused_when_done=True),
        Job("vectors map", f"vectors map runs/skipgram --out {OUT}"),
        Job("look", f"look runs/transformer --text 'the cat' --view surprise --view attention --out {OUT}"),
        Job("next", f"next runs/ngram 'the cat' --out {OUT}"),
        Job("caption", f"caption runs/captions pictures/0.png --draw {OUT}"),
        Job("parse", f"parse runs/parsing data/lines.txt --svg {OUT} --out {OUT}-page --skip-bad",
            out=(OUT, f"{OUT}-page")),
        Job("align", f"align runs/translation data/some.en data/some.xx --out {OUT}"),
        Job("study", f"study by-hand --out {OUT}"),
        Job("grammar", f"data grammar --n 20 --out {OUT}", is_refused_when_done=True),
        Job("copy recipes", f"recipes --copy {OUT}", is_refused_when_done=True),
        Job("train further", f"train --resume --out {OUT} --quiet --set train.max_steps=10", made="runs/lstm"),
        Job("count further", f"train --resume --out {OUT} --quiet --set train.max_tokens=900", made="runs/fewer"),
        Job("export again", f"export runs/gpt2 {OUT} --force", made="hf/gpt2"),
        Job("report", f"report {OUT}", made="compared"),
        Job("eval", f"eval runs/classify --data data/reviews.tsv --out {OUT}"),
        Job("translate", f"translate runs/translation data/lines.txt --align --out {OUT}"),
    ]  # fmt: skip
    return jobs


def build(folder: Path, names: set[str] | None = None) -> None:
    """Write what the jobs read into an empty folder; `names` are the recipes whose runs are trained (None: all)."""
    from regard import api

    before = os.getcwd()
    os.chdir(folder)
    try:
        write_data(folder / "data")
        (folder / "recipes").mkdir()
        for name, recipe in recipes().items():
            (folder / "recipes" / f"{name}.yaml").write_text(json.dumps(recipe, indent=1))
        if names is not None and not names:
            return
        _write_pictures(folder)
        for name in RUNS if names is None else sorted(names):
            api.train(f"recipes/{name}.yaml", out=f"runs/{name}")
        if names is None:
            _build_more(folder)
    finally:
        os.chdir(before)


def _build_more(folder: Path) -> None:
    """Runs that are exported, and folders of other programs that are imported."""
    from regard import api

    known = recipes()
    api.train({**known["ngram"], "tokenizer": {"kind": "char"}}, out="runs/characters")
    gpt2 = {**known["transformer"], "tokenizer": {"kind": "bpe", "vocab_size": 300}}
    api.train({**gpt2, "model": {**known["transformer"]["model"], "name": "gpt2"}}, out="runs/gpt2")
    reader = {**known["classify"], "encoder_from": "runs/bert", "encoder": {"pool": "pooler"}}
    del reader["model"], reader["tokenizer"]
    api.train(reader, out="runs/reader")
    (folder / "hf").mkdir()
    for name in ("gpt2", "bert", "reader"):
        api.export(f"runs/{name}", f"hf/{name}")
    api.export("runs/ngram", "data/few.arpa.gz")
    api.train(known["ngram"], out="runs/fewer", settings=["train.max_tokens=200"])
    api.compare(["runs/lstm", "runs/transformer"], out="compared", device="cpu")
    _write_elmo(folder / "hf" / "elmo")


def write_data(folder: Path) -> None:
    """Texts, pairs, trees and labelled texts, a few lines each."""
    folder.mkdir()
    people, things = ("the cat", "a dog", "my aunt", "the old man"), ("mat", "hat", "boat", "garden", "moon")
    lines = [f"{who} sat on the {what}. Then {other} left." for who, what, other in product(people, things, people)]
    (folder / "few.txt").write_text("\n".join(lines) + "\n")
    (folder / "lines.txt").write_text("\n".join(lines[:4]) + "\n")
    pairs = [(f"The {a} {b}.", f"{b[::-1]} {a[::-1]}.") for a, b in product(("red", "blue", "old", "new"), things)]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    for name, side in (("en", 0), ("xx", 1)):
        (folder / f"some.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs[:3]))
    trees = [f"(S (NP (DT the) (NN {a})) (VP (VBZ {b})) (. .))" for a, b in product(things, ("is", "was", "rests"))]
    (folder / "few.mrg").write_text("\n".join(trees) + "\n")
    labels = {"fine": "good", "great": "good", "dull": "bad", "poor": "bad"}
    reviews = [(f"the {thing} was {word}", label) for (word, label), thing in product(labels.items(), things)]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in reviews))
    (folder / "rated.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{len(text) / 9}\n" for text, _ in reviews))
    tagged = ("".join(f"{word} {'B-X' if word == 'the' else 'O'}\n" for word in text.split()) for text, _ in reviews)
    (folder / "tagged.conll").write_text("\n".join(tagged))
    answer = {"question": "what was it?", "answers": [{"text": "the", "answer_start": 0}]}
    asked = [{"context": f"{text}. It was long.", "qas": [{"id": f"{i}", **answer}]} for i, (text, _) in
             enumerate(reviews)]  # fmt: skip
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": asked}]}))


def _write_pictures(folder: Path) -> None:
    from PIL import Image

    (folder / "pictures").mkdir()
    for i in range(16):
        Image.new("RGB", (20 + i, 18), (i * 12, 255 - i * 12, 90)).save(folder / "pictures" / f"{i}.png")
    said = "".join(f"{i}.png\ta square of colour {i % 4}\n" for i in range(16))
    (folder / "data" / "captions.tsv").write_text(said)


def _write_elmo(folder: Path) -> None:
    """A tiny ELMo in the files that the original program wrote; without h5py there is none."""
    try:
        import h5py
    except ImportError:
        return
    import numpy as np

    folder.mkdir()
    draws, d_cell, d_out, d_character = np.random.default_rng(0), 6, 4, 3
    lstm = {"cell_clip": 0.5, "proj_clip": 0.4, "use_skip_connections": True, "n_layers": 2}
    characters = {"embedding": {"dim": d_character}, "filters": [[1, 2], [3, 4]], "n_highway": 1, "n_characters": 262,
                  "max_characters_per_token": 7, "activation": "relu"}  # fmt: skip
    options = {"lstm": {**lstm, "projection_dim": d_out, "dim": d_cell}, "char_cnn": characters}
    shapes: dict[str, tuple[int, ...]] = {
        "char_embed": (261, d_character),
        "CNN/W_cnn_0": (1, 1, d_character, 2), "CNN/b_cnn_0": (2,),
        "CNN/W_cnn_1": (1, 3, d_character, 4), "CNN/b_cnn_1": (4,),
        "CNN_high_0/W_carry": (6, 6), "CNN_high_0/b_carry": (6,),
        "CNN_high_0/W_transform": (6, 6), "CNN_high_0/b_transform": (6,),
        "CNN_proj/W_proj": (6, d_out), "CNN_proj/b_proj": (d_out,),
    }  # fmt: skip
    for way, layer in product((0, 1), (0, 1)):
        cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        shapes |= {f"{cell}/W_0": (2 * d_out, 4 * d_cell), f"{cell}/B": (4 * d_cell,), f"{cell}/W_P_0": (d_cell, d_out)}
    with h5py.File(folder / "my_weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            file[name] = draws.normal(size=shape).astype(np.float32)
    (folder / "my_options.json").write_text(json.dumps(options))
