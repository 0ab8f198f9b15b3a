"""Every entry of the model table through one harness: adding a model to the table is what tests it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from tiny_training import tiny_text

from regard.count.ngram import NgramModel
from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.layers.record import Record
from regard.lens.trace import trace_text
from regard.models.language_model import LanguageModel
from regard.models.next_token import NextToken, as_next_token
from regard.models.table import MODELS, build_model, model_config, models_for
from regard.settings import Settings
from regard.tasks.ngram_counts import count_ngrams
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer
from regard.training.config import TrainConfig
from regard.training.weights import load_weights, named_weights, read_tensors, write_weights

TinyConfig = Callable[..., Settings]
Tiny = Callable[..., LanguageModel]
NAMES = models_for("language-model")
GRADIENT = [name for name in NAMES if not MODELS[name].is_counted]
COUNT = [name for name in NAMES if MODELS[name].is_counted]
VARIANTS = pytest.mark.parametrize(
    ("name", "changes"), [*((name, {}) for name in GRADIENT), ("attention", {"heads": "averaged"})]
)
V = 11
STREAM = np.random.default_rng(0).integers(0, V, 300)


def any_model(name: str, tiny_model: Tiny, tiny_config: TinyConfig) -> NextToken:
    if name in COUNT:
        return as_next_token(NgramModel.fit(tiny_config(name), STREAM, V, None))  # type: ignore[arg-type]
    return as_next_token(tiny_model(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_config_round_trips_through_yaml(tiny_config: TinyConfig, name: str) -> None:
    for config in (MODELS[name].config(), tiny_config(name)):
        assert model_config(name, yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_says_what_it_means(name: str) -> None:
    assert all(line.doc for line in MODELS[name].config.help())


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_of_the_next_token_sum_to_one(tiny_model: Tiny, tiny_config: TinyConfig, name: str) -> None:
    model = any_model(name, tiny_model, tiny_config)
    for prompt in ([], [0], [3, 1, 4]):
        log_probs, _ = model.start(torch.tensor([prompt], dtype=torch.long))
        assert log_probs.shape == (1, V)
        assert abs(log_probs.double().exp().sum().item() - 1) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_scoring_equals_reading_token_by_token(tiny_model: Tiny, tiny_config: TinyConfig, name: str) -> None:
    model, ids = any_model(name, tiny_model, tiny_config), STREAM[:40]
    log_probs, state = model.start(torch.zeros(1, 0, dtype=torch.long))
    read = []
    for token in ids:
        read.append(-log_probs[0, token].item())
        log_probs, state = model.step(torch.tensor([token]), state)
    np.testing.assert_allclose(model.nats(ids), read, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_it_generates(tiny_model: Tiny, tiny_config: TinyConfig, name: str) -> None:
    model = any_model(name, tiny_model, tiny_config)
    texts = generate_all(model, torch.tensor([[1, 2], [3, 4]]), SamplingConfig(max_tokens=20))
    assert [len(text) for text in texts] == [20, 20]
    assert all(0 <= token < V for text in texts for token in text)


@VARIANTS
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(
    tiny_config: TinyConfig, name: str, changes: dict[str, object]
) -> None:
    torch.manual_seed(0)
    model = build_model(name, tiny_config(name, **changes), V)
    ids = torch.from_numpy(STREAM[: 6 * 8].reshape(6, 8))
    nats, n_tokens, _ = model.loss(ids[:, :7], ids[:, 1:], torch.ones(6, 7, dtype=torch.bool))
    (nats / n_tokens).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name
        assert parameter.grad.abs().max() > 0, parameter_name


@VARIANTS
def test_eight_sequences_can_be_memorised(tiny_config: TinyConfig, name: str, changes: dict[str, object]) -> None:
    """Each starts with a token of its own, so even a bag can tell them apart; the rest is random."""
    torch.manual_seed(0)
    wide = {key: 64 for key in ("d_model", "d_hidden") if key in tiny_config(name).to_dict()}
    if "n_window" in tiny_config(name).to_dict():
        wide["n_window"] = 7
    model = build_model(name, tiny_config(name, **wide, **changes), 32)
    ids = torch.randint(8, 32, (8, 8))
    ids[:, 0] = torch.arange(8)
    mask = torch.ones(8, 7, dtype=torch.bool)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        nats, n_tokens, _ = model.loss(ids[:, :-1], ids[:, 1:], mask)
        optimizer.zero_grad()
        (nats / n_tokens).backward()
        optimizer.step()
        if nats.item() / n_tokens.item() < 0.05:
            return
    pytest.fail(f"still {nats.item() / n_tokens.item():.3f} nats a token after 300 steps")


@pytest.mark.parametrize("name", GRADIENT)
def test_saved_and_loaded_it_predicts_the_same_bits(
    tiny_model: Tiny, tiny_config: TinyConfig, name: str, tmp_path: Path
) -> None:
    model = tiny_model(name).float().eval()
    write_weights(named_weights(model), tmp_path / "model.safetensors")
    again = build_model(name, tiny_config(name), V).eval()
    load_weights(again, read_tensors(tmp_path / "model.safetensors"))
    ids = torch.from_numpy(STREAM[None, :7])
    assert torch.equal(model(ids)[0], again(ids)[0])
    np.testing.assert_array_equal(as_next_token(model).nats(STREAM), as_next_token(again).nats(STREAM))


@pytest.mark.parametrize("name", COUNT)
def test_saved_and_loaded_it_counts_the_same_bits(tiny_config: TinyConfig, name: str, tmp_path: Path) -> None:
    text, config = tiny_text(), tiny_config(name)
    count_ngrams(config, text, tmp_path, train=TrainConfig())  # type: ignore[arg-type]
    tensors = read_tensors(tmp_path / "model.safetensors")
    again = NgramModel.from_tensors({name: tensor.numpy() for name, tensor in tensors.items()})
    model = NgramModel.fit(config, text.train[:], V, None)  # type: ignore[arg-type]
    np.testing.assert_array_equal(model.nats(STREAM), again.nats(STREAM))


@pytest.mark.parametrize("name", GRADIENT)
def test_it_is_traced_layer_by_layer(tiny_model: Tiny, name: str) -> None:
    record = Record()
    tiny_model(name)(torch.from_numpy(STREAM[None, :5]), None, record)
    assert {"embedding", "hidden", "logits", "layers.0.hidden"} <= set(record)
    assert all(tap.isfinite().all() for tap in map(record.__getitem__, record))


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_traced_token_by_token(tiny_model: Tiny, tiny_config: TinyConfig, name: str) -> None:
    text = "the cat sat\nthe dog sat\n"
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [text])
    ids = words.encode(text)
    if name in COUNT:
        counted = trace_text(NgramModel.fit(tiny_config(name), ids, V, None), words, "cat sat")  # type: ignore[arg-type]
        assert counted.tokens == ("cat", "sat")
        assert counted["matched_order"].tolist() == [1, 2]  # no text begins with "cat", but "cat sat" was seen
        return
    found = trace_text(tiny_model(name), words, "cat sat")
    assert found.tokens[1:] == ("cat", "sat")
    assert all(len(found[tap]) == 3 for tap in ("embedding", "hidden", "logits"))  # and the start of the text
    np.testing.assert_allclose(found.nats[1:], as_next_token(tiny_model(name)).nats(words.encode("cat sat")))


@pytest.mark.parametrize("name", GRADIENT)
def test_bf16_autocast_stays_near_float32(tiny_model: Tiny, name: str) -> None:
    model = tiny_model(name).float()
    ids = torch.from_numpy(STREAM[: 6 * 7].reshape(6, 7))
    exact, _ = model(ids)
    with torch.autocast("cpu", torch.bfloat16):
        rough, _ = model(ids)
    assert (exact - rough.float()).abs().max() < 0.1 * exact.abs().max()
