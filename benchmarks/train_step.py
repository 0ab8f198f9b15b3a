"""One training step on the CPU against code that people use today; every ratio is measured in one run.

    python benchmarks/train_step.py [--rounds 15] [--threads N] [--tiny]

Transformer: 4 layers, 4 heads, width 256, batch 8 x 256, vocabulary 8,192, against Hugging Face's GPT-2 of the same
shape with eager attention. LSTM: 2 x 650, batch 20 x 35, vocabulary 10,000, against nn.LSTM as a textbook writes it.
Both sides do the same work: forward, backward, clip the gradient's norm at 1, an AdamW step. Each has a process of its
own, where Regard keeps freed memory as its training loop does and the other side leaves it to the system; they take
turns, so that whatever else the machine does falls on both. The figure is the median over rounds of (their seconds /
our seconds), on the clock, and once more of the processor's time, which a busy machine disturbs less.
The Transformer is measured without dropout on either side, with 0.1 on both, and as each comes by default (ours 0,
GPT-2's config 0.1), which is not the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from ours import text_learner, updates
from rivals import gpt2, textbook_update, update
from timing import Figures, describe_machine, options, serve, take_turns_apart

from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.training.config import RuntimeConfig
from regard.training.freed_memory import keep_freed_memory

CPU = torch.device("cpu")
DROPOUTS = ((0.0, 0.0), (0.1, 0.1), (0.0, 0.1))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--side", help="serve this side: what the script itself starts")
    parser.add_argument("--dropouts", type=float, nargs=2, default=(0.0, 0.0), help="of the two sides of --side")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    if given.side is not None:
        step = SIDES[given.side](given.tiny, *given.dropouts)
        if given.side.startswith("Regard"):
            with keep_freed_memory():
                serve(step)
        else:
            serve(step)
        return
    rounds = 1 if given.tiny else given.rounds
    print(describe_machine(rounds))
    figures = Figures()
    shared = ["--threads", str(given.threads), *(["--tiny"] if given.tiny else [])]
    for ours, theirs in DROPOUTS[:1] if given.tiny else DROPOUTS:
        _, _, rows, context = transformer_size(given.tiny)
        how = [*shared, "--dropouts", str(ours), str(theirs)]
        taken = take_turns_apart(__file__, ("Regard", "Hugging Face"), how, rounds, n_warm=3)
        figures.note_turns(f"Transformer, dropout {ours:g} and {theirs:g}", taken, rows * context, bar=1.35)
    _, _, rows, context = lstm_size(given.tiny)
    taken = take_turns_apart(__file__, ("Regard, LSTM", "nn.LSTM"), shared, rounds, n_warm=3)
    figures.note_turns("LSTM", taken, rows * context, bar=1.0)
    figures.write(given.out)


def transformer_size(is_tiny: bool) -> tuple[int, int, int, int]:
    """Width, vocabulary, texts and tokens of each."""
    return (16, 50, 2, 8) if is_tiny else (256, 8192, 8, 256)


def lstm_size(is_tiny: bool) -> tuple[int, int, int, int]:
    """Width, vocabulary, texts and tokens of each."""
    return (16, 50, 2, 8) if is_tiny else (650, 10_000, 20, 35)


def our_transformer(is_tiny: bool, p_ours: float, p_theirs: float) -> Callable[[], Any]:
    width, vocab_size, rows, context = transformer_size(is_tiny)
    shape = TransformerConfig(d_model=width, n_layers=4, n_heads=4, max_context=context, p_dropout=p_ours)
    model = build_model("transformer", shape, vocab_size)
    return updates(text_learner(model, vocab_size, rows, context, RuntimeConfig(device="cpu")))


def their_transformer(is_tiny: bool, p_ours: float, p_theirs: float) -> Callable[[], Any]:
    width, vocab_size, rows, context = transformer_size(is_tiny)
    shape = TransformerConfig(d_model=width, n_layers=4, n_heads=4, max_context=context)
    hf = gpt2(shape, vocab_size, p_dropout=p_theirs, attention="eager").train()
    hf.config.use_cache = False
    ids = torch.randint(vocab_size, (rows, context))
    return update(hf, lambda: hf(ids, labels=ids).loss, is_fused=False)


def our_lstm(is_tiny: bool, *_: float) -> Callable[[], Any]:
    width, vocab_size, rows, context = lstm_size(is_tiny)
    model = build_model("lstm", LSTMConfig(d_model=width), vocab_size)
    return updates(text_learner(model, vocab_size, rows, context, RuntimeConfig(device="cpu")))


def their_lstm(is_tiny: bool, *_: float) -> Callable[[], Any]:
    width, vocab_size, rows, context = lstm_size(is_tiny)
    return textbook_update(vocab_size, width, rows, context, CPU, is_fused=False)


SIDES: dict[str, Callable[..., Callable[[], Any]]] = {
    "Regard": our_transformer, "Hugging Face": their_transformer, "Regard, LSTM": our_lstm, "nn.LSTM": their_lstm,
}  # fmt: skip


if __name__ == "__main__":
    main()
