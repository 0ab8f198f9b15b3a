"""The Transformer block, which reads a past, a source or both sides; and the stack of it that is a language model."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.transformer_step import step_block
from regard.layers.attention import MultiHeadAttention
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.feed_forward import FeedForward
from regard.layers.positions import positions
from regard.layers.taps import Taps
from regard.mixers.attention import AttentionStack, initialise
from regard.mixers.config import TransformerConfig
from regard.mixers.mixer import State


class TransformerBlock(nn.Module):
    """Attention, attention to a source where there is one, and a feed-forward layer, each added to its own input.

    pre  (GPT-2, Radford et al. 2019):   x = x + attention(norm(x)),   x = x + feed_forward(norm(x))
    post (Vaswani et al. 2017):          x = norm(x + attention(x)),   x = norm(x + feed_forward(x))

    with x + cross_attention(x, source) between the two for a decoder. An encoder hands a mask: its positions see both
    sides. A language model hands none: each sees its past, unless the block is not causal: each sees all.
    """

    def __init__(self, config: TransformerConfig, has_source: bool = False, is_causal: bool = True) -> None:
        super().__init__()
        D, N, p = config.d_model, config.n_heads, config.p_dropout
        self.is_pre_norm = config.norm == "pre"
        self.norm_attention = nn.LayerNorm(D)
        self.norm_cross = nn.LayerNorm(D) if has_source else None
        self.norm_feed_forward = nn.LayerNorm(D)
        self.attention = MultiHeadAttention(D, N, p, is_causal=is_causal)
        self.cross_attention = CrossAttention(D, N, p) if has_source else None
        self.feed_forward = FeedForward(D, config.d_ff or 4 * D, config.activation)
        self.dropout = nn.Dropout(p)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        cache: State | None = None,
        taps: Taps | None = None,
        mask: Bool[Tensor, "R T"] | None = None,
        source: SourceKeysAndValues | None = None,
        wants_weights: bool = False,
    ) -> tuple[Float[Tensor, "R T D"], State | None, Float[Tensor, "R N T S"] | None]:
        """x, the cache after it, and the weights on the source where they are wanted or tapped."""
        A, is_pre, norm = None, self.is_pre_norm, self.norm_attention
        y, cache = self.attention(norm(x) if is_pre else x, cache, taps, mask)
        x = x + self.dropout(y) if is_pre else norm(x + self.dropout(y))
        if self.cross_attention is not None and self.norm_cross is not None:
            norm = self.norm_cross
            y, A = self.cross_attention(norm(x) if is_pre else x, source, taps, wants_weights)
            x = x + self.dropout(y) if is_pre else norm(x + self.dropout(y))
        norm = self.norm_feed_forward
        y = self.dropout(self.feed_forward(norm(x) if is_pre else x))
        return x + y if is_pre else norm(x + y), cache, A

    def step(self, x: Float[Tensor, "B 1 D"], cache: State) -> Float[Tensor, "B 1 D"]:
        """Add one position to a static cache, by the fewest kernels."""
        return step_block(self, x[:, 0], cache)[:, None] if self.is_pre_norm else self(x, cache)[0]

    def flops_per_token(self, n_context: int, is_causal: bool = True) -> int:
        """Forward cost of a token without attention to a source; an encoder, which sees both sides, is not causal."""
        return self.attention.flops_per_token(n_context, is_causal) + self.feed_forward.flops_per_token()


def transformer(config: TransformerConfig) -> AttentionStack:
    """N blocks; with norm before the sums, one more norm at the end, since nothing else bounds the last sum."""
    D = config.d_model
    stack = AttentionStack(
        order=positions(config.positions, config.max_context, D),
        blocks=[TransformerBlock(config) for _ in range(config.n_layers)],
        norm=nn.LayerNorm(D) if config.norm == "pre" else nn.Identity(),
        p_dropout=config.p_dropout,
        max_context=config.max_context,
    )
    return initialise(stack, n_sums=2 * config.n_layers)
