"""Convolution over pictures, and the two residual blocks that are built of it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

N_GROUPS = 8  # channels are normed in so many groups


class PictureConvolution(nn.Module):
    """y[o, i, j] = b_o + Σ_{c, u, v} W[o, c, u, v] x[c, s i + u - p, s j + v - q] (LeCun et al. 1989).

    A window of k×k moves by s = stride; outside of the picture are zeros. (h, w) becomes (⌈h/s⌉, ⌈w/s⌉): what is needed
    for that lies half before the picture and half after it, the odd zero after, as TensorFlow's SAME has it, by which
    published weights were trained. With `is_depthwise` each channel is read by itself: c = o.
    """

    def __init__(self, d_in: int, d_out: int, n_window: int, stride: int = 1, is_depthwise: bool = False) -> None:
        assert not is_depthwise or d_in == d_out, "each channel by itself"
        super().__init__()
        self.n_window, self.stride, self.n_groups = n_window, stride, d_in if is_depthwise else 1
        self.weight = nn.Parameter(torch.empty(d_out, d_in // self.n_groups, n_window, n_window))  # W
        self.bias = nn.Parameter(torch.zeros(d_out))  # b
        nn.init.kaiming_normal_(self.weight, mode="fan_in", nonlinearity="relu")

    def forward(self, x: Float[Tensor, "B I h w"]) -> Float[Tensor, "B O h2 w2"]:
        down, across = (self._zeros(n) for n in x.shape[-2:])
        if down == across and down % 2 == 0:  # as many on all sides: the kernel adds them itself
            return functional.conv2d(x, self.weight, self.bias, self.stride, down // 2, groups=self.n_groups)
        x = functional.pad(x, (across // 2, across - across // 2, down // 2, down - down // 2))
        return functional.conv2d(x, self.weight, self.bias, self.stride, groups=self.n_groups)

    def _zeros(self, n: int) -> int:
        """How many zeros a side of n pixels needs, on both ends together."""
        return max((-(-n // self.stride) - 1) * self.stride + self.n_window - n, 0)

    def size_after(self, size: tuple[int, int]) -> tuple[int, int]:
        return -(-size[0] // self.stride), -(-size[1] // self.stride)

    def flops(self, size: tuple[int, int]) -> int:
        """For one picture of `size`."""
        h, w = self.size_after(size)
        return 2 * self.weight.numel() * h * w


class ResidualBlock(nn.Module):
    """y = skip(x) + W_2 * φ(norm(W_1 * φ(norm(x)))),  φ = ReLU (He et al. 2016b).

    `skip` is x itself, or a 1×1 convolution where the number of channels changes. Channels are normed in groups (Wu &
    He 2018), so that a picture's numbers never depend on the others in its batch. Departure: a block that halves the
    sides does it by windows of 4×4 and 2×2, which lie around the middle of the two pixels that become one. The usual
    3×3 and 1×1 lie beside it, each to another side, and attention over what comes out is drawn beside what was seen.
    """

    def __init__(self, d_in: int, d_out: int, stride: int = 1) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.GroupNorm(N_GROUPS, d_in), nn.GroupNorm(N_GROUPS, d_out)
        self.convolution_1 = PictureConvolution(d_in, d_out, 3 if stride == 1 else 2 * stride, stride)  # W_1
        self.convolution_2 = PictureConvolution(d_out, d_out, 3)  # W_2
        is_same = d_in == d_out and stride == 1
        self.skip = None if is_same else PictureConvolution(d_in, d_out, stride, stride)

    def forward(self, x: Float[Tensor, "B I h w"]) -> Float[Tensor, "B O h2 w2"]:
        y: Tensor = self.convolution_1(self.norm_1(x).relu())
        y = self.convolution_2(self.norm_2(y).relu())
        return y + (x if self.skip is None else self.skip(x))

    def size_after(self, size: tuple[int, int]) -> tuple[int, int]:
        return self.convolution_1.size_after(size)

    def flops(self, size: tuple[int, int]) -> int:
        skip = 0 if self.skip is None else self.skip.flops(size)
        return self.convolution_1.flops(size) + self.convolution_2.flops(self.size_after(size)) + skip


class InvertedResidual(nn.Module):
    """y = W_3 * φ(W_2 ∘ φ(W_1 * x)),  φ(a) = min(max(a, 0), 6) (Sandler et al. 2018).

    W_1 is 1×1 and makes the channels `expansion` times as many (1: it is left out), W_2 reads each by itself through
    k×k, W_3 is 1×1 again. x is added where y has its shape. The batch norms of training are part of W and b.
    """

    def __init__(self, d_in: int, d_out: int, n_window: int, stride: int, expansion: int) -> None:
        super().__init__()
        d_inner = d_in * expansion
        self.expand = PictureConvolution(d_in, d_inner, 1) if expansion > 1 else None  # W_1
        self.depthwise = PictureConvolution(d_inner, d_inner, n_window, stride, is_depthwise=True)  # W_2
        self.project = PictureConvolution(d_inner, d_out, 1)  # W_3
        self.adds_input = stride == 1 and d_in == d_out

    def forward(self, x: Float[Tensor, "B I h w"]) -> Float[Tensor, "B O h2 w2"]:
        y: Tensor = x if self.expand is None else functional.relu6(self.expand(x))
        y = self.project(functional.relu6(self.depthwise(y)))
        return x + y if self.adds_input else y

    def size_after(self, size: tuple[int, int]) -> tuple[int, int]:
        return self.depthwise.size_after(size)

    def flops(self, size: tuple[int, int]) -> int:
        expand = 0 if self.expand is None else self.expand.flops(size)
        return expand + self.depthwise.flops(size) + self.project.flops(self.size_after(size))
