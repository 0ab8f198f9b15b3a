import math
from collections.abc import Callable

import pytest
import torch
from text_nats import text_nats

from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.mixers.config import BagConfig
from regard.models.language_model import LanguageModel
from regard.models.table import build_model

Tiny = Callable[..., LanguageModel]


def two_words() -> LanguageModel:
    """A bag over two words that predicts a word's own embedding back: logits = E (mean of E so far) + b."""
    model = build_model("bag", BagConfig(d_model=2, d_hidden=2, n_layers=1), 2).double()
    with torch.no_grad():
        model.embedding.copy_(torch.eye(2))
        model.bias.copy_(torch.tensor([0.0, 1.0]))  # type: ignore[union-attr]
        for layer in (model.mixer.layers[0], model.mixer.out):  # type: ignore[attr-defined]
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
    return model


def test_logits_are_the_head_on_what_the_mixer_made() -> None:
    logits, _ = two_words()(torch.tensor([[0, 1]]))
    torch.testing.assert_close(logits[0], torch.tensor([[1.0, 1.0], [0.5, 1.5]]).double(), rtol=0, atol=1e-15)


def test_loss_is_a_sum_of_nats_and_a_count_of_real_tokens() -> None:
    ids, targets = torch.tensor([[0, 1, 1]]), torch.tensor([[0, 1, 0]])
    nats, n_tokens, _ = text_nats(two_words(), ids, targets, torch.tensor([[True, True, False]]))
    expected = math.log(2) + math.log(1 + math.exp(-1))  # logits 1 1, then 0.5 1.5
    assert n_tokens.item() == 2
    assert abs(nats.item() - expected) < 1e-15


def test_too_long_a_text_is_refused_with_both_lengths(tiny_model: Tiny) -> None:
    model = tiny_model("transformer")
    with pytest.raises(RegardError, match=r"given 8 tokens at once and sees at most 7\. .* max_context 8"):
        model(torch.zeros(1, 8, dtype=torch.long))


def test_tied_embeddings_are_one_parameter(tiny_model: Tiny) -> None:
    tied, untied = tiny_model("lstm"), tiny_model("lstm", tie_embeddings=False)
    assert tied.output_weight is tied.embedding
    assert untied.n_parameters - tied.n_parameters == tied.embedding.numel()
    assert "head" not in tied.state_dict()


def test_an_untied_head_is_what_predicts(tiny_model: Tiny) -> None:
    model = tiny_model("attention", tie_embeddings=False)  # without a bias
    torch.nn.init.zeros_(model.head)  # type: ignore[arg-type]
    logits, _ = model(torch.tensor([[1, 2, 3]]))
    assert (logits == 0).all()
    nats, _, _ = text_nats(model, torch.tensor([[1, 2]]), torch.tensor([[2, 3]]), torch.ones(1, 2, dtype=torch.bool))
    assert abs(nats.item() - 2 * math.log(11)) < 1e-12


def test_taps_are_there_only_when_a_record_is(tiny_model: Tiny) -> None:
    model, record, ids = tiny_model("lstm"), Taps(), torch.tensor([[1, 2, 3]])
    logits, _ = model(ids, None, record)
    assert record["embedding"].shape == record["hidden"].shape == (1, 3, 8)
    assert torch.equal(record["logits"], logits)
    assert list(record.named("cell")) == ["layers.0.cell", "layers.1.cell"]
    attended = tiny_record(tiny_model("transformer")).named("attention")
    assert list(attended) == ["layers.0.attention", "layers.1.attention"]


def tiny_record(model: LanguageModel) -> Taps:
    record = Taps()
    model(torch.tensor([[1, 2, 3]]), None, record)
    return record


def test_a_recorded_tap_can_be_asked_for_its_gradient(tiny_model: Tiny) -> None:
    record = tiny_record(tiny_model("rnn"))
    record["logits"].sum().backward()
    assert record.gradient("layers.0.hidden").abs().sum() > 0


def test_dropout_is_off_in_evaluation_and_on_in_training(tiny_model: Tiny) -> None:
    ids = torch.randint(11, (2, 5))
    for name in ("bag", "window", "rnn", "gru", "lstm", "attention", "transformer"):
        model = tiny_model(name, p_dropout=0.5)
        assert not torch.equal(model(ids)[0], model(ids)[0])
        model.eval()
        assert torch.equal(model(ids)[0], model(ids)[0])


def test_parameters_are_counted_without_any_memory() -> None:
    with torch.device("meta"):
        model = build_model("bag", BagConfig(d_model=2, d_hidden=3, n_layers=2), 5)
    assert model.n_parameters == 5 * 2 + 5 + (2 * 3 + 3) + (3 * 3 + 3) + (3 * 2 + 2)
