"""One training step on the CPU against code that people use today; every ratio is measured in one run.

    python benchmarks/train_step.py [--rounds 15] [--threads N]

Transformer: 4 layers, 4 heads, width 256, batch 8 x 256, vocabulary 8,192, against Hugging Face's GPT-2 of the same
shape with eager attention. LSTM: 2 x 650, batch 20 x 35, vocabulary 10,000, against nn.LSTM as a textbook writes it.
Both sides do the same work: forward, backward, clip the gradient's norm at 1, an AdamW step. They take turns, so that
whatever else the machine does falls on both; the figure is the median over rounds of (their seconds / our seconds).
The Transformer is measured without dropout on either side, with 0.1 on both, and as each comes by default (ours 0,
GPT-2's config 0.1), which is not the same work.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.language_model import LanguageModel
from regard.models.table import build_model

Step = Callable[[], float]


def our_step(model: LanguageModel, ids: Tensor, targets: Tensor) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    mask = torch.ones_like(ids, dtype=torch.bool)
    state = None

    def step() -> float:
        nonlocal state
        nats, n_tokens, after = model.loss(ids, targets, mask, state)
        loss = nats / n_tokens
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if model.mixer.carries_state:
            state = tuple(tuple(part.detach() for part in layer) for layer in after)
        return loss.item()

    return step


def gpt2_step(vocab_size: int, ids: Tensor, p_dropout: float) -> tuple[nn.Module, Step]:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=vocab_size, n_positions=256, n_embd=256, n_layer=4, n_head=4, attn_implementation="eager",
        resid_pdrop=p_dropout, embd_pdrop=p_dropout, attn_pdrop=p_dropout, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).train()
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.item())

    return model, step


class TextbookLSTM(nn.Module):
    """What PyTorch's own word language model example does, with tied embeddings."""

    def __init__(self, vocab_size: int, width: int, n_layers: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(vocab_size, width)
        self.rnn = nn.LSTM(width, width, n_layers)
        self.decoder = nn.Linear(width, vocab_size)
        self.decoder.weight = self.encoder.weight

    def forward(self, ids: Tensor, hidden: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        output, hidden = self.rnn(self.encoder(ids), hidden)
        return self.decoder(output), hidden


def textbook_step(vocab_size: int, ids: Tensor, targets: Tensor) -> Step:
    model = TextbookLSTM(vocab_size, 650, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    criterion = nn.CrossEntropyLoss()
    ids, targets = ids.t().contiguous(), targets.t().contiguous()  # (T, B), as nn.LSTM likes it best
    hidden = (torch.zeros(2, ids.shape[1], 650), torch.zeros(2, ids.shape[1], 650))

    def step() -> float:
        nonlocal hidden
        hidden = (hidden[0].detach(), hidden[1].detach())
        logits, hidden = model(ids, hidden)
        loss = criterion(logits.view(-1, vocab_size), targets.view(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.item())

    return step


def take_turns(ours: Step, theirs: Step, rounds: int) -> tuple[float, float, float]:
    """Median seconds of each, and the median ratio of neighbours in time."""
    times: list[tuple[float, float]] = []
    for _ in range(3):  # warm up: allocators, kernel choices
        ours(), theirs()
    for _ in range(rounds):
        t0 = time.perf_counter()
        ours()
        t1 = time.perf_counter()
        theirs()
        times.append((t1 - t0, time.perf_counter() - t1))
    a, b = (statistics.median(column) for column in zip(*times, strict=True))
    return a, b, statistics.median(theirs_s / ours_s for ours_s, theirs_s in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.rounds} rounds")

    ids = torch.randint(8192, (8, 257))
    for p_ours, p_theirs in ((0.0, 0.0), (0.1, 0.1), (0.0, 0.1)):
        config = TransformerConfig(d_model=256, n_layers=4, n_heads=4, max_context=256, p_dropout=p_ours)
        ours = our_step(build_model("transformer", config, 8192), ids[:, :-1], ids[:, 1:])
        _, theirs = gpt2_step(8192, ids[:, :-1], p_theirs)
        what = f"Transformer 4 x 256, batch 8 x 256, V 8,192, dropout {p_ours:g} and {p_theirs:g}"
        report(what, "Hugging Face GPT-2, eager", 8 * 256, 1.35, *take_turns(ours, theirs, arguments.rounds))

    ids = torch.randint(10_000, (20, 36))
    ours = our_step(build_model("lstm", LSTMConfig(d_model=650), 10_000), ids[:, :-1], ids[:, 1:])
    theirs = textbook_step(10_000, ids[:, :-1], ids[:, 1:])
    report("LSTM 2 x 650, batch 20 x 35, V 10,000", "nn.LSTM, textbook", 20 * 35, 1.0,
           *take_turns(ours, theirs, arguments.rounds))  # fmt: skip


def report(what: str, against: str, n_tokens: int, bar: float, ours_s: float, theirs_s: float, ratio: float) -> None:
    print(f"{what}: Regard {n_tokens / ours_s:,.0f} tokens/s ({ours_s * 1e3:.0f} ms a step), "
          f"{against} {n_tokens / theirs_s:,.0f} ({theirs_s * 1e3:.0f} ms): {ratio:.2f}x (bar {bar}x)")  # fmt: skip


if __name__ == "__main__":
    main()
