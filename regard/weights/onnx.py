"""Models as ONNX files, which onnxruntime reads: any batch and any length up to what the model reads.

What torch traces is a face of the model: its inputs and outputs have the names that other programs expect. Writing one
needs `onnxscript` (extra: `onnx`).
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import RegardError
from regard.files import write_atomically
from regard.kernels.kv_cache import Attention
from regard.mixers.attention import AttentionStack, Caches
from regard.models.bert import Bert
from regard.models.language_model import LanguageModel
from regard.text.tokenizer import Tokenizer

MAX_BYTES = 2_000_000_000
"""A file is one message of Protocol Buffers, and that is as long as these may be."""
OPSET = 18
CACHED = ("gpt2", "transformer", "attention")
"""Language models that are written with their keys and values."""


class WholePast(NamedTuple):
    """Keys and values of all that came before, as a cache that grows by being joined: no branch, nothing in place."""

    keys: Float[Tensor, "B N P K"]
    values: Float[Tensor, "B N P K"]

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, attention: Attention, is_ordered: bool = False
    ) -> tuple[Float[Tensor, "B N T K"], WholePast]:
        """Join the new keys and values to those there are, and let each query see itself and what is before it."""
        keys, values = torch.cat([self.keys, k], dim=2), torch.cat([self.values, v], dim=2)
        T, S = q.shape[2], keys.shape[2]
        may_look = torch.arange(S)[None] <= torch.arange(T)[:, None] + (S - T)  # (T, S)
        return functional.scaled_dot_product_attention(q, keys, values, may_look), WholePast(keys, values)


class CachedFace(nn.Module):
    """A language model of attention, GPT-2's form: logits of what follows new tokens, given keys and values before."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Int[Tensor, "B T"], past: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        """Logits, then the keys and values of each layer, old and new."""
        positions = past[0][0].shape[2] + torch.arange(input_ids.shape[1])
        state = Caches(positions, tuple(WholePast(*pair) for pair in past))
        logits, after = self.model(input_ids, state)
        return logits, *(tensor for cache in after.layers for tensor in cache)


class MaskedFace(nn.Module):
    """BERT: the states of the last layer, and the logits of every place where it has a head for them."""

    def __init__(self, model: Bert) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        h = self.model.hidden(input_ids, attention_mask.bool(), token_type_ids)
        return (h,) if self.model.masked_head is None else (h, self.model.logits(h))


def write_language_model(model: Any, tokenizer: Tokenizer, to: Path, where: str) -> None:
    """Write a language model with its cache; `where` names the run in errors."""
    is_fit = isinstance(model, LanguageModel) and isinstance(model.mixer, AttentionStack)
    if not is_fit or not model.mixer.has_static_step:
        raise RegardError(
            f"{where} cannot be written as ONNX: that is done for models of full attention ({', '.join(CACHED)}), for "
            "bert, and for what is trained on top of these."
        )
    heads = [block.attention for block in model.mixer.layers]
    shapes = [(2, each.n_heads, 3, each.qkv.in_features // each.n_heads) for each in heads]
    past = [(torch.zeros(shape), torch.zeros(shape)) for shape in shapes]
    parts = [f"{i}.{part}" for i in range(len(heads)) for part in ("key", "value")]
    write_onnx(
        CachedFace(model),
        {"input_ids": torch.zeros(2, 5, dtype=torch.int64), "past": past},
        {"input_ids": {0: "batch", 1: "length"}, "past": [({0: "batch", 2: "past"},) * 2] * len(past)},
        inputs=["input_ids", *(f"past_key_values.{part}" for part in parts)],
        outputs=["logits", *(f"present.{part}" for part in parts)],
        facts={"task": "language-model"},
        tokenizer=tokenizer.json,
        to=to,
    )


def write_encoder(
    face: nn.Module, outputs: Sequence[str], tokenizer: str, to: Path, facts: Mapping[str, Any], has_segments: bool
) -> None:
    """Write what reads whole texts: `input_ids`, `attention_mask` and, where it tells two texts apart, their types.

    `tokenizer` is the tokenizer.json that makes these of texts.
    """
    ids = torch.zeros(2, 5, dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 3:] = 0
    # Each is a tensor of its own: torch takes two inputs that are one tensor for one input.
    given = {"input_ids": ids, "attention_mask": mask} | ({"token_type_ids": ids.clone()} if has_segments else {})
    shapes = {name: {0: "batch", 1: "length"} for name in given}
    write_onnx(face, given, shapes, inputs=list(given), outputs=outputs, facts=facts, tokenizer=tokenizer, to=to)


def write_onnx(
    face: nn.Module,
    given: dict[str, Any],
    shapes: dict[str, Any],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    facts: Mapping[str, Any],
    tokenizer: str,
    to: Path,
) -> None:
    """Trace a face and write it with its tokenizer beside it; `facts` become properties of the file."""
    if find_spec("onnxscript") is None:
        raise RegardError("onnxscript, which writes ONNX, is not installed: pip install 'regard[onnx]'")
    n_bytes = sum(p.numel() * p.element_size() for p in face.parameters())
    if n_bytes > MAX_BYTES:
        raise RegardError(
            f"An ONNX file holds {MAX_BYTES:,} bytes at most, and the weights are {n_bytes:,}. Export a Hugging Face "
            "folder, which has no such limit."
        )
    program = _trace(face.eval(), given, shapes, inputs, outputs)
    named = {name: value if isinstance(value, str) else json.dumps(value) for name, value in facts.items()}
    program.model.metadata_props.update(named)
    # The model last: once it is there, the export is done.
    write_atomically(to.with_suffix(".tokenizer.json"), tokenizer.encode())
    write_atomically(to, lambda aside: program.save(str(aside), external_data=False))


@torch.no_grad()
def _trace(
    face: nn.Module, given: dict[str, Any], shapes: dict[str, Any], inputs: Sequence[str], outputs: Sequence[str]
) -> Any:
    """The graph of a face, from one run of it on made-up inputs."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)  # it tells of packages that are not installed and not needed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own code warns of itself
            return torch.onnx.export(
                face,
                kwargs=given,
                dynamic_shapes=shapes,
                input_names=inputs,
                output_names=outputs,
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        cause = str(error.__cause__ or error).strip().partition("\n")[0]
        raise RegardError(f"torch cannot trace this model as ONNX for every length: {cause}.") from None
    finally:
        logger.setLevel(level)
