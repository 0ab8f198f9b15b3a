"""Translators of models that learned nothing, with weights large enough for translations that differ."""

from __future__ import annotations

from typing import Any

import torch
from tiny_pairs import GRID, TEXTS, tiny_pair_model, tiny_prepared

from regard.decode.config import BeamConfig
from regard.decode.translate import Translator
from regard.models.seq2seq import Seq2Seq

SOURCES = [source for source, _ in TEXTS]
MIXED = [SOURCES[0], "", "the " * 9, SOURCES[5], "   ", "bird", *SOURCES[7:12], "the blue wug falls"]


def loud_model(prepared: Any, variant: str, seed: int = 7, **changes: Any) -> Seq2Seq:
    """In float64, with weights large enough for translations that differ."""
    model = tiny_pair_model(prepared, GRID[variant][0], **(GRID[variant][1] | changes)).double()
    draws = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=draws)
    return model


def translator_of(
    variant: str = "lstm to gru", n: int = 1, kind: str = "word", tag: str | None = None, **beam: Any
) -> Translator:
    """One model, or the same one n times."""
    prepared = tiny_prepared(kind=kind)
    models = [loud_model(prepared, variant) for _ in range(n)]
    config = BeamConfig.from_dict({"max_ratio": 1.0, "max_extra": 4} | beam)
    return Translator(models, prepared.source_tokenizer, prepared.target_tokenizer, config, tag=tag)
