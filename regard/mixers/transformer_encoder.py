"""The Transformer encoder."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.device import lower_precision
from regard.layers.positions import positions
from regard.layers.taps import Taps, keep, scope
from regard.mixers.attention import build_norm
from regard.mixers.config import TransformerConfig
from regard.mixers.mixer import Ends
from regard.mixers.transformer import TransformerBlock


class TransformerEncoder(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}),  s = norm(x^L) with norm before the sums, x^L with norm after."""

    n_ends = 0

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D = config.d_model
        self.positions = positions(config.positions, config.max_context, D)
        blocks = [TransformerBlock(config) for _ in range(config.n_layers)]
        self.layers: Sequence[TransformerBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = build_norm(D, config.without) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(config.p_dropout)
        self.max_context: int | None = config.max_context

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        x = lower_precision(self.dropout(self.positions(x, 0, taps)))
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            x, _, _ = block(x, None, inner, mask)
            x = keep(inner, "hidden", x)
        return lower_precision(self.norm(x)), ()

    def read_layers(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], ...]:
        """x^0 up to x^{L-1}, then s."""
        outputs = [lower_precision(self.dropout(self.positions(x, 0, taps)))]
        for index, block in enumerate(self.layers):
            inner = scope(taps, f"layers.{index}")
            outputs.append(keep(inner, "hidden", block(outputs[-1], None, inner, mask)[0]))
        return *outputs[:-1], lower_precision(self.norm(outputs[-1]))

    def flops(self, n_source: int) -> int:
        return n_source * sum(block.flops_per_token(n_source, is_causal=False) for block in self.layers)


def initialise_xavier(stack: nn.Module) -> None:
    """Glorot's start for every matrix, zero for every bias: what the paper's own code did, and what post-norm needs.

    q, k and v are one matrix here, so each starts at 1/√2 of what it would by itself.
    """
    for part in stack.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)
