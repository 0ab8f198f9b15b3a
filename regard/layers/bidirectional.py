"""One recurrent layer from left to right, and one from right to left."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps, scope


def reversal(lengths: Int[Tensor, " B"], S: int) -> Int[Tensor, "B S"]:
    """Where each position's opposite stands: n-1-s in a row of n real ones; padding stays where it is.

    >>> reversal(torch.tensor([3, 1]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    s = torch.arange(S, device=lengths.device).expand(lengths.shape[0], S)
    n = lengths[:, None]
    return torch.where(s < n, n - 1 - s, s)


def take_positions(x: Shaped[Tensor, "B S D"], index: Int[Tensor, "B R"]) -> Shaped[Tensor, "B R D"]:
    """x at the positions `index` of each row."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


class Bidirectional(nn.Module):
    """y_s = [→h_s; ←h_s] (Schuster & Paliwal 1997), each direction half as wide as y, or →h_s alone.

    A row is turned round within its own length, so the padding behind it comes last in both directions and is never
    read before a real position. Nothing is packed, which would make a GPU wait for the lengths.
    """

    def __init__(self, kind: str, d_model: int, is_bidirectional: bool) -> None:
        super().__init__()
        d_hidden = d_model // 2 if is_bidirectional else d_model
        self.ahead = RecurrentLayer(kind, d_model, d_hidden)
        self.back = RecurrentLayer(kind, d_model, d_hidden) if is_bidirectional else None

    def forward(
        self, x: Float[Tensor, "B S D"], lengths: Int[Tensor, " B"], taps: Taps | None = None
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]:
        """y; and where each direction ended: →h of the last real position beside ←h of the first."""
        opposite = reversal(lengths, x.shape[1])
        last = (lengths - 1).clamp_min(0)[:, None]  # (B, 1)
        y = self._read(self.ahead, x, scope(taps, "ahead"), None)
        end = take_positions(y, last)[:, 0]
        if self.back is not None:
            inner = scope(taps, "back")
            from_right = self._read(self.back, take_positions(x, opposite), inner, opposite)
            y = torch.cat([y, take_positions(from_right, opposite)], dim=-1)
            end = torch.cat([end, take_positions(from_right, last)[:, 0]], dim=-1)
        return y, end * (lengths > 0)[:, None]

    def _read(
        self, layer: RecurrentLayer, x: Tensor, taps: Taps | None, opposite: Tensor | None
    ) -> Float[Tensor, "B S H"]:
        """One direction's outputs in the order they were read; its taps in the order of the text."""
        if taps is not None and opposite is not None:
            taps = taps.turn_by(lambda values: take_positions(values, opposite))
        y: Tensor
        y, _ = layer(x, layer.start(x.shape[0], x), taps)
        return y

    def flops_per_token(self) -> int:
        return self.ahead.flops_per_token() + (0 if self.back is None else self.back.flops_per_token())
