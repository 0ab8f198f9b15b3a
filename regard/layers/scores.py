"""How well a key answers a query: the four score functions of attention."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError, nearest

SCORES = ("dot", "bilinear", "mlp", "scaled-dot")


class Score(nn.Module):
    """One number for each pair of a query and a key.

    dot          q·k (Luong et al. 2015)
    scaled-dot   q·k / √D, so that the scores of wide vectors do not saturate the softmax (Vaswani et al. 2017)
    bilinear     qᵀ W k (Luong et al. 2015, "general")
    mlp          w2·tanh(W1 [q; k]) (Bahdanau et al. 2015)

    W1 [q; k] = W_q q + W_k k, so each query and each key is multiplied once and no pair is ever concatenated; the tanh
    of all pairs, (B, T, S, A), is what this score costs in memory. Where the same keys meet one query after another,
    `keys` computes once what `against` then needs of them.
    """

    def __init__(self, kind: str, d_model: int, d_hidden: int = 64) -> None:
        super().__init__()
        if kind not in SCORES:
            near = nearest(kind, SCORES)
            raise RegardError(f"There is no score function '{kind}'.{near} There are: {', '.join(SCORES)}.")
        self.kind, self.d_model, self.d_hidden = kind, d_model, d_hidden
        if kind == "bilinear":
            self.W = nn.Parameter(torch.empty(d_model, d_model))
            nn.init.normal_(self.W, std=1 / d_model)  # scores of about |q||k| / D: all keys are tried at first
        if kind == "mlp":
            self.from_q = nn.Linear(d_model, d_hidden, bias=False)  # the left part of W1
            self.from_k = nn.Linear(d_model, d_hidden, bias=False)  # the right part
            self.w2 = nn.Parameter(torch.empty(1, d_hidden))
            nn.init.normal_(self.w2, std=d_hidden**-0.5)

    def forward(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return self.against(q, self.keys(k))

    def keys(self, k: Float[Tensor, "B S D"]) -> Float[Tensor, "B S A"]:
        return self.from_k(k) if self.kind == "mlp" else k

    def against(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        if self.kind == "mlp":
            pairs = torch.tanh(self.from_q(q)[:, :, None] + k[:, None])  # (B, T, S, A)
            return functional.linear(pairs, self.w2).squeeze(-1)
        if self.kind == "bilinear":
            q = q @ self.W
        if self.kind == "scaled-dot":
            q = q / math.sqrt(self.d_model)
        return q @ k.transpose(1, 2)

    def flops(self, n_queries: int, n_keys: int, n_pairs: int) -> int:
        """Twice the multiply-adds of scoring `n_pairs` of these queries and keys."""
        D, A = self.d_model, self.d_hidden
        if self.kind == "mlp":
            return 2 * A * D * (n_queries + n_keys) + 2 * A * n_pairs
        return 2 * D * n_pairs + (2 * D * D * n_queries if self.kind == "bilinear" else 0)
