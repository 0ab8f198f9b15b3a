"""One new position through a Transformer block with its norms before the sums, in as few kernels as can be."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.kernels.kv_cache import StaticKVCache
from regard.kernels.step_linear import is_for_one_kernel, step_linear, step_norm


def step_block(block: Any, x: Float[Tensor, "B D"], cache: StaticKVCache) -> Float[Tensor, "B D"]:
    """x = x + attention(norm(x)),   x = x + feed_forward(norm(x)), by the parts of a `TransformerBlock`."""
    attention, feed_forward, norm = block.attention, block.feed_forward, block.norm_feed_forward
    qkv, out, up, down = attention.qkv, attention.out, feed_forward.up, feed_forward.out
    if is_for_one_kernel(x, qkv.weight):
        parts = step_linear(x, qkv.weight, qkv.bias, norm=block.norm_attention)  # (B, 3 D)
        y = attention.mix(parts[:, None], cache)[0][:, 0]
        x = step_linear(y, out.weight, out.bias, residual=x)
        a = step_linear(x, up.weight, up.bias, norm=norm, activation=feed_forward.activation)  # (B, F)
        return step_linear(a, down.weight, down.bias, residual=x)
    _, h = step_norm(x, block.norm_attention)
    y = attention.mix(qkv(h)[:, None], cache)[0][:, 0]
    x, h = step_norm(x, norm, out(y))
    change: Tensor = feed_forward(h[:, None])[:, 0]
    return x + change
