"""The Transformer block, which reads a past, a source or both sides; and the stack of it that is a language model."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.kernels.transformer_step import step_block
from regard.layers.cross_attention import CrossAttention, SourceKeysAndValues
from regard.layers.feed_forward import FeedForward
from regard.layers.positions import positions
from regard.layers.taps import Taps
from regard.mixers.attention import AttentionStack, build_attention, build_norm, initialise
from regard.mixers.config import TransformerConfig
from regard.mixers.mixer import State


class TransformerBlock(nn.Module):
    """Attention, attention to a source where there is one, and a feed-forward layer, each added to its own input.

    pre  (GPT-2, Radford et al. 2019):   x = x + attention(norm(x)),   x = x + feed_forward(norm(x))
    post (Vaswani et al. 2017):          x = norm(x + attention(x)),   x = norm(x + feed_forward(x))

    with x + cross_attention(x, source) between the two for a decoder. An encoder hands a mask: its positions see both
    sides. A language model hands none: each sees its past, unless the block is not causal: each sees all.

    What `config.without` names is left out: the residual (the x before the +), the norms, the feed-forward layer with
    its norm, and the values, the scale or the mask of its own attention (`MultiHeadAttention`).
    """

    def __init__(self, config: TransformerConfig, has_source: bool = False, is_causal: bool = True) -> None:
        super().__init__()
        D, N, p, without = config.d_model, config.n_heads, config.p_dropout, config.without
        has_feed_forward = "feed-forward" not in without
        self.is_pre_norm, self.has_residual, self.without = config.norm == "pre", "residual" not in without, without
        self.norm_attention = build_norm(D, without)
        self.norm_cross = build_norm(D, without) if has_source else None
        self.norm_feed_forward = build_norm(D, without) if has_feed_forward else None
        self.attention = build_attention(D, N, p, without if is_causal else (*without, "mask"))
        self.cross_attention = CrossAttention(D, N, p) if has_source else None
        self.feed_forward = FeedForward(D, config.d_ff or 4 * D, config.activation) if has_feed_forward else None
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
        x = self._add(x, y, norm, taps, "residual")
        if self.cross_attention is not None and self.norm_cross is not None:
            norm = self.norm_cross
            y, A = self.cross_attention(norm(x) if is_pre else x, source, taps, wants_weights)
            x = self._add(x, y, norm, taps, "cross_residual")
        if self.feed_forward is not None and self.norm_feed_forward is not None:
            norm = self.norm_feed_forward
            x = self._add(x, self.feed_forward(norm(x) if is_pre else x), norm)
        return x, cache, A

    def _add(self, x: Tensor, y: Tensor, norm: nn.Module, taps: Taps | None = None, name: str = "") -> Tensor:
        """x + y with norm before the sums, norm(x + y) with norm after; without the residual, y in place of x + y.

        The sum is kept under `name`, where there are taps.
        """
        y = x + self.dropout(y) if self.has_residual else self.dropout(y)
        if taps is not None:
            y = taps.keep(name, y)
        return y if self.is_pre_norm else norm(y)

    def step(self, x: Float[Tensor, "B 1 D"], cache: State) -> Float[Tensor, "B 1 D"]:
        """Add one position to a static cache, by the fewest kernels."""
        is_for_step = self.is_pre_norm and not self.without
        return step_block(self, x[:, 0], cache)[:, None] if is_for_step else self(x, cache)[0]

    def flops_per_token(self, n_context: int, is_causal: bool = True) -> int:
        """Forward cost of a token without attention to a source; an encoder, which sees both sides, is not causal."""
        above = 0 if self.feed_forward is None else self.feed_forward.flops_per_token()
        return self.attention.flops_per_token(n_context, is_causal) + above


def transformer(config: TransformerConfig) -> AttentionStack:
    """N blocks; with norm before the sums, one more norm at the end, since nothing else bounds the last sum."""
    D = config.d_model
    stack = AttentionStack(
        order=positions(config.positions, config.max_context, D),
        blocks=[TransformerBlock(config) for _ in range(config.n_layers)],
        norm=build_norm(D, config.without) if config.norm == "pre" else nn.Identity(),
        p_dropout=config.p_dropout,
        max_context=config.max_context,
    )
    n_sums = config.n_layers * (1 if "feed-forward" in config.without else 2)
    return initialise(stack, n_sums=1 if "residual" in config.without else n_sums)
