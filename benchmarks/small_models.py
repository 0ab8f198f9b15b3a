"""Updates of small models on one GPU: Regard's training loop against plain torch, launched and as one CUDA graph.

    python benchmarks/small_models.py [--out results.json] [--tiny]

Each is a whole update in bf16: forward, backward, clipping at 1, AdamW; on random tokens. Plain torch is handed one
batch that lies on the device already; Regard reads each batch, uploads it, and looks at each loss. In turns, ours,
theirs, ours again; each the best of three times 50 updates. The first model has dropout 0.2 on both sides, as in
recipes/tinyshakespeare.yaml, the others none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from ours import text_learner, updates
from rivals import plain_transformer_update, textbook_update
from timing import Figures, describe_machine, options, pick_device, time_best

from regard.mixers.config import LSTMConfig, TransformerConfig
from regard.models.table import build_model
from regard.training.config import RuntimeConfig

BAR = 0.85


@dataclass(frozen=True)
class Row:
    """A model, the size of its vocabulary and of a batch."""

    name: str
    config: Any
    V: int
    B: int
    T: int


ROWS = (
    Row(
        "Transformer 6 x 384",
        TransformerConfig(d_model=384, n_layers=6, n_heads=6, max_context=256, p_dropout=0.2),
        65, 64, 256,
    ),
    Row("Transformer 4 x 256", TransformerConfig(d_model=256, n_layers=4, n_heads=4, max_context=128), 4096, 32, 128),
    Row("LSTM 2 x 256", LSTMConfig(d_model=256), 4096, 64, 128),
    Row("LSTM 2 x 650", LSTMConfig(d_model=650), 10_000, 20, 35),
)  # fmt: skip
TINY = (
    Row("Transformer", TransformerConfig(d_model=16, n_layers=1, n_heads=2, max_context=8), 20, 2, 8),
    Row("LSTM", LSTMConfig(d_model=16), 20, 2, 8),
)


def our_update(row: Row, device: torch.device, *, is_replayed: bool) -> Callable[[], Any]:
    torch.manual_seed(0)
    name = "lstm" if isinstance(row.config, LSTMConfig) else "transformer"
    model = build_model(name, row.config, row.V).to(device)
    precision = "bf16" if device.type == "cuda" else "float32"
    return updates(
        text_learner(model, row.V, row.B, row.T, RuntimeConfig(precision=precision, is_replayed=is_replayed))
    )


def their_update(row: Row, device: torch.device, *, is_captured: bool) -> Callable[[], Any]:
    torch.manual_seed(0)
    if isinstance(row.config, LSTMConfig):
        is_gpu = device.type == "cuda"
        return textbook_update(
            row.V, row.config.d_model, row.B, row.T, device, is_fused=True, is_low=is_gpu, is_captured=is_captured
        )
    p_dropout = row.config.p_dropout
    return plain_transformer_update(row.config, row.V, row.B, row.T, device, p_dropout, is_captured=is_captured)


def measure(row: Row, device: torch.device, figures: Figures, n: int) -> None:
    is_gpu = device.type == "cuda"
    ways: dict[str, Callable[[], Callable[[], Any]]] = {
        "Regard": partial(our_update, row, device, is_replayed=True),
        "Regard, not replayed": partial(our_update, row, device, is_replayed=False),
        "plain torch": partial(their_update, row, device, is_captured=False),
    }
    if is_gpu:
        ways["plain torch, one graph"] = partial(their_update, row, device, is_captured=True)
    seconds = {}
    what = f"{row.name}, {row.B} x {row.T}, V {row.V:,}"
    ours = ways["Regard"]()
    seconds["Regard"], gib = time_best(ours, n)
    figures.note(f"{what}: Regard", seconds["Regard"], row.B * row.T, gib)
    for name, make in list(ways.items())[1:]:
        seconds[name], gib = time_best(make(), n)
        figures.note(f"{what}: {name}", seconds[name], row.B * row.T, gib)
    again, _ = time_best(ours, n)
    figures.note(f"{what}: Regard again", again, row.B * row.T)
    rival = seconds.get("plain torch, one graph", seconds["plain torch"])
    figures.note_ratio(f"{what}, ratio", rival / seconds["Regard"], rival / again, bar=BAR)


def main() -> None:
    given = options(__doc__).parse_args()
    device, figures = pick_device(given.tiny), Figures()
    print(describe_machine(), flush=True)
    for row in TINY if given.tiny else ROWS:
        measure(row, device, figures, 1 if given.tiny else 50)
        figures.write(given.out)


if __name__ == "__main__":
    main()
