"""Run folders and comparisons as an old version wrote them: what they were made from, and how to make them again.

    PYTHONPATH=CHECKOUT_OF_THAT_VERSION python tests/compatibility/old_folders.py tests/compatibility/VERSION

Every run is trained to its end on the CPU with one thread (NAME); some once more, stopped half-way (NAME.half), which
resumed must become the first. `expected.json` holds what the old version scored and wrote with the finished ones.
Folders are kept small: cards, pictures, pages and states that no test needs are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import sys
from itertools import product
from pathlib import Path
from typing import Any

PEOPLE = ("the cat", "a dog", "my aunt", "the old man", "nobody")
THINGS = ("mat", "hat", "boat", "garden", "moon", "roof")
COLOURS = {"red": "rot", "green": "grün", "blue": "blau"}
NOUNS = {"house": "haus", "tree": "baum", "boat": "boot", "bird": "vogel"}
VERBS = {"sleeps": "schläft", "falls": "fällt"}
PIXELS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
CORNERS = ("top left", "top right", "bottom left", "bottom right")
N_STEPS, HALF = 30, 17

COMMON: dict[str, Any] = {
    "seed": 3,
    "train": {"max_steps": N_STEPS, "eval_every": 10},
    "optimizer": {"lr": 0.05},
    "runtime": {"device": "cpu", "n_threads": 1},
    "checkpoint": {"has_tensorboard": False, "log_every": 12},
}
WORDS = {"kind": "word", "vocab_size": None}
TEXT: dict[str, Any] = {"data": {"train": "text.txt", "p_valid": 0.1, "p_test": 0.1}, "tokenizer": WORDS}
WINDOWS = {"n_batch": 4, "n_context": 16}
PAIRS: dict[str, Any] = {
    "data": {"train": ["pairs.en", "pairs.de"], "p_valid": 0.2, "p_test": 0.2},
    "tokenizer": WORDS,
    "teaching": {"max_tokens": 60},
    "train": {"max_steps": 2 * N_STEPS},
}
CAPTIONS: dict[str, Any] = {
    "data": {"pictures": "pictures", "captions": "captions.txt", "p_valid": 0.2, "p_test": 0.2, "size": 8},
    "tokenizer": WORDS,
}


def language_model(name: str, **sections: Any) -> dict[str, Any]:
    model = {"name": name, **sections.pop("model", {})}
    return {**TEXT, "model": model, "train": WINDOWS | sections.pop("train", {}), **sections}


HALVES = (
    "lstm", "pointer", "transformer", "gpt2", "started", "translator-gru", "translator-transformer",
    "decoder-started", "parser", "captioner-convolution",
)  # fmt: skip
"""Runs that there are stopped half-way, too."""

RUNS: dict[str, dict[str, Any]] = {
    "ngram": {**TEXT, "model": {"name": "ngram", "order": 3}, "tokenizer": {"kind": "char"}},
    "bag": language_model("bag", model={"d_model": 4, "d_hidden": 6, "max_context": 16, "p_dropout": 0.1}),
    "window": language_model("window", model={"d_model": 4, "d_hidden": 6, "n_window": 3}),
    "rnn": language_model(
        "rnn",
        model={"d_model": 4, "n_layers": 2, "p_dropout": 0.2},
    ),
    "gru": language_model("gru", model={"d_model": 4, "n_layers": 1}, data={"train": "pairs.de"}),
    "lstm": language_model(
        "lstm",
        model={
            "d_model": 4, "d_hidden": 6, "n_layers": 2, "p_dropout": 0.2, "p_embedding": 0.1, "p_weight": 0.2,
            "is_variational": True, "activation_penalty": 2.0, "slowness_penalty": 1.0,
        },
        train={"varies_context": True, "average": "ema", "average_decay": 0.5},
    ),
    "rnn-attention": language_model(
        "rnn-attention", model={"d_model": 4, "n_layers": 1, "max_memory": 16, "p_dropout": 0.1}
    ),
    "pointer": language_model("pointer", model={"d_model": 4, "n_layers": 1, "max_memory": 16}),
    "convolution": language_model("convolution", model={"d_model": 4, "n_layers": 2, "p_dropout": 0.1}),
    "restricted": language_model(
        "restricted", model={"d_model": 4, "n_layers": 1, "n_heads": 2, "n_window": 4, "max_context": 16}
    ),
    "attention": language_model("attention", model={"d_model": 4, "n_layers": 1, "n_heads": 2, "max_context": 16}),
    "transformer": language_model(
        "transformer",
        model={"d_model": 4, "n_layers": 2, "n_heads": 2, "d_ff": 6, "max_context": 16, "p_dropout": 0.1},
        train={"n_accumulate": 2, "order": "shuffle"},
    ),
    "gpt2": language_model(
        "gpt2",
        model={"d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 8, "max_context": 16, "p_dropout": 0.1},
        tokenizer={"kind": "byte"},
    ),
    "started": {
        **TEXT,
        "start_from": "runs/lstm",
        "train": WINDOWS,
        "optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.5},
        "schedule": {"name": "plateau", "patience": 1},
    },
    "translator-gru": {
        **PAIRS,
        "model": {
            "name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "bilinear", "input_feeding": True,
            "d_model": 4, "n_layers": 1,
        },
        "target_tokenizer": WORDS,
        "teaching": {"max_tokens": 120, "mode": "scheduled", "decay": "linear", "n_half": 4},
    },
    "translator-lstm": {
        **PAIRS,
        "model": {
            "name": "seq2seq", "encoder": "lstm", "decoder": "lstm", "attention": "dot", "copies": True, "d_model": 4,
            "n_layers": 1,
        },
        "teaching": {"max_tokens": 60, "judged_by": "bleu"},
    },
    "translator-transformer": {
        **PAIRS,
        "model": {"name": "seq2seq", "d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "max_context": 16},
    },
    "translator-vaswani": {
        **PAIRS,
        "model": {"name": "vaswani", "d_model": 4, "n_layers": 1, "n_heads": 2, "d_ff": 6, "max_context": 16},
        "tokenizer": {"kind": "bpe", "vocab_size": 300},
        "data": PAIRS["data"] | {"tag": "<2de>"},
        "teaching": {"max_tokens": 60, "p_bpe_dropout": 0.3},
        "optimizer": {"lr": 0.02},
    },
    "decoder-started": {
        **PAIRS,
        "model": {
            "name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "mlp", "d_model": 4, "n_layers": 1,
        },
        "decoder_from": "runs/gru",
    },
    "parser": {
        "data": {"train": "grammar:en-trees:20", "valid": "grammar:en-trees:6", "test": "grammar:en-trees:6"},
        "model": {
            "name": "seq2seq", "encoder": "gru", "decoder": "gru", "attention": "bilinear", "d_model": 4, "n_layers": 1,
        },
        "tokenizer": WORDS,
        "teaching": {"max_tokens": 1000, "judged_by": "f1", "max_judged": 2},
    },
    "captioner-convolution": {
        **CAPTIONS,
        "data": CAPTIONS["data"] | {"n_margin": 2, "flips": True},
        "model": {
            "name": "captioner", "encoder": "convolution", "decoder": "gru", "attention": "dot", "d_model": 4,
            "d_first": 8, "n_halvings": 1, "p_dropout": 0.1,
        },
        "train": {"n_batch": 4},
    },
    "captioner-patches": {
        **CAPTIONS,
        "model": {
            "name": "captioner", "encoder": "patches", "decoder": "transformer", "d_model": 4, "n_heads": 2,
            "patch": 4, "n_encoder_layers": 1, "n_layers": 1, "max_context": 16,
        },
        "optimizer": {"lr": 0.02},
        "train": {"n_batch": 4},
    },
}  # fmt: skip
"""Each is a recipe of that version, to be read with `COMMON` below it."""

COMPARISON: dict[str, Any] = {
    "contenders": {
        "lstm": {"model": {"name": "lstm", "n_layers": 1}},
        "transformer": {"model": {"name": "transformer", "n_layers": 1, "n_heads": 2, "max_context": 16}},
    },
    "data": {"train": "text.txt", "p_valid": 0.1, "p_test": 0.1},
    "tokenizer": WORDS,
    "budget": "1000tokens",
    "params": 2000,
    "seeds": 2,
    "train": WINDOWS,
    "runtime": COMMON["runtime"],
    "prompt": "the cat",
    "out": "comparison",
}
BEST = "best.safetensors"
COMPARED = ("translator-lstm", "translator-transformer")


def write_data(folder: Path) -> None:
    """Write what the runs learn from into `folder`, the same bytes everywhere."""
    lines = [f"{who} sat on the {what}, and then {other} left." for who, what, other in product(PEOPLE, THINGS, PEOPLE)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = list(product(COLOURS, NOUNS, VERBS))
    english = "".join(f"the {colour} {noun} {verb} here today\n" for colour, noun, verb in pairs)
    german = "".join(f"{NOUNS[noun]} {COLOURS[colour]} {VERBS[verb]} hier heute\n" for colour, noun, verb in pairs)
    (folder / "pairs.en").write_text(english, encoding="utf-8")
    (folder / "pairs.de").write_text(german, encoding="utf-8")
    (folder / "pictures").mkdir()
    captions = []
    for number, (colour, corner) in enumerate(product(PIXELS, CORNERS)):
        (folder / "pictures" / f"{number:02d}.bmp").write_bytes(draw_square(colour, corner))
        captions += [
            f"{number:02d}.bmp\ta {colour} square is {corner}\n",
            f"{number:02d}.bmp\tsomething {colour} at the {corner}\n",
        ]
    (folder / "captions.txt").write_text("".join(captions), encoding="utf-8")


def draw_square(colour: str, corner: str, size: int = 10) -> bytes:
    """A picture of `size` by `size` pixels with one coloured corner on black, as an uncompressed BMP file."""
    down, right = CORNERS.index(corner) // 2, CORNERS.index(corner) % 2
    row_bytes = -(-3 * size // 4) * 4
    rows = bytearray()
    for y in reversed(range(size)):  # BMP begins at the bottom
        is_in = [(y < size // 2) != bool(down) and (x < size // 2) != bool(right) for x in range(size)]
        row = b"".join(bytes(reversed(PIXELS[colour])) if here else bytes(3) for here in is_in)
        rows += row.ljust(row_bytes, b"\0")
    header = struct.pack("<2sIHHI", b"BM", 54 + len(rows), 0, 0, 54)
    return header + struct.pack("<IiiHHIIiiII", 40, size, size, 1, 24, 0, len(rows), 2835, 2835, 0, 0) + bytes(rows)


def recipe(name: str) -> dict[str, Any]:
    """The whole recipe of a run; `ngram` has nothing to be trained in steps."""
    own = RUNS[name]
    if name == "ngram":
        return own
    return COMMON | own | {"train": COMMON["train"] | own.get("train", {})}


def use(run: Any) -> dict[str, Any]:
    """What a loaded run scores and writes, as JSON; the verbs are those that its data allow."""
    found = run.evaluate(split="test")
    scores = {"nats": found.nats, "n_tokens": found.n_tokens, "bits_per_byte": found.bits_per_byte}
    scores["valid_nats"] = run.evaluate(split="valid").nats
    config = json.loads(json.dumps(run.config.to_dict()))
    if "pictures" in config["data"]:
        files = [f"pictures/{number:02d}.bmp" for number in range(4)]
        return {"scores": scores | {"bleu": found.bleu.score}, "texts": run.caption(files, max_length=8)}
    if "trees" in str(config["data"]["train"]):
        f1 = found.to_dict()["parses"]["f1"]
        return {"scores": scores | {"f1": f1}, "texts": [bracket(run.parse("the king sees a dog .", beam=2))]}
    if "teaching" in config:
        sources = ["the red house sleeps here today", "the blue bird falls here"]
        texts = run.translate(sources) + run.translate(sources, sampling={"temperature": 0.8, "seed": 5})
        return {"scores": scores | {"bleu": found.bleu.score, "chrf": found.chrf.score}, "texts": texts}
    text = "a dog sat on the boat"
    scores["text_bits_per_byte"] = run.score(text).bits_per_byte
    drawn = run.generate("the cat", n=2, max_tokens=12, temperature=0.8, top_k=5, seed=7)
    return {"scores": scores, "texts": [*drawn, run.generate("my aunt", max_tokens=12, temperature=0.0)]}


def bracket(tree: Any) -> str:
    return tree if isinstance(tree, str) else f"({tree.label} {' '.join(map(bracket, tree.children))})"


class StopAt:
    """Press Ctrl-C after an update."""

    def __init__(self, step: int) -> None:
        self.step = step

    def show(self, status: Any) -> None:
        if status.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)

    def start(self, title: str) -> None: ...

    def note(self, text: str) -> None: ...

    def stop(self) -> None: ...


def make(out: Path) -> None:
    """Train everything in `out` with the version that is imported, and keep what the tests need."""
    import torch

    import regard
    from regard.errors import InterruptedRunError

    torch.set_num_threads(1)
    out.mkdir(parents=True)
    os.chdir(out)
    os.environ["REGARD_CACHE"] = str(out / "cache")
    write_data(out)
    expected: dict[str, Any] = {"machine": machine(), "runs": {}}
    for name in RUNS:
        run = regard.train(recipe(name), out=f"runs/{name}")
        expected["runs"][name] = use(run)
        if name not in HALVES:
            continue
        try:
            regard.train(recipe(name), out=f"runs/{name}.half", reporter=StopAt(HALF))
        except InterruptedRunError as stopped:
            print(name, stopped)
    ranked = regard.compare(COMPARISON).ranked
    expected["comparison"] = {contender.name: contender.score.bits_per_byte for contender in ranked}
    regard.compare_runs([f"runs/{name}" for name in COMPARED], beam=2, out="systems")
    (out / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    strip(out)


def copy_folders(version: Path, out: Path) -> None:
    """Copy the folders of an old version, which git holds without hard links: a state's best weights were one."""
    shutil.copytree(version, out, dirs_exist_ok=True)
    for state in out.glob("runs/*.half/state/*"):
        os.link(state.parents[1] / "model.safetensors", state / BEST)


def machine() -> dict[str, str]:
    """What decides the last bits of a floating point number."""
    import torch

    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    vendor = next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "unknown")
    return {"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability(), "vendor": vendor}


def strip(out: Path) -> None:
    """Remove the data, the cache and all that no test reads. `copy_folders` puts the best weights of a state back."""
    for name in ("cache", "pictures"):
        shutil.rmtree(out / name)
    for path in [*out.glob("*.txt"), *out.glob("pairs.*"), *out.rglob("README.md"), *out.rglob("overview.png")]:
        path.unlink()
    for path in [*out.rglob("report.html"), *out.rglob(".lock"), *out.rglob("*-views.json")]:
        path.unlink()
    for folder in out.rglob("tensorboard"):
        shutil.rmtree(folder)
    for run in [path.parent for path in out.rglob("config.yaml")]:
        states = sorted((run / "state").glob("step-*"))
        if run.name.endswith(".half"):
            (states[-1] / BEST).unlink()
            for state in states[:-1]:
                shutil.rmtree(state)
        else:
            shutil.rmtree(run / "state", ignore_errors=True)
    for run in (out / "comparison" / "runs").glob("*-seed1"):
        shutil.rmtree(run)
    for path in out.rglob("compare.json"):
        found = json.loads(path.read_text(encoding="utf-8"))
        found["setup"]["hardware"] = "a CPU"
        path.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
