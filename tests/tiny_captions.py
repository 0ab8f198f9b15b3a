"""Pictures, models that describe them and runs small enough for a test."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from regard.data.caption_config import CaptionConfig
from regard.data.pictures import Pictures, Pixels
from regard.data.prepared_captions import CaptionData, CaptionSet, PreparedCaptions
from regard.models.captioner import Captioner
from regard.models.table import build_model, model_config
from regard.tasks.caption_objective import CaptionObjective, Features
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.training.config import CheckpointConfig, OptimizerConfig, RuntimeConfig, ScheduleConfig, TrainConfig
from regard.training.loop import train_by_gradient
from regard.training.state import TrainResult
from regard.training.teaching_config import TeachingConfig

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}
CORNERS = ("top left", "top right", "bottom left", "bottom right")
SIZE = 32

GRID: dict[str, dict[str, Any]] = {
    "convolution to lstm": {"encoder": "convolution", "decoder": "lstm", "n_halvings": 3, "d_first": 8},
    "convolution to gru, fed": {
        "encoder": "convolution", "decoder": "gru", "n_halvings": 3, "d_first": 8, "input_feeding": True, "n_layers": 2,
    },
    "patches to transformer": {"encoder": "patches", "decoder": "transformer", "patch": 8, "n_encoder_layers": 2},
    "patches to convolution": {"encoder": "patches", "decoder": "convolution", "patch": 8, "n_layers": 2},
    "patches to rnn, no attention": {"encoder": "patches", "decoder": "rnn", "patch": 8, "attention": "none"},
    "frozen efficientnet to lstm": {"encoder": "efficientnet-lite0", "decoder": "lstm"},
}  # fmt: skip
"""Every encoder, every decoder, with attention and without."""
TINY: dict[str, Any] = {"d_model": 16, "n_heads": 2, "p_dropout": 0.0, "max_context": 12}


def drawn(colour: str, corner: str, size: int = SIZE) -> Pixels:
    """A square of one colour in one corner, on grey."""
    picture = np.full((size, size, 3), 128, dtype=np.uint8)
    half, side = size // 2, size // 4
    y = half * corner.startswith("bottom") + side // 2
    x = half * corner.endswith("right") + side // 2
    picture[y : y + side, x : x + side] = COLOURS[colour]
    return picture


THINGS = [(colour, corner) for colour in COLOURS for corner in CORNERS]


def said(colour: str, corner: str) -> tuple[str, str]:
    return f"a {colour} square {corner}", f"{corner} is {colour}"


def tiny_captions(n_valid: int = 3, n_said: int = 2, **config: Any) -> PreparedCaptions:
    """Twelve pictures in memory, of which the last `n_valid` are for validation and test."""
    texts = [said(*thing)[:n_said] for thing in THINGS]
    names = tuple(f"{i}.png" for i in range(len(THINGS)))
    settings = CaptionConfig(pictures="tiny", captions="tiny", **({"size": SIZE} | config))
    pixels = np.stack([drawn(*thing, settings.side) for thing in THINGS])
    first, everything = len(THINGS) - n_valid, range(len(THINGS))

    def part(numbers: range) -> CaptionSet:
        return CaptionSet(tuple(names[n] for n in numbers), tuple(numbers), tuple(texts[n] for n in numbers))

    held = part(everything[first:])
    data = CaptionData(part(everything[:first]), held, held, Pictures(pixels, {}, names), settings, {})
    return PreparedCaptions(_tokenizer(), data, "tiny")


@cache
def _tokenizer() -> Any:
    texts = [text for thing in THINGS for text in said(*thing)]
    return train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), texts)


def tiny_captioner(prepared: PreparedCaptions, variant: str, seed: int = 7, **changes: Any) -> Captioner:
    torch.manual_seed(seed)
    config = model_config("captioner", TINY | GRID[variant] | changes)
    return build_model("captioner", config, prepared.tokenizer.vocab_size, prepared.data.config.size)


def tiny_caption_task(
    model: Captioner,
    prepared: PreparedCaptions,
    train: dict[str, Any] | None = None,
    features: Features | None = None,
    **teaching: Any,
) -> CaptionObjective:
    settings = TrainConfig.from_dict({"n_batch": 6} | (train or {}))
    return CaptionObjective(model, prepared, settings, TeachingConfig.from_dict(teaching), 3, features)


def run_tiny_captions(
    folder: Path,
    model: Captioner,
    prepared: PreparedCaptions,
    resume: bool = False,
    features: Features | None = None,
    **changes: Any,
) -> TrainResult:
    """Train; `changes` are sections ({"teaching": {...}}) or keywords of `train_by_gradient`."""
    train = {"max_steps": 6, "eval_every": 3, "n_batch": 6} | changes.pop("train", {})
    task = tiny_caption_task(model, prepared, train, features, **changes.pop("teaching", {}))
    sections: dict[str, Any] = {
        "train": TrainConfig.from_dict(train),
        "optimizer": OptimizerConfig.from_dict({"lr": 0.01} | changes.pop("optimizer", {})),
        "schedule": ScheduleConfig.from_dict({"n_warmup": 2} | changes.pop("schedule", {})),
        "runtime": RuntimeConfig.from_dict({"device": "cpu", "n_threads": 1} | changes.pop("runtime", {})),
        "checkpoint": CheckpointConfig.from_dict(
            {"every_seconds": None, "log_every": 2, "has_tensorboard": False} | changes.pop("checkpoint", {})
        ),
    }
    return train_by_gradient(model, task, folder, seed=3, resume=resume, **sections, **changes)


def write_pictures(folder: Path) -> tuple[Path, Path]:
    """The same pictures in files, two captions each: the folder, and the file of captions."""
    pictures = folder / "pictures"
    pictures.mkdir(parents=True)
    lines = []
    for thing in THINGS:
        name = "-".join(thing).replace(" ", "-") + ".png"
        Image.fromarray(drawn(*thing)).save(pictures / name)
        lines += [f"{name}#{i}\t{text}\n" for i, text in enumerate(said(*thing))]
    captions = folder / "captions.txt"
    captions.write_text("".join(lines))
    return pictures, captions
