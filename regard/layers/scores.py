"""How well a key answers a query: the four score functions of attention.

Each is a module called with queries (B, T, D) and keys (B, S, D); it gives one number for each pair, (B, T, S). Where
the same keys meet one query after another, `keys` computes once what `against` then needs of them.
`flops` says what scoring every query against every key costs: twice the multiply-adds.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError, nearest


class Dot(nn.Module):
    """score = q·k (Luong et al. 2015)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return self.against(q, self.keys(k))

    def keys(self, k: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return k

    def against(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return q @ k.transpose(1, 2)

    def flops(self, n_queries: int, n_keys: int) -> int:
        return 2 * self.d_model * n_queries * n_keys


class ScaledDot(nn.Module):
    """score = q·k / √D, so that the scores of wide vectors do not saturate the softmax (Vaswani et al. 2017)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return self.against(q, self.keys(k))

    def keys(self, k: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return k

    def against(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return (q / math.sqrt(self.d_model)) @ k.transpose(1, 2)

    def flops(self, n_queries: int, n_keys: int) -> int:
        return 2 * self.d_model * n_queries * n_keys


class Bilinear(nn.Module):
    """score = qᵀ W k (Luong et al. 2015, "general")."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.empty(d_model, d_model))
        nn.init.normal_(self.W, std=1 / d_model)  # scores of about |q||k| / D: all keys are tried at first

    def forward(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return self.against(q, self.keys(k))

    def keys(self, k: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return k

    def against(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return q @ self.W @ k.transpose(1, 2)

    def flops(self, n_queries: int, n_keys: int) -> int:
        D = self.W.shape[0]
        return 2 * D * D * n_queries + 2 * D * n_queries * n_keys


class MLP(nn.Module):
    """score = w2·tanh(W1 [q; k]) (Bahdanau et al. 2015).

    W1 [q; k] = W_q q + W_k k, so each query and each key is multiplied once and no pair is ever concatenated; the tanh
    of all pairs, (B, T, S, A), is what this score costs in memory.
    """

    def __init__(self, d_model: int, d_hidden: int = 64) -> None:
        super().__init__()
        self.from_q = nn.Linear(d_model, d_hidden, bias=False)  # the left part of W1
        self.from_k = nn.Linear(d_model, d_hidden, bias=False)  # the right part
        self.w2 = nn.Parameter(torch.empty(1, d_hidden))
        nn.init.normal_(self.w2, std=d_hidden**-0.5)

    def forward(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        return self.against(q, self.keys(k))

    def keys(self, k: Float[Tensor, "B S D"]) -> Float[Tensor, "B S A"]:
        keys: Tensor = self.from_k(k)
        return keys

    def against(self, q: Float[Tensor, "B T D"], k: Float[Tensor, "B S A"]) -> Float[Tensor, "B T S"]:
        pairs = torch.tanh(self.from_q(q)[:, :, None] + k[:, None])  # (B, T, S, A)
        return functional.linear(pairs, self.w2).squeeze(-1)

    def flops(self, n_queries: int, n_keys: int) -> int:
        A, D = self.from_q.weight.shape
        return 2 * A * D * (n_queries + n_keys) + 2 * A * n_queries * n_keys


Score = Dot | ScaledDot | Bilinear | MLP


def score_function(name: str, d_model: int) -> Score:
    """The score function called `name`, for queries and keys of width d_model."""
    kinds: dict[str, type[Score]] = {
        "dot": Dot,
        "bilinear": Bilinear,
        "mlp": MLP,
        "scaled-dot": ScaledDot,
    }
    if name not in kinds:
        raise RegardError(f"There is no score function '{name}'.{nearest(name, kinds)} There are: {', '.join(kinds)}.")
    return kinds[name](d_model)
