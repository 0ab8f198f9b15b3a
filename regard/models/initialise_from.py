"""A decoder that begins as a trained language model: it can write already, and has to learn what about."""

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.layers.attention import MultiHeadAttention
from regard.layers.feed_forward import FeedForward
from regard.mixers.attention import AttentionStack
from regard.mixers.recurrent import Recurrent
from regard.mixers.recurrent_decoder import RecurrentDecoder
from regard.mixers.transformer import TransformerBlock
from regard.mixers.transformer_decoder import DecoderBlock, TransformerDecoder
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq

OF_SOURCE = (".cross_attention.", ".norm_cross.")
"""What only a decoder with a source has."""

Pairs = dict[str, tuple[Tensor, Tensor]]
"""By name: a parameter of the decoder, and what it becomes."""


@torch.no_grad()
def initialise_from(model: Seq2Seq | ConditionalLanguageModel, language_model: LanguageModel) -> list[str]:
    """Copy a language model's embedding, layers and head into the decoder; the names of what was copied.

    What looks at the source is left as it is. Nothing is copied unless all of it fits.
    """
    target = model.target if isinstance(model, Seq2Seq) else model
    for what, ours, theirs in _facts(target, language_model):
        if ours != theirs:
            raise _unfit(what, ours, theirs)
    pairs = _pairs(target, language_model)
    for name, (into, out_of) in pairs.items():
        if into.shape != out_of.shape:
            raise _unfit(name, _size(into), _size(out_of))
    for into, out_of in pairs.values():
        into.copy_(out_of)
    return list(pairs)


def _facts(target: ConditionalLanguageModel, language_model: LanguageModel) -> list[tuple[str, object, object]]:
    """What shapes do not show: (name, the decoder's, the language model's)."""
    facts: list[tuple[str, object, object]] = []
    if target.head is None and language_model.head is not None:
        facts.append(("tie_embeddings", True, False))
    decoder, mixer = target.decoder, language_model.mixer
    lowest: object = mixer.layers[0] if isinstance(mixer, AttentionStack) else None
    if isinstance(decoder, RecurrentDecoder) and isinstance(mixer, Recurrent):
        facts.append(("the kind of layer", decoder.recurrent.layers[0].fused, mixer.layers[0].fused))
        facts.append(("the number of layers", len(decoder.recurrent.layers), len(mixer.layers)))
    elif (
        isinstance(decoder, TransformerDecoder)
        and isinstance(mixer, AttentionStack)
        and isinstance(lowest, TransformerBlock)
    ):
        facts.append(("the number of layers", len(decoder.layers), len(mixer.layers)))
        facts.append(("positions", type(decoder.positions).__name__, type(mixer.positions).__name__))
        facts += _facts_of_blocks(decoder.layers[0], lowest)
    else:
        facts.append(("the kind of mixer", type(decoder).__name__, type(mixer).__name__))
    return facts


def _facts_of_blocks(ours: DecoderBlock, theirs: TransformerBlock) -> list[tuple[str, object, object]]:
    def of(norm_is_first: bool, attention: MultiHeadAttention, feed_forward: FeedForward) -> dict[str, object]:
        return {
            "norm": "pre" if norm_is_first else "post",
            "n_heads": attention.n_heads,
            "activation": feed_forward.activation,
        }

    mine = of(ours.is_pre_norm, ours.attention, ours.feed_forward)
    yours = of(theirs.is_pre_norm, theirs.attention, theirs.feed_forward)
    return [(name, mine[name], yours[name]) for name in mine]


def _pairs(target: ConditionalLanguageModel, language_model: LanguageModel) -> Pairs:
    n = language_model.vocab_size
    pairs: Pairs = {"embedding": (target.embedding, language_model.embedding[:n])}
    decoder, mixer = target.decoder, language_model.mixer
    into = decoder.recurrent if isinstance(decoder, RecurrentDecoder) else decoder
    assert isinstance(into, nn.Module)
    assert isinstance(mixer, nn.Module)
    out_of = dict(mixer.named_parameters())
    for name, parameter in into.named_parameters():
        if not any(part in name for part in OF_SOURCE):
            pairs[name] = parameter, out_of[name]
    if target.head is not None:
        pairs["head"] = target.head, language_model.output_weight
    if target.bias is not None and language_model.bias is not None:
        pairs["bias"] = target.bias, language_model.bias
    return pairs


def _size(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape))


def _unfit(name: str, ours: object, theirs: object) -> RegardError:
    return RegardError(
        f"The decoder cannot begin as this language model: {name} is {ours} in the decoder and {theirs} in the "
        "language model. Use one tokenizer for both and the same settings, without input_feeding; a decoder can begin "
        "as an rnn, gru, lstm, transformer or gpt2."
    )
