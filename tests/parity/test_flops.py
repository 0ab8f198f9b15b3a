"""FLOP formulas against counted operations on the plain path (the counter does not see into fused kernels)."""

from collections.abc import Callable

import pytest
import torch
from tiny_captions import GRID, tiny_captioner, tiny_captions
from tiny_seq2seq import VARIANTS, Pair, pairs, tiny_seq2seq
from torch.utils.flop_counter import FlopCounterMode

from regard.layers.recurrent import RecurrentLayer
from regard.layers.taps import Taps
from regard.mixers.recurrent_decoder import RecurrentDecoder
from regard.models.captioner import Captioner
from regard.models.conditional_language_model import ConditionalLanguageModel
from regard.models.language_model import LanguageModel
from regard.models.picture_encoder import ConvolutionPictures, PatchPictures
from regard.models.pointer import PointerModel
from regard.models.seq2seq import Seq2Seq
from regard.models.source import Source
from regard.models.table import MODELS, models_for

BANDED = ("rnn-attention", "pointer")
GRADIENT = [name for name in models_for("language-model") if not MODELS[name].is_counted]
MODELS_AND_CHANGES = [
    *((name, {}) for name in GRADIENT),
    ("attention", {"heads": "averaged"}),
    ("attention", {"without": ["values", "residual"]}),
    ("transformer", {"without": ["feed-forward", "norm", "scale"]}),
]
B = 3


def count(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def first_state_gradient(model: torch.nn.Module, n_rows: int) -> int:
    """What the backward pass saves: nobody asks for the gradient of the zeros that a recurrent layer starts from."""
    layers = [part for part in model.modules() if isinstance(part, RecurrentLayer)]
    return sum(2 * n_rows * layer.cell.n_products * layer.d_hidden**2 for layer in layers)


def words_of_copying(model: torch.nn.Module) -> int:
    """What a record alone costs a token: the vocabulary's own probabilities, where a model also copies."""
    can_copy = isinstance(model, PointerModel) or (
        isinstance(model, ConditionalLanguageModel) and model.gate is not None
    )
    return 2 * model.output_weight.numel() if can_copy else 0


def keys_of_source(target: ConditionalLanguageModel, n_source: int) -> int:
    """What a record alone costs a call: an MLP's keys of the source, which are kept, are computed again from there."""
    decoder = target.decoder
    if not isinstance(decoder, RecurrentDecoder) or decoder.attention is None or decoder.attention.score.kind != "mlp":
        return 0
    return 2 * n_source * decoder.attention.score.from_k.weight.numel()


def first_fed_gradient(target: ConditionalLanguageModel) -> int:
    """What backward saves where input is fed: nobody asks for the gradient of the zeros that are fed first."""
    decoder = target.decoder
    if not isinstance(decoder, RecurrentDecoder) or not decoder.feeds_input:
        return 0
    layer = decoder.recurrent.layers[0]
    return 2 * layer.cell.n_products * layer.d_hidden**2


@pytest.mark.parametrize("n_context", [1, 2, 3, 7])
@pytest.mark.parametrize(("name", "changes"), [each for each in MODELS_AND_CHANGES if each[0] not in BANDED])
def test_the_formula_is_what_reading_token_by_token_costs(
    tiny_model: Callable[..., LanguageModel], name: str, changes: dict[str, object], n_context: int
) -> None:
    """Through its cache, a token meets the positions that it sees and no others."""
    model = tiny_model(name, **changes)

    @torch.no_grad()
    def read() -> None:
        state = model.start(B, n_context)
        for _ in range(n_context):
            _, state = model(torch.zeros(B, 1, dtype=torch.long), state, Taps())

    n_tokens = B * n_context
    n_lost = n_tokens * 2 if name == "restricted" else 0  # a mean of whole numbers is rounded down, in two layers
    assert 0 <= count(read) - model.flops_per_token(n_context) * n_tokens <= n_lost


@pytest.mark.parametrize("n_context", [1, 5, 7])
@pytest.mark.parametrize("score", ["dot", "bilinear", "mlp", "scaled-dot"])
@pytest.mark.parametrize("name", BANDED)
def test_attention_to_a_memory_is_charged_for_the_memory_alone(
    tiny_model: Callable[..., LanguageModel], name: str, score: str, n_context: int
) -> None:
    """T queries are computed against M + T keys, of which each sees M: the other T are hidden."""
    model, T, D, M, A = tiny_model(name, score=score), n_context, 8, 4, 64
    with torch.no_grad():
        counted = count(lambda: model(torch.zeros(B, T, dtype=torch.long), model.start(B, T), Taps()))
    hidden = T * T * (2 * A if score == "mlp" else 2 * D) + T * T * 2 * D  # scores, and the average they weigh
    again = M * 2 * A * D if score == "mlp" else 0  # keys of the memory, computed in an earlier window
    again += words_of_copying(model) * T
    assert counted == B * (model.flops_per_token(T) * T + hidden + again)


@pytest.mark.parametrize(("name", "changes"), MODELS_AND_CHANGES)
def test_backward_costs_twice_forward(
    tiny_model: Callable[..., LanguageModel], name: str, changes: dict[str, object]
) -> None:
    model = tiny_model(name, **changes)
    logits = []
    forward = count(lambda: logits.append(model(torch.zeros(B, 7, dtype=torch.long), None, Taps())[0]))
    backward = count(lambda: logits[0].sum().backward())
    assert backward == 2 * (forward - words_of_copying(model) * B * 7) - first_state_gradient(model, B)


def write(target: ConditionalLanguageModel, source: Source, n_target: int) -> None:
    """Write tokens one by one, through the caches."""
    state = target.start(source, n_target)
    for _ in range(n_target):
        h, state = target.hidden(torch.zeros(len(source.mask), 1, dtype=torch.long), source, state, Taps())
        target.log_probs(h, target.n_words(source.words))


def pair_of(changes: dict[str, object]) -> Pair:
    return pairs(0, [5], [4], bool(changes.get("copies")))


@pytest.mark.parametrize("changes", VARIANTS)
def test_the_formula_is_what_translating_token_by_token_costs(changes: dict[str, object]) -> None:
    model, pair = tiny_seq2seq(**changes), pair_of(changes)
    with torch.no_grad():
        counted = count(lambda: write(model.target, model.encode(pair.source, pair.mask, pair.words, Taps()), 4))
    assert counted == model.flops_per_pair(5, 4) + 4 * keys_of_source(model.target, 5)


def zero_state_gradient(model: Seq2Seq | Captioner) -> int:
    """What backward saves in an encoder-decoder: a decoder that is told its first state wants the gradient of it."""
    told = 0 if model.bridge is None else first_state_gradient(model.target, 1)
    return first_state_gradient(model, 1) - told


@pytest.mark.parametrize("changes", VARIANTS)
def test_backward_through_a_translator_costs_twice_forward(changes: dict[str, object]) -> None:
    model, pair = tiny_seq2seq(**changes), pair_of(changes)
    log_probs = []
    forward = count(lambda: log_probs.append(model(*pair[:2], pair.inputs, pair.words, Taps())))
    backward = count(lambda: log_probs[0].sum().backward())
    recorded = keys_of_source(model.target, 5) + 4 * words_of_copying(model.target)
    assert backward == 2 * (forward - recorded) - zero_state_gradient(model) - first_fed_gradient(model.target)


def n_places(model: Captioner) -> int:
    rows, columns = model.encoder.grid
    return rows * columns


@pytest.mark.parametrize("variant", GRID)
def test_a_captioner_costs_its_picture_and_its_words(variant: str) -> None:
    prepared = tiny_captions()
    model = tiny_captioner(prepared, variant)
    picture = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    with torch.no_grad():
        counted = count(lambda: write(model.target, model.encode(picture, Taps()), 4))
    assert counted == model.flops_per_caption(4) + 4 * keys_of_source(model.target, n_places(model))


@pytest.mark.parametrize("variant", [variant for variant in GRID if "frozen" not in variant])
def test_backward_through_a_captioner_costs_twice_forward(variant: str) -> None:
    """Nobody asks for the gradient of pixels, which is one product fewer."""
    model, log_probs = tiny_captioner(tiny_captions(), variant), []
    picture, inputs = torch.zeros(1, 3, 32, 32, dtype=torch.uint8), torch.zeros(1, 4, dtype=torch.long)
    forward = count(lambda: log_probs.append(model(picture, inputs, Taps())))
    backward = count(lambda: log_probs[0].sum().backward())
    encoder = model.encoder
    if isinstance(encoder, PatchPictures):
        pixels = 2 * encoder.embed.weight.numel() * encoder.grid[0] * encoder.grid[1]
    else:
        assert isinstance(encoder, ConvolutionPictures)
        pixels = encoder.stem.flops((32, 32))
    saved = zero_state_gradient(model) + first_fed_gradient(model.target) + pixels
    assert backward == 2 * (forward - keys_of_source(model.target, n_places(model))) - saved
