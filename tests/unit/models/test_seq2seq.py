"""Encoder-decoder models: what they compute, what they learn, what they refuse."""

import math

import pytest
import torch
from tiny_seq2seq import TINY, V_SOURCE, VARIANTS, V, pairs, tiny_config, tiny_seq2seq

from regard.errors import RegardError
from regard.layers.copying import UNK, Pointed
from regard.layers.label_smoothing import above_mean_logit
from regard.layers.taps import Taps
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_assemblies import conditional_language_model, seq2seq, vaswani
from regard.models.seq2seq_config import Seq2SeqConfig, VaswaniConfig
from regard.models.seq2seq_next_token import Translating
from regard.models.source import Source

EXACT = {"rtol": 0, "atol": 1e-10}
EACH = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())) or "base")


@EACH
def test_every_parameter_gets_a_gradient(changes: dict[str, object]) -> None:
    config = tiny_config(**changes)
    torch.manual_seed(0)
    model = seq2seq(config, V, V_SOURCE)  # as it starts, and not with weights made large
    batch = pairs(0, [5, 2, 4], [3, 6, 4], config.copies)
    h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, batch.words))
    model.target.goal_of(h, batch.targets, batch.target_mask, 0.1)[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


MEMORY = [
    {},
    {"norm": "post", "positions": "learned"},
    {"encoder": "lstm", "decoder": "lstm", "attention": "none"},
    {"encoder": "gru", "decoder": "gru", "attention": "mlp", "input_feeding": True, "copies": True},
]


@pytest.mark.parametrize("changes", MEMORY, ids=lambda changes: "-".join(map(str, changes.values())) or "base")
def test_eight_pairs_can_be_memorised(changes: dict[str, object]) -> None:
    torch.manual_seed(0)
    config = tiny_config(**changes | {"d_model": 32, "d_ff": 64})
    model = seq2seq(config, V, V_SOURCE)
    batch = pairs(3, [4, 5, 3, 4, 5, 2, 4, 3], [4] * 8, config.copies)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, batch.words))
        nats, count = model.target.goal_of(h, batch.targets, batch.target_mask)[1], batch.target_mask.sum()
        optimizer.zero_grad()
        (nats / count).backward()
        optimizer.step()
    writer = Translating(model)
    log_probs, state = writer.begin(batch.source, batch.mask, batch.words, 4)
    written = [log_probs.argmax(dim=-1)]
    for _ in range(3):
        log_probs, state = writer.step(written[-1], state)
        written.append(log_probs.argmax(dim=-1))
    assert known(torch.stack(written, dim=1), batch.words) == known(batch.targets, batch.words)


def known(targets: torch.Tensor, words: torch.Tensor | None) -> list[list[int]]:
    """Targets as the model can write them: <unk> for a word in neither vocabulary nor source."""
    return [
        [y if y < V or (words is not None and y in words[b].tolist()) else UNK for y in row]
        for b, row in enumerate(targets.tolist())
    ]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("copies", [False, True])
def test_smoothed_nats_are_those_of_a_smoothed_target(smoothing: float, copies: bool) -> None:
    model = tiny_seq2seq(copies=copies, tying="none", decoder="gru", encoder="gru")
    batch = pairs(1, [3, 4], [4, 2], copies)
    h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, batch.words))
    goal, nats = model.target.goal_of(h, batch.targets, batch.target_mask, smoothing)
    rows = h.h if isinstance(h, Pointed) else h
    log_p = torch.nn.functional.linear(rows, model.target.output_weight, model.target.bias).log_softmax(dim=-1)
    expected = (1 - smoothing) * model.target.nats_each(h, batch.targets) - smoothing * log_p.mean(dim=-1)
    torch.testing.assert_close(goal, expected[batch.target_mask].sum(), **EXACT)
    plain, count = model.target.goal_of(h, batch.targets, batch.target_mask)[1], batch.target_mask.sum()
    assert int(count) == 6
    for each in (nats, plain):
        torch.testing.assert_close(each, model.target.nats_each(h, batch.targets)[batch.target_mask].sum(), **EXACT)


def test_a_target_above_the_mean_logit_by_hand() -> None:
    # Logits are 2·(1, 4) + (0, 3) = (2, 11), their mean 6.5: 2 lies 4.5 below it and 11 as much above.
    W, b = torch.tensor([[1.0], [4.0]]), torch.tensor([0.0, 3.0])
    assert above_mean_logit(torch.tensor([[2.0], [2.0]]), W, b, torch.tensor([0, 1])).tolist() == [-4.5, 4.5]


def test_copying_shares_probability_between_vocabulary_and_source() -> None:
    """P(w) = g p(w) + (1-g) Σ a_i, word by word, the slow way; word 12 is in no vocabulary."""
    model = tiny_seq2seq(encoder="gru", decoder="gru", attention="dot", copies=True)
    source, mask = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[True, True, True, False]])
    words = torch.tensor([[5, 12, 5, -1]])
    record = Taps()
    log_probs = model(source, mask, torch.tensor([[0, 12]]), words, record)
    assert log_probs.shape == (1, 2, 13)
    a = record["layers.1.cross_attention"][0, 0]
    g = record["gates.vocabulary"][0, :, 0]
    target = model.target
    p = torch.nn.functional.linear(record["hidden"], target.output_weight, target.bias).softmax(dim=-1)[0]
    for t in range(2):
        for w in range(13):
            copied = sum(float(a[t, i].detach()) for i in range(3) if int(words[0, i]) == w)
            made = float(p[t, w].detach()) if w < V else 0.0
            expected = float(g[t].detach()) * made + (1 - float(g[t].detach())) * copied
            assert log_probs[0, t, w].exp().item() == pytest.approx(expected, abs=1e-12)


def test_what_looks_at_no_word_such_as_a_tag_is_made_from_the_vocabulary() -> None:
    """g p(w) and a share a_0 of the rest, which nothing can be copied from: probabilities still sum to one."""
    model = tiny_seq2seq(encoder="gru", decoder="gru", attention="dot", copies=True)
    source, mask, inputs = torch.tensor([[1, 2, 3]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([[0, 4]])
    all_words, tagged = Taps(), Taps()
    model(source, mask, inputs, torch.tensor([[6, 5, 12]]), all_words)
    log_probs = model(source, mask, inputs, torch.tensor([[-1, 5, 12]]), tagged)
    torch.testing.assert_close(log_probs.exp().sum(dim=-1), torch.ones(1, 2, dtype=torch.float64), **EXACT)
    g, a = all_words["gates.vocabulary"][0, :, 0], all_words["layers.1.cross_attention"][0, 0]
    torch.testing.assert_close(tagged["gates.vocabulary"][0, :, 0], g + (1 - g) * a[:, 0], **EXACT)
    torch.testing.assert_close(log_probs[0, :, 12].exp(), (1 - g) * a[:, 2], **EXACT)  # copied as before


def test_a_word_outside_the_vocabulary_is_read_as_unknown() -> None:
    model = tiny_seq2seq(copies=True)
    batch = pairs(0, [3], [2], copies=True)
    beyond, unknown = (model(batch.source, batch.mask, torch.tensor([[0, y]]), batch.words) for y in (V + 1, UNK))
    torch.testing.assert_close(beyond, unknown, **EXACT)


def test_a_source_without_words_cannot_be_copied_from() -> None:
    model, batch = tiny_seq2seq(copies=True), pairs(0, [3], [2])
    with pytest.raises(RegardError, match=r"was given a source without them\. Encode the source with its words"):
        model(batch.source, batch.mask, batch.inputs)


def test_an_empty_source_beside_others_keeps_everything_finite() -> None:
    for changes in VARIANTS:
        model, batch = tiny_seq2seq(**changes), pairs(0, [3, 2], [2, 2], bool(changes.get("copies")))
        mask = batch.mask.clone()
        mask[1] = False
        words = None if batch.words is None else batch.words.where(mask, -1)
        log_probs = model(batch.source, mask, batch.inputs, words)
        torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(2, 2, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("decoder", ["transformer", "lstm"])
def test_a_bag_cannot_tell_the_order_of_the_source_and_others_can(decoder: str) -> None:
    ids, mask = torch.tensor([[1, 2, 3]]), torch.ones(1, 3, dtype=torch.bool)
    inputs = torch.tensor([[0, 4]])
    for encoder in ("bag", "rnn", "gru", "lstm", "transformer", "convolution"):
        model = tiny_seq2seq(encoder=encoder, decoder=decoder)
        is_same = torch.allclose(model(ids, mask, inputs), model(ids.flip(1), mask, inputs), rtol=0, atol=1e-10)
        assert is_same == (encoder == "bag")


def test_taps_have_public_names_and_the_shapes_of_their_layers() -> None:
    batch, record = pairs(0, [4, 2], [3, 3]), Taps()
    tiny_seq2seq()(batch.source, batch.mask, batch.inputs, None, record)
    shapes = {name: tuple(record[name].shape) for name in record}
    for layer in (0, 1):
        assert shapes[f"encoder.layers.{layer}.attention"] == (2, 2, 4, 4)
        assert shapes[f"layers.{layer}.attention"] == (2, 2, 3, 3)
        assert shapes[f"layers.{layer}.cross_attention"] == (2, 2, 3, 4)
        assert (record[f"layers.{layer}.cross_attention"][1, :, :, 2:] == 0).all()
    record = Taps()
    tiny_seq2seq(encoder="lstm", decoder="lstm", input_feeding=True)(
        batch.source, batch.mask, batch.inputs, None, record
    )
    assert record["layers.1.cross_attention"].shape == (2, 1, 3, 4)
    assert record["layers.0.gates.forget"].shape == (2, 3, 8)
    assert record["encoder.layers.0.back.cell"].shape == (2, 4, 4)


def test_a_decoder_writes_about_states_that_no_encoder_of_ours_made() -> None:
    """What captions need: a source is any Source, and a start that is not given is zero."""
    torch.manual_seed(0)
    states, mask = torch.randn(2, 6, 8), torch.ones(2, 6, dtype=torch.bool)
    for decoder in ("lstm", "transformer"):
        model = conditional_language_model(tiny_config(decoder=decoder), V)
        writer = Translating(model)
        log_probs, state = writer.begin_from(Source(states, mask), 3)
        again, _ = writer.step(torch.tensor([3, 4]), state)
        whole = model(torch.tensor([[0, 3], [0, 4]]), Source(states, mask))
        torch.testing.assert_close(torch.stack([log_probs, again], dim=1), whole, rtol=0, atol=1e-5)


def test_the_paper_has_65_and_213_million_parameters() -> None:
    # Vaswani et al. 2017, table 3, with 37,000 tokens: 65M and 213M.
    with torch.device("meta"):
        base, big = (vaswani(VaswaniConfig(size=size), 37_000) for size in ("base", "big"))
    assert round(base.n_parameters / 1e6) in (63, 64, 65)
    assert round(big.n_parameters / 1e6) in (210, 211, 212, 213, 214)
    assert isinstance(base, Seq2Seq)


def test_post_norm_starts_near_even_odds() -> None:
    """A start that trains: about log V nats a token, and gradients of one size through all layers."""
    torch.manual_seed(0)
    model = seq2seq(Seq2SeqConfig.from_dict(TINY | {"d_model": 32, "norm": "post", "n_layers": 6}), 100, 100)
    batch = pairs(0, [5] * 4)
    h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask))
    nats, count = model.target.goal_of(h, batch.targets, batch.target_mask)[1], batch.target_mask.sum()
    assert nats.item() / int(count) == pytest.approx(math.log(100), rel=0.25)
    nats.backward()
    norms = [layer.attention.qkv.weight.grad.norm().item() for layer in model.encoder.layers]
    assert max(norms) / min(norms) < 20


@EACH
def test_low_precision_changes_the_loss_by_little(changes: dict[str, object]) -> None:
    model = tiny_seq2seq(**changes).float()
    batch = pairs(0, [5, 2, 4], [3, 6, 4], bool(changes.get("copies")))
    found = []
    for is_low in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_low):
            h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, batch.words))
            nats, _ = model.target.goal_of(h, batch.targets, batch.target_mask, 0.1)
        nats.backward()
        found.append(nats.item())
    assert found[1] == pytest.approx(found[0], rel=0.05)
    assert found[1] != found[0]
