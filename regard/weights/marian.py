"""Transformers that translate as Hugging Face's Marian (`MarianMTModel`), the same weights in another order.

Marian's sinusoids have all sines first and all cosines then, ours take turns (Vaswani et al. 2017). What a layer does
is the same in whatever order the channels are, so the channels of every tensor are put into Marian's order: no bit of
a weight is changed. A source has nothing around it, and a target begins after the end mark and ends with it, as here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.settings import Settings
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer
from regard.training.weights import named_weights
from regard.weights.ctranslate2 import describe_as_transformer
from regard.weights.gpt2_form import WRITTEN_ACTIVATIONS
from regard.weights.hugging_face import write_folder
from regard.weights.tokenizer_files import mark_tokens

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
    return describe_as_transformer(whole, where)


def write_marian(
    model: Seq2Seq, config: Settings, source: Tokenizer, target: Tokenizer, folder: Path, *, where: str
) -> None:
    """Write a model as a folder that `AutoModelForSeq2SeqLM` loads; AutoTokenizer loads the source's tokenizer."""
    described = describe_as_marian(config, where)
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
    embedding, head = own["target.embedding"][:, order], own.get("target.head")
    source = own.get("source_embedding")
    result: dict[str, Tensor] = {}
    if source is None:
        result["model.shared.weight"] = embedding
    else:
        result["model.encoder.embed_tokens.weight"] = source[:, order]
        result["model.decoder.embed_tokens.weight"] = embedding
    if head is not None:
        result["lm_head.weight"] = head[:, order]
    for name, tensor in own.items():
        side = next((side for side in SIDES if name.startswith(f"{side}.layers.")), None)
        if side is None:
            continue
        number, _, rest = name.removeprefix(f"{side}.layers.").partition(".")
        part, _, kind = rest.rpartition(".")
        reads = part in ("attention.qkv", "cross_attention.q", "cross_attention.kv", "feed_forward.up")
        if not reads:  # it writes channels, or scales them
            tensor = tensor[order]
        elif kind == "weight":
            tensor = tensor[:, order]
        for theirs, piece in zip(PARTS[part], tensor.chunk(len(PARTS[part])), strict=True):
            result[f"{SIDES[side]}.layers.{number}.{theirs}.{kind}"] = piece
    return {name: tensor.contiguous() for name, tensor in result.items()}
