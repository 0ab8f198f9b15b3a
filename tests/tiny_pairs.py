"""Pairs, models that read them and runs small enough for a test; also run as a script, to be killed."""

from __future__ import annotations

import json
import sys
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tiny_training import kill_at

from regard.data.pairs import Pairs
from regard.data.prepared_pairs import PreparedPairs
from regard.data.split import Counts
from regard.models.seq2seq import Seq2Seq
from regard.models.table import build_model, model_config
from regard.tasks.pair_objective import PairObjective
from regard.tasks.parsing import greedy_f1
from regard.tasks.translation import greedy_bleu
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.text.tokenizer import Tokenizer
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.loop import train_by_gradient
from regard.training.state import TrainResult
from regard.training.teaching_config import TeachingConfig

COLOURS = {"red": "rot", "green": "grün", "blue": "blau"}
NOUNS = {"house": "haus", "tree": "baum", "boat": "boot", "bird": "vogel"}
VERBS = {"sleeps": "schläft", "falls": "fällt"}
# The adjective moves behind the noun: word by word is not enough.
TEXTS = [
    (f"the {colour} {noun} {verb}", f"{NOUNS[noun]} {COLOURS[colour]} {VERBS[verb]}")
    for colour, noun, verb in product(COLOURS, NOUNS, VERBS)
]

TINY: dict[str, Any] = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 24, "max_context": 24, "p_dropout": 0.0}

GRID: dict[str, tuple[str, dict[str, Any]]] = {
    "lstm to gru": ("seq2seq", {"encoder": "lstm", "decoder": "gru", "attention": "mlp", "input_feeding": True}),
    "rnn to lstm, no attention": ("seq2seq", {"encoder": "rnn", "decoder": "lstm", "attention": "none"}),
    "gru to transformer": ("seq2seq", {"encoder": "gru", "decoder": "transformer"}),
    "transformer to lstm": ("seq2seq", {"encoder": "transformer", "decoder": "lstm", "attention": "bilinear"}),
    "transformer to transformer": ("seq2seq", {"n_layers": 2}),
    "convolution to gru": ("seq2seq", {"encoder": "convolution", "decoder": "gru", "attention": "dot", "n_layers": 2}),
    "convolution to transformer": ("seq2seq", {"encoder": "convolution", "decoder": "transformer"}),
    "convolution to convolution": ("seq2seq", {"encoder": "convolution", "decoder": "convolution", "n_layers": 2}),
    "bag to rnn": ("seq2seq", {"encoder": "bag", "decoder": "rnn", "attention": "mlp"}),
    "bag to transformer": ("seq2seq", {"encoder": "bag", "decoder": "transformer"}),
    "lstm that copies": ("seq2seq", {"encoder": "lstm", "decoder": "lstm", "attention": "mlp", "copies": True}),
    "transformer that copies": ("seq2seq", {"copies": True, "tying": "all"}),
    "vaswani": ("vaswani", {}),
}
"""Encoders of every kind under decoders of every kind, and every name of the table."""


@cache
def tokenizer_of(kind: str, side: int | None) -> Tokenizer:
    """Learned on sources (0), targets (1) or both (None)."""
    texts = [text for pair in TEXTS for text in (pair if side is None else pair[side : side + 1])]
    return train_tokenizer(TokenizerConfig(kind=kind, vocab_size=300 if kind == "bpe" else None), texts)


def tiny_prepared(
    texts: list[tuple[str, str]] | None = None,
    valid: list[tuple[str, str]] | None = None,
    *,
    kind: str = "word",
    is_shared: bool = True,
) -> PreparedPairs:
    """Pairs in memory, with one vocabulary or two; by default one in six is for validation."""
    source, target = (tokenizer_of(kind, None if is_shared else side) for side in (0, 1))
    texts = TEXTS if texts is None else texts
    train = [pair for i, pair in enumerate(texts) if valid is not None or i % 6]
    held = texts[::6] if valid is None else valid
    parts = (Pairs.of(some, source, target) for some in (train, held, held))
    return PreparedPairs(source, target, *parts, Counts("pairs", len(train), len(held), len(held), {}), "tiny")


def tiny_pair_model(prepared: PreparedPairs, name: str = "seq2seq", seed: int = 7, **changes: Any) -> Seq2Seq:
    known = {line.name for line in model_config(name).help()}
    config = model_config(name, {key: value for key, value in (TINY | changes).items() if key in known})
    n_source = None if prepared.has_one_vocabulary else prepared.source_tokenizer.vocab_size
    torch.manual_seed(seed)
    return build_model(name, config, prepared.target_tokenizer.vocab_size, n_source)


def tiny_task(
    model: Seq2Seq, prepared: PreparedPairs, train: dict[str, Any] | None = None, **teaching: Any
) -> PairObjective:
    taught = TeachingConfig.from_dict({"max_tokens": 60} | teaching)
    scores = {"bleu": greedy_bleu, "f1": partial(greedy_f1, "slot")}
    greedy = scores.get(taught.select_by)
    return PairObjective(model, prepared, TrainConfig.from_dict(train or {}), taught, seed=3, greedy_score=greedy)


def run_tiny_pairs(
    folder: Path, model: Seq2Seq, prepared: PreparedPairs, resume: bool = False, **changes: Any
) -> TrainResult:
    """Train; `changes` are sections ({"teaching": {...}}) or keywords of `train_by_gradient`."""
    train = {"max_steps": 6, "eval_every": 3} | changes.pop("train", {})
    sections: dict[str, Any] = {
        "train": TrainConfig.from_dict(train),
        "optimizer": OptimizerConfig.from_dict({"lr": 0.01} | changes.pop("optimizer", {})),
        "schedule": ScheduleConfig.from_dict({"n_warmup": 2} | changes.pop("schedule", {})),
        "runtime": RuntimeConfig.from_dict({"device": "cpu", "n_threads": 1} | changes.pop("runtime", {})),
        "checkpoint": CheckpointConfig.from_dict(
            {"every_seconds": None, "log_every": 2, "has_tensorboard": False} | changes.pop("checkpoint", {})
        ),
    }
    task = tiny_task(model, prepared, train, **changes.pop("teaching", {}))
    return train_by_gradient(model, task, folder, seed=3, resume=resume, **sections, **changes)


def write_pairs(folder: Path, texts: list[tuple[str, str]] | None = None, name: str = "my") -> tuple[Path, Path]:
    """Two aligned files."""
    paths = folder / f"{name}.en", folder / f"{name}.de"
    for path, side in zip(paths, (0, 1), strict=True):
        path.write_text("".join(f"{pair[side]}\n" for pair in (TEXTS if texts is None else texts)), encoding="utf-8")
    return paths


EVERYTHING: dict[str, Any] = {
    "train": {"average": "ema", "average_decay": 0.9, "n_accumulate": 2},
    "teaching": {"mode": "scheduled", "decay": "linear", "n_half": 4, "p_bpe_dropout": 0.3},
    "checkpoint": {"every_steps": 3},
}
"""All that draws random numbers or remembers something."""


def main() -> None:
    """`tiny_pairs.py FOLDER STEP`: train with everything on and be killed after that update; 0: train to the end."""
    torch.set_num_threads(1)
    job = json.loads(sys.argv[1])
    prepared = tiny_prepared(kind="bpe")
    model = tiny_pair_model(prepared, **job["model"], p_dropout=0.2)
    on_step = kill_at(job["kill_step"])
    run_tiny_pairs(Path(job["folder"]), model, prepared, resume=True, on_step=on_step, **EVERYTHING)


if __name__ == "__main__":
    main()
