"""Runs of pairs in memory, with random weights, to be written for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tiny_pairs import TINY, tiny_prepared

from regard.models.table import build_model
from regard.tasks.run_facts import RunFacts
from regard.tasks.table import build_config
from regard.tasks.task import OpenRun
from regard.tasks.translation import TRANSLATION, TranslationRun


def tiny_pair_run(
    name: str = "seq2seq",
    *,
    kind: str = "word",
    is_shared: bool = True,
    seed: int = 0,
    std: float = 0.3,
    data: dict[str, Any] | None = None,
    **model: Any,
) -> TranslationRun:
    """A run with matrices from N(0, std), and biases and norms not quite 0 and 1, so that each of them matters."""
    sizes = {key: value for key, value in TINY.items() if key != "n_layers"} | {"n_layers": [2, 3]} | model
    pairs = {"train": ["my.en", "my.de"]} | (data or {})
    config = build_config({"model": {"name": name} | sizes, "data": pairs, "tokenizer": {"kind": kind}})
    prepared = tiny_prepared(kind=kind, is_shared=is_shared)
    source, target = prepared.source_tokenizer, prepared.target_tokenizer
    seq2seq = build_model(name, config.model, target.vocab_size, None if is_shared else source.vocab_size)
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in seq2seq.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=std, generator=draws)
            else:
                parameter += 0.1 * torch.randn(parameter.shape, generator=draws)
    facts = RunFacts(1, "0", name, source.vocab_size, source.hash, "", seq2seq.n_parameters, 1)
    tokenizers = (source,) if is_shared else (source, target)
    return TranslationRun(TRANSLATION, OpenRun(Path("runs/tiny"), config, facts, tokenizers), seq2seq.eval())
