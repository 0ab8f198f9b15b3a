"""What a frozen encoder sees of every picture, computed once and kept on disk.

Kept by the content of the pictures, how they are cut, the Pillow that cut them and the encoder's weights: if any of
them is another, so is the file.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import PIL
import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.cache import cache_root, key_of, make_kind_folder
from regard.data.cache_limit import keep_within_limit, mark_used
from regard.data.pictures import FORM
from regard.data.prepared_captions import CaptionData
from regard.errors import RegardError
from regard.models.efficientnet_lite import D_TRUNK
from regard.models.picture_encoder import EfficientNetPictures, unit_range
from regard.training.weights import CHECKSUM, named_weights, read_checked_tensors, write_weights


def picture_features(
    encoder: EfficientNetPictures,
    data: CaptionData,
    cache: Path | None = None,
    n_batch: int = 32,
    tell: Callable[[int], None] | None = None,
) -> Float[Tensor, "N 320 h w"]:
    """`encoder.features` of the middle of all N pictures, on the CPU: row n is of picture number n.

    They are computed where the encoder is; `tell` is called with how many were.
    """
    if not encoder.is_frozen:
        raise RegardError(
            "Features are computed once only where the encoder is_frozen: its weights change in training."
        )
    config = data.config
    if config.size != encoder.size:
        raise RegardError(
            f"The encoder takes pictures of {encoder.size} pixels and the data has {config.size}. Make both the same."
        )
    # The pixels depend on how Pillow resamples, so on its version too.
    fit = [config.size, config.n_margin, config.fit]
    key = key_of("trunk", FORM, PIL.__version__, fit, data.pictures.hashes, weights_hash(encoder.network), CHECKSUM)
    file = make_kind_folder(cache or cache_root(), "features") / f"{key}.safetensors"
    kept = open_kept_features(file)
    if kept is None or kept.shape != (len(data.pictures), D_TRUNK, *encoder.grid):
        kept = _compute(encoder, data, n_batch, tell)
        write_weights({"features": kept}, file, has_checksum=True)
        keep_within_limit(file)
    mark_used(file)
    return kept


def open_kept_features(file: Path) -> Float[Tensor, "N 320 h w"] | None:
    """The features in a file of the cache; None where there is none, or where it is not whole or was damaged."""
    try:
        return read_checked_tensors(file).get("features")
    except RegardError:
        return None


@torch.no_grad()
def _compute(
    encoder: EfficientNetPictures, data: CaptionData, n_batch: int, tell: Callable[[int], None] | None
) -> Float[Tensor, "N 320 h w"]:
    like = encoder.network.stem.weight
    kept = torch.empty(len(data.pictures), D_TRUNK, *encoder.grid, dtype=like.dtype)
    for first in range(0, len(kept), n_batch):
        numbers = range(first, min(first + n_batch, len(kept)))
        pixels = torch.from_numpy(data.centre(numbers)).permute(0, 3, 1, 2)  # (B, 3, size, size)
        kept[first : numbers.stop] = encoder.features(unit_range(pixels, like)).cpu()
        if tell is not None:
            tell(numbers.stop)
    return kept


def weights_hash(module: nn.Module) -> str:
    """SHA-256 of all weights and their names."""
    digest = hashlib.sha256()
    for name, value in sorted(named_weights(module).items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
