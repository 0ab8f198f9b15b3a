"""BERT, DistilBERT and RoBERTa as Hugging Face writes them: config.json and names of tensors, as ours and back.

Queries, keys and values are three layers there and one here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.models.bert_config import FAMILIES, SIZES, BertConfig
from regard.weights.gpt2_form import ACTIVATIONS as GPT2_ACTIVATIONS
from regard.weights.gpt2_form import WRITTEN_ACTIVATIONS, is_count, is_number, quote_names
from regard.weights.task_heads import is_of_head

if TYPE_CHECKING:
    from torch import Tensor

ACTIVATIONS = {**GPT2_ACTIVATIONS, "gelu_fast": "gelu"}
KEYS = {
    "bert": {
        "d_model": ("hidden_size", 768),
        "n_layers": ("num_hidden_layers", 12),
        "n_heads": ("num_attention_heads", 12),
        "d_ff": ("intermediate_size", 3072),
        "activation": ("hidden_act", "gelu"),
        "p_dropout": ("hidden_dropout_prob", 0.1),
        "p_attention": ("attention_probs_dropout_prob", 0.1),
        "n_positions": ("max_position_embeddings", 512),
        "vocab_size": ("vocab_size", 30_522),
    },
    "distilbert": {
        "d_model": ("dim", 768),
        "n_layers": ("n_layers", 6),
        "n_heads": ("n_heads", 12),
        "d_ff": ("hidden_dim", 3072),
        "activation": ("activation", "gelu"),
        "p_dropout": ("dropout", 0.1),
        "p_attention": ("attention_dropout", 0.1),
        "n_positions": ("max_position_embeddings", 512),
        "vocab_size": ("vocab_size", 30_522),
    },
}
"""What a config.json calls our settings, and what it means where it leaves one out."""
KEYS["roberta"] = KEYS["bert"] | {"vocab_size": ("vocab_size", 50_265)}
# What changes the numbers and is not computed here: the key, the only value that is read, and what another would do.
FIXED: tuple[tuple[str, Any, str], ...] = (
    ("position_embedding_type", "absolute", "positions that are told otherwise than by a table"),
    ("is_decoder", False, "attention to the past alone"),
    ("add_cross_attention", False, "attention to an encoder"),
    ("tie_word_embeddings", True, "a masked head with a matrix of its own"),
)
N_SEGMENTS = {"bert": 2, "roberta": 1}
EPSILON = {"bert": 1e-12, "roberta": 1e-12, "distilbert": 1e-12}
PADDING = {"bert": 0, "distilbert": 0, "roberta": 1}

_BODY = {
    "embedding": "embeddings.word_embeddings.weight",
    "positions.table": "embeddings.position_embeddings.weight",
    "segments": "embeddings.token_type_embeddings.weight",
    "norm": "embeddings.LayerNorm",
    "pooler": "pooler.dense",
}
_LAYER = {
    "attention.qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention.out": ("attention.output.dense",),
    "norm_attention": ("attention.output.LayerNorm",),
    "feed_forward.up": ("intermediate.dense",),
    "feed_forward.out": ("output.dense",),
    "norm_feed_forward": ("output.LayerNorm",),
}
_DISTILLED_LAYER = {
    "attention.qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "attention.out": ("attention.out_lin",),
    "norm_attention": ("sa_layer_norm",),
    "feed_forward.up": ("ffn.lin1",),
    "feed_forward.out": ("ffn.lin2",),
    "norm_feed_forward": ("output_layer_norm",),
}
_HEADS = {
    "bert": {
        "masked_head.transform": "cls.predictions.transform.dense",
        "masked_head.norm": "cls.predictions.transform.LayerNorm",
        "masked_head.bias": "cls.predictions.bias",
        "next_head": "cls.seq_relationship",
    },
    "distilbert": {
        "masked_head.transform": "vocab_transform",
        "masked_head.norm": "vocab_layer_norm",
        "masked_head.bias": "vocab_projector.bias",
    },
    "roberta": {
        "masked_head.transform": "lm_head.dense",
        "masked_head.norm": "lm_head.layer_norm",
        "masked_head.bias": "lm_head.bias",
    },
}
_TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "vocab_projector.weight": "embeddings.word_embeddings.weight",
    "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}
"""Tensors that are another one under a second name."""
_LEFT_OUT = re.compile(r"embeddings\.(position_ids|token_type_ids)")
"""Numbers of positions, which older versions saved."""


def read_bert_config(found: Mapping[str, Any], names: Iterable[str], where: str) -> tuple[BertConfig, int]:
    """Read a config.json: our config of it, and how many rows the embedding has. `names` are those of its tensors."""
    family = found["model_type"]
    _check_types(found, family, where)
    _check_supported(found, family, where)
    given = {ours: found.get(*theirs) for ours, theirs in KEYS[family].items()}
    if given["activation"] not in ACTIVATIONS:
        raise RegardError(
            f"{where} asks for the activation {given['activation']!r}, which Regard does not compute; it has "
            f"{', '.join(ACTIVATIONS)}."
        )
    short = {strip(name, family) for name in names}
    widths = {key: given[key] for key in ("d_model", "n_layers", "n_heads", "d_ff")}
    shape = (widths["n_layers"], widths["d_model"], widths["n_heads"])
    size = next((size for size, known in SIZES.items() if known == shape), None)
    heads = _HEADS[family]
    plain = {
        **({"size": size} if size is not None and widths["d_ff"] == 4 * widths["d_model"] else widths),
        "family": family,
        "max_context": given["n_positions"] - (2 if family == "roberta" else 0),
        "activation": ACTIVATIONS[given["activation"]],
        "epsilon": found.get("layer_norm_eps", EPSILON[family]),
        "p_dropout": given["p_dropout"],
        "has_pooler": "pooler.dense.weight" in short,
        "has_masked_head": f"{heads['masked_head.transform']}.weight" in short,
        "has_next_head": "cls.seq_relationship.weight" in short,
        "n_rows": given["vocab_size"],
    }
    try:
        return BertConfig.from_dict(plain), given["vocab_size"]
    except RegardError as error:
        raise RegardError(f"{where} describes no model that can be built: {error}") from None


def note_bert(found: Mapping[str, Any]) -> str:
    """What is to be said of a folder that is not taken as it stands; nothing where all of it is."""
    family = found["model_type"]
    shares = {theirs: found.get(theirs, default) for theirs, default in (KEYS[family][k] for k in _DROPOUTS)}
    if len(set(shares.values())) == 1:
        return ""
    given = ", ".join(f"{name} {share:g}" for name, share in shares.items())
    first = next(iter(shares.values()))
    return (
        f"Its dropouts differ: {given}. Regard has one for both, and reads {first:g} (model.p_dropout); it matters in "
        "training alone."
    )


_DROPOUTS = ("p_dropout", "p_attention")


def _check_types(found: Mapping[str, Any], family: str, where: str) -> None:
    keys = {ours: theirs for ours, (theirs, _) in KEYS[family].items()}
    counts = [keys[name] for name in ("d_model", "n_layers", "n_heads", "d_ff", "n_positions", "vocab_size")]
    rules: tuple[tuple[list[str], Callable[[Any], bool], str], ...] = (
        (counts, is_count, "a whole number from 1 on"),
        ([keys[name] for name in _DROPOUTS], lambda value: is_number(value, 0.95), "a number from 0 to 0.95"),
        (["layer_norm_eps"], is_number, "a number from 0 on"),
        ([keys["activation"]], lambda value: isinstance(value, str), 'a name, such as "gelu"'),
    )
    for names, is_right, allowed in rules:
        for name in names:
            if name in found and not is_right(found[name]):
                raise RegardError(
                    f'{where} has "{name}": {json.dumps(found[name])}, which must be {allowed}. Correct it there.'
                )
    D, N = (found.get(*KEYS[family][key]) for key in ("d_model", "n_heads"))
    if D % N:
        raise RegardError(
            f"{where} describes no model that can be built: {keys['d_model']} {D} cannot be shared by "
            f"{keys['n_heads']} {N}, since each head takes the same share. Correct one of them there."
        )


def _check_supported(found: Mapping[str, Any], family: str, where: str) -> None:
    for key, value, meaning in FIXED:
        if (given := found.get(key, value)) != value:
            raise RegardError(
                f"{where} sets {key} to {given!r} ({meaning}), which Regard does not compute; it reads {value!r} alone."
            )
    only = {"type_vocab_size": N_SEGMENTS.get(family), "pad_token_id": 1 if family == "roberta" else None}
    for key, wanted in only.items():
        if wanted is not None and (given := found.get(key, wanted)) != wanted:
            raise RegardError(f"{where} sets {key} to {given!r}; of {family}, Regard reads {wanted} alone.")


def write_bert_config(config: BertConfig, n_rows: int) -> dict[str, Any]:
    """Make the config.json of a model of ours."""
    shape, family = config.fill_in(), config.family
    values = {
        **{key: getattr(shape, key) for key in ("d_model", "n_layers", "n_heads", "d_ff", "p_dropout")},
        "activation": WRITTEN_ACTIVATIONS[shape.activation],
        "p_attention": shape.p_dropout,
        "n_positions": shape.max_context + shape.n_unused_positions,
        "vocab_size": n_rows,
    }
    written = {theirs: values[ours] for ours, (theirs, _) in KEYS[family].items()}
    written |= {"model_type": family, "architectures": [name_architecture(config)], "pad_token_id": PADDING[family]}
    if family == "roberta":
        written |= {"bos_token_id": 0, "eos_token_id": 2}
    if family != "distilbert":
        written |= {"layer_norm_eps": shape.epsilon, "type_vocab_size": shape.n_segments}
    elif shape.epsilon != EPSILON[family]:
        raise RegardError(f"model.epsilon is {shape.epsilon:g}, and DistilBERT's config.json can only say 1e-12.")
    return written | {"torch_dtype": "float32"}


def name_architecture(config: BertConfig) -> str:
    """What transformers calls a model with these heads."""
    stem = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta"}[config.family]
    if config.has_masked_head and config.has_next_head:
        return f"{stem}ForPreTraining"
    if config.has_next_head:
        return f"{stem}ForNextSentencePrediction"
    return f"{stem}ForMaskedLM" if config.has_masked_head else f"{stem}Model"


def strip(name: str, family: str) -> str:
    """A name without the prefix of its family, in today's spelling: older norms have a gamma and a beta."""
    short = name.removeprefix(f"{family}.")
    return re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", short))


def their_names(ours: str, family: str) -> tuple[str, ...]:
    """What Hugging Face calls one of our tensors, without the prefix; three names for queries, keys and values.

    >>> their_names("layers.3.feed_forward.up.bias", "bert"), their_names("masked_head.bias", "roberta")
    (('encoder.layer.3.intermediate.dense.bias',), ('lm_head.bias',))
    """
    tables = _BODY | _HEADS[family]
    if ours in tables:
        return (tables[ours],)
    stem, _, kind = ours.rpartition(".")
    if stem in tables:
        return (f"{tables[stem]}.{kind}",)
    _, number, part = stem.split(".", 2)
    names = (_DISTILLED_LAYER if family == "distilbert" else _LAYER)[part]
    where = "transformer.layer" if family == "distilbert" else "encoder.layer"
    return tuple(f"{where}.{number}.{name}.{kind}" for name in names)


def to_our_bert(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], family: str, where: str) -> dict[str, Tensor]:
    """Give tensors our names, in float32, in the shapes of `own` (a model of the config); refuse what does not fit."""
    given: dict[str, str] = {}
    for name in tensors:
        if not _LEFT_OUT.fullmatch(short := strip(name, family)) and not is_of_head(name, family):
            given[short] = name
    for second, first in _TIED.items():
        if second in given and first in given:
            _check_tied(tensors[given.pop(second)], tensors[given[first]], second, first, where)
    wanted = {theirs for name in own for theirs in their_names(name, family)}
    missing, extra = sorted(wanted - set(given)), sorted(set(given) - wanted)
    if missing:
        raise RegardError(
            f"{where} lacks tensors that its config.json calls for: {quote_names(missing)}. Copy the whole folder "
            "again, or correct the number of layers there."
        )
    if extra:
        raise RegardError(
            f"{where} has tensors that a model of its config.json has not: "
            f"{quote_names([given[name] for name in extra])}. Remove them, or correct config.json."
        )
    return {name: _join(name, [given[n] for n in their_names(name, family)], tensors, own, where) for name in own}


def _join(ours: str, theirs: list[str], tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], where: str) -> Tensor:
    """One tensor of ours, of those that it is there."""
    whole = tuple(own[ours].shape)
    expected = (whole[0] // len(theirs), *whole[1:])
    for name in theirs:
        tensor = tensors[name]
        if tuple(tensor.shape) != expected:
            raise RegardError(
                f"'{name}' in {where} is {tuple(tensor.shape)}, and by config.json it must be {expected}. Correct the "
                "widths in config.json, or copy the weights again."
            )
        if not tensor.is_floating_point():
            raise RegardError(
                f"'{name}' in {where} has numbers of type {tensor.dtype}, not floating point. Save the weights as "
                "float32, float16 or bfloat16; quantised ones are not read."
            )
    return torch.cat([tensors[name].float() for name in theirs]).contiguous()


def _check_tied(second: Tensor, first: Tensor, name: str, other: str, where: str) -> None:
    if not second.equal(first):
        raise RegardError(
            f"{name} in {where} differs from {other}, and Regard's masked head has one for both. Remove {name} to use "
            "the other."
        )


def to_their_bert(own: Mapping[str, Tensor], config: BertConfig) -> dict[str, Tensor]:
    """Give the tensors of a model of ours the names of Hugging Face."""
    result, has_head = {}, config.has_masked_head or config.has_next_head
    for name, tensor in own.items():
        theirs = their_names(name, config.family)
        is_body = not name.startswith(("masked_head", "next_head"))
        prefix = f"{config.family}." if has_head and is_body else ""
        for short, part in zip(theirs, tensor.chunk(len(theirs)), strict=True):
            result[prefix + short] = part.contiguous()
    return result


assert set(KEYS) == set(FAMILIES), "every family has its keys"
