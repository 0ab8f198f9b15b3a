"""Convolutions over pictures, patches, positions, and what all picture encoders promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.data.cache_limit import keep_within_limit
from regard.data.caption_config import CaptionConfig
from regard.data.pictures import Pictures
from regard.data.prepared_captions import CaptionData, CaptionSet
from regard.errors import RegardError
from regard.layers.patches import GridPositions, cut_patches
from regard.layers.picture_convolution import InvertedResidual, PictureConvolution, ResidualBlock
from regard.layers.taps import Taps
from regard.models.captioner_config import ENCODERS, CaptionerConfig
from regard.models.picture_encoder import (
    ConvolutionPictures,
    EfficientNetPictures,
    PatchPictures,
    Projection,
    picture_encoder,
    source_of,
    unit_range,
)
from regard.tasks.picture_features import picture_features

EXACT = {"rtol": 0, "atol": 1e-10}
SETTINGS: dict[str, dict[str, Any]] = {
    "convolution": {"d_first": 8, "n_halvings": 2, "n_encoder_layers": 2},
    "patches": {"patch": 5, "n_encoder_layers": 2, "n_heads": 2},
    "efficientnet-lite0": {"is_frozen": False},
}
SIZES = {"convolution": 20, "patches": 20, "efficientnet-lite0": 64}
GRIDS = {"convolution": (5, 5), "patches": (4, 4), "efficientnet-lite0": (2, 2)}
KINDS = pytest.mark.parametrize("kind", ENCODERS)


def encoder_of(kind: str, **changes: object) -> Any:
    torch.manual_seed(0)
    config = CaptionerConfig.from_dict({"encoder": kind, "d_model": 12, **SETTINGS[kind], **changes})
    return picture_encoder(config, SIZES[kind]).double().eval()


def drawn(encoder: Any, B: int = 3) -> Tensor:
    draws = torch.Generator().manual_seed(1)
    return torch.rand(B, 3, encoder.size, encoder.size, dtype=torch.float64, generator=draws)


def test_a_convolution_adds_up_its_window_with_zeros_outside() -> None:
    ours = PictureConvolution(1, 1, 3, stride=2)
    nn.init.ones_(ours.weight)
    nn.init.constant_(ours.bias, 0.5)
    x = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    # 4 pixels by strides of 2 need one zero: it stands after the picture, so the first window starts at its corner.
    whole = 1 + 2 + 3 + 5 + 6 + 7 + 9 + 10 + 11
    expected = [[whole, 3 + 4 + 7 + 8 + 11 + 12], [9 + 10 + 11 + 13 + 14 + 15, 11 + 12 + 15 + 16]]
    assert ours(x)[0, 0].tolist() == [[value + 0.5 for value in row] for row in expected]


@given(n=st.integers(1, 13), k=st.integers(1, 6), stride=st.integers(1, 3), is_depthwise=st.booleans())
def test_a_convolution_equals_its_sum_written_out(n: int, k: int, stride: int, is_depthwise: bool) -> None:
    d_out = 2 if is_depthwise else 3
    ours = PictureConvolution(2, d_out, k, stride, is_depthwise).double()
    nn.init.normal_(ours.bias)
    x = torch.randn(2, 2, n, n + 1, dtype=torch.float64)
    y = ours(x)
    h, w = ours.size_after((n, n + 1))
    assert y.shape == (2, d_out, h, w) == (2, d_out, -(-n // stride), -(-(n + 1) // stride))
    before = [max((size - 1) * stride + k - side, 0) // 2 for size, side in ((h, n), (w, n + 1))]
    o, i, j = d_out - 1, h - 1, w // 2
    total = ours.bias[o].item()
    for c in (o,) if is_depthwise else range(2):
        for u in range(k):
            for v in range(k):
                row, column = i * stride + u - before[0], j * stride + v - before[1]
                if 0 <= row < n and 0 <= column < n + 1:
                    weight = ours.weight[o, 0 if is_depthwise else c, u, v]
                    total += (weight * x[1, c, row, column]).item()
    assert y[1, o, i, j].item() == pytest.approx(total, abs=1e-10)


def test_an_inverted_residual_adds_its_input_only_where_the_shape_stays() -> None:
    for d_out, stride, adds in ((4, 1, True), (4, 2, False), (6, 1, False)):
        block = InvertedResidual(4, d_out, 3, stride, expansion=2)
        for parameter in block.parameters():
            nn.init.zeros_(parameter)
        x = torch.randn(1, 4, 6, 6)
        y = block(x)
        torch.testing.assert_close(y, x if adds else torch.zeros_like(y))


def test_an_inverted_residual_cuts_at_zero_and_six() -> None:
    block = InvertedResidual(1, 2, 1, 1, expansion=1)
    for convolution, values in ((block.depthwise, [1.0]), (block.project, [1.0, 10.0])):
        convolution.weight.data = torch.tensor(values).view(-1, 1, 1, 1)
    assert block(torch.tensor([[[[-3.0, 2.0, 9.0]]]])).tolist() == [[[[0.0, 2.0, 6.0]], [[0.0, 20.0, 60.0]]]]


def test_a_residual_block_is_its_skip_where_the_last_convolution_is_zero() -> None:
    for d_out, stride in ((8, 1), (16, 2)):
        block = ResidualBlock(8, d_out, stride)
        nn.init.zeros_(block.convolution_2.weight)
        x = torch.randn(2, 8, 5, 5)
        torch.testing.assert_close(block(x), x if block.skip is None else block.skip(x))
        assert (block.skip is None) == (d_out == 8)


def test_what_a_place_sees_lies_around_its_middle() -> None:
    """Attention is drawn over the cells of the grid: what a place has seen must not lie beside its own."""
    encoder = ConvolutionPictures(CaptionerConfig(d_model=12, d_first=8, n_halvings=3), 64).double()
    for block in encoder.blocks:
        block.norm_1, block.norm_2 = nn.Identity(), nn.Identity()  # which would show every place the whole picture
    encoder.norm = nn.Identity()
    for weight in encoder.parameters():
        weight.data.abs_()  # nothing is cut at zero
    picture = torch.ones(1, 3, 64, 64, dtype=torch.float64, requires_grad=True)
    row, column = 3, 4  # of 8 by 8: cells of 8 pixels, whose middles are the edges 28 and 36
    encoder(picture)[0, row * 8 + column].square().sum().backward()
    seen = picture.grad[0].abs().sum(0)
    for side, middle in ((1, 28), (0, 36)):
        touched = seen.sum(side).nonzero().flatten()
        assert int(touched[0]) + int(touched[-1]) + 1 == 2 * middle
        assert touched[-1] - touched[0] < 63  # so that no edge of the picture makes it so


def test_patches_go_from_left_to_right_and_then_down() -> None:
    picture = torch.arange(16.0).view(1, 1, 4, 4)
    assert cut_patches(picture, 2)[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    two = torch.cat([picture, 100 + picture], dim=1)
    assert cut_patches(two, 2)[0, 1].tolist() == [2, 3, 6, 7, 102, 103, 106, 107]


def test_a_patch_through_a_linear_layer_is_a_convolution_with_its_stride() -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(3 * 16, 5).double(), torch.randn(2, 3, 8, 12, dtype=torch.float64)
    y = linear(cut_patches(x, 4))  # (2, 6, 5)
    expected = nn.functional.conv2d(x, linear.weight.view(5, 3, 4, 4), linear.bias, stride=4)
    torch.testing.assert_close(y.transpose(1, 2).view(2, 5, 2, 3), expected, **EXACT)


def test_positions_add_the_vector_of_the_row_and_that_of_the_column() -> None:
    places = GridPositions((2, 3), 1)
    places.rows.data = torch.tensor([[[10.0]], [[20.0]]])
    places.columns.data = torch.tensor([[[1.0], [2.0], [3.0]]])
    assert places(torch.zeros(1, 6, 1)).flatten().tolist() == [11, 12, 13, 21, 22, 23]


@KINDS
def test_an_encoder_gives_a_vector_for_every_place_and_counts_its_cost(kind: str) -> None:
    encoder, B = encoder_of(kind), 3
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        states = encoder(drawn(encoder, B), Taps())
    assert encoder.grid == GRIDS[kind]
    assert states.shape == (B, encoder.grid[0] * encoder.grid[1], 12)
    assert encoder.flops_per_picture() * B == counter.get_total_flops()


@KINDS
def test_pictures_of_a_batch_do_not_know_each_other(kind: str) -> None:
    encoder = encoder_of(kind)
    pictures = drawn(encoder)
    alone = torch.cat([encoder(picture[None]) for picture in pictures])
    torch.testing.assert_close(encoder(pictures), alone, **EXACT)


@KINDS
def test_recording_changes_nothing_and_keeps_the_states(kind: str) -> None:
    encoder = encoder_of(kind)
    pictures, record = drawn(encoder), Taps()
    states = encoder(pictures, record)
    torch.testing.assert_close(encoder(pictures), states, **EXACT)
    assert record["states"] is states


@KINDS
def test_every_weight_learns(kind: str) -> None:
    encoder = encoder_of(kind)
    states = encoder(drawn(encoder))
    (states * torch.randn_like(states)).sum().backward()
    for name, parameter in encoder.named_parameters():  # type: ignore[attr-defined]
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@given(row=st.integers(0, 1), column=st.integers(0, 2))
def test_what_stands_at_a_place_of_the_features_is_the_state_of_that_place(row: int, column: int) -> None:
    projection = Projection(4, 6, (2, 3), 0.0).double()
    x = torch.randn(1, 4, 2, 3, dtype=torch.float64)
    before = projection(x)
    x[0, :, row, column] += torch.arange(4)
    changed = (projection(x) - before).norm(dim=-1)[0] > 1e-6
    assert changed.nonzero().flatten().tolist() == [row * 3 + column]


@given(row=st.integers(0, 3), column=st.integers(0, 3))
def test_a_patch_is_the_state_of_its_place_before_attention_mixes_them(row: int, column: int) -> None:
    encoder = encoder_of("patches")
    assert isinstance(encoder, PatchPictures)
    encoder.transformer.layers = nn.ModuleList()  # type: ignore[assignment]
    pictures = drawn(encoder, 1)
    before = encoder(pictures)
    pictures[:, :, 5 * row : 5 * row + 5, 5 * column : 5 * column + 5] = 0.0
    changed = (encoder(pictures) - before).norm(dim=-1)[0] > 1e-6
    assert changed.nonzero().flatten().tolist() == [row * 4 + column]


@KINDS
def test_a_picture_of_another_size_is_refused(kind: str) -> None:
    encoder = encoder_of(kind)
    with pytest.raises(
        RegardError, match=rf"takes pictures of {encoder.size} x {encoder.size} pixels and was given 40 x 40"
    ):
        encoder(torch.zeros(1, 3, 40, 40, dtype=torch.float64))


def test_a_source_of_pictures_hides_nothing() -> None:
    source = source_of(torch.randn(2, 5, 3))
    assert source.mask.tolist() == [[True] * 5] * 2
    assert source.start == ()
    assert source.words is None


def test_bytes_become_numbers_from_zero_to_one() -> None:
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    assert unit_range(pixels, torch.zeros(1, dtype=torch.float64)).flatten().tolist() == [0.0, 0.2, 1.0]


@pytest.mark.parametrize(
    ("kind", "settings", "size", "why"),
    [
        ("convolution", {"d_first": 12}, 160, "d_first must be a multiple of 8, in which channels are normed, not 12"),
        ("patches", {"patch": 16}, 100, "size 100 is no multiple of patch 16. Make size 96"),
        ("patches", {"d_model": 10, "n_heads": 4}, 160, "d_model 10 cannot be shared by n_heads 4"),
        ("efficientnet-lite0", {}, 16, "size must be between 32 and 1024, not 16"),
    ],
)
def test_settings_that_cannot_work_are_refused(kind: str, settings: dict[str, Any], size: int, why: str) -> None:
    with pytest.raises(RegardError, match=why):
        picture_encoder(CaptionerConfig.from_dict({"encoder": kind, **settings}), size)


class TestFrozen:
    def encoder(self, is_frozen: bool = True) -> EfficientNetPictures:
        torch.manual_seed(0)
        return EfficientNetPictures(CaptionerConfig(encoder="efficientnet-lite0", d_model=8, is_frozen=is_frozen), 32)

    def data(self) -> CaptionData:
        pixels = np.random.default_rng(0).integers(0, 256, (5, 34, 34, 3), dtype=np.uint8)
        config = CaptionConfig(pictures="p", captions="c", size=32, n_margin=2)
        none = CaptionSet((), (), ())
        return CaptionData(none, none, none, Pictures(pixels, {}, tuple("abcde")), config, {})

    def test_only_the_layer_on_top_learns(self) -> None:
        encoder = self.encoder()
        encoder(torch.rand(2, 3, 32, 32)).square().sum().backward()
        learned = {name for name, p in encoder.named_parameters() if p.grad is not None}
        assert learned == {name for name, _ in encoder.named_parameters() if name.startswith("projection.")}

    def test_features_that_were_kept_give_what_the_pictures_give(self, tmp_path: Path) -> None:
        encoder, data = self.encoder(), self.data()
        told: list[int] = []
        features = picture_features(encoder, data, tmp_path, n_batch=2, tell=told.append)
        again = picture_features(encoder, data, tmp_path, n_batch=2, tell=told.append)
        assert told == [2, 4, 5]
        assert torch.equal(features, again)
        middle = torch.from_numpy(data.pictures.pixels[:, 1:33, 1:33]).permute(0, 3, 1, 2)
        numbers = torch.tensor([3, 0])
        from_pictures = encoder(unit_range(middle[numbers], features))
        torch.testing.assert_close(encoder.states(features[numbers]), from_pictures, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("place", [-1, -1000, 60, 0])
    def test_features_that_were_damaged_are_computed_again_also_after_the_cache_was_reduced(
        self, tmp_path: Path, place: int
    ) -> None:
        encoder, data = self.encoder(), self.data()
        told: list[int] = []
        features = picture_features(encoder, data, tmp_path, tell=told.append)
        (kept,) = (tmp_path / "features").iterdir()  # no note beside it, which the limit could remove alone
        assert keep_within_limit(kept, limit=1) == []
        whole = bytearray(kept.read_bytes())
        whole[place] ^= 4
        kept.write_bytes(whole)
        assert torch.equal(picture_features(encoder, data, tmp_path, tell=told.append), features)
        assert torch.equal(picture_features(encoder, data, tmp_path, tell=told.append), features)
        assert told == [5, 5]

    def test_other_weights_have_other_features(self, tmp_path: Path) -> None:
        encoder, data = self.encoder(), self.data()
        before = picture_features(encoder, data, tmp_path)
        with torch.no_grad():
            encoder.network.stem.bias[0] += 1
        assert not torch.equal(picture_features(encoder, data, tmp_path), before)
        with torch.no_grad():
            encoder.network.stem.bias[0] -= 1
        assert len(list((tmp_path / "features").glob("*.safetensors"))) == 2

    def test_another_pillow_makes_other_pixels_and_so_other_features(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[int] = []
        for version in ("1.0", "2.0", "1.0"):
            monkeypatch.setattr(PIL, "__version__", version)
            picture_features(self.encoder(), self.data(), tmp_path, tell=told.append)
        assert told == [5, 5]

    def test_features_that_would_change_are_not_kept(self, tmp_path: Path) -> None:
        with pytest.raises(RegardError, match="only where the encoder is_frozen"):
            picture_features(self.encoder(is_frozen=False), self.data(), tmp_path)
        other = EfficientNetPictures(CaptionerConfig(encoder="efficientnet-lite0"), 64)
        with pytest.raises(RegardError, match=r"takes pictures of 64 pixels and the data has 32. Make both the same"):
            picture_features(other, self.data(), tmp_path)
