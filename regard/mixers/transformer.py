"""The Transformer decoder."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.layers.attention import MultiHeadAttention
from regard.layers.feed_forward import FeedForward
from regard.layers.positions import positions
from regard.layers.record import Record
from regard.layers.step_linear import is_for_one_kernel, step_linear
from regard.layers.step_norm import step_norm
from regard.mixers.attention import AttentionStack, initialise
from regard.mixers.config import TransformerConfig
from regard.mixers.mixer import State


class TransformerBlock(nn.Module):
    """Attention, then a feed-forward layer, each added to its own input.

    pre  (GPT-2, Radford et al. 2019):   x = x + attention(norm(x)),   x = x + feed_forward(norm(x))
    post (Vaswani et al. 2017):          x = norm(x + attention(x)),   x = norm(x + feed_forward(x))
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        D = config.d_model
        self.is_pre_norm = config.norm == "pre"
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention = MultiHeadAttention(D, config.n_heads, config.p_dropout)
        self.feed_forward = FeedForward(D, config.d_ff or 4 * D, config.activation)
        self.dropout = nn.Dropout(config.p_dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], cache: State | None = None, record: Record | None = None
    ) -> tuple[Float[Tensor, "B T D"], State | None]:
        if self.is_pre_norm and cache is not None and isinstance(cache[2], Tensor):
            return self.step(x[:, 0], cache)[:, None], cache
        if self.is_pre_norm:
            y, cache = self.attention(self.norm_attention(x), cache, record)
            x = x + self.dropout(y)
            return x + self.dropout(self.feed_forward(self.norm_feed_forward(x))), cache
        y, cache = self.attention(x, cache, record)
        x = self.norm_attention(x + self.dropout(y))
        return self.norm_feed_forward(x + self.dropout(self.feed_forward(x))), cache

    def step(self, x: Float[Tensor, "B D"], cache: State) -> Float[Tensor, "B D"]:
        """The same for one new position, over a cache that counts on the device; norm before the sums."""
        attention, feed_forward = self.attention, self.feed_forward
        up, out, norm = feed_forward.up, feed_forward.out, self.norm_feed_forward
        if is_for_one_kernel(x, attention.qkv.weight):
            qkv = step_linear(x, attention.qkv.weight, attention.qkv.bias, norm=self.norm_attention)  # (B, 3 D)
            y = attention.step(qkv, cache)
            x = step_linear(y, attention.out.weight, attention.out.bias, residual=x)
            a = step_linear(x, up.weight, up.bias, norm=norm, activation=feed_forward.activation)  # (B, F)
            return step_linear(a, out.weight, out.bias, residual=x)
        _, h = step_norm(x, self.norm_attention)
        y = attention.step(attention.qkv(h), cache)
        x, h = step_norm(x, norm, attention.out(y))
        change: Tensor = feed_forward(h[:, None])[:, 0]
        return x + change

    def flops_per_token(self, n_context: int) -> int:
        return self.attention.flops_per_token(n_context) + self.feed_forward.flops_per_token()


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
