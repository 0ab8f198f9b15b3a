"""Good inputs of every kind, tiny: what the mutations begin with, and the commands that read each of them."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard import api

QUICK: dict[str, Any] = {
    "tokenizer": {"kind": "char"},
    "train": {"max_steps": 2, "n_batch": 2, "n_context": 8, "eval_every": 1},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False},
}
WORDS: dict[str, Any] = QUICK | {
    "tokenizer": {"kind": "word", "vocab_size": None},
    "train": {"max_steps": 2, "n_batch": 4, "eval_every": 1},
}
TINY = {"d_model": 8, "n_layers": 1}
DRY = "train --dry-run --model lstm --set tokenizer.kind=char --set model.d_model=8 --set train.n_context=8 --data"
EXPORTED = "model.safetensors config.json tokenizer.json tokenizer_config.json"


@dataclass(frozen=True)
class Kind:
    """A file of the corpus, and command lines that read it; the corpus is copied, and {} is the copy."""

    file: str
    commands: tuple[str, ...]
    folder: str = ""
    """What is copied: the whole folder the file lies in; empty: the file alone."""


def list_kinds() -> list[Kind]:
    """Every file that Regard reads, and how."""
    using = (
        "generate {} --max-tokens 3",
        "eval {}",
        "score {} data/few.txt",
        "train --resume --out {}",
        "export {} out.x",
    )
    kinds = [
        Kind(f"runs/{run}/{file}", using, f"runs/{run}")
        for run in ("lstm", "transformer", "ngram")
        for file in ("config.yaml", "run.json", "tokenizer.json", "model.safetensors", "metrics.jsonl")
    ]
    longer = ("train --resume --out {} --set train.max_steps=4",)
    state = "state/step-00000002"
    kinds += [
        Kind(f"runs/lstm/{state}/{file}", longer, "runs/lstm")
        for file in (
            "state.json",
            "model.safetensors",
            "optimizer.safetensors",
            "random.safetensors",
            "carried.safetensors",
        )
    ]
    pair = (
        "translate {} data/few.txt",
        "eval {}",
        "score {} data/few.txt data/few.txt",
        "align {} data/few.txt data/few.txt",
    )
    kinds += [
        Kind(f"runs/pairs/{file}", pair, "runs/pairs")
        for file in ("config.yaml", "tokenizer.json", "model.safetensors")
    ]
    reading = ("predict {} data/few.txt", "eval {}")
    kinds += [Kind(f"runs/classify/{file}", reading, "runs/classify") for file in ("config.yaml", "model.safetensors")]
    kinds += [
        Kind(f"runs/caption/{file}", ("caption {} pictures/0.png",), "runs/caption")
        for file in ("config.yaml", "run.json")
    ]
    kinds += [Kind(f"hf/{file}", ("import {} --out imported",), "hf") for file in EXPORTED.split()]
    kinds += [Kind(f"compare/{file}", ("report {}",), "compare") for file in ("compare.json",) * 3]
    kinds += [Kind(f"data/{file}", ("import {} --out imported",)) for file in ("ngram.arpa", "ngram.arpa.gz")]
    texts = ("few.txt", "few.txt.gz", "few.txt.xz", "few.txt.zst", "few.jsonl", "few.csv", "few.tsv")
    kinds += [Kind(f"data/{file}", (f"{DRY} {{}}", "score runs/lstm {}")) for file in texts]
    kinds += [Kind("data/few.txt", ("bleu {} -r data/few.txt", "translate runs/pairs {}", "predict runs/classify {}"))]
    words = "--set tokenizer.kind=word --set tokenizer.vocab_size=null --set model.d_model=8"
    pairs = f"train --dry-run --model vaswani {words} --set model.n_heads=2 --data {{}}"
    kinds += [Kind(f"data/{file}", (pairs,)) for file in ("pairs.tsv", "pairs.jsonl")]
    labelled = f"train lstm --dry-run --task {{}} {words} --data {{{{}}}}"
    kinds += [
        Kind("data/reviews.tsv", (labelled.format("classify"),)),
        Kind("data/squad.json", (labelled.format("answer"),)),
    ]
    kinds += [
        Kind("data/tagged.conll", (labelled.format("tag"),)),
        Kind("data/rated.jsonl", (labelled.format("rate"),)),
    ]
    kinds += [
        Kind(f"pictures/{i}.{form}", ("caption runs/caption {}",))
        for i, form in enumerate(("png", "jpg", "gif", "bmp", "webp", "tiff"))
    ]
    kinds += [
        Kind(f"data/{file}", ("vectors nearest {} the", "vectors eval {} data/words.txt"))
        for file in ("few.vec", "few.bin")
    ]
    kinds += [Kind("data/words.txt", ("vectors eval data/few.vec {}",))]
    kinds += [
        Kind("recipe.yaml", ("train {} --dry-run",)),
        Kind("compare.yaml", ("compare {} --budget 100tokens --jobs 1 --out out",)),
    ]
    return kinds


def build(folder: Path) -> None:
    """Write the corpus into an empty folder, which is also the working folder."""
    os.chdir(folder)
    build_few(folder)
    _train_more()
    _write_pictures(folder / "pictures")
    captions = {"pictures": "pictures", "captions": "data/captions.txt", "size": 32, "p_valid": 0.2, "p_test": 0.2}
    captioner = {"name": "captioner", "d_model": 8, "n_halvings": 3, "d_first": 8}
    api.train({**WORDS, "data": captions, "model": captioner}, out="runs/caption")
    api.compare(["runs/lstm", "runs/transformer"], out="compare", device="cpu")


def build_few(folder: Path) -> None:
    """Write the part of the corpus that takes a second: data, recipes, two runs and an ARPA file."""
    _write_texts(folder / "data")
    few = str(Path("data", "few.txt"))
    api.train({**QUICK, "model": {"name": "lstm", **TINY}}, data=few, out="runs/lstm")
    counts = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 3}}
    api.train(counts, data=few, out="runs/ngram")
    counted = api.train({**counts, "tokenizer": WORDS["tokenizer"]}, data=few, out="runs/words")
    api.export(counted.folder, "data/ngram.arpa")
    api.export(counted.folder, "data/ngram.arpa.gz")
    recipe = {**QUICK, "model": {"name": "lstm", **TINY}, "data": {"train": few}}
    (folder / "recipe.yaml").write_text(json.dumps(recipe, indent=1))
    plan = {"contenders": ["ngram", "bag"], "data": few, "tokenizer": "char", "seeds": 1, "params": None}
    (folder / "compare.yaml").write_text(json.dumps(plan, indent=1))


def _train_more() -> None:
    attention = {**TINY, "n_heads": 2}
    transformer = {"name": "transformer", **attention, "max_context": 8}
    api.train({**QUICK, "model": transformer}, data="data/few.txt", out="runs/transformer")
    api.train({**WORDS, "model": {"name": "vaswani", **attention}}, data="data/pairs.tsv", out="runs/pairs")
    api.train(
        {**WORDS, "model": {"name": "lstm", **TINY}}, task="classify", data="data/reviews.tsv", out="runs/classify"
    )
    gpt2 = {**QUICK, "tokenizer": {"kind": "bpe", "vocab_size": 300}, "model": {**transformer, "name": "gpt2"}}
    api.train(gpt2, data="data/few.txt", out="runs/gpt2")
    api.export("runs/gpt2", "hf")


def _write_texts(folder: Path) -> None:
    import zstandard

    folder.mkdir()
    lines = [
        f"{who} sat on the {what}, and then {who} left."
        for who in ("the cat", "a dog", "my aunt")
        for what in ("mat", "hat", "moon", "boat")
    ]
    text = "\n".join(lines * 40) + "\n"
    (folder / "few.txt").write_text(text)
    (folder / "few.txt.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "few.txt.xz").write_bytes(lzma.compress(text.encode()))
    (folder / "few.txt.zst").write_bytes(zstandard.compress(text.encode()))
    (folder / "few.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines * 4))
    (folder / "few.csv").write_text("id,text\n" + "".join(f'{i},"{line}"\n' for i, line in enumerate(lines * 4)))
    (folder / "few.tsv").write_text("id\ttext\n" + "".join(f"{i}\t{line}\n" for i, line in enumerate(lines * 4)))
    pairs = [
        (f"the {a} {b}", f"{b[::-1]} {a[::-1]}")
        for a in ("red", "blue", "old", "new")
        for b in ("house", "tree", "boat", "bird", "car")
    ]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    (folder / "pairs.jsonl").write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in pairs))
    words = {"fine": "good", "great": "good", "dull": "bad", "poor": "bad"}
    things = ("film", "book", "play", "song", "cast")
    reviews = [(f"the {thing} was {word}", label) for word, label in words.items() for thing in things]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{label}\n" for t, label in reviews))
    (folder / "rated.jsonl").write_text(
        "".join(json.dumps({"text": t, "label": len(t) / 9}) + "\n" for t, _ in reviews)
    )
    (folder / "tagged.conll").write_text(
        "".join("".join(f"{w} {'B-X' if w == 'the' else 'O'}\n" for w in t.split()) + "\n" for t, _ in reviews)
    )
    answer = {"question": "what was it?", "answers": [{"text": "the", "answer_start": 0}]}
    asked = [
        {"context": f"{text}. It was long.", "qas": [{"id": str(i), **answer}]} for i, (text, _) in enumerate(reviews)
    ]
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": asked}]}))
    vectors = {"the": [1.0, 0.0, 0.5], "cat": [0.5, 1.0, 0.0], "dog": [0.4, 0.9, 0.1], "mat": [0.0, 0.2, 1.0]}
    (folder / "few.vec").write_text("4 3\n" + "".join(f"{w} {' '.join(map(str, v))}\n" for w, v in vectors.items()))
    import numpy as np

    packed = b"".join(w.encode() + b" " + np.array(v, np.float32).tobytes() + b"\n" for w, v in vectors.items())
    (folder / "few.bin").write_bytes(b"4 3\n" + packed)
    (folder / "words.txt").write_text("cat dog 9.0\ncat mat 2.0\nthe mat 1.0\n")


def _write_pictures(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    names = []
    for i, form in enumerate(("png", "jpg", "gif", "bmp", "webp", "tiff", *["png"] * 14)):
        names.append(f"{i}.{form}")
        Image.new("RGB", (20 + i, 18), (i * 12, 255 - i * 12, 90)).save(folder / names[-1])
    said = "".join(f"{name}#0\ta square of colour {i}\n" for i, name in enumerate(names))
    (folder.parent / "data" / "captions.txt").write_text(said)
