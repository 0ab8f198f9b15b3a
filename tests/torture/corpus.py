"""Good inputs of every kind, tiny: what the mutations begin with. Which commands read them says `kinds.py`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from regard import api
from regard.run.begun_mark import BEFORE_CONFIG, mark_begun

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
ATTENTION = {**TINY, "n_heads": 2}
FEW = str(Path("data", "few.txt"))
COMPLETE = (
    "lstm", "ngram", "transformer", "pairs", "parser", "classify", "tagger", "bert", "elmo", "vectors", "caption",
)  # fmt: skip
"""Runs whose whole config is a recipe too."""


def build(folder: Path) -> None:
    """Write the corpus into an empty folder, which is also the working folder."""
    os.chdir(folder)
    build_few(folder)
    _train_language_models()
    _train_pairs_and_readers()
    _train_captioner(folder)
    _export_folders(folder)
    write_marian(folder / "hf" / "opus")
    api.import_run("hf/opus", "runs/opus")
    write_elmo(folder / "elmo")
    write_elmo(folder / "elmo-words", has_words=True)
    api.compare(["runs/lstm", "runs/transformer"], out="compare", device="cpu")
    api.compare(["ngram", "bag"], data=FEW, budget="100tokens", jobs=1, out="compare-trained")
    api.study("by-hand", out="study")
    api.look("runs/lstm", "the cat", views=["surprise"]).save("looked")
    _begin_run(folder / "begun")
    (folder / "recipes").mkdir()
    for run in COMPLETE:
        shutil.copyfile(folder / "runs" / run / "config.yaml", folder / "recipes" / f"{run}.yaml")


def _begin_run(folder: Path) -> None:
    """A folder in which a training was killed before it had written config.yaml."""
    folder.mkdir()
    mark_begun(folder, BEFORE_CONFIG)
    shutil.copyfile("runs/lstm/run.json", folder / "run.json")


def build_few(folder: Path) -> None:
    """Write the part of the corpus that takes a second: data, recipes, two runs and an ARPA file."""
    _write_texts(folder / "data")
    _write_labelled(folder / "data")
    _write_vectors(folder / "data")
    watched = {**QUICK, "checkpoint": {"has_tensorboard": False, "snapshots": [1, 2]}}
    api.train({**watched, "model": {"name": "lstm", **TINY}}, data=FEW, out="runs/lstm")
    counts = {"tokenizer": {"kind": "char"}, "model": {"name": "ngram", "order": 3}}
    api.train(counts, data=FEW, out="runs/ngram")
    counted = api.train({**counts, "tokenizer": WORDS["tokenizer"]}, data=FEW, out="runs/words")
    api.export(counted.folder, "data/ngram.arpa")
    api.export(counted.folder, "data/ngram.arpa.gz")
    recipe = {**QUICK, "model": {"name": "lstm", **TINY}, "data": {"train": FEW}}
    (folder / "recipe.yaml").write_text(json.dumps(recipe, indent=1))
    plan = {"contenders": ["ngram", "bag"], "data": FEW, "tokenizer": "char", "seeds": 1, "params": None}
    (folder / "compare.yaml").write_text(json.dumps(plan, indent=1))


def _train_language_models() -> None:
    transformer = {"name": "transformer", **ATTENTION, "max_context": 8}
    api.train({**QUICK, "model": transformer}, data=FEW, out="runs/transformer")
    gpt2 = {**QUICK, "tokenizer": {"kind": "bpe", "vocab_size": 300}, "model": {**transformer, "name": "gpt2"}}
    api.train(gpt2, data=FEW, out="runs/gpt2")
    words = {**WORDS, "train": QUICK["train"]}
    api.train({**words, "model": {"name": "pointer", **TINY}}, data=FEW, out="runs/pointer")
    pieces = {**QUICK, "tokenizer": {"kind": "wordpiece", "vocab_size": 60, "lowercase": True}}
    bert = {"name": "bert", "size": "tiny", "d_model": 8, "n_layers": 4, "n_heads": 2, "max_context": 32}
    api.train({**pieces, "model": bert}, data=FEW, out="runs/bert")
    elmo = {"name": "elmo", "d_model": 8, "d_hidden": 12, "n_layers": 2, "n_vocab": 20, "d_character": 4}
    elmo |= {"filters": [4, 4], "max_characters": 8}
    api.train({**words, "model": elmo}, data=FEW, out="runs/elmo")
    for name in ("skipgram", "lsa"):
        given = {"tokenizer": {"kind": "word", "vocab_size": None}, "model": {"name": name, "d_model": 8}}
        out = "runs/vectors" if name == "skipgram" else f"runs/{name}"
        api.train({**given, "runtime": QUICK["runtime"]}, data=FEW, settings=["train.max_epochs=1"], out=out)


def _train_pairs_and_readers() -> None:
    api.train({**WORDS, "model": {"name": "vaswani", **ATTENTION}}, data="data/pairs.tsv", out="runs/pairs")
    trees = {"data": {"train": "data/few.mrg", "format": "trees"}, "model": {"name": "seq2seq", **ATTENTION}}
    api.train({**WORDS, **trees}, out="runs/parser")
    reader = {**WORDS, "model": {"name": "lstm", **TINY}}
    for out, task, data in (
        ("classify", "classify", "reviews.tsv"), ("tagger", "tag", "tagged.conll"), ("rater", "rate", "rated.jsonl"),
        ("answerer", "answer", "squad.json"),
    ):  # fmt: skip
        api.train(reader, task=task, data=f"data/{data}", out=f"runs/{out}")
    quick = {"train": WORDS["train"], "runtime": QUICK["runtime"], "checkpoint": QUICK["checkpoint"]}
    reader = {**quick, "encoder_from": "runs/bert", "encoder": {"pool": "pooler"}}
    api.train(reader, task="classify", data="data/reviews.tsv", out="runs/reader")


def _train_captioner(folder: Path) -> None:
    _write_pictures(folder / "pictures")
    captions = {"pictures": "pictures", "captions": "data/captions.txt", "size": 32, "p_valid": 0.2, "p_test": 0.2}
    captioner = {"name": "captioner", "d_model": 8, "n_halvings": 3, "d_first": 8}
    api.train({**WORDS, "data": captions, "model": captioner}, out="runs/caption")


def _export_folders(folder: Path) -> None:
    """Write folders of Hugging Face, as they are written today and as they were."""
    import torch
    from safetensors.torch import load_file, save_file

    for run, to in (("gpt2", "gpt2"), ("bert", "bert"), ("reader", "task")):
        api.export(f"runs/{run}", f"hf/{to}")
    for old, new in (("old-gpt2", "gpt2"), ("old-bert", "bert")):
        shutil.copytree(folder / "hf" / new, folder / "hf" / old)
        weights = folder / "hf" / old / "model.safetensors"
        tensors = load_file(weights)
        weights.unlink()
        tokenizer = json.loads((folder / "hf" / old / "tokenizer.json").read_text())["model"]
        (folder / "hf" / old / "tokenizer.json").unlink()
        if new == "bert":
            torch.save(tensors, weights.with_name("pytorch_model.bin"))
            pieces = sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__)
            weights.with_name("vocab.txt").write_text("\n".join(pieces) + "\n")
            continue
        names = sorted(tensors)
        parts = {"part-1.safetensors": names[: len(names) // 2], "part-2.safetensors": names[len(names) // 2 :]}
        for part, inside in parts.items():
            save_file({name: tensors[name].clone() for name in inside}, weights.with_name(part))
        index = {"weight_map": {name: part for part, inside in parts.items() for name in inside}}
        weights.with_name("model.safetensors.index.json").write_text(json.dumps(index))
        weights.with_name("vocab.json").write_text(json.dumps(tokenizer["vocab"]))
        merges = "".join(f"{' '.join(pair)}\n" for pair in tokenizer["merges"])
        weights.with_name("merges.txt").write_text(f"#version: 0.2\n{merges}")


def write_marian(folder: Path) -> None:
    """A tiny Marian as they are published: a translator of ours under texts that SentencePiece cuts."""
    import sentencepiece
    from safetensors.torch import load_file, save_file

    api.export("runs/pairs", folder, is_marian=True)
    (folder / "tokenizer.json").unlink()
    weights = folder / "model.safetensors"
    tensors, config = load_file(weights), json.loads((folder / "config.json").read_text())
    V = config["vocab_size"]
    tensors["final_logits_bias"] = tensors["model.shared.weight"].new_zeros(1, V)
    save_file(tensors, weights)
    lines = Path("data", "pairs.tsv").read_text().splitlines()
    pieces = set()
    for column, name in enumerate(("source.spm", "target.spm")):
        found = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line.split("\t")[column] for line in lines]), model_writer=found, vocab_size=30,
            model_type="unigram", hard_vocab_limit=False, minloglevel=2, normalization_rule_name="identity",
        )  # fmt: skip
        (folder / name).write_bytes(found.getvalue())
        model = sentencepiece.SentencePieceProcessor(model_proto=found.getvalue())
        pieces |= {model.id_to_piece(i) for i in range(3, model.get_piece_size())}
    names = ["</s>", "<unk>", *sorted(pieces)[: V - 3]]
    names += [*(f"other{i}" for i in range(V - 1 - len(names))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    marks = {"eos_token_id": 0, "forced_eos_token_id": 0, "pad_token_id": V - 1, "decoder_start_token_id": V - 1}
    config |= marks | {"activation_function": "swish"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(marks | {"bad_words_ids": [[V - 1]], "num_beams": 4}))


def write_elmo(folder: Path, has_words: bool = False) -> None:
    """A tiny ELMo in the files of the original program."""
    import h5py

    H, P, E = 6, 4, 3
    options: dict[str, Any] = {
        "lstm": {"cell_clip": 3, "proj_clip": 3, "use_skip_connections": True, "n_layers": 2, "projection_dim": P}
    }
    options["lstm"]["dim"] = H
    shapes: dict[str, tuple[int, ...]] = {}
    words = ["</S>", "<S>", "<UNK>", "the", "cat", "sat"]
    if has_words:
        shapes["embedding"] = (len(words), P)
    else:
        options["char_cnn"] = {
            "embedding": {"dim": E}, "filters": [[1, 2], [3, 4]], "n_highway": 1, "n_characters": 262,
            "max_characters_per_token": 7, "activation": "relu",
        }  # fmt: skip
        shapes |= {
            "char_embed": (261, E), "CNN/W_cnn_0": (1, 1, E, 2), "CNN/b_cnn_0": (2,), "CNN/W_cnn_1": (1, 3, E, 4),
            "CNN/b_cnn_1": (4,), "CNN_high_0/W_carry": (6, 6), "CNN_high_0/b_carry": (6,),
            "CNN_high_0/W_transform": (6, 6), "CNN_high_0/b_transform": (6,), "CNN_proj/W_proj": (6, P),
            "CNN_proj/b_proj": (P,),
        }  # fmt: skip
    for way in (0, 1):
        for layer in (0, 1):
            cell = f"RNN_{way}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * P, 4 * H), f"{cell}/B": (4 * H,), f"{cell}/W_P_0": (H, P)}
    folder.mkdir()
    draws = np.random.default_rng(0)
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            file[name] = draws.normal(size=shape).astype(np.float32)
    (folder / "options.json").write_text(json.dumps(options))
    if has_words:
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")


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
    documents = [f"{line} {number}" for number, line in enumerate(lines * 4)]
    (folder / "few.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in documents))
    (folder / "few.csv").write_text("id,text\n" + "".join(f'{i},"{line}"\n' for i, line in enumerate(documents)))
    (folder / "few.tsv").write_text("id\ttext\n" + "".join(f"{i}\t{line}\n" for i, line in enumerate(documents)))
    half = len(text) // 2
    (folder / "documents.csv").write_text(f"start_byte,end_byte\n0,{half}\n{half},{len(text)}\n")
    pairs = [
        (f"the {a} {b}", f"{b[::-1]} {a[::-1]}")
        for a in ("red", "blue", "old", "new")
        for b in ("house", "tree", "boat", "bird", "car")
    ]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    (folder / "pairs.csv").write_text("source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in pairs))
    (folder / "pairs.jsonl").write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in pairs))
    (folder / "words.txt").write_text("cat dog 9.0\ncat mat 2.0\nthe mat 1.0\n")
    (folder / "few.align").write_text("0-0 1-1 2p2\n0-0\n0-0 1p1\n")
    trees = [
        f"(S (NP (DT {a}) (NN {b})) (VP (VBZ {c})) (. .))\n"
        for a in ("the", "a", "my")
        for b in ("dog", "cat", "bird")
        for c in ("barks", "sleeps", "sings")
    ]
    (folder / "few.mrg").write_text("".join(trees))


def _write_labelled(folder: Path) -> None:
    words = {"fine": "good", "great": "good", "dull": "bad", "poor": "bad"}
    things = ("film", "book", "play", "song", "cast")
    reviews = [(f"the {thing} was {word}", label) for word, label in words.items() for thing in things]
    (folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{label}\n" for t, label in reviews))
    (folder / "reviews.csv").write_text("text,label\n" + "".join(f'"{t}",{label}\n' for t, label in reviews))
    (folder / "rated.jsonl").write_text(
        "".join(json.dumps({"text": t, "label": len(t) / 9}) + "\n" for t, _ in reviews)
    )
    (folder / "tagged.conll").write_text(
        "".join("".join(f"{w} {'B-X' if w == 'the' else 'O'}\n" for w in t.split()) + "\n" for t, _ in reviews)
    )
    rows = "\t".join("{i} {w} _ {tag} _ _ 0 _ _ _".split())  # noqa: SIM905
    (folder / "tagged.conllu").write_text(
        "".join(
            "".join(
                rows.format(i=i, w=w, tag="DET" if w == "the" else "X") + "\n" for i, w in enumerate(t.split(), start=1)
            )
            + "\n"
            for t, _ in reviews
        )
    )
    answer = {"question": "what was it?", "answers": [{"text": "the", "answer_start": 0}]}
    asked = [
        {"context": f"{text}. It was long.", "qas": [{"id": str(i), **answer}]} for i, (text, _) in enumerate(reviews)
    ]
    (folder / "squad.json").write_text(json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": asked}]}))
    (folder / "questions.tsv").write_text("".join(f"what was it?\t{text}. It was long.\n" for text, _ in reviews[:3]))


def _write_vectors(folder: Path) -> None:
    vectors = {"the": [1.0, 0.0, 0.5], "cat": [0.5, 1.0, 0.0], "dog": [0.4, 0.9, 0.1], "mat": [0.0, 0.2, 1.0]}
    rows = "".join(f"{w} {' '.join(map(str, v))}\n" for w, v in vectors.items())
    (folder / "glove.txt").write_text(rows)
    (folder / "few.vec").write_text(f"4 3\n{rows}")
    (folder / "few.vec.gz").write_bytes(gzip.compress(f"4 3\n{rows}".encode()))
    packed = b"".join(w.encode() + b" " + np.array(v, np.float32).tobytes() + b"\n" for w, v in vectors.items())
    (folder / "few.bin").write_bytes(b"4 3\n" + packed)


def _write_pictures(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    names = []
    for i, form in enumerate(("png", "jpg", "gif", "bmp", "webp", "tiff", *["png"] * 14)):
        names.append(f"{i}.{form}")
        Image.new("RGB", (20 + i, 18), (i * 12, 255 - i * 12, 90)).save(folder / names[-1])
    said = "".join(f"{name}#0\ta square of colour {i}\n" for i, name in enumerate(names))
    (folder.parent / "data" / "captions.txt").write_text(said)
