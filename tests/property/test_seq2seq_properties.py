"""What holds for every encoder under every decoder, whatever the weights and whatever the pairs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_seq2seq import VARIANTS, V, pairs, tiny_seq2seq

from regard.layers.copying import UNK
from regard.layers.taps import Taps
from regard.mixers.mixer import select_positions
from regard.models.seq2seq import roll_out, write_own_inputs
from regard.models.seq2seq_config import DECODERS, ENCODERS
from regard.models.seq2seq_next_token import Translating

EXACT = {"rtol": 0, "atol": 1e-10}
EACH = pytest.mark.parametrize("changes", VARIANTS, ids=lambda changes: "-".join(map(str, changes.values())) or "base")
seeds = st.integers(0, 2**16)
lengths = st.lists(st.integers(1, 5), min_size=1, max_size=3)
few = settings(max_examples=2)


@EACH
@few
@given(seed=seeds, lengths=lengths, n_padded=st.integers(1, 3))
def test_padding_and_batch_mates_change_nothing(
    changes: dict[str, object], seed: int, lengths: list[int], n_padded: int
) -> None:
    model, copies = tiny_seq2seq(seed, **changes), bool(changes.get("copies"))
    batch = pairs(seed, lengths, lengths[::-1], copies, n_padded)
    W = model.target.n_words(batch.words)
    together = model(batch.source, batch.mask, batch.inputs, batch.words)
    nats, count = 0.0, 0
    for row, (S, T) in enumerate(zip(lengths, lengths[::-1], strict=True)):
        one = slice(row, row + 1)
        words = None if batch.words is None else batch.words[one, :S]
        source = model.encode(batch.source[one, :S], batch.mask[one, :S], words)
        h, _ = model.target.hidden(batch.inputs[one, :T], source)
        alone = model.target(batch.inputs[one, :T], source)
        n = min(W, alone.shape[-1])
        torch.testing.assert_close(together[one, :T, :n], alone[..., :n], **EXACT)
        own = batch.targets[one, :T], batch.target_mask[one, :T]
        nats, count = nats + model.target.goal_of(h, *own, 0.1)[0].item(), count + int(own[1].sum())
    h, _ = model.target.hidden(batch.inputs, model.encode(batch.source, batch.mask, batch.words))
    total, _ = model.target.goal_of(h, batch.targets, batch.target_mask, 0.1)
    n_real = batch.target_mask.sum()
    assert total.item() == pytest.approx(nats, abs=1e-10)
    assert int(n_real) == count == sum(lengths)


@EACH
@few
@given(seed=seeds, lengths=lengths, T=st.integers(2, 6), data=st.data())
def test_the_past_ignores_the_future_and_hears_the_source(
    changes: dict[str, object], seed: int, lengths: list[int], T: int, data: st.DataObject
) -> None:
    model = tiny_seq2seq(seed, **changes)
    batch = pairs(seed, lengths, [T] * len(lengths), bool(changes.get("copies")))
    t = data.draw(st.integers(1, T - 1))
    later = batch.inputs.clone()
    later[:, t:] = (later.where(later < V, UNK)[:, t:] + 1) % V  # another word to who reads <unk> beyond V
    before, after = (model(batch.source, batch.mask, ids, batch.words) for ids in (batch.inputs, later))
    torch.testing.assert_close(before[:, :t], after[:, :t], **EXACT)
    assert not torch.allclose(before[:, t], after[:, t], **EXACT)
    other = batch.source.clone()
    other[:, 0] = (other[:, 0] + 1) % V
    assert not torch.allclose(before, model(other, batch.mask, batch.inputs, batch.words), **EXACT)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("copies", [False, True])
def test_cached_steps_equal_the_whole_for_every_encoder_and_decoder(encoder: str, decoder: str, copies: bool) -> None:
    check_steps({"encoder": encoder, "decoder": decoder, "copies": copies}, seed=1, lengths=[4, 1, 3])


@EACH
@few
@given(seed=seeds, lengths=lengths)
def test_cached_steps_equal_the_whole(changes: dict[str, object], seed: int, lengths: list[int]) -> None:
    check_steps(changes, seed, lengths)


def check_steps(changes: dict[str, object], seed: int, lengths: list[int]) -> None:
    model, copies = tiny_seq2seq(seed, **changes), bool(changes.get("copies"))
    B = len(lengths)
    batch = pairs(seed, lengths, [5] * B, copies)
    expected = model(batch.source, batch.mask, batch.inputs, batch.words)
    writer = Translating(model)
    rows = torch.arange(B).flip(0)
    log_probs, state = writer.begin(batch.source, batch.mask, batch.words, 5)
    for t in range(5):
        torch.testing.assert_close(log_probs, expected[:, t], **EXACT)
        if t < 4:  # turned round and back again
            state = writer.reorder(writer.reorder(state, rows), rows)
            log_probs, state = writer.step(batch.inputs[:, t + 1], state)


@EACH
@few
@given(seed=seeds, rows=st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_a_reordered_state_goes_on_as_those_targets(changes: dict[str, object], seed: int, rows: list[int]) -> None:
    model = tiny_seq2seq(seed, **changes)
    batch = pairs(seed, [2, 4, 3], [3, 3, 3], bool(changes.get("copies")))
    expected = model(batch.source, batch.mask, batch.inputs, batch.words)
    writer, index = Translating(model), torch.tensor(rows)
    _, state = writer.begin(batch.source, batch.mask, batch.words, 3)
    _, state = writer.step(batch.inputs[:, 1], state)
    log_probs, _ = writer.step(batch.inputs[index, 2], writer.reorder(state, index))
    torch.testing.assert_close(log_probs, expected[index, 2], **EXACT)


@EACH
@few
@given(seed=seeds, lengths=lengths)
def test_the_fast_path_equals_the_plain_one_in_value_and_gradient(
    changes: dict[str, object], seed: int, lengths: list[int]
) -> None:
    model = tiny_seq2seq(seed, **changes)
    batch = pairs(seed, lengths, lengths[::-1], bool(changes.get("copies")))
    found = []
    for record in (None, Taps()):
        model.zero_grad()
        source = model.encode(batch.source, batch.mask, batch.words, record)
        h, _ = model.target.hidden(batch.inputs, source, None, record)
        _, nats = model.target.goal_of(h, batch.targets, batch.target_mask)
        nats.backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found.append([nats.detach(), *gradients])
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, **EXACT)


@EACH
@few
@given(seed=seeds, lengths=lengths)
def test_probabilities_sum_to_one_and_nats_are_theirs(
    changes: dict[str, object], seed: int, lengths: list[int]
) -> None:
    model = tiny_seq2seq(seed, **changes)
    batch = pairs(seed, lengths, [3] * len(lengths), bool(changes.get("copies")))
    source = model.encode(batch.source, batch.mask, batch.words)
    h, _ = model.target.hidden(batch.inputs, source)
    log_probs = model.target(batch.inputs, source)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(len(lengths), 3, dtype=torch.float64), **EXACT)
    nats = model.target.nats_each(h, batch.targets)
    for b in range(len(lengths)):
        known = set(range(V)) | (set() if batch.words is None else set(batch.words[b].tolist()))
        for t in range(3):
            y = int(batch.targets[b, t])
            expected = -log_probs[b, t, y if y in known else UNK]
            torch.testing.assert_close(nats[b, t], expected, **EXACT)
    _, total = model.target.goal_of(h, batch.targets, batch.target_mask)
    torch.testing.assert_close(total, nats[batch.target_mask].sum(), **EXACT)


@EACH
@few
@given(seed=seeds, lengths=lengths)
def test_no_own_words_are_teacher_forcing_and_all_own_are_greedy_decoding(
    changes: dict[str, object], seed: int, lengths: list[int]
) -> None:
    model, T = tiny_seq2seq(seed, **changes), 5
    batch = pairs(seed, lengths, [T] * len(lengths), bool(changes.get("copies")))
    source = model.encode(batch.source, batch.mask, batch.words)
    nobody = torch.zeros_like(batch.inputs, dtype=torch.bool)
    forced, _ = model.target.hidden(batch.inputs, source)
    for given_part, expected in zip(roll_out(model.target, source, batch.inputs, nobody), forced, strict=True):
        torch.testing.assert_close(given_part, expected, **EXACT)
    own = write_own_inputs(model.target, source, batch.inputs, ~nobody)
    writer = Translating(model)
    log_probs, state = writer.begin(batch.source, batch.mask, batch.words, T)
    greedy = [torch.zeros(len(lengths), dtype=torch.int64)]
    for _ in range(T - 1):
        greedy.append(log_probs.argmax(dim=-1))
        log_probs, state = writer.step(greedy[-1], state)
    assert own.tolist() == torch.stack(greedy, dim=1).tolist()


@EACH
@few
@given(seed=seeds, lengths=lengths)
def test_a_mixture_of_own_and_given_words_equals_steps_with_gradient(
    changes: dict[str, object], seed: int, lengths: list[int]
) -> None:
    model, T = tiny_seq2seq(seed, **changes), 4
    batch = pairs(seed, lengths, [T] * len(lengths), bool(changes.get("copies")))
    is_own = torch.rand(batch.inputs.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    everything = torch.ones_like(is_own)
    found = []
    for by_steps in (False, True):
        model.zero_grad()
        source = model.encode(batch.source, batch.mask, batch.words)
        if not by_steps:
            h = roll_out(model.target, source, batch.inputs, is_own)
            _, nats = model.target.goal_of(h, batch.targets, everything)
        else:
            state, nats, token = (
                model.target.start(source, T),
                torch.zeros((), dtype=torch.float64),
                batch.inputs[:, :1],
            )
            for t in range(T):
                h, state = model.target.hidden(token, source, state)
                nats = nats + model.target.goal_of(h, batch.targets[:, t : t + 1], everything[:, t : t + 1])[1]
                if t + 1 < T:
                    own = model.target.log_probs(select_positions(h, slice(-1, None))).argmax(dim=-1, keepdim=True)
                    token = own.where(is_own[:, t + 1, None], batch.inputs[:, t + 1, None])
        nats.backward()
        found.append([nats.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for at_once, step_by_step in zip(*found, strict=True):
        torch.testing.assert_close(at_once, step_by_step, **EXACT)
