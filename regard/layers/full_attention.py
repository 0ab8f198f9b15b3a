"""Self-attention that sees both sides."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.layers.masked_attention import masked_attention
from regard.layers.record import Record


class FullAttention(nn.Module):
    """Self-attention with N heads over all positions that are there (Vaswani et al. 2017, section 3.2).

    q, k, v = W x + b, each cut into N heads of width K = D/N
    head_n = softmax(q_n k_nᵀ / √K) v_n
    y = W_o [head_1; ...; head_N] + b_o
    """

    def __init__(self, d_model: int, n_heads: int, p_dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.p_dropout = n_heads, p_dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)  # W_q, W_k, W_v in one product
        self.out = nn.Linear(d_model, d_model)  # W_o

    def forward(
        self, x: Float[Tensor, "B S D"], is_there: Bool[Tensor, "B S"], record: Record | None = None
    ) -> Float[Tensor, "B S D"]:
        B, S, D = x.shape
        q, k, v = (part.view(B, S, self.n_heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        p_dropout = self.p_dropout if self.training else 0.0
        heads, A = masked_attention(q, k, v, is_there, p_dropout, wants_weights=record is not None)
        if record is not None and A is not None:
            record.keep("attention", A)
        y: Tensor = self.out(heads.transpose(1, 2).reshape(B, S, D))
        return y

    def flops(self, n: int) -> int:
        """Of n positions that all see each other."""
        D = self.qkv.in_features
        return n * (2 * 4 * D * D + 2 * 2 * n * D)
