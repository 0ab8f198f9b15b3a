"""Restricted self-attention, in layers: every position looks at itself and the few before it."""

from torch import nn

from regard.layers.positions import positions
from regard.layers.restricted_attention import RestrictedAttention
from regard.mixers.attention import AttentionBlock, AttentionStack, initialise
from regard.mixers.restricted_config import RestrictedConfig


def restricted(config: RestrictedConfig) -> AttentionStack:
    """What a layer does not see it can hear of: through L layers news travels L (r-1) positions."""
    D, p = config.d_model, config.p_dropout
    stack = AttentionStack(
        order=positions(config.positions, config.max_context, D),
        blocks=[
            AttentionBlock(D, RestrictedAttention(D, config.n_heads, config.n_window, p), p)
            for _ in range(config.n_layers)
        ],
        norm=nn.LayerNorm(D),
        p_dropout=p,
        max_context=config.max_context,
    )
    return initialise(stack, n_sums=config.n_layers)
