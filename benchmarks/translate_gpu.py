"""A Transformer that translates, on one GPU, against Hugging Face's Marian of the same shape, in one run.

    python benchmarks/translate_gpu.py [train] [decode] [--out results.json] [--tiny]

train   d 512, 6 + 6 layers, 8 heads, feed-forward 2048, vocabulary 32,000, 128 x 64 random tokens each side, bf16: a
        whole update (forward, backward, clipping at 1, AdamW), both compiled, no dropout, no label smoothing. Ours,
        theirs, ours again; the best of three times 20 updates. Tokens are source and target together.
decode  the same model, beam 5, 64 sources of 32 tokens, 64 new tokens each, in bf16, against `generate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from ours import translating, updates
from rivals import marian, searching, update
from timing import Figures, describe_machine, options, pick_device, time_best
from torch import Tensor

from regard.kernels.device import sdpa_backend_for_any_shape
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.tasks.pair_objective import PairObjective
from regard.training.config import OptimizerConfig, RuntimeConfig, TrainConfig
from regard.training.learner import Learner
from regard.training.objective import HostBatch
from regard.training.teaching_config import TeachingConfig


@dataclass(frozen=True)
class Size:
    """Of what is measured; `n` updates are timed at once."""

    shape: Seq2SeqConfig
    V: int
    B: int
    T: int
    n: int
    sources: tuple[int, int]  # how many, of how many tokens
    n_new: int
    beam: int
    is_tiny: bool


def transformer(**numbers: int) -> Seq2SeqConfig:
    return Seq2SeqConfig(**numbers, norm="post", p_dropout=0.0, tying="all", activation="relu")


BIG = Size(
    shape=transformer(d_model=512, n_layers=6, n_heads=8, d_ff=2048), V=32_000, B=128, T=64, n=20, sources=(64, 32),
    n_new=64, beam=5, is_tiny=False,
)  # fmt: skip
TINY = Size(
    shape=transformer(d_model=32, n_layers=1, n_heads=2, d_ff=64), V=100, B=4, T=8, n=1, sources=(2, 5), n_new=6,
    beam=2, is_tiny=True,
)  # fmt: skip


class RandomPairs(PairObjective):
    """Batches of one shape, all of it real."""

    has_one_shape = True

    def __init__(self, size: Size) -> None:
        self.teaching, self.per_epoch, self.size = TeachingConfig(smoothing=0.0), 1, size
        self.copies, self.cannot_replay = False, ""

    def at(self, index: int) -> HostBatch:
        B, T, V = self.size.B, self.size.T, self.size.V
        ids = torch.randint(2, V, (3, B, T), generator=torch.Generator().manual_seed(index))
        mask = torch.ones(B, T, dtype=torch.bool)
        return HostBatch((ids[0], mask, ids[1], ids[2], mask), B * T, is_fresh=True)


def train(size: Size, device: torch.device, figures: Figures) -> None:
    torch.manual_seed(0)
    runtime = RuntimeConfig(precision="float32" if size.is_tiny else "bf16", is_compiled=not size.is_tiny)
    model, optimizer = seq2seq(size.shape, size.V).to(device), OptimizerConfig(lr=1e-4)
    learner = Learner(model, RandomPairs(size), train=TrainConfig(), optimizer=optimizer, runtime=runtime)
    step = sdpa_backend_for_any_shape()(updates(learner))  # as in the training loop; theirs is left to torch's choice
    n_tokens = 2 * size.B * size.T
    first, _ = time_best(step, size.n)
    figures.note("update: Regard", first, n_tokens)
    theirs, _ = time_best(their_step(size, device), size.n)
    figures.note("update: Marian, compiled", theirs, n_tokens)
    again, _ = time_best(step, size.n)
    figures.note("update: Regard again", again, n_tokens)
    figures.note_ratio("train ratio", theirs / first, theirs / again, bar=1.2)


def their_step(size: Size, device: torch.device) -> Callable[[], Any]:
    hf = marian(size.shape, size.V, pad=0).to(device).train()
    compiled = hf if size.is_tiny else torch.compile(hf)
    ids = torch.randint(2, size.V, (3, size.B, size.T), device=device)
    mask = torch.ones(size.B, size.T, dtype=torch.int64, device=device)

    def loss() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=not size.is_tiny):
            given = {"input_ids": ids[0], "attention_mask": mask, "decoder_input_ids": ids[1], "labels": ids[2]}
            found: Tensor = compiled(**given).loss
        return found

    return update(hf, loss, is_fused=not size.is_tiny)


def decode(size: Size, device: torch.device, figures: Figures) -> None:
    torch.manual_seed(0)
    dtype = torch.float32 if size.is_tiny else torch.bfloat16
    ours = seq2seq(size.shape, size.V).to(device, dtype).eval()
    hf = marian(size.shape, size.V, pad=0).to(device, dtype).eval()
    source = torch.randint(2, size.V, size.sources, device=device)
    mask = torch.ones_like(source, dtype=torch.bool)
    n_tokens = size.sources[0] * size.n_new
    seconds, _ = time_best(translating(ours, source, mask, size.beam, size.n_new), n=2, n_warm=2)
    figures.note("beam search: Regard", seconds, n_tokens)
    theirs, _ = time_best(searching(hf, source, mask, size.beam, size.n_new), n=1, n_warm=1)
    figures.note("beam search: Hugging Face", theirs, n_tokens)
    figures.note_ratio("decode ratio", theirs / seconds, bar=3.0)


def main() -> None:
    jobs = {"train": train, "decode": decode}
    parser = options(__doc__)
    parser.add_argument("what", nargs="*", default=list(jobs))
    given = parser.parse_args()
    device, figures = pick_device(given.tiny), Figures()
    print(describe_machine(), flush=True)
    for name in given.what:
        jobs[name](TINY if given.tiny else BIG, device, figures)
        figures.write(given.out)


if __name__ == "__main__":
    main()
