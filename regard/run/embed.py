"""Vectors of texts into a file, from a run or a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.files import check_not_there, write_atomically
from regard.kernels.linear import lay_out
from regard.models.encoder import Encoder
from regard.models.reader import LayerChoice
from regard.models.table import ENCODER_TASKS
from regard.run.engine import PRECISIONS, load
from regard.run.folder import load_config
from regard.run.initial_weights import load_encoder
from regard.tasks.base_run import Run
from regard.tasks.embedding import Embedder
from regard.text.tokenizer import Tokenizer
from regard.training.device import pick_device
from regard.training.freed_memory import keep_freed_memory

FORMS = (".npz", ".parquet")
N_ROWS = 512  # tokens that are read at once, or more


def open_encoder(folder: Path, device: str, precision: str) -> tuple[Encoder, Tokenizer, LayerChoice | None]:
    """The encoder in a run folder or a Hugging Face folder, ready to be used, and its tokenizer.

    Of a run of a task, whose encoder may have been trained with it, the layers that its head reads are the third.
    """
    if precision not in PRECISIONS:
        raise RegardError(f"precision must be one of {', '.join(PRECISIONS)}, not '{precision}'.")
    loaded: Any
    if (folder / "config.yaml").is_file() and load_config(folder / "config.yaml").task in ENCODER_TASKS:
        run: Any = load(folder, device, precision)
        return run.model.encoder, run.tokenizers[0], run.model.choice
    loaded, tokenizer, _, _ = load_encoder(folder)
    encoder: Any = loaded.to(pick_device(device), PRECISIONS[precision])
    lay_out(encoder, n_rows=N_ROWS)
    return encoder, tokenizer, None


def make_embedder(run: Run, layers: str = "last", pool: str = "mean") -> Embedder:
    """What makes vectors of texts with the model of a loaded run; an error where it has none that reads texts."""
    if run.config.task in ENCODER_TASKS:
        return Embedder(run.model.encoder, run.tokenizers[0], layers, pool, None, run.model.choice)
    if not can_embed(run):
        raise RegardError(f"'{run.folder}' is a run that {run.task.summary}, and gives no vectors of texts.")
    return Embedder(run.model, run.tokenizers[0], layers, pool)


def can_embed(run: Run) -> bool:
    """Whether the model of a run reads texts and gives a vector for each token."""
    return run.config.task in ENCODER_TASKS or isinstance(run.model, Encoder)


def embed_texts(
    folder: Path,
    texts: Sequence[str],
    to: Path,
    *,
    layers: str,
    pool: str,
    stride: int | None,
    n_batch: int,
    force: bool,
    device: str,
    precision: str,
) -> tuple[int, int]:
    """Write the vectors of texts to an .npz or .parquet file; how many there are and how wide."""
    if to.suffix not in FORMS:
        raise RegardError(f"--out names a file that ends in {' or '.join(FORMS)}, not '{to}'.")
    check_not_there(to, force)
    if to.suffix == ".parquet":
        _import_pyarrow()  # before anything is computed
    encoder, tokenizer, learned = open_encoder(folder, device, precision)
    with keep_freed_memory():
        found = list(Embedder(encoder, tokenizer, layers, pool, stride, learned).embed(texts, n_batch))
    lengths = np.array([1 if pool != "none" else len(vectors) for vectors in found])
    vectors = np.stack(found) if pool != "none" else np.concatenate(found)
    write_atomically(to, lambda aside: _write(aside, to.suffix, vectors, lengths, pool))
    return vectors.shape[0], vectors.shape[1]


def _write(path: Path, form: str, vectors: NDArray[np.float32], lengths: NDArray[np.int64], pool: str) -> None:
    if form == ".npz":
        arrays: dict[str, Any] = {"vectors": vectors} | ({"lengths": lengths} if pool == "none" else {})
        with open(path, "wb") as file:
            np.savez(file, **arrays)
        return
    pyarrow, parquet = _import_pyarrow()
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), vectors.shape[1])
    table = {"text": np.repeat(np.arange(len(lengths)), lengths), "vector": column}
    parquet.write_table(pyarrow.table(table), path)


def _import_pyarrow() -> tuple[Any, Any]:
    """Import what writes Parquet files; it is large, and few want it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RegardError("pyarrow, which writes .parquet, is not installed. Install it, or give a .npz.") from None
    return pyarrow, pyarrow.parquet
