"""A linear chain over tags: which tag likes to follow which."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.kernels import forward_backward

Legal = tuple[Sequence[bool], Sequence[Sequence[bool]]]
"""Which tags may come first, and for every tag which may follow it."""


class ConditionalRandomField(nn.Module):
    """log P(y | x) = score(x, y) - log Σ_y' exp score(x, y')   (Lafferty et al. 2001; over an LSTM: Huang et al. 2015)

    score(x, y) = b[y_1] + Σ_t u_t[y_t] + Σ_t A[y_{t-1}, y_t] + e[y_n]

    u are the scores that a network gives each tag of each word. The sum over all y' is that of the forward algorithm,
    the best y that of Viterbi (1967). It is learned over all sequences; with `legal` those that are not allowed, such
    as an I- that nothing begins, are never the best.
    """

    def __init__(self, n_tags: int, legal: Legal | None = None) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.zeros(n_tags))  # b
        self.follow = nn.Parameter(torch.zeros(n_tags, n_tags))  # A, from a row to a column
        self.end = nn.Parameter(torch.zeros(n_tags))  # e
        first, after = ([True] * n_tags, [[True] * n_tags] * n_tags) if legal is None else legal
        self.register_buffer("may_begin", torch.tensor(first), persistent=False)
        self.register_buffer("may_follow", torch.tensor(after), persistent=False)
        self.may_begin: Tensor
        self.may_follow: Tensor

    def nats(
        self, u: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, " B"]:
        """-log P(tags | x) of each sentence; its words stand first in its row."""
        total = forward_backward.log_total(u, mask, self.begin, self.follow, self.end)
        return total - self.score(u, tags, mask)

    def score(
        self, u: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, " B"]:
        tags = tags.where(mask, 0)
        words = (u.gather(2, tags[..., None])[..., 0] * mask).sum(dim=1)
        steps = (self.follow[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(dim=1)
        last = tags.gather(1, (mask.sum(dim=1) - 1).clamp_min(0)[:, None])[:, 0]
        return self.begin[tags[:, 0]] + words + steps + self.end[last]

    def log_total(self, u: Float[Tensor, "B N K"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, " B"]:
        """log Σ_y exp score(x, y), word by word: α_t[j] = log Σ_i exp(α_{t-1}[i] + A[i, j]) + u_t[j].

        The plain way; `regard/kernels/forward_backward.py` computes the same with fewer steps.
        """
        alpha = self.begin + u[:, 0]  # (B, K)
        for t in range(1, u.shape[1]):
            following = (alpha[:, :, None] + self.follow).logsumexp(dim=1) + u[:, t]
            alpha = following.where(mask[:, t, None], alpha)
        return (alpha + self.end).logsumexp(dim=1)

    @torch.no_grad()
    def decode(self, u: Float[Tensor, "B N K"], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B N"]:
        """The legal tags of the highest score; 0 where there is no word."""
        begin, follow = self._legal_scores()
        best, came_from = begin + u[:, 0], []  # (B, K)
        for t in range(1, u.shape[1]):
            over, index = (best[:, :, None] + follow).max(dim=1)  # (B, K): over the tag before
            stays = torch.arange(u.shape[2], device=u.device).expand_as(index)
            came_from.append(index.where(mask[:, t, None], stays))
            best = (over + u[:, t]).where(mask[:, t, None], best)
        tag = (best + self.end).argmax(dim=1)
        tags = [tag]
        for index in reversed(came_from):
            tag = index.gather(1, tag[:, None])[:, 0]
            tags.append(tag)
        return torch.stack(tags[::-1], dim=1) * mask

    @torch.no_grad()
    def probabilities(
        self, u: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, "B N"]]:
        """P of legal tags among all legal sequences, of each sentence as a whole and of each of its words."""
        begin, follow = self._legal_scores()
        alpha, gamma, total = forward_backward.forward_backward(u, mask, begin, follow, self.end)
        each = (alpha + gamma - u - total[:, None, None]).gather(2, tags[..., None])[..., 0]
        return (self.score(u, tags, mask) - total).exp(), each.masked_fill(~mask, float("-inf")).exp()

    def log_marginals(self, u: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
        """log P(y_t = k | x) among all legal sequences, of every word t of one sentence and every tag k.

        P(y_t = k) = ∂ log Z / ∂ u_t[k]; here by the sums from both ends, which can be differentiated again.
        """
        begin, follow = self._legal_scores()
        n = len(u)
        alpha: list[Tensor] = [begin + u[0]]
        beta: list[Tensor] = [self.end]
        for t in range(1, n):
            alpha.append((alpha[-1][:, None] + follow).logsumexp(dim=0) + u[t])
            beta.append((follow + (u[n - t] + beta[-1])[None]).logsumexp(dim=1))
        both = torch.stack(alpha) + torch.stack(beta[::-1])  # (N, K)
        return both - (alpha[-1] + self.end).logsumexp(dim=0)

    def _legal_scores(self) -> tuple[Float[Tensor, " K"], Float[Tensor, "K K"]]:
        """b and A, -inf where a tag may not come."""
        return (
            self.begin.masked_fill(~self.may_begin, float("-inf")),
            self.follow.masked_fill(~self.may_follow, float("-inf")),
        )
