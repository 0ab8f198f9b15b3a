"""A decoder that begins as a trained language model: it can write already, and has to learn what about."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from regard.mixers.attention import AttentionStack
from regard.mixers.recurrent import Recurrent
from regard.mixers.recurrent_decoder import RecurrentDecoder
from regard.mixers.transformer import TransformerBlock
from regard.mixers.transformer_decoder import TransformerDecoder
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.language_model import LanguageModel
from regard.models.seq2seq import Seq2Seq

OF_SOURCE = (".cross_attention.", ".norm_cross.")
"""What only a decoder with a source has."""

Pairs = dict[str, tuple[Tensor, Tensor]]
"""By name: a parameter of the decoder, and what it becomes."""

POSITIONS: dict[type[nn.Module], str] = {
    LearnedPositions: "learned",
    SinusoidalPositions: "sinusoidal",
    NoPositions: "none",
}


@torch.no_grad()
def initialise_from(model: Seq2Seq | ConditionalLanguageModel, language_model: LanguageModel) -> list[str]:
    """Copy a language model's embedding, layers and head into the decoder; the names of what was copied.

    What looks at the source is left as it is. Nothing is copied unless all of it fits. On the "meta" device, where
    there is nothing to copy, this only tells whether it would.
    """
    target = model.target if isinstance(model, Seq2Seq) else model
    facts = _facts(target, language_model)
    if unfit := [fact for fact in facts if fact.ours != fact.theirs]:
        raise _unfit(unfit)
    pairs = _pairs(target, language_model)
    shapes = [Fact(name, _size(into), _size(out_of)) for name, (into, out_of) in pairs.items()]
    if unfit := [fact for fact in shapes if fact.ours != fact.theirs]:
        raise _unfit(unfit[:1])  # of a wrong width every layer would tell
    for into, out_of in pairs.values():
        into.copy_(out_of)
    return list(pairs)


class Fact(NamedTuple):
    """Something that must be the same in the decoder and in the language model, by the name of its setting."""

    name: str
    ours: object
    theirs: object


def _facts(target: ConditionalLanguageModel, language_model: LanguageModel) -> list[Fact]:
    decoder, mixer = target.decoder, language_model.mixer
    facts = [Fact("the kind of layer", _kind(decoder), _kind(mixer))]
    if facts[0].ours != facts[0].theirs:
        return facts  # what else there is to compare depends on it
    assert isinstance(decoder, RecurrentDecoder | TransformerDecoder)
    assert isinstance(mixer, Recurrent | AttentionStack)
    layers = decoder.recurrent.layers if isinstance(decoder, RecurrentDecoder) else decoder.layers
    facts.append(Fact("n_layers", len(layers), len(mixer.layers)))
    facts.append(Fact("d_model", target.d_model, language_model.d_model))
    if isinstance(decoder, TransformerDecoder) and isinstance(mixer, AttentionStack):
        lowest: object = mixer.layers[0]
        assert isinstance(lowest, TransformerBlock), "its kind was told"
        ours, theirs = _of_block(decoder.layers[0], decoder.positions), _of_block(lowest, mixer.positions)
        facts += [Fact(name, ours[name], theirs[name]) for name in ours]
        if isinstance(decoder.positions, LearnedPositions) and isinstance(mixer.positions, LearnedPositions):
            facts.append(Fact("max_context", decoder.max_context, mixer.max_context))
    if target.head is None and language_model.head is not None:
        facts.append(Fact("the head", "tied (tying: target)", "a matrix of its own (tying: none)"))
    return facts


def _kind(mixer: object) -> str:
    if isinstance(mixer, RecurrentDecoder):
        mixer = mixer.recurrent
    if isinstance(mixer, Recurrent):
        return mixer.layers[0].kind
    is_stack = isinstance(mixer, AttentionStack) and isinstance(mixer.layers[0], TransformerBlock)
    return "transformer" if is_stack or isinstance(mixer, TransformerDecoder) else type(mixer).__name__


def _of_block(block: TransformerBlock, positions: nn.Module) -> dict[str, object]:
    above = block.feed_forward
    return {
        "n_heads": block.attention.n_heads,
        "d_ff": None if above is None else above.up.out_features,
        "norm": "pre" if block.is_pre_norm else "post",
        "positions": POSITIONS[type(positions)],
        "activation": None if above is None else above.activation,
        "without": list(block.without),
    }


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


def _unfit(facts: list[Fact]) -> RegardError:
    told = ", ".join(
        f"{name} is {ours} in the decoder and {theirs} in the language model" for name, ours, theirs in facts
    )
    return RegardError(
        f"The decoder cannot begin as this language model: {told}. Use one tokenizer for both and the same settings, "
        "without input_feeding; a decoder can begin as an rnn, gru, lstm, transformer or gpt2."
    )
