"""A linear chain over tags: which tag likes to follow which."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class ConditionalRandomField(nn.Module):
    """log P(y | x) = score(x, y) - log Σ_y' exp score(x, y')   (Lafferty et al. 2001; over an LSTM: Huang et al. 2015)

    score(x, y) = b[y_1] + Σ_t u_t[y_t] + Σ_t A[y_{t-1}, y_t] + e[y_n]

    u are the scores that a network gives each tag of each word. The sum over all y' is that of the forward algorithm,
    the best y that of Viterbi (1967).
    """

    def __init__(self, n_tags: int) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.zeros(n_tags))  # b
        self.follow = nn.Parameter(torch.zeros(n_tags, n_tags))  # A, from a row to a column
        self.end = nn.Parameter(torch.zeros(n_tags))  # e

    def nats(
        self, u: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, " B"]:
        """-log P(tags | x) of each sentence; its words stand first in its row."""
        return self.log_total(u, mask) - self.score(u, tags, mask)

    def score(
        self, u: Float[Tensor, "B N K"], tags: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]
    ) -> Float[Tensor, " B"]:
        tags = tags.where(mask, 0)
        words = (u.gather(2, tags[..., None])[..., 0] * mask).sum(dim=1)
        steps = (self.follow[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]).sum(dim=1)
        last = tags.gather(1, (mask.sum(dim=1) - 1).clamp_min(0)[:, None])[:, 0]
        return self.begin[tags[:, 0]] + words + steps + self.end[last]

    def log_total(self, u: Float[Tensor, "B N K"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, " B"]:
        """log Σ_y exp score(x, y), word by word: α_t[j] = log Σ_i exp(α_{t-1}[i] + A[i, j]) + u_t[j]."""
        alpha = self.begin + u[:, 0]  # (B, K)
        for t in range(1, u.shape[1]):
            following = (alpha[:, :, None] + self.follow).logsumexp(dim=1) + u[:, t]
            alpha = following.where(mask[:, t, None], alpha)
        return (alpha + self.end).logsumexp(dim=1)

    @torch.no_grad()
    def decode(self, u: Float[Tensor, "B N K"], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B N"]:
        """The tags of the highest score; 0 where there is no word."""
        best, came_from = self.begin + u[:, 0], []  # (B, K)
        for t in range(1, u.shape[1]):
            over, index = (best[:, :, None] + self.follow).max(dim=1)  # (B, K): over the tag before
            stays = torch.arange(u.shape[2], device=u.device).expand_as(index)
            came_from.append(index.where(mask[:, t, None], stays))
            best = (over + u[:, t]).where(mask[:, t, None], best)
        tag = (best + self.end).argmax(dim=1)
        tags = [tag]
        for index in reversed(came_from):
            tag = index.gather(1, tag[:, None])[:, 0]
            tags.append(tag)
        return torch.stack(tags[::-1], dim=1) * mask
