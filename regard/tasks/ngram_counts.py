"""Training where there is nothing to descend: an n-gram model is counted, once.

It still has a learning curve: it is fitted on growing beginnings of the text, each twice as long as the last, and the
last one is the model. All of them together cost about twice the last.
"""

from __future__ import annotations

import time
from pathlib import Path

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.data.prepared_text import PreparedText
from regard.errors import RegardError
from regard.files import write_atomically
from regard.models.gradient_next_token import as_next_token
from regard.score.evaluate import Evaluation, evaluate
from regard.tasks.text_objective import first_tokens
from regard.text.tokenizer import Tokenizer
from regard.training.checkpoint import MODEL, clean_run_folder, is_finished
from regard.training.config import TrainConfig
from regard.training.metrics import Metrics, read_metrics
from regard.training.progress import Reporter, Silent, Status
from regard.training.state import TrainResult
from regard.training.weights import save_arrays

FEWEST_TOKENS = 1_000
MAX_FITS = 8


def count_ngrams(
    config: NgramConfig,
    prepared: PreparedText,
    folder: Path,
    *,
    train: TrainConfig,
    reporter: Reporter | None = None,
) -> TrainResult:
    """Fit an n-gram model on `prepared.train` and write `model.safetensors` and `metrics.jsonl` into `folder`.

    Of the limits, `max_tokens`, `max_epochs` below 1 and `max_seconds` shorten the text that is counted; a model that
    would take longer than `max_seconds` to fit is fitted on as much text as fits. `seconds` is the time of that one
    fit. A killed fit starts again from nothing, so there is no state.
    """
    check_end_mark(prepared.tokenizer)
    reporter = reporter or Silent()
    folder.mkdir(parents=True, exist_ok=True)
    clean_run_folder(folder)
    n_tokens, reason = _text_to_count(len(prepared.train), train)
    metrics = Metrics(folder, step=0, offset=0, has_tensorboard=False)
    reporter.start(f"{config.order}-gram counts of {n_tokens:,} tokens")
    tokenizer, ids = prepared.tokenizer, prepared.train.tokens
    step, last = 0, (0, 0.0)
    try:
        for wanted in list_lengths(n_tokens):
            n = _within_seconds(wanted, last, train.max_seconds)
            if n < wanted:
                reason = "max_seconds"
            began = time.perf_counter()
            model = NgramModel.fit(config, ids[:n], tokenizer.vocab_size, tokenizer.unk)
            seconds = time.perf_counter() - began
            step, last = step + 1, (n, seconds)
            score = _score(model, prepared, train)
            metrics.write(
                "valid" if score else "train",
                step,
                tokens=n,
                flops=0,
                seconds=seconds,
                nats_per_token=score.nats_per_token if score else None,
                bits_per_byte=score.bits_per_byte if score else None,
                tokens_per_second=n / seconds,
                n_ngrams=sum(model.n_ngrams),
            )
            if score:
                rate, share = n / seconds, n / n_tokens
                nats, bits = score.nats_per_token, score.bits_per_byte
                reporter.show(Status(step, share, seconds, nats, bits, rate, split="valid"))
            if reason == "max_seconds":
                break
        write_atomically(folder / MODEL, lambda aside: save_arrays(model.tensors(), aside))
        metrics.sync()
    finally:
        reporter.stop()
        metrics.close()
    scores = (score.nats_per_token, score.bits_per_byte) if score else (None, None)
    return TrainResult(reason, step, n, 0, seconds, step, *scores)


def is_counted(folder: Path, prepared: PreparedText, train: TrainConfig) -> bool:
    """Whether the run in `folder` has ended and has counted as much of the text as `train` allows."""
    lines = read_metrics(folder) if is_finished(folder) and (folder / MODEL).exists() else []
    return bool(lines) and lines[-1]["tokens"] == _text_to_count(len(prepared.train), train)[0]


def check_end_mark(tokenizer: Tokenizer) -> None:
    """Counts are kept for streams whose sentences end with id 0, as those of every tokenizer learned here do."""
    if tokenizer.eos != 0:
        raise RegardError(
            f"The tokenizer ends a text with {tokenizer.end_mark}, id {tokenizer.eos}, and an n-gram model counts "
            "sentences that end with id 0. Leave out tokenizer.path to learn a tokenizer from the training text."
        )


def list_lengths(n_tokens: int) -> list[int]:
    """Lengths of the beginnings that are fitted, the whole last.

    >>> list_lengths(10_000)
    [1250, 2500, 5000, 10000]
    """
    lengths = [n_tokens]
    while lengths[-1] // 2 >= FEWEST_TOKENS and len(lengths) < MAX_FITS:
        lengths.append(lengths[-1] // 2)
    return lengths[::-1]


def _text_to_count(n_tokens: int, train: TrainConfig) -> tuple[int, str]:
    limits = [(n_tokens, "end of text")]
    if train.max_tokens is not None:
        limits.append((train.max_tokens, "max_tokens"))
    if train.max_epochs is not None:
        limits.append((max(1, int(n_tokens * train.max_epochs)), "max_epochs"))
    return min(limits, key=lambda limit: limit[0])


def _within_seconds(n: int, last: tuple[int, float], max_seconds: float | None) -> int:
    """`n`, or the fewer tokens that can be fitted in `max_seconds` at the pace of the last fit, never fewer than it."""
    last_n, last_seconds = last
    if max_seconds is None or not last_n:
        return n
    return min(n, max(last_n, int(last_n * max_seconds / last_seconds)))


def _score(model: NgramModel, prepared: PreparedText, train: TrainConfig) -> Evaluation | None:
    if not len(prepared.valid):
        return None
    return evaluate(as_next_token(model), first_tokens(prepared.valid, train.max_eval_tokens))
