"""Cross-attention: queries from the decoder, keys and values from the encoder."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.look_attention import look_attention
from regard.layers.masked_attention import masked_attention
from regard.layers.record import Record
from regard.layers.shared_rows import side_by_side

SourceKeysAndValues = tuple[Tensor, Tensor]
"""Keys (B, N, S, K) of the source, and values likewise: computed once, however many steps look at them."""


class CrossAttention(nn.Module):
    """Attention with N heads from a target to its source (Vaswani et al. 2017, section 3.2.3).

    q = W_q x + b_q,   k, v = W_kv s + b_kv,   each cut into N heads of width K = D/N
    head_n = softmax(q_n k_nᵀ / √K) v_n, over the source positions that are there
    y = W_o [head_1; ...; head_N] + b_o
    """

    def __init__(self, d_model: int, n_heads: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.q = nn.Linear(d_model, d_model)  # W_q
        self.kv = nn.Linear(d_model, 2 * d_model)  # W_k, W_v in one product
        self.out = nn.Linear(d_model, d_model)  # W_o

    def keys_and_values(self, states: Float[Tensor, "B S D"]) -> SourceKeysAndValues:
        k, v = (self._heads(part) for part in self.kv(states).chunk(2, dim=-1))
        return k, v

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        source: SourceKeysAndValues,
        is_there: Bool[Tensor, "B S"],
        record: Record | None = None,
        wants_weights: bool = False,
        of: Int[Tensor, " R"] | None = None,
    ) -> tuple[Float[Tensor, "R T D"], Float[Tensor, "R N T S"] | None]:
        """y, and the weights where they are wanted or recorded.

        R is B, or a multiple of it: targets R/B i ... R/B (i + 1) - 1 then all look at source i, as more queries of it.
        With `of`, for one position, target r looks at source of[r].
        """
        R, T, _ = x.shape
        if of is not None:
            assert T == 1 and record is None and not wants_weights, "a step that is replayed shows no weights"  # noqa: PT018
            return self.out(look_attention(self._heads(self.q(x)), *source, is_there, of).reshape(x.shape)), None
        B, S = is_there.shape
        p_dropout = self.p_dropout if self.training else 0.0
        wants_weights = wants_weights or record is not None
        heads, A = masked_attention(
            self._heads(side_by_side(self.q(x), B)), *source, is_there, p_dropout, wants_weights
        )
        if A is not None and R > B:  # (B, N, R/B T, S)
            A = A.view(B, self.n_heads, -1, T, S).transpose(1, 2).reshape(R, self.n_heads, T, S)
        if record is not None and A is not None:
            record.keep("cross_attention", A)
        return self.out(heads.transpose(1, 2).reshape(x.shape)), A

    def _heads(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B N T K"]:
        return x.view(x.shape[0], x.shape[1], self.n_heads, -1).transpose(1, 2)

    def flops(self, n_source: int, n_target: int) -> int:
        D = self.q.in_features
        return 2 * 2 * D * D * (n_source + n_target) + 2 * 2 * n_source * n_target * D
