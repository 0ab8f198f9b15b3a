"""GPT-2 as Hugging Face writes it: its config.json and its names of tensors, as ours and back.

A dense layer is written there as `Conv1D`, a matrix of (in, out); ours are (out, in).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.models.gpt2_config import SIZES, GPT2Config
from regard.weights.task_heads import is_of_head

if TYPE_CHECKING:
    from torch import Tensor

ARCHITECTURES = (
    "GPT2LMHeadModel", "GPT2Model", "GPT2ForSequenceClassification", "GPT2ForTokenClassification",
    "GPT2ForQuestionAnswering",
)  # fmt: skip
ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
}
WRITTEN_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu", "relu": "relu", "swish": "silu"}
# What changes the numbers and is not computed here: the key, the only value that is read, and what it would do.
FIXED: tuple[tuple[str, bool, str], ...] = (
    ("scale_attn_weights", True, "scores that are not divided by √K"),
    ("scale_attn_by_inverse_layer_idx", False, "scores divided by the layer's number"),
    ("reorder_and_upcast_attn", False, "attention computed in float32 whatever the weights are"),
    ("add_cross_attention", False, "attention to an encoder"),
)

DROPOUTS = ("resid_pdrop", "attn_pdrop", "embd_pdrop")

_NAMES = {"embedding": "wte.weight", "head": "lm_head.weight", "mixer.positions.table": "wpe.weight"}
_PARTS = {
    "norm_attention": "ln_1",
    "norm_feed_forward": "ln_2",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.out": "mlp.c_proj",
}
_MASK = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # the causal mask, which older versions saved


def read_config_json(found: Mapping[str, Any], where: str) -> tuple[GPT2Config, int]:
    """Read a config.json: our config of it, and how many rows the embedding has."""
    _check_types(found, where)
    _check_supported(found, where)
    name = found.get("activation_function", "gelu_new")
    if name not in ACTIVATIONS:
        raise RegardError(
            f"{where} asks for the activation {name!r}, which Regard does not compute; it has {', '.join(ACTIVATIONS)}."
        )
    # What a config.json leaves out is what GPT-2 small has.
    widths = {
        "d_model": found.get("n_embd", 768),
        "n_layers": found.get("n_layer", 12),
        "n_heads": found.get("n_head", 12),
        "d_ff": found.get("n_inner"),
    }
    if widths["d_model"] % widths["n_heads"]:
        raise RegardError(
            f"{where} describes no GPT-2 that can be built: n_embd {widths['d_model']} cannot be shared by n_head "
            f"{widths['n_heads']}, since each head takes n_embd / n_head numbers. Correct one of them there."
        )
    size = next((size for size, shape in SIZES.items() if shape == _shape(widths)), None)
    if size is not None and widths["d_ff"] is None:
        widths = {"size": size}
    rest = {
        "max_context": found.get("n_positions", found.get("n_ctx", 1024)),
        "activation": ACTIVATIONS[name],
        "epsilon": found.get("layer_norm_epsilon", 1e-5),
        "p_dropout": found.get("resid_pdrop", 0.1),
        "tie_embeddings": found.get("tie_word_embeddings", True),
    }
    n_rows = found.get("vocab_size", 50_257)
    try:
        return GPT2Config.from_dict({**widths, **rest, "n_rows": n_rows}), n_rows
    except RegardError as error:
        raise RegardError(f"{where} describes no GPT-2 that can be built: {error}") from None


def note_dropouts(found: Mapping[str, Any]) -> str:
    """What is to be said of a config.json whose dropouts differ; nothing where they are one."""
    shares = {name: found.get(name, 0.1) for name in DROPOUTS}
    if len(set(shares.values())) == 1:
        return ""
    given = ", ".join(f"{name} {share:g}" for name, share in shares.items())
    return (
        f"Its dropouts differ: {given}. Regard has one for all three, and reads {shares['resid_pdrop']:g} "
        "(model.p_dropout); it matters in training alone."
    )


def is_count(value: object) -> bool:
    """Whether a value of a config.json is a whole number from 1 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_number(value: object, high: float = math.inf) -> bool:
    """Whether a value of a config.json is a number from 0 to `high`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= high


_TYPES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("vocab_size", "n_positions", "n_embd", "n_layer", "n_head"), is_count, "a whole number from 1 on"),
    (("n_inner", "n_ctx"), lambda value: value is None or is_count(value), "a whole number from 1 on, or null"),
    (DROPOUTS, lambda value: is_number(value, 0.95), "a number from 0 to 0.95"),
    (("layer_norm_epsilon",), is_number, "a number from 0 on"),
    (("tie_word_embeddings",), lambda value: isinstance(value, bool), "true or false"),
    (("activation_function",), lambda value: isinstance(value, str), 'a name, such as "gelu_new"'),
)


def _check_types(found: Mapping[str, Any], where: str) -> None:
    for names, is_right, allowed in _TYPES:
        for name in names:
            if name in found and not is_right(found[name]):
                raise RegardError(
                    f'{where} has "{name}": {json.dumps(found[name])}, which must be {allowed}. Correct it there.'
                )


def _shape(widths: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return widths["n_layers"], widths["d_model"], widths["n_heads"]


def _check_supported(found: Mapping[str, Any], where: str) -> None:
    architectures = found.get("architectures") or []
    others = [name for name in architectures if name not in ARCHITECTURES]
    if found.get("model_type", "gpt2") != "gpt2" or others or not (architectures or "model_type" in found):
        given = ", ".join(map(str, others)) or f"model_type {found.get('model_type')}"
        raise RegardError(
            f"{where} describes an architecture that Regard does not read: {given}. Supported are "
            f"{', '.join(ARCHITECTURES[:-1])} and {ARCHITECTURES[-1]}, of model_type gpt2."
        )
    for key, value, meaning in FIXED:
        if found.get(key, value) is not value:
            raise RegardError(
                f"{where} sets {key} to {found[key]!r} ({meaning}), which Regard does not compute; it reads {value!r} "
                "alone."
            )


def write_config(config: GPT2Config, n_rows: int, eos: int) -> dict[str, Any]:
    """Make the config.json of a model of ours."""
    shape = config.fill_in()
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": n_rows,
        "n_positions": shape.max_context,
        "n_embd": shape.d_model,
        "n_layer": shape.n_layers,
        "n_head": shape.n_heads,
        "n_inner": shape.d_ff,
        "activation_function": WRITTEN_ACTIVATIONS[shape.activation],
        "layer_norm_epsilon": shape.epsilon,
        "resid_pdrop": shape.p_dropout,
        "embd_pdrop": shape.p_dropout,
        "attn_pdrop": shape.p_dropout,
        "tie_word_embeddings": shape.tie_embeddings,
        "bos_token_id": eos,
        "eos_token_id": eos,
        "torch_dtype": "float32",
    }


def their_name(name: str) -> str:
    """What Hugging Face calls one of our tensors, without the prefix `transformer.`.

    >>> their_name("mixer.layers.3.attention.qkv.weight"), their_name("mixer.norm.bias")
    ('h.3.attn.c_attn.weight', 'ln_f.bias')
    """
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith("mixer.norm."):
        return name.replace("mixer.norm", "ln_f")
    _, _, layer, *part, kind = name.split(".")
    return f"h.{layer}.{_PARTS['.'.join(part)]}.{kind}"


def is_transposed(theirs: str) -> bool:
    """Whether a tensor of that name is (in, out) there and (out, in) here."""
    return ".c_" in theirs and theirs.endswith(".weight")


def strip_prefix(names: Iterator[str] | list[str]) -> dict[str, str]:
    """Map each name that stands for a weight, without its `transformer.`, to the name as it was written."""
    found: dict[str, str] = {}
    for name in names:
        short = name.removeprefix("transformer.")
        if short in found:
            raise RegardError(
                f"The weights have '{found[short]}' and '{name}', which are one tensor; keep one of them."
            )
        if not _MASK.fullmatch(short) and not is_of_head(name, "gpt2"):
            found[short] = name
    return found


def to_our_tensors(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Give tensors our names, in float32, in the shapes of `own` (a model of the config); refuse what does not fit."""
    given = strip_prefix(list(tensors))
    wanted = {their_name(name): name for name in own}
    if "lm_head.weight" not in wanted and "lm_head.weight" in given:
        _check_tied(tensors[given.pop("lm_head.weight")], tensors.get(given.get("wte.weight", "")), where)
    missing, extra = [name for name in wanted if name not in given], sorted(set(given) - set(wanted))
    if missing:
        raise RegardError(
            f"{where} lacks tensors that its config.json calls for: {quote_names(missing)}. Copy the whole folder "
            "again, or correct n_layer and tie_word_embeddings there."
        )
    if extra:
        raise RegardError(
            f"{where} has tensors that a GPT-2 of its config.json has not: {quote_names([given[n] for n in extra])}. "
            "Remove them, or correct config.json."
        )
    result = {}
    for theirs, ours in wanted.items():
        tensor, shape = tensors[given[theirs]], tuple(own[ours].shape)
        expected = shape[::-1] if is_transposed(theirs) else shape
        if tuple(tensor.shape) != expected:
            raise RegardError(
                f"'{given[theirs]}' in {where} is {tuple(tensor.shape)}, and by config.json it must be {expected}. "
                "Correct the widths in config.json (n_embd, n_inner, n_positions, vocab_size), or copy the weights "
                "again."
            )
        if not tensor.is_floating_point():
            raise RegardError(
                f"'{given[theirs]}' in {where} has numbers of type {tensor.dtype}, not floating point. Save the "
                "weights as float32, float16 or bfloat16; quantised ones are not read."
            )
        result[ours] = (tensor.t() if is_transposed(theirs) else tensor).float().contiguous()
    return result


def _check_tied(head: Tensor, embedding: Tensor | None, where: str) -> None:
    if embedding is not None and not head.equal(embedding):
        raise RegardError(
            f"lm_head.weight in {where} differs from wte.weight, and config.json says that they are one "
            "(tie_word_embeddings). Set tie_word_embeddings to false there to use both."
        )


def to_their_tensors(own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the tensors of a model of ours the names and shapes of Hugging Face."""
    result = {}
    for name, tensor in own.items():
        theirs = their_name(name)
        prefix = "" if theirs.startswith("lm_head") else "transformer."
        result[prefix + theirs] = tensor.t().contiguous() if is_transposed(theirs) else tensor.contiguous()
    return result


def quote_names(names: list[str]) -> str:
    """The first five names, in quotes, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f"'{name}'" for name in names[:5]) + more
