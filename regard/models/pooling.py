"""One vector for a text from the vectors of its tokens."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers.taps import Taps


class Pooling(nn.Module):
    """mean, max, last, first:  of the states h_t of a text's tokens
    pooler:                  the first; the head has a layer above it (`regard/models/heads.py`)
    attention:               Σ_t a_t h_t,   a = softmax(w·tanh(W h_t + b)) over the tokens (Yang et al. 2016)

    Of a text in several windows, first and last are the mean over the windows' first and last states; mean, max and
    attention see every token once.
    """

    def __init__(self, kind: str, d_model: int) -> None:
        super().__init__()
        self.kind = kind
        self.scorer = None
        if kind == "attention":
            self.scorer = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh(), nn.Linear(d_model, 1, bias=False))

    def forward(
        self,
        states: Float[Tensor, "B W T D"],
        mask: Bool[Tensor, "B W T"],
        keep: Bool[Tensor, "B W T"],
        taps: Taps | None = None,
    ) -> Float[Tensor, "B D"]:
        """`mask` says where there is a token, `keep` in which window its state counts."""
        if self.kind in ("first", "last", "pooler"):
            place = (
                (mask.sum(dim=-1) - 1).clamp_min(0) if self.kind == "last" else mask.new_zeros(mask.shape[:2]).long()
            )
            return _average_windows(states, place, mask.any(dim=-1))
        h, is_kept = states.flatten(1, 2), keep.flatten(1)[..., None]  # (B, S, D), (B, S, 1)
        if self.kind == "max":
            return h.masked_fill(~is_kept, float("-inf")).amax(dim=1)
        if self.scorer is not None:
            scores = self.scorer(h).masked_fill(~is_kept, float("-inf"))  # (B, S, 1)
            if taps is not None:
                scores = taps.keep("pool.scores", scores.transpose(1, 2)[:, None])[:, 0].transpose(1, 2)
            a = scores.softmax(dim=1)
            if taps is not None:
                a = taps.keep("pool.attention", a.transpose(1, 2)[:, None])[:, 0].transpose(1, 2)
            return (a * h).sum(dim=1)  # type: ignore[no-any-return]
        return (h * is_kept).sum(dim=1) / is_kept.sum(dim=1)

    def flops(self, n_tokens: int) -> int:
        linears = [part for part in self.modules() if isinstance(part, nn.Linear)]
        return n_tokens * sum(2 * part.in_features * part.out_features for part in linears)


def _average_windows(
    states: Float[Tensor, "B W T D"], place: Int[Tensor, "B W"], is_there: Bool[Tensor, "B W"]
) -> Float[Tensor, "B D"]:
    """The mean over windows of the state at one place of each."""
    index = place[..., None, None].expand(-1, -1, 1, states.shape[-1])
    chosen = states.gather(2, index)[:, :, 0] * is_there[..., None]  # (B, W, D)
    return chosen.sum(dim=1) / is_there.sum(dim=1, keepdim=True)
