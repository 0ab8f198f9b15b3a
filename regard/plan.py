"""What a config would do, before it does it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config import RunConfig, check_unknown_words
from regard.start import Start, start_at
from regard.training.memory import MemoryEstimate

if TYPE_CHECKING:
    from regard.models.captioner import Captioner
    from regard.models.seq2seq import Seq2Seq
    from regard.text.learning import Progress
    from regard.text.tokenizer import Tokenizer

Drawing = Callable[[], AbstractContextManager["Progress | None"]]
"""Makes a context in which reading and encoding are drawn; None draws nothing."""


@dataclass(frozen=True)
class Plan:
    """What a config would do, before it does it."""

    config: RunConfig
    n_parameters: int | None
    flops_per_token: int | None
    memory: MemoryEstimate | None
    n_tokens: dict[str, int]
    vocab_size: int
    first_batch: tuple[str, ...]
    start: Start | None = None

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of everything worth knowing, in words."""
        sizes = ", ".join(f"{name} {n:,}" for name, n in self.n_tokens.items())
        begins = "starts from" if self.config.decoder_from is None else "decoder begins as"
        lines = [(begins, str(self.start))] if self.start is not None else []
        lines += [("note", note) for note in self.config.notes()]
        lines += [("tokens", sizes), ("vocabulary", f"{self.vocab_size:,} tokens")]
        if self.n_parameters is not None and self.flops_per_token is not None:
            lines.append(("parameters", f"{self.n_parameters:,}"))
            lines.append(("FLOPs a token", f"{self.flops_per_token:,}; {3 * self.flops_per_token:,} in training"))
        else:
            lines.append(("parameters", "as many n-grams as the text has"))
        if self.memory is not None:
            parts = {name.replace("_", " "): n for name, n in asdict(self.memory).items() if n}
            details = ", ".join(f"{name} {_megabytes(n)}" for name, n in parts.items())
            lines.append(("memory, estimated", f"{_megabytes(self.memory.total)}: {details}"))
        return lines


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MB"


def text_plan(config: RunConfig, progress: Drawing) -> Plan:
    from regard.data.prepared_text import prepare_text
    from regard.models.table import model_entry
    from regard.text_training import outline
    from regard.training.count import check_end_mark
    from regard.training.memory import estimate
    from regard.training.reading import batches_for, context_of

    start = None if config.start_from is None else start_at(Path(config.start_from))
    with progress() as draw:
        prepared = prepare_text(config.text, config.tokenizer, progress=draw)
    sizes = {name: len(getattr(prepared, name)) for name in ("train", "valid", "test")}
    tokenizer = prepared.tokenizer
    check_unknown_words(config.model, tokenizer.kind, "the one at tokenizer.path")
    if model_entry(config.model_name).kind == "count":
        check_end_mark(tokenizer)
        beginning = tokenizer.decode(prepared.train[:256])
        return Plan(config, None, None, None, sizes, tokenizer.vocab_size, (beginning,))
    network = outline(config, tokenizer.vocab_size)
    batches = batches_for(network, prepared.train, config.train, config.seed)
    return Plan(
        config,
        network.n_parameters,
        network.flops_per_token(context_of(network, config.train)),
        estimate(network, config.train, config.optimizer, config.runtime),
        sizes,
        tokenizer.vocab_size,
        tuple(tokenizer.decode(row) for row in batches.at(0).inputs),
        start,
    )


def pair_plan(config: RunConfig, progress: Drawing) -> Plan:
    from regard.data.prepared_pairs import prepare_pairs
    from regard.pair_training import outline, task_of

    with progress() as draw:
        prepared = prepare_pairs(config.pairs, config.tokenizer, config.target_tokenizer, progress=draw)
    network = outline(config, prepared)
    start = _decoder_start(config, network, prepared.target_tokenizer)
    task = task_of(config, network, prepared)
    sizes = {name: int(getattr(prepared, name).target_lengths.sum()) for name in ("train", "valid", "test")}
    first = task.batches.pairs.only(task.batches.indices(0))
    return Plan(
        config,
        network.n_parameters,
        task.flops_per_token,
        task.memory(network, config.optimizer, config.runtime),
        sizes,
        prepared.target_tokenizer.vocab_size,
        tuple(f"{first.source_text(i)}\t{first.target_text(i)}" for i in range(len(first))),
        start,
    )


def caption_plan(config: RunConfig, progress: Drawing) -> Plan:
    from regard.caption_training import outline, task_of
    from regard.data.prepared_captions import prepare_captions

    with progress() as draw:
        prepared = prepare_captions(config.captions, config.tokenizer, progress=draw)
    network, tokenizer = outline(config, prepared), prepared.tokenizer
    start = _decoder_start(config, network, tokenizer)
    task = task_of(config, network, prepared)
    sizes = {
        name: sum(len(tokenizer.encode(text)) for text in getattr(prepared.data, name).texts)
        for name in ("train", "valid", "test")
    }
    batch = task.batches.at(0)
    return Plan(
        config,
        network.n_parameters,
        task.flops_per_token,
        task.memory(network, config.optimizer, config.runtime),
        sizes,
        tokenizer.vocab_size,
        tuple(tokenizer.decode(row[mask]).rstrip() for row, mask in zip(batch.targets, batch.mask, strict=True)),
        start,
    )


def _decoder_start(config: RunConfig, network: Seq2Seq | Captioner, tokenizer: Tokenizer) -> Start | None:
    from regard.decoder_start import check_decoder

    if config.decoder_from is None:
        return None
    start = start_at(Path(config.decoder_from))
    check_decoder(network, tokenizer, start)
    return start
