"""The Transformer encoder."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.feed_forward import FeedForward
from regard.layers.full_attention import FullAttention
from regard.layers.low_precision import lowered
from regard.layers.positions import positions
from regard.layers.record import Record
from regard.mixers.config import TransformerConfig
from regard.mixers.encoder import Ends


class EncoderBlock(nn.Module):
    """Attention to both sides, then a feed-forward layer, each added to its own input.

    pre:   x = x + attention(norm(x)),   x = x + feed_forward(norm(x))
    post:  x = norm(x + attention(x)),   x = norm(x + feed_forward(x))      (Vaswani et al. 2017)
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D = config.d_model
        self.is_pre_norm = config.norm == "pre"
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = FullAttention(D, config.n_heads, config.p_dropout)
        self.feed_forward = FeedForward(D, config.d_ff or 4 * D, config.activation)
        self.dropout = nn.Dropout(config.p_dropout)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], record: Record | None = None
    ) -> Float[Tensor, "B S D"]:
        if self.is_pre_norm:
            x = x + self.dropout(self.attention(self.norm_attention(x), mask, record))
            x = x + self.dropout(self.feed_forward(self.norm_feed_forward(x)))
        else:
            x = self.norm_attention(x + self.dropout(self.attention(x, mask, record)))
            x = self.norm_feed_forward(x + self.dropout(self.feed_forward(x)))
        return x

    def flops(self, n_source: int) -> int:
        return self.attention.flops(n_source) + n_source * self.feed_forward.flops_per_token()


class TransformerEncoder(nn.Module):
    """x^0 = positions(x),  x^l = block_l(x^{l-1}),  s = norm(x^L) with norm before the sums, x^L with norm after."""

    n_ends = 0

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D = config.d_model
        self.positions = positions(config.positions, config.max_context, D)
        blocks = [EncoderBlock(config) for _ in range(config.n_layers)]
        self.layers: Sequence[EncoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(D) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(config.p_dropout)
        self.max_context: int | None = config.max_context

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], record: Record | None = None
    ) -> tuple[Float[Tensor, "B S D"], Ends]:
        x = lowered(self.dropout(self.positions(x)))
        for index, block in enumerate(self.layers):
            scope = None if record is None else record.scope(f"layers.{index}")
            x = block(x, mask, scope)
            if scope is not None:
                scope.keep("hidden", x)
        return lowered(self.norm(x)), ()

    def flops(self, n_source: int) -> int:
        return sum(block.flops(n_source) for block in self.layers)


def initialise_xavier(stack: nn.Module) -> None:
    """Glorot's start for every matrix, zero for every bias: what the paper's own code did, and what post-norm needs.

    q, k and v are one matrix here, so each starts at 1/√2 of what it would by itself.
    """
    for part in stack.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)
