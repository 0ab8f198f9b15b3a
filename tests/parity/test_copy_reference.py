"""The copy mechanism against loops over positions and words."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.models.next_token import as_next_token
from regard.models.pointer import UNK, PointerModel

Tiny = Callable[..., PointerModel]
V, N_VOCAB, M = 8, 5, 4
EXACT = {"rtol": 0, "atol": 1e-12}
FORMS = [
    {"mix": mix, "copies": copies, "score": score, "n_vocab": N_VOCAB}
    for (mix, copies), score in zip(
        itertools.product(("fixed", "learned", "sentinel"), ("word", "next")),
        ("dot", "bilinear", "mlp", "scaled-dot", "dot", "bilinear"),
        strict=True,
    )
]
EACH = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['mix']}-{form['copies']}")
texts = st.lists(st.integers(0, 9), min_size=1, max_size=12)  # 5 words, 3 of the tokenizer's, 2 that even it has not


@torch.no_grad()
def slow(model: PointerModel, text: list[int]) -> list[dict[int, float]]:
    """P(next word) after each position, word by word; words with no probability are left out."""
    known = torch.tensor([[x if x < N_VOCAB else UNK for x in text]])
    h = model.language_model.hidden(known)[0][0]  # (T, D)
    p = model.language_model.logits(h).softmax(dim=-1)
    found = []
    for t in range(len(text)):
        q, past = torch.tanh(model.copy.query(h[t])), range(max(0, t - M), t)
        z = [model.copy.score(q[None, None], h[None, s : s + 1]).item() for s in past]
        a = [math.exp(score) / sum(map(math.exp, z)) for score in z]
        if model.copy.mix == "fixed":
            g = 0.8
        elif model.copy.gate is not None:
            c = sum((w * h[s] for w, s in zip(a, past, strict=True)), torch.zeros_like(q))
            g = torch.sigmoid(model.copy.gate(torch.cat([h[t], c]))).item()
        else:
            sentinel = math.exp((q @ model.copy.sentinel[0]).item())
            g = sentinel / (sentinel + sum(map(math.exp, z)))
        g = g if past else 1.0
        P: dict[int, float] = defaultdict(float, {w: g * p[t, w].item() for w in range(N_VOCAB)})
        for s, weight in zip(past, a, strict=True):
            P[text[s] if model.copies == "word" else text[s + 1]] += (1 - g) * weight
        found.append(dict(P))
    return found


def slow_nats(P: dict[int, float], word: int) -> float:
    return -math.log(P[word] if word in P else P[UNK])


def check(log_probs: torch.Tensor, P: dict[int, float]) -> None:
    assert abs(sum(P.values()) - 1) < 1e-12
    assert abs(log_probs.exp().sum().item() - 1) < 1e-12
    expected = torch.full_like(log_probs, -torch.inf)
    for word, probability in P.items():
        expected[word] = math.log(probability)
    torch.testing.assert_close(log_probs, expected, **EXACT)


@EACH
@settings(max_examples=8)
@given(text=texts, seed=st.integers(0, 99))
def test_the_whole_distribution_equals_the_slow_one(tiny_model: Tiny, form: dict, text: list[int], seed: int) -> None:
    model = tiny_model("pointer", seed, vocab_size=V, **form)
    log_probs = model(torch.tensor([text]))[0][0]
    for t, P in enumerate(slow(model, text)):
        check(log_probs[t], P)


@EACH
@settings(max_examples=8)
@given(text=texts, data=st.data())
def test_windows_and_batch_mates_change_nothing(
    tiny_model: Tiny, form: dict, text: list[int], data: st.DataObject
) -> None:
    model = tiny_model("pointer", vocab_size=V, **form)
    mate = data.draw(st.lists(st.integers(0, 9), min_size=len(text), max_size=len(text)))
    ids, targets = torch.tensor([text, mate]), torch.tensor([mate, text])
    cut = data.draw(st.integers(0, len(text)))
    state, nats = None, []
    for part in (slice(0, cut), slice(cut, None)):
        if ids[:, part].numel():
            h, state = model.hidden(ids[:, part], state)
            nats.append(model.nats_each(h, targets[:, part], chunk=3))
    for row, (own, others) in enumerate(((text, mate), (mate, text))):
        expected = [slow_nats(P, word) for P, word in zip(slow(model, own), others, strict=True)]
        torch.testing.assert_close(torch.cat(nats, dim=1)[row].tolist(), expected, **EXACT)


@EACH
@settings(max_examples=8)
@given(text=texts)
def test_reading_word_by_word_equals_the_slow_one(tiny_model: Tiny, form: dict, text: list[int]) -> None:
    model = tiny_model("pointer", vocab_size=V, **form)
    expected = slow(model, [0, *text])  # every text begins after an unseen <eos>
    reader = as_next_token(model)
    log_probs, state = reader.start(torch.zeros(1, 0, dtype=torch.long))
    for word, P in zip(text, expected, strict=False):
        check(log_probs[0], P)
        log_probs, state = reader.step(torch.tensor([word]), state)
    nats = [slow_nats(P, word) for P, word in zip(expected, text, strict=False)]
    torch.testing.assert_close(reader.nats(torch.tensor(text).numpy()).tolist(), nats, **EXACT)


@EACH
def test_the_loss_and_the_whole_distribution_have_one_gradient(tiny_model: Tiny, form: dict) -> None:
    model = tiny_model("pointer", vocab_size=V, **form)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [0, 0, 7, 7, 7, 2, 2, 0]])
    targets = torch.tensor([[1, 4, 1, 4, 9, 2, 6, 2], [0, 7, 7, 2, 2, 7, 0, 0]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    model.loss(ids, targets, mask)[0].backward()
    from_loss = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    log_probs = model(ids)[0]
    spoken = targets.where((targets < N_VOCAB) | log_probs.gather(2, targets[..., None])[..., 0].isfinite(), UNK)
    (-log_probs.gather(2, spoken[..., None]).sum()).backward()
    for mine, whole in zip(from_loss, model.parameters(), strict=True):
        torch.testing.assert_close(mine, whole.grad, rtol=0, atol=1e-11)


def test_by_hand_half_vocabulary_half_copies(tiny_model: Tiny) -> None:
    """All scores equal, all words equally likely: each of 3 past words counts 1/3 of one half, each of 5 words 1/10."""
    model = tiny_model("pointer", vocab_size=5, mix="fixed", p_vocabulary=0.5, copies="word")
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    probs = model(torch.tensor([[2, 3, 2, 4]]))[0][0, 3].exp()
    expected = torch.tensor([0.1, 0.1, 0.1 + 1 / 3, 0.1 + 1 / 6, 0.1], dtype=torch.float64)
    torch.testing.assert_close(probs, expected, **EXACT)
    model.copies = "next"  # 3, 2 and 4 followed 2, 3 and 2
    probs = model(torch.tensor([[2, 3, 2, 4]]))[0][0, 3].exp()
    torch.testing.assert_close(probs, torch.tensor([0.1, 0.1, *[0.1 + 1 / 6] * 3], dtype=torch.float64), **EXACT)


def test_a_young_network_gives_about_half_to_its_vocabulary(tiny_config: Callable) -> None:
    from regard.models.table import build_model

    for mix in ("learned", "sentinel"):
        torch.manual_seed(0)
        model = build_model("pointer", tiny_config("pointer", mix=mix, d_model=64, max_memory=20), 50)
        h, _ = model.hidden(torch.randint(50, (4, 40)))
        assert 0.4 < h.log_g[:, 20:].exp().mean() < 0.6
