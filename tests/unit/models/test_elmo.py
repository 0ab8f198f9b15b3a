"""ELMo: two language models, one each way, and its vectors of words."""

import numpy as np
import pytest
import torch
from interleaving import Interrupted
from torch import Tensor

from regard.errors import RegardError
from regard.models import elmo
from regard.models.elmo import AHEAD, BACK, BothWays, Elmo, OneDirection, tell_words
from regard.models.elmo_config import ElmoConfig
from regard.tasks.bidirectional_objective import read_both
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import word_tokenizer

WORDS = ["<eos>", "<unk>", "the", "cat", "sat", "dog", "mat"]


def small(**changes: object) -> tuple[Elmo, ExtendedVocabulary]:
    settings = {"d_model": 4, "d_hidden": 6, "d_character": 3, "filters": [2, 3], "max_characters": 8, "p_dropout": 0.0}
    torch.manual_seed(0)
    model = Elmo(ElmoConfig.from_dict({**settings, **changes}), len(WORDS)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    words = ExtendedVocabulary(word_tokenizer(WORDS))
    model.learn_words(words)
    return model, words


def plain(model: Elmo, x: Tensor, layers: object) -> list[Tensor]:
    """One direction over the vectors (T, D) of words, as they are read."""
    found = []
    for index, layer in enumerate(layers):  # type: ignore[arg-type]
        y = layer(x[None], layer.start(1, x))[0][0]
        x = y + x if index else y
        found.append(x)
    return found


def whole(ids: Tensor) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool)


def test_a_layer_holds_both_directions_side_by_side() -> None:
    model, words = small()
    ids = torch.from_numpy(words.encode("the cat sat"))[None]
    cnn = model.input
    spelled = model.spellings[torch.tensor([0, *(ids[0] + 1).tolist(), 1])].long()  # <S> the cat sat </S>
    x = cnn(spelled)
    ahead = plain(model, x[:-1], model.ahead)
    back = [each.flip(0) for each in plain(model, x[1:].flip(0), model.back)]
    states = model.encode(ids, whole(ids))
    assert len(states) == model.n_layers + 1
    torch.testing.assert_close(states[0][0], torch.cat([x[1:-1], x[1:-1]], dim=-1), rtol=0, atol=1e-14)
    for state, a, b in zip(states[1:], ahead, back, strict=True):
        torch.testing.assert_close(state[0], torch.cat([a[1:], b[:-1]], dim=-1), rtol=0, atol=1e-13)


def test_threads_that_meet_new_words_at_once_read_what_one_thread_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    (shared, words), (alone, _) = small(), small()
    tokens = [torch.from_numpy(words.encode(text))[None] for text in ("the wug sat", "a blick")]
    spell = Interrupted(elmo.spell_words, lambda: shared.encode(tokens[1], whole(tokens[1])))
    monkeypatch.setattr(elmo, "spell_words", spell)
    found = [shared.encode(tokens[0], whole(tokens[0])), spell.result()]
    tokens.append(torch.from_numpy(words.encode("one more"))[None])
    found.append(shared.encode(tokens[2], whole(tokens[2])))
    alone.learn_words(words)
    for ids, states in zip(tokens, found, strict=True):
        for one, other in zip(states, alone.encode(ids, whole(ids)), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_threads_that_ask_first_are_told_of_one_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    model, words = small()
    model.words = None
    make = Interrupted(elmo.ExtendedVocabulary, lambda: tell_words(model, words.tokenizer))
    monkeypatch.setattr(elmo, "ExtendedVocabulary", make)
    assert tell_words(model, words.tokenizer) is make.result()


@pytest.mark.parametrize("input", ["characters", "tokens"])
def test_padding_and_batch_mates_change_nothing(input: str) -> None:
    model, words = small(input=input)
    texts = [torch.from_numpy(words.encode(text)) for text in ("the cat", "the dog sat the mat")]
    tokens = torch.full((2, 5), -1)
    for row, ids in enumerate(texts):
        tokens[row, : len(ids)] = ids
    for row, ids in enumerate(texts):
        alone = model.encode(ids[None], whole(ids[None]))
        for padded, state in zip(model.encode(tokens, tokens >= 0), alone, strict=True):
            torch.testing.assert_close(padded[row, : len(ids)], state[0], rtol=0, atol=1e-13)


def test_a_text_that_ends_its_line_is_read_back_from_that_end() -> None:
    model, words = small()
    plain_ids, ended = (torch.from_numpy(words.encode(text))[None] for text in ("the cat sat", "the cat sat\n"))
    for state, with_end in zip(
        model.encode(plain_ids, whole(plain_ids)), model.encode(ended, whole(ended)), strict=True
    ):
        torch.testing.assert_close(with_end[:, :3], state, rtol=0, atol=1e-14)


def test_a_tokenizer_is_extended_for_elmo_alone() -> None:
    model, words = small()
    assert tell_words(model, words.tokenizer) is words
    other = word_tokenizer(WORDS)
    assert tell_words(torch.nn.Identity(), other) is other
    assert tell_words(model, other) is model.words is not words


def test_unknown_words_are_told_apart_by_their_characters() -> None:
    model, words = small()
    wug, blick = (model.encode(ids, whole(ids))[0] for ids in map(torch.atleast_2d, map(_ids(words), ("wug", "blick"))))
    assert (wug - blick).abs().max() > 1e-3
    again = torch.atleast_2d(_ids(words)("wug"))
    torch.testing.assert_close(model.encode(again, whole(again))[0], wug, rtol=0, atol=0)


def _ids(words: ExtendedVocabulary):  # type: ignore[no-untyped-def]
    return lambda text: torch.from_numpy(words.encode(text))


def test_read_by_tokens_unknown_words_are_one() -> None:
    model, words = small(input="tokens")
    ids = torch.from_numpy(words.encode("wug blick"))[None]
    first, second = model.encode(ids, whole(ids))[0][0]
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_each_direction_is_a_language_model_whose_probabilities_sum_to_one() -> None:
    model, words = small()
    ids = torch.from_numpy(words.encode("the cat sat"))[None]
    for direction in (AHEAD, BACK):
        one = OneDirection(model, direction)
        h, _ = one.hidden(ids)
        each = torch.stack([one.nats_each(h, torch.full_like(ids, word)) for word in range(model.n_vocab)])
        torch.testing.assert_close((-each).exp().sum(dim=0), torch.ones(1, 3, dtype=torch.float64), rtol=0, atol=1e-12)


def test_words_beyond_those_predicted_count_as_unknown() -> None:
    model, words = small(n_vocab=4)
    ids = words.encode("the sat mat")
    unknown = np.where(ids < 4, ids, 1)
    scorer = BothWays(model)
    assert scorer.elmo.n_vocab == 4
    one = OneDirection(model, AHEAD)
    h, _ = one.hidden(torch.from_numpy(ids)[None])
    expected = one.nats_each(h, torch.from_numpy(unknown)[None])
    torch.testing.assert_close(one.nats_each(h, torch.from_numpy(ids)[None]), expected, rtol=0, atol=0)


@pytest.mark.parametrize("has_end", [True, False])
def test_read_back_a_word_is_predicted_from_those_after_it(has_end: bool) -> None:
    model, words = small()
    ids = words.encode("the cat sat" + "\n" * has_end)
    nats = BothWays(model).nats_one_way(ids, BACK)
    one = OneDirection(model, BACK)
    the, cat, sat = ids[:3].tolist()
    for place, (target, after) in enumerate([(the, [sat, cat]), (cat, [sat]), (sat, [])]):
        h, _ = one.hidden(torch.tensor([[0, *after]]))
        expected = one.nats_each(h[:, -1:], torch.tensor([[target]])).item()
        assert nats[place] == pytest.approx(expected, rel=0, abs=1e-12)
    assert len(nats) == 3 + has_end


def test_lanes_change_the_cost_only_where_they_begin() -> None:
    model, _ = small()
    ids = np.random.default_rng(0).integers(0, len(WORDS), 24)
    exact, lanes = BothWays(model).nats_one_way(ids, AHEAD), BothWays(model, 2).nats_one_way(ids, AHEAD)
    np.testing.assert_allclose(lanes[:12], exact[:12], rtol=0, atol=1e-12)
    assert np.abs(lanes[12:] - exact[12:]).max() > 1e-6


def test_a_training_that_forgets_reads_a_line_as_if_it_were_a_text_of_its_own() -> None:
    model, _ = small(p_reset=1.0)
    ids = torch.tensor([[3, 4, 0, 5, 6]])  # a line ends, and another begins at <eos>
    model.train()
    h, _ = read_both(model, ids, ids, None)
    alone, _ = read_both(model, ids[:, 2:], ids[:, 2:], None)
    torch.testing.assert_close(h[:, :, 2:], alone, rtol=0, atol=1e-12)
    model.eval()
    remembered, _ = read_both(model, ids, ids, None)
    torch.testing.assert_close(h[:, :, :2], remembered[:, :, :2], rtol=0, atol=1e-12)
    assert (h - remembered)[:, :, 2:].abs().min() > 1e-9


def test_the_share_of_lines_that_are_read_without_memory_is_the_setting() -> None:
    model, _ = small(p_reset=0.3)
    ids = torch.zeros(2, 100, 100, dtype=torch.int64)
    ids[:, :, ::2] = 5
    keeps = model.train().draw_keeps(ids)
    assert keeps is not None
    assert keeps[:, :, ::2].min() == 1
    assert abs(1 - keeps[:, :, 1::2].mean() - 0.3) < 0.02  # four standard deviations of 10,000 draws


def test_without_a_softmax_nothing_is_predicted() -> None:
    model, words = small(has_softmax=False)
    ids = torch.from_numpy(words.encode("the cat"))[None]
    assert model.encode(ids, whole(ids))[-1].shape == (1, 2, 8)
    with pytest.raises(RegardError, match="came without a softmax"):
        BothWays(model).nats(words.encode("the cat"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_hidden": 4}, "d_hidden must be above d_model, to which the cells are projected, not 4 and 4"),
        ({"filters": [0, 0]}, "filters must have a number above 0"),
    ],
)
def test_shapes_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        small(**changes)
