"""Every language model of the table, counted or not: probabilities, scores, texts and traces by one interface."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.count.ngram import NgramModel
from regard.decode.config import SamplingConfig
from regard.decode.generate import generate_all
from regard.layers.taps import Taps
from regard.lens.trace import trace_text
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.next_token import NextToken
from regard.models.table import MODELS, models_for
from regard.settings import Settings
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TinyConfig = Callable[..., Settings]
Tiny = Callable[..., LanguageModel]
NAMES = models_for("language-model")
GRADIENT = [name for name in NAMES if not MODELS[name].is_counted]
COUNT = [name for name in NAMES if MODELS[name].is_counted]
V = 11
STREAM = np.random.default_rng(0).integers(0, V, 300)


def any_model(name: str, tiny_model: Tiny, tiny_config: TinyConfig) -> NextToken:
    if name in COUNT:
        return as_next_token(NgramModel.fit(tiny_config(name), STREAM, V, None))  # type: ignore[arg-type]
    return as_next_token(tiny_model(name))


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


@pytest.mark.parametrize("name", GRADIENT)
def test_it_is_traced_layer_by_layer(tiny_model: Tiny, name: str) -> None:
    record = Taps()
    tiny_model(name)(torch.from_numpy(STREAM[None, :5]), None, record)
    assert {"embedding", "hidden", "logits", "layers.0.hidden"} <= set(record)
    finite = [name for name in record if not name.endswith("scores")]  # -inf where it may not look
    assert all(record[name].isfinite().all() for name in finite)
    assert not any(record[name].isnan().any() for name in record)


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
