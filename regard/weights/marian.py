"""Transformers that translate as Hugging Face's Marian (`MarianMTModel`) and back, the same weights in another order.

Marian's sinusoids have all sines first and all cosines then, ours take turns (Vaswani et al. 2017). What a layer does
is the same in whatever order the channels are, so the channels of every tensor are put into Marian's order: no bit of
a weight is changed. A source has nothing around it, and a target begins after the end mark and ends with it, as here.

Published Marians (Helsinki-NLP/opus-mt) are read too. They cut texts by SentencePiece
(`regard/text/marian_tokenizer.py`), add a number to the score of each word, end a source with </s> and begin a target
after <pad>, which they never write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.settings import Settings
from regard.text.marian_tokenizer import FILES, VOCAB, holds_sentencepiece, read_sides
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.training.weights import named_weights
from regard.untrusted.small_files import read_object
from regard.untrusted.values import make_printable, quote
from regard.weights.ctranslate2 import check_marks
from regard.weights.gpt2_form import ACTIVATIONS, WRITTEN_ACTIVATIONS, quote_names
from regard.weights.hugging_face import write_folder
from regard.weights.tokenizer_files import mark_tokens
from regard.weights.weight_files import read_folder

if TYPE_CHECKING:
    from torch import Tensor

SIDES = {"encoder": "model.encoder", "target.decoder": "model.decoder"}
PARTS = {
    "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention.out": ("self_attn.out_proj",),
    "norm_attention": ("self_attn_layer_norm",),
    "cross_attention.q": ("encoder_attn.q_proj",),
    "cross_attention.kv": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention.out": ("encoder_attn.out_proj",),
    "norm_cross": ("encoder_attn_layer_norm",),
    "feed_forward.up": ("fc1",),
    "feed_forward.out": ("fc2",),
    "norm_feed_forward": ("final_layer_norm",),
}

MAX_POSITIONS = 1_000_000
"""Of a model from elsewhere: their table is computed before any weight can be compared."""


def describe_as_marian(config: Settings, where: str) -> Seq2SeqConfig:
    """The config of a model that Marian can say; an error with the first key that it cannot."""
    whole = config.seq2seq() if isinstance(config, VaswaniConfig) else config
    assert isinstance(whole, Seq2SeqConfig), "a model of pairs is of one of these"
    can: dict[str, Any] = {"encoder": "transformer", "decoder": "transformer", "copies": False, "norm": "post"}
    for key, only in (can | {"positions": "sinusoidal"}).items():
        if (value := getattr(whole, key)) != only:
            raise RegardError(
                f"{where} has model.{key} = {str(value).lower()}, which Hugging Face's Marian cannot say: it has "
                f"{str(only).lower()} alone. Train one with model.{key} {str(only).lower()}, or the model vaswani."
            )
    if whole.has_output_bias:
        raise RegardError(
            f"{where} has model.has_output_bias = true, which Regard does not write as Marian. Where it was imported, "
            "use the folder that it came from; else train one with model.has_output_bias false."
        )
    return whole


def write_marian(
    model: Seq2Seq, config: Settings, source: Tokenizer, target: Tokenizer, folder: Path, *, where: str
) -> None:
    """Write a model as a folder that `AutoModelForSeq2SeqLM` loads; AutoTokenizer loads the source's tokenizer."""
    described = describe_as_marian(config, where)
    check_marks((source, target), where)
    weights = {name: tensor.cpu() for name, tensor in named_weights(model).items()}
    tensors = to_marian(weights, described.d_model)
    marks = {target.end_mark: target.eos}
    files = {
        "config.json": _write_config(described, weights, target),
        "generation_config.json": _list_marks(target) | {"num_beams": 5, "max_length": described.max_context},
        "tokenizer.json": mark_tokens(source, {source.end_mark: source.eos}),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": source.end_mark,
            "pad_token": source.end_mark,
            "model_max_length": described.max_context,
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    }
    if target.hash != source.hash:
        files[TARGET_TOKENIZER] = mark_tokens(target, marks)
    write_folder(folder, files, tensors)


def _list_marks(target: Tokenizer) -> dict[str, int]:
    """One mark is all of them: what a target begins after, ends with, and is padded with."""
    names = ("eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id")
    return dict.fromkeys(names, target.eos)


def _write_config(config: Seq2SeqConfig, weights: Mapping[str, Tensor], target: Tokenizer) -> dict[str, Any]:
    n_source, n_target = (len(weights.get(name, weights["target.embedding"])) for name in _EMBEDDINGS)
    sides = zip(("encoder", "decoder"), config.depths, strict=True)
    shapes = {
        f"{side}_{key}": value
        for side, n_layers in sides
        for key, value in {
            "layers": n_layers, "attention_heads": config.n_heads, "ffn_dim": config.d_ff or 4 * config.d_model
        }.items()
    }  # fmt: skip
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": n_source,
        "decoder_vocab_size": n_target,
        "d_model": config.d_model,
        **shapes,
        "activation_function": WRITTEN_ACTIVATIONS[config.activation],
        "dropout": config.p_dropout,
        "attention_dropout": config.p_dropout,
        "activation_dropout": 0.0,
        "max_position_embeddings": config.max_context,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": "source_embedding" not in weights,
        "tie_word_embeddings": "target.head" not in weights,
        **_list_marks(target),
        "torch_dtype": "float32",
    }


_EMBEDDINGS = ("source_embedding", "target.embedding")


def to_marian(own: Mapping[str, Tensor], d_model: int) -> dict[str, Tensor]:
    """Give the tensors of a model of ours Marian's names and its order of channels: sines first, then cosines."""
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    result: dict[str, Tensor] = {}
    for name, tensor in own.items():
        names, axis = find_theirs(name, is_shared="source_embedding" not in own)
        tensor = tensor if axis is None else tensor.index_select(axis, torch.tensor(order))
        result |= zip(names, tensor.chunk(len(names)), strict=True)
    return {name: tensor.contiguous() for name, tensor in result.items()}


def find_theirs(ours: str, is_shared: bool) -> tuple[tuple[str, ...], int | None]:
    """What Marian calls one of our tensors, several names where it parts it, and the axis along which channels lie.

    >>> find_theirs("encoder.layers.3.attention.out.weight", is_shared=True)
    (('model.encoder.layers.3.self_attn.out_proj.weight',), 0)
    """
    if ours == "target.bias":
        return ("final_logits_bias",), None
    tables = {
        "target.embedding": "model.shared.weight" if is_shared else "model.decoder.embed_tokens.weight",
        "source_embedding": "model.encoder.embed_tokens.weight",
        "target.head": "lm_head.weight",
    }
    if ours in tables:
        return (tables[ours],), 1
    side = next(side for side in SIDES if ours.startswith(f"{side}.layers."))
    number, _, rest = ours.removeprefix(f"{side}.layers.").partition(".")
    part, _, kind = rest.rpartition(".")
    reads = part in ("attention.qkv", "cross_attention.q", "cross_attention.kv", "feed_forward.up")
    axis = 0 if not reads else 1 if kind == "weight" else None  # what does not read channels writes or scales them
    return tuple(f"{SIDES[side]}.layers.{number}.{theirs}.{kind}" for theirs in PARTS[part]), axis


def holds_marian(path: Path) -> bool:
    """Whether a folder's config.json is of a Marian."""
    return (path / "config.json").is_file() and read_object(path / "config.json").get("model_type") == "marian"


def read_marian(path: Path) -> tuple[Seq2SeqConfig, tuple[Tokenizer, ...]]:
    """The model and the tokenizers that a folder describes: one where both sides share it, else source and target."""
    found, where = read_object(path / "config.json"), f"'{path}/config.json'"
    tokenizers = _read_tokenizers(path)
    is_published = tokenizers[0].pieces is not None
    required = _list_required(found, tokenizers) | (_list_published(path, found, tokenizers) if is_published else {})
    for key, only in required.items():
        if (given := found.get(key, only if is_published and key != "scale_embedding" else None)) != only:
            kind = "as published ones have it" if is_published else "as `regard export RUN FOLDER --marian` writes them"
            raise RegardError(
                f"{where} has {key} = {make_printable(json.dumps(given), 80)}, and Regard reads Marians with "
                f"{json.dumps(only)} there, {kind}."
            )
    given = found.get("activation_function")
    activation = ACTIVATIONS.get(given) if isinstance(given, str) else None
    if activation is None:
        raise RegardError(
            f"{where} asks for the activation {make_printable(str(given), 40)}, which Regard does not compute; it has "
            f"{', '.join(ACTIVATIONS)}."
        )
    if isinstance(n := found.get("max_position_embeddings"), int) and n > MAX_POSITIONS:
        raise RegardError(
            f"{where} has more than {MAX_POSITIONS:,} max_position_embeddings, the most that Regard reads. Lower it to "
            "the longest text that you translate."
        )
    is_tied, is_shared = found.get("tie_word_embeddings", True), found.get("share_encoder_decoder_embeddings", True)
    config = {
        "d_model": found.get("d_model"),
        "n_layers": [found.get("encoder_layers"), found.get("decoder_layers")],
        "n_heads": found.get("encoder_attention_heads"),
        "d_ff": found.get("encoder_ffn_dim"),
        "activation": activation,
        "p_dropout": found.get("dropout"),
        "max_context": found.get("max_position_embeddings"),
        "tying": "all" if is_shared else "target" if is_tied else "none",
        "norm": "post",
        "has_output_bias": is_published,
    }
    try:
        return Seq2SeqConfig.from_dict(config), tokenizers
    except RegardError as error:
        raise RegardError(f"{where} describes no model that can be built: {error}") from None


def _read_tokenizers(path: Path) -> tuple[Tokenizer, ...]:
    """Those of the source and of the target; one where both are the same."""
    if holds_sentencepiece(path):
        sides = zip(FILES, read_sides(path), strict=True)
        source, target = (Tokenizer.from_json(text, f"'{path / name}'") for name, text in sides)
        return (source,) if source.hash == target.hash else (source, target)
    if not (path / "tokenizer.json").exists():
        raise RegardError(
            f"'{path}' has no tokenizer: neither tokenizer.json, as `regard export RUN FOLDER --marian` writes it, nor "
            f"{', '.join(FILES)} and {VOCAB}, as published Marians have them. Copy these files there from where the "
            "model came from."
        )
    source = Tokenizer.load(path / "tokenizer.json")
    has_two = (path / TARGET_TOKENIZER).exists()
    return (source, Tokenizer.load(path / TARGET_TOKENIZER)) if has_two else (source,)


def _list_published(path: Path, found: Mapping[str, Any], tokenizers: tuple[Tokenizer, ...]) -> dict[str, Any]:
    """What config.json of a published Marian must say, where it names it; an error for words that are never written."""
    target, generation = tokenizers[-1], path / "generation_config.json"
    for file, config in (
        ("config.json", found),
        (generation.name, read_object(generation) if generation.exists() else {}),
    ):
        if (given := config.get("bad_words_ids")) not in (None, [[target.start]]):
            raise RegardError(
                f"'{path}/{file}' has bad_words_ids = {quote(given)}, and of Marians Regard leaves out <pad> alone: "
                f"[[{target.start}]]. Correct it there."
            )
    fixed = dict.fromkeys(("normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits"), False)
    marks = {"pad_token_id": target.start, "decoder_start_token_id": target.start}
    return {**marks, **fixed, "static_position_embeddings": True}


def _list_required(found: Mapping[str, Any], tokenizers: tuple[Tokenizer, ...]) -> dict[str, Any]:
    """What config.json must say for the model to be one of ours."""
    is_tied, is_shared = found.get("tie_word_embeddings", True), found.get("share_encoder_decoder_embeddings", True)
    return {
        **_list_marks(tokenizers[-1]),
        "vocab_size": tokenizers[0].vocab_size,
        "decoder_vocab_size": tokenizers[-1].vocab_size,
        "scale_embedding": True,
        "decoder_attention_heads": found.get("encoder_attention_heads"),
        "decoder_ffn_dim": found.get("encoder_ffn_dim"),
        "tie_word_embeddings": is_tied or is_shared,
    }


def read_marian_weights(path: Path, own: Mapping[str, Tensor], d_model: int) -> dict[str, Tensor]:
    """The weights of a folder by our names, in our order of channels and in float32; `own` are those of our model."""
    tensors, where = read_folder(path)
    if "target.bias" in own:
        tensors = {"final_logits_bias": torch.zeros(1, len(own["target.bias"]))} | tensors  # old folders lack it
    wanted = {name: find_theirs(name, is_shared="source_embedding" not in own) for name in own}
    known = {theirs for names, _ in wanted.values() for theirs in names}
    for name in tensors.keys() - known:
        _check_left_out(name, tensors, where)
    if missing := sorted(known - tensors.keys()):
        raise RegardError(
            f"{where} lacks tensors that its config.json calls for: {quote_names(missing)}. Copy the whole folder "
            "again."
        )
    back = torch.tensor([*range(0, d_model, 2), *range(1, d_model, 2)]).argsort()
    result = {}
    for ours, (names, axis) in wanted.items():
        whole = tuple(own[ours].shape)
        if ours == "target.bias" and tuple(tensors[names[0]].shape) == (1, *whole):
            tensors[names[0]] = tensors[names[0]][0]
        for name in names:
            if (
                tuple(tensors[name].shape) != (whole[0] // len(names), *whole[1:])
                or not tensors[name].is_floating_point()
            ):
                raise RegardError(
                    f"'{name}' in {where} is {tuple(tensors[name].shape)} of {tensors[name].dtype}, which does not fit "
                    "config.json. Correct the widths there, or copy the weights again."
                )
        tensor = torch.cat([tensors[name].float() for name in names])
        result[ours] = (tensor if axis is None else tensor.index_select(axis, back)).contiguous()
    return result


_REPEATED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
"""What older versions save again where it is one matrix with another."""


def _check_left_out(name: str, tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse a tensor that is not read, unless it is a table of positions, a copy, or adds nothing."""
    copied = tensors.get("model.shared.weight", tensors.get("model.decoder.embed_tokens.weight"))
    is_copy = name in _REPEATED and copied is not None and tensors[name].equal(copied)
    adds_nothing = name == "final_logits_bias" and not tensors[name].any()
    if not (is_copy or adds_nothing or name.endswith("embed_positions.weight")):
        raise RegardError(
            f"{where} has the tensor '{name}', which a model of its config.json has not here: Regard's Transformers "
            "that translate add no number to the score of each word, and tie what config.json ties. Remove it, or "
            "correct config.json."
        )
