"""A tiny run of every kind that `regard serve` answers for, trained once a process."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tiny_captions import write_pictures

from regard import api

PEOPLE, THINGS = ("the cat", "a dog", "my aunt", "the old man"), ("mat", "hat", "boat", "garden", "moon")
LINES = [f"{p} sat on the {t}, and then {q} left." for p in PEOPLE for t in THINGS for q in PEOPLE]
SHORT = {
    "train": {"max_steps": 2, "n_batch": 4, "n_context": 64, "eval_every": 2},
    "checkpoint": {"has_tensorboard": False},
}
PAIRS = {"train": {"max_steps": 2, "eval_every": 2}, "checkpoint": {"has_tensorboard": False}}
WORD = {"kind": "word", "vocab_size": None}
SEQ2SEQ = {"name": "seq2seq", "encoder": "lstm", "decoder": "lstm", "attention": "mlp", "d_model": 16, "n_layers": 1}
LSTM = {"name": "lstm", "d_model": 16, "n_layers": 1}
BY_WORD = {"model": LSTM, "tokenizer": WORD, **SHORT}

RECIPES: dict[str, dict[str, Any]] = {
    "lstm": {"model": LSTM, "tokenizer": {"kind": "char"}, **SHORT},
    "transformer": {
        "model": {"name": "transformer", "d_model": 16, "n_layers": 2, "n_heads": 2},
        "tokenizer": {"kind": "bpe", "vocab_size": 300}, **SHORT,
    },
    "ngram": {"model": {"name": "ngram", "order": 3}, "tokenizer": WORD},
    "bert": {
        "model": {"name": "bert", "d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 16},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 200}, **SHORT,
    },
    "translator": {
        "data": {"train": "grammar:en-de:60"}, "model": SEQ2SEQ, "tokenizer": WORD, "target_tokenizer": WORD, **PAIRS,
    },
    "parser": {"data": {"train": "grammar:en-trees:60"}, "model": SEQ2SEQ, "tokenizer": WORD, **PAIRS},
    "tagger": {"task": "tagging", "data": {"train": "FOLDER/names.conll"}, **BY_WORD},
    "answerer": {"task": "answering", "data": {"train": "FOLDER/questions.json"}, **BY_WORD},
    "classifier": {"task": "classification", "data": {"train": "FOLDER/films.tsv"}, **BY_WORD},
    "rater": {"task": "rating", "data": {"train": "FOLDER/ratings.tsv"}, **BY_WORD},
    "vectors": {"model": {"name": "lsa", "d_model": 4}, "tokenizer": WORD},
    "captioner": {
        "data": {
            "pictures": "FOLDER/drawn/pictures", "captions": "FOLDER/drawn/captions.txt", "size": 32, "p_valid": 0.2,
            "p_test": 0.2,
        },
        "model": {"name": "captioner", "d_model": 16, "n_halvings": 3, "d_first": 8}, "tokenizer": WORD,
        "train": {"max_steps": 2, "n_batch": 4, "eval_every": 2}, "checkpoint": {"has_tensorboard": False},
    },
}  # fmt: skip


def write_data(folder: Path) -> None:
    """A text, and examples of three tasks."""
    (folder / "my.txt").write_text("\n".join(LINES * 5) + "\n")
    cities, names = ("Berlin", "Paris", "Rome"), ("Anna", "Paul", "Eva", "Karl")
    sentences = [f"{n} B-PER\nlives O\nin O\n{c} B-LOC\n. O\n" for n in names for c in cities for _ in range(3)]
    (folder / "names.conll").write_text("\n".join(sentences))
    films = [
        f"the {w} was {a}\t{label}"
        for label, a in (("good", "fine"), ("bad", "dull"))
        for w in THINGS
        for _ in range(4)
    ]
    (folder / "films.tsv").write_text("\n".join(["text\tlabel", *films]) + "\n")
    rated = [
        f"the {w} was {a}\t{value}" for value, a in ((4.5, "fine"), (1.0, "dull")) for w in THINGS for _ in range(4)
    ]
    (folder / "ratings.tsv").write_text("\n".join(["text\tvalue", *rated]) + "\n")
    write_pictures(folder / "drawn")
    paragraphs = [
        {"context": f"{n} sees the {t} .", "qas": [
            {"id": f"{n}{t}", "question": f"who sees the {t} ?", "answers": [{"text": n, "answer_start": 0}]}]}
        for n in names for t in THINGS
    ]  # fmt: skip
    (folder / "questions.json").write_text(json.dumps({"data": [{"title": "seen", "paragraphs": paragraphs}]}))


@cache
def train_all() -> dict[str, Path]:
    """The folder of each run."""
    folder = Path(tempfile.mkdtemp(prefix="regard-served-"))
    write_data(folder)
    found = {}
    for name, recipe in RECIPES.items():
        given = {"data": {"train": "FOLDER/my.txt"}, **recipe}
        data = {k: v.replace("FOLDER", str(folder)) if isinstance(v, str) else v for k, v in given["data"].items()}
        found[name] = Path(api.train({**given, "data": data}, out=folder / name, is_tested=False).folder)
    return found
