"""One training step on the CPU against code that people use today; every ratio is measured in one run.

    python benchmarks/train_step.py [--rounds 15] [--threads N] [--tiny]

Transformer: 4 layers, 4 heads, width 256, batch 8 x 256, vocabulary 8,192, against Hugging Face's GPT-2 of the same
shape with eager attention. LSTM: 2 x 650, batch 20 x 35, vocabulary 10,000, against nn.LSTM as a textbook writes it.
Both sides do the same work: forward, backward, clip the gradient's norm at 1, an AdamW step. They take turns, so that
whatever else the machine does falls on both; the figure is the median over rounds of (their seconds / our seconds).
The Transformer is measured without dropout on either side, with 0.1 on both, and as each comes by default (ours 0,
GPT-2's config 0.1), which is not the same work.
"""

from __future__ import annotations

import torch
from ours import text_learner, updates
from rivals import gpt2, textbook_update, update
from timing import Figures, describe_machine, options, take_turns

from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.training.config import RuntimeConfig

CPU = torch.device("cpu")
DROPOUTS = ((0.0, 0.0), (0.1, 0.1), (0.0, 0.1))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    rounds = 1 if given.tiny else given.rounds
    torch.manual_seed(0)
    print(describe_machine(rounds))
    figures = Figures()
    time_transformer(figures, rounds, given.tiny)
    time_lstm(figures, rounds, given.tiny)
    figures.write(given.out)


def time_transformer(figures: Figures, rounds: int, is_tiny: bool) -> None:
    width, vocab_size, rows, context = (16, 50, 2, 8) if is_tiny else (256, 8192, 8, 256)
    for p_ours, p_theirs in DROPOUTS[:1] if is_tiny else DROPOUTS:
        shape = TransformerConfig(d_model=width, n_layers=4, n_heads=4, max_context=context, p_dropout=p_ours)
        model = build_model("transformer", shape, vocab_size)
        ours = updates(text_learner(model, vocab_size, rows, context, RuntimeConfig(device="cpu")))
        hf = gpt2(shape, vocab_size, p_dropout=p_theirs, attention="eager").train()
        hf.config.use_cache = False
        ids = torch.randint(vocab_size, (rows, context))
        theirs = update(hf, lambda hf=hf, ids=ids: hf(ids, labels=ids).loss, is_fused=False)
        what = f"Transformer 4 x {width}, {rows} x {context}, dropout {p_ours:g} and {p_theirs:g}"
        taken = take_turns({"Regard": ours, "Hugging Face": theirs}, rounds, n_warm=3)
        figures.note_turns(what, taken, rows * context, bar=1.35)


def time_lstm(figures: Figures, rounds: int, is_tiny: bool) -> None:
    width, vocab_size, rows, context = (16, 50, 2, 8) if is_tiny else (650, 10_000, 20, 35)
    model = build_model("lstm", LSTMConfig(d_model=width), vocab_size)
    ours = updates(text_learner(model, vocab_size, rows, context, RuntimeConfig(device="cpu")))
    theirs = textbook_update(vocab_size, width, rows, context, CPU, is_fused=False)
    taken = take_turns({"Regard": ours, "nn.LSTM": theirs}, rounds, n_warm=3)
    figures.note_turns(f"LSTM 2 x {width}, {rows} x {context}", taken, rows * context, bar=1.0)


if __name__ == "__main__":
    main()
