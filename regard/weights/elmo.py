"""ELMo's published files: options.json and HDF5 weights of the original program, as a model of ours.

The files lie in one folder: one `*options*.json`, one `*weights*.hdf5`, and where the model reads tokens, or is to, a
`*vocab*.txt` with a word a line and the `embedding` of each word, in the weights or in an `*embedding*.hdf5`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.errors import RegardError
from regard.models.elmo import DIRECTIONS
from regard.models.elmo_config import ElmoConfig
from regard.text.spelling import N_CHARACTERS
from regard.text.tokenizer import EOS, UNK
from regard.untrusted.hdf5 import ArrayFile, open_hdf5
from regard.untrusted.small_files import MAX_NOTE, read_object, read_text
from regard.untrusted.values import make_printable, quote

Array = NDArray[np.float32]
MAX_FILTER = 100  # characters that a convolution is wide; words are shorter
THEIR_EOS, THEIR_BOS, THEIR_UNK = "</S>", "<S>", "<UNK>"


def find_options(path: Path) -> Path | None:
    """The options of an ELMo folder, or None where it is no such folder."""
    found = sorted(path.glob("*options*.json")) if path.is_dir() else []
    return found[0] if found and any(path.glob("*weights*.hdf5")) else None


def read_elmo_config(path: Path) -> ElmoConfig:
    """The model that an options.json describes; it has no softmax, since weights are published without."""
    where = f"'{path}'"
    try:
        options = read_object(path, MAX_NOTE)
        lstm, characters = options["lstm"], options.get("char_cnn")
        settings: dict[str, Any] = {
            "d_model": lstm["projection_dim"],
            "d_hidden": lstm["dim"],
            "n_layers": lstm["n_layers"],
            "cell_clip": lstm.get("cell_clip"),
            "projection_clip": lstm.get("proj_clip"),
            "has_skips": bool(lstm.get("use_skip_connections")),
            "has_softmax": False,
            "n_vocab": None,
            "p_dropout": options.get("dropout", 0.0),
        }
        if characters is None:
            return ElmoConfig.from_dict({**settings, "input": "tokens"})
        return ElmoConfig.from_dict(settings | _read_characters(characters, where))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = make_printable(repr(error), 200)
        raise RegardError(
            f"{where} is no options.json of ELMo: {why}. It must hold an object with `lstm`, and `char_cnn` where "
            "words are read by their characters."
        ) from None


def _read_characters(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Settings of the character CNN."""
    if options.get("n_characters", N_CHARACTERS) not in (N_CHARACTERS, N_CHARACTERS - 1):
        given = quote(options["n_characters"], 40)
        raise RegardError(
            f"{where} has n_characters {given}, and ELMo's numbering of bytes has {N_CHARACTERS}, or "
            f"{N_CHARACTERS - 1} while training. Give the options of a model that reads bytes."
        )
    widths = dict(options["filters"])
    if not widths or not all(isinstance(width, int) and 1 <= width <= MAX_FILTER for width in widths):
        raise ValueError(f"filters of {quote(list(widths), 60)} characters; they have 1 to {MAX_FILTER}")
    return {
        "input": "characters",
        "d_character": options["embedding"]["dim"],
        "filters": [widths.get(width, 0) for width in range(1, max(widths) + 1)],
        "n_highway": options["n_highway"],
        "activation": options["activation"],
        "max_characters": options["max_characters_per_token"],
    }


def read_elmo(folder: Path, reads_tokens: bool = False) -> tuple[ElmoConfig, list[str], dict[str, Tensor]]:
    """The model of an ELMo folder, the words of its tokenizer, and its weights by our names.

    With `reads_tokens` a model that reads characters becomes one that reads whole words, whose vectors were computed
    from their characters before: `*vocab*.txt` and `*embedding*.hdf5`.
    """
    path = find_options(folder)
    if path is None:
        raise RegardError(
            f"'{folder}' is no folder of ELMo: it must hold *options*.json and *weights*.hdf5 of one model."
        )
    config = read_elmo_config(path)
    words = _read_words(folder, is_needed=reads_tokens or config.input == "tokens")
    with open_hdf5(_only(folder, "*weights*.hdf5")) as file:
        tensors = dict(_read_layers(file, config))
        if config.input == "characters" and not reads_tokens:
            tensors |= _read_cnn(file, config)
        elif config.input == "tokens":
            tensors["input.weight"] = _sort_rows(file.read("embedding", (None, config.d_model)), words, folder)
    if reads_tokens and config.input == "characters":
        config = config.replace(input="tokens")
        with open_hdf5(_only(folder, "*embedding*.hdf5", leaves_out="lm_embeddings")) as file:
            tensors["input.weight"] = _sort_rows(file.read("embedding", (None, config.d_model)), words, folder)
    vocabulary = [EOS, UNK, *(word for word in words if word not in (THEIR_EOS, THEIR_BOS, THEIR_UNK))]
    return config, vocabulary, {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in tensors.items()}


def _read_layers(file: ArrayFile, config: ElmoConfig) -> Iterator[tuple[str, Array]]:
    """W (I + P, 4 H), with gates i, g, f, o and 1 added to f while it is used, as W, U, b, b' of i, f, g, o."""
    H, D = config.d_hidden, config.d_model
    for number, direction in enumerate(DIRECTIONS):
        for layer in range(config.n_layers):
            where = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            W, b = file.read(f"{where}/W_0", (2 * D, 4 * H)), file.read(f"{where}/B", (4 * H,))
            order = np.concatenate([np.arange(H) + gate * H for gate in (0, 2, 1, 3)])
            W, b = W[:, order], b[order]
            b_prime = np.zeros_like(b)
            b_prime[H : 2 * H] = 1.0  # not added to b, which would round it
            ours = f"{direction}.{layer}.kernel"
            yield f"{ours}.weight_ih_l0", W[:D].T
            yield f"{ours}.weight_hh_l0", W[D:].T
            yield f"{ours}.bias_ih_l0", b
            yield f"{ours}.bias_hh_l0", b_prime
            yield f"{ours}.weight_hr_l0", file.read(f"{where}/W_P_0", (H, D)).T


def _read_cnn(file: ArrayFile, config: ElmoConfig) -> dict[str, Array]:
    """Character embeddings, with a row of zeros before them for no character; convolutions, highways, projection."""
    E, filters = config.d_character, config.list_filters()
    F = sum(n for _, n in filters)
    embedding = file.read("char_embed", (N_CHARACTERS - 1, E))
    tensors = {"input.embedding": np.concatenate([np.zeros_like(embedding[:1]), embedding])}
    for i, (width, n) in enumerate(filters):
        weight = file.read(f"CNN/W_cnn_{i}", (1, width, E, n))
        tensors[f"input.convolutions.{i}.weight"] = weight[0].transpose(2, 1, 0)
        tensors[f"input.convolutions.{i}.bias"] = file.read(f"CNN/b_cnn_{i}", (n,))
    for i in range(config.n_highway):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            tensors[f"input.highways.{i}.{ours}.weight"] = file.read(f"CNN_high_{i}/W_{theirs}", (F, F)).T
            tensors[f"input.highways.{i}.{ours}.bias"] = file.read(f"CNN_high_{i}/b_{theirs}", (F,))
    tensors["input.project.weight"] = file.read("CNN_proj/W_proj", (F, config.d_model)).T
    tensors["input.project.bias"] = file.read("CNN_proj/b_proj", (config.d_model,))
    return tensors


def _sort_rows(embedding: Array, words: Sequence[str], folder: Path) -> Array:
    """Rows in the order of ours: <S>, </S>, <unk>, then the other words."""
    if len(embedding) != len(words):
        raise RegardError(
            f"'{folder}' has {len(embedding):,} vectors of words and {len(words):,} words in its *vocab*.txt, and each "
            "word needs one. Give the vocabulary that the vectors were computed with."
        )
    place = {word: i for i, word in enumerate(words)}
    missing = [word for word in (THEIR_BOS, THEIR_EOS, THEIR_UNK) if word not in place]
    if missing:
        raise RegardError(f"The *vocab*.txt in '{folder}' must have {', '.join(missing)}: each is a line of its own.")
    first = [place.pop(word) for word in (THEIR_BOS, THEIR_EOS, THEIR_UNK)]
    return embedding[[*first, *place.values()]]


def _read_words(folder: Path, is_needed: bool) -> list[str]:
    """The words of *vocab*.txt, a line each; none where there is no such file and none is needed."""
    if not is_needed and not any(folder.glob("*vocab*.txt")):
        return []
    return read_text(_only(folder, "*vocab*.txt")).split()


def _only(folder: Path, pattern: str, leaves_out: str = "/") -> Path:
    found = [path for path in sorted(folder.glob(pattern)) if leaves_out not in path.name]
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise RegardError(f"'{folder}' must have one file {pattern}, and has {names}. Keep the one of this model.")
    return found[0]
