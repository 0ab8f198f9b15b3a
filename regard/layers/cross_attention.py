"""Cross-attention: queries from the decoder, keys and values from the encoder."""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.kernels.linear import Linear
from regard.kernels.state import side_by_side
from regard.kernels.step_attention import step_cross_attention
from regard.layers.attention import cut_heads, join_heads, masked_attention
from regard.layers.taps import Taps


class SourceKeysAndValues(NamedTuple):
    """What cross-attention looks at: computed once, however many steps look at it."""

    keys: Float[Tensor, "B N S K"]
    values: Float[Tensor, "B N S K"]
    is_there: Bool[Tensor, "B S"]
    of: Int[Tensor, " R"] | None = None
    """Which source each target looks at, for steps of one position. None: R/B targets in a row look at each source."""


class CrossAttention(nn.Module):
    """Attention with N heads from a target to its source (Vaswani et al. 2017, section 3.2.3).

    q = W_q x + b_q,   k, v = W_kv s + b_kv,   each cut into N heads of width K = D/N
    head_n = softmax(q_n k_nᵀ / √K) v_n, over the source positions that are there
    y = W_o [head_1; ...; head_N] + b_o
    """

    def __init__(self, d_model: int, n_heads: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.q = Linear(d_model, d_model)  # W_q
        self.kv = Linear(d_model, 2 * d_model)  # W_k, W_v in one product
        self.out = Linear(d_model, d_model)  # W_o

    def keys_and_values(self, states: Float[Tensor, "B S D"]) -> tuple[Tensor, Tensor]:
        """Keys and values (B, N, S, K) of every head."""
        k, v = cut_heads(self.kv(states), 2, self.n_heads)
        return k, v

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        source: SourceKeysAndValues,
        taps: Taps | None = None,
        wants_weights: bool = False,
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R N T S"] | None]:
        """y, and the weights where they are wanted or tapped."""
        keys, values, is_there, of = source
        if of is not None:
            assert taps is None and not wants_weights, "a step that is replayed shows no weights"  # noqa: PT018
            (q,) = cut_heads(self.q(x), 1, self.n_heads)
            return self.out(join_heads(step_cross_attention(q, keys, values, is_there, of))), None
        (R, T, _), (B, S) = x.shape, is_there.shape
        if taps is not None and R > B:  # every target with a source of its own
            keys, values, is_there = (part.repeat_interleave(R // B, dim=0) for part in (keys, values, is_there))
            B = R
        (q,) = cut_heads(side_by_side(self.q(x), B), 1, self.n_heads)  # (B, N, R/B T, K)
        p_dropout = self.p_dropout if self.training else 0.0
        heads, A = masked_attention(q, keys, values, is_there, p_dropout, wants_weights, taps, "cross_")
        if A is not None and R > B:  # (B, N, R/B T, S)
            A = A.view(B, self.n_heads, -1, T, S).transpose(1, 2).reshape(R, self.n_heads, T, S)
        return self.out(join_heads(heads).reshape(x.shape)), A

    def flops(self, n_source: int, n_target: int) -> int:
        D = self.q.in_features
        return 2 * 2 * D * D * (n_source + n_target) + 2 * 2 * n_source * n_target * D
