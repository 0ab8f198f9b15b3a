"""The weights in a Hugging Face folder: safetensors, in one file or in shards, or an old pytorch_model.bin.

Nothing is ever unpickled: what a .bin describes is read by `regard/weights/torch_file.py`, which runs none of it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from regard.errors import RegardError
from regard.training.weights import check_finite, read_tensor_shapes, read_tensors
from regard.untrusted.small_files import read_object
from regard.weights.torch_file import read_torch_path

if TYPE_CHECKING:
    from torch import Tensor

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
FORMS = ("model.safetensors", "pytorch_model.bin")
"""The names of whole files, in the order in which they are looked for; shards are named by a NAME.index.json."""

COPY_AGAIN = "copy or download it again"

Shapes = dict[str, tuple[int, ...]]


def list_weight_files(path: Path) -> tuple[Path, ...]:
    """List the files that hold the weights of a folder: one, or the shards that its index names."""
    for name in FORMS:
        if (path / name).exists():
            return (path / name,)
        if (path / f"{name}.index.json").exists():
            return _list_shards(path, path / f"{name}.index.json")
    pickle = next((p for p in sorted(path.iterdir()) if p.suffix in PICKLES), None)
    if pickle is not None:
        raise RegardError(refuse_pickle(pickle, path))
    raise RegardError(f"'{path}' has no weights: neither {' nor '.join(FORMS)}, nor an index of shards, is there.")


def _list_shards(path: Path, index: Path) -> tuple[Path, ...]:
    weight_map = read_object(index).get("weight_map")
    given = list(weight_map.values()) if isinstance(weight_map, dict) else []
    if not given or not all(isinstance(name, str) and Path(name).name == name for name in given):
        raise RegardError(f"'{index}' must have a weight_map from tensors to names of files in the same folder.")
    names = sorted(set(given))
    for name in names:
        if not (path / name).exists():
            raise RegardError(f"'{path}' lacks {name}, which {index.name} names. Copy the whole folder again.")
    return tuple(path / name for name in names)


def read_shapes(path: Path) -> Shapes:
    """The names and shapes of the tensors in a folder; of safetensors, from the heads of the files."""
    return {name: shape for file in list_weight_files(path) for name, shape in read_file_shapes(file).items()}


def read_file_shapes(file: Path) -> Shapes:
    """The names and shapes of the tensors in one file."""
    if file.suffix in PICKLES:
        return {name: tuple(tensor.shape) for name, tensor in read_file(file).items()}
    return read_tensor_shapes(file, COPY_AGAIN)


def read_file(file: Path) -> dict[str, Tensor]:
    """The tensors of one file by name."""
    if file.suffix not in PICKLES:
        return read_tensors(file, COPY_AGAIN)
    return {name: torch.from_numpy(array) for name, array in read_torch_path(file).items()}


def read_folder(path: Path) -> tuple[dict[str, Tensor], str]:
    """All tensors of a folder by name, and what errors call the place; NaN and infinite numbers are refused."""
    tensors: dict[str, Tensor] = {}
    files = list_weight_files(path)
    for file in files:
        found = read_file(file)
        check_finite(found, f"'{file}'", "Copy or download the file again, or ask who made it")
        tensors |= found
    return tensors, f"'{files[0] if len(files) == 1 else path}'"


def refuse_pickle(file: Path, folder: Path) -> str:
    """The sentence that refuses a pickle of another name than Hugging Face's, with the command that converts it."""
    code = (
        "import torch; from safetensors.torch import save_file; "
        f"w = torch.load({str(file)!r}, map_location='cpu', weights_only=True); w = w.get('state_dict', w); "
        f"save_file({{k: v.clone().contiguous() for k, v in w.items()}}, {str(folder / 'model.safetensors')!r})"
    )
    needed = [name for name in ("config.json", "tokenizer.json") if not (folder / name).exists()]
    beside = f" Put {' and '.join(needed)} beside it, from where it came, and give the folder." if needed else ""
    return (
        f"'{file}' is a pickle, and opening one can run any code that is in it; Regard reads model.safetensors and, "
        f"without running it, pytorch_model.bin.{beside} This converts its tensors and runs none of its code: python "
        f"-c {shlex.quote(code)}"
    )
