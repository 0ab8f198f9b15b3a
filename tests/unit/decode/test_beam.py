import math
from typing import Any

import numpy as np
import pytest
import torch
from table_stepper import TableStepper
from torch import Tensor

from regard.decode.beam import Hypothesis, beam_search
from regard.decode.config import BeamConfig
from regard.decode.rules import IMPOSSIBLE, Rules
from regard.errors import RegardError
from regard.models.seq2seq_assemblies import seq2seq
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.models.seq2seq_next_token import Translating


class Told:
    """P(next | last token) from a table, the same for every source; counts its steps and its rows."""

    def __init__(self, probs: list[list[float]]) -> None:
        self.log_probs = torch.tensor(probs, dtype=torch.float64).log()
        self.n_rows: list[int] = []
        self.n_reorders = 0

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.n_rows.append(len(tokens))
        return self.log_probs[tokens], state

    def reorder(self, state: Any, rows: Tensor) -> Any:
        self.n_reorders += 1
        return state

    def found(self, config: BeamConfig, B: int = 1, *, longest: int | list[int] = 4) -> list[list[Hypothesis]]:
        return beam_search(self, self.log_probs[0].expand(B, -1), (), config, max_lengths=longest, stop=0)


# The likeliest first token, 1, leads nowhere good: greedy takes 1 1 1 1, with 0.6 * 0.5 * 0.5 * 0.5 = 0.075;
# 2 <eos> has 0.4 * 0.9 = 0.36.
GARDEN_PATH = [[0.0, 0.6, 0.4], [0.3, 0.5, 0.2], [0.9, 0.05, 0.05]]


def test_a_beam_of_two_leaves_the_garden_path() -> None:
    (greedy,) = Told(GARDEN_PATH).found(BeamConfig(beam=1))[0]
    (best,) = Told(GARDEN_PATH).found(BeamConfig(beam=2))[0]
    assert greedy.tokens == (1, 1, 1, 1)
    assert best.tokens == (2, 0)
    assert greedy.log_prob == pytest.approx(math.log(0.075), abs=1e-12)
    assert best.log_prob == pytest.approx(math.log(0.36), abs=1e-12)
    assert best.score == pytest.approx(math.log(0.36) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("penalty", "alpha", "score"),
    [("none", 1.0, 1.0), ("length", 1.0, 1 / 2), ("length", 0.5, 2**-0.5), ("wu", 0.6, (6 / 7) ** 0.6)],
)
def test_the_score_is_the_log_probability_over_the_penalty(penalty: str, alpha: float, score: float) -> None:
    (best,) = Told(GARDEN_PATH).found(BeamConfig(beam=2, length_penalty=penalty, alpha=alpha))[0]
    assert best.tokens == (2, 0)
    assert best.score == pytest.approx(math.log(0.36) * score, abs=1e-12)


def test_a_longer_text_wins_where_length_counts() -> None:
    # <eos> at once has 0.4; 1 <eos> has 0.6 * 0.5 = 0.3: less, but more for each token, √0.3 = 0.55.
    told = [[0.4, 0.6], [0.5, 0.5]]
    for penalty, best in (("none", (0,)), ("length", (1, 0))):
        config = BeamConfig(beam=4, n_best=3, length_penalty=penalty)
        hypotheses = Told(told).found(config, longest=2)[0]
        assert hypotheses[0].tokens == best
        assert {h.tokens for h in hypotheses} == {(0,), (1, 0), (1, 1)}


def test_a_text_is_not_shorter_than_it_may_be() -> None:
    told = [[0.9, 0.1], [0.9, 0.1]]
    assert Told(told).found(BeamConfig(beam=2))[0][0].tokens == (0,)
    assert Told(told).found(BeamConfig(beam=2, min_length=3))[0][0].tokens == (1, 1, 0)
    assert Told(told).found(BeamConfig(beam=2, min_length=3), longest=2)[0][0].tokens == (1, 1)


def test_the_search_ends_as_soon_as_nothing_can_be_better() -> None:
    # <eos> has 0.6 at once. An open text has 0.4 at most: with no penalty it is beaten after one token. A mean over
    # up to 50 tokens could still be better than log 0.6: log(0.4) / 50, so there the search goes on.
    told = [[0.6, 0.4], [0.5, 0.5]]
    at_once, in_the_end = Told(told), Told(told)
    at_once.found(BeamConfig(beam=2, length_penalty="none"), longest=50)
    assert at_once.n_rows == []
    (best,) = in_the_end.found(BeamConfig(beam=2), longest=50)[0]
    assert best.tokens == (0,)
    # log(0.4 * 0.5^(t - 1)) / 50 <= log 0.6 first holds for t = 37: 36 steps are made after the first token.
    assert len(in_the_end.n_rows) == 36


def test_sources_that_are_done_leave_the_batch() -> None:
    told = Told([[0.1, 0.9], [0.2, 0.8]])
    found = told.found(BeamConfig(beam=1), B=3, longest=[1, 4, 2])
    assert [len(hypotheses[0].tokens) for hypotheses in found] == [1, 4, 2]
    assert told.n_rows == [2, 1, 1]
    assert told.n_reorders == 2  # between lengths 2 and 4 nobody moved


def test_whoever_goes_ahead_takes_a_step_for_nothing_where_a_source_ends() -> None:
    told = Told([[0.1, 0.9], [0.2, 0.8]])
    first = told.log_probs[0].expand(3, -1)
    found = beam_search(told, first, (), BeamConfig(beam=1), max_lengths=[1, 4, 2], stop=0, is_ahead=True)
    assert [len(hypotheses[0].tokens) for hypotheses in found] == [1, 4, 2]
    assert told.n_rows == [3, 2, 1]  # and none after the longest


def test_every_source_has_its_own_longest_length() -> None:
    stepper = TableStepper(V=5, seed=1)
    config = BeamConfig(beam=3, n_best=3)
    found = beam_search(stepper, *stepper.start([0, 1, 2]), config, max_lengths=[2, 7, 1], stop=None)
    assert [{len(h.tokens) for h in hypotheses} for hypotheses in found] == [{2}, {7}, {1}]


def test_no_sources_give_no_hypotheses() -> None:
    assert beam_search(Told(GARDEN_PATH), torch.zeros(0, 3), (), BeamConfig(), max_lengths=[], stop=0) == []


def test_a_text_never_repeats_what_it_must_not() -> None:
    loop = [[0.0, 0.98, 0.01, 0.01], [0.01, 0.01, 0.97, 0.01], [0.01, 0.97, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]]
    (free,), (guarded,) = (Told(loop).found(BeamConfig(beam=1, no_repeat_ngram=n), longest=6)[0] for n in (None, 2))
    assert free.tokens == (1, 2, 1, 2, 1, 2)
    assert guarded.tokens == (1, 2, 1, 0)  # 1 2 was there; of 0, 1 and 3, which tie, the lowest


def test_what_nothing_is_left_for_goes_on_with_what_is_impossible() -> None:
    (only,) = Told([[0.0, 1.0], [0.0, 0.0]]).found(BeamConfig(beam=3, n_best=3), longest=3)[0]
    assert (only.tokens, only.log_prob) == ((1, 0), -math.inf)


def test_of_texts_that_are_impossible_only_the_first_goes_on() -> None:
    told = Told([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    nothing = torch.full((1, 3), -math.inf, dtype=torch.float64)
    found = beam_search(told, nothing, (), BeamConfig(beam=2, n_best=2), max_lengths=2, stop=None)
    assert [(h.tokens, h.log_prob) for h in found[0]] == [((0, 0), -math.inf)]  # and not 1 1, though 1 is sure after 1


def test_predictions_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(RegardError, match=r"The model's predictions are not numbers \(NaN\)"):
        Told([[0.5, 0.5], [math.nan, 1.0]]).found(BeamConfig(beam=2))


def test_a_constraint_that_allows_nothing_is_a_bug() -> None:
    class Nothing:
        def start(self, row: int) -> None:
            return None

        def allowed(self, state: None) -> Tensor:
            return torch.zeros(2, dtype=torch.bool)

        def step(self, state: None, token: int) -> None:
            return None

    told = Told([[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(AssertionError, match="allows no token at all"):
        beam_search(told, told.log_probs[:1], (), BeamConfig(), max_lengths=2, stop=0, constraint=Nothing())


def test_rules_leave_the_models_own_numbers_alone() -> None:
    log_probs = torch.zeros(1, 3)
    rules = Rules(stop=0, min_length=5, no_repeat_ngram=1)
    changed = rules.apply(log_probs, np.array([[2]]), [None], np.array([True]))
    assert changed.tolist() == [[IMPOSSIBLE, 0.0, IMPOSSIBLE]]
    assert log_probs.tolist() == [[0.0, 0.0, 0.0]]


def test_the_longest_text_depends_on_the_source() -> None:
    config = BeamConfig(max_length=20, max_ratio=1.5, max_extra=3)
    assert config.max_lengths([0, 3, 100]) == [3, 7, 20]
    assert config.replace(max_extra=0).max_lengths([0]) == [1]
    assert config.replace(max_ratio=None).max_lengths([1, 100]) == [20, 20]
    assert config.replace(max_length=None).max_lengths([0, 3, 400]) == [3, 7, 603]
    assert BeamConfig().max_lengths([1, 400]) == [13, 1210]  # 3 S + 10: something always ends a text


def test_the_shortest_text_may_be_anything_where_there_is_no_longest() -> None:
    assert BeamConfig(min_length=500).max_length is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("no_repeat_ngram", [None, 2])
def test_a_gpu_finds_the_same(no_repeat_ngram: int | None) -> None:
    probs = torch.rand(50, 50, generator=torch.Generator().manual_seed(0)).mul(4).round().add(0.01)  # many ties
    config = BeamConfig(beam=4, n_best=4, no_repeat_ngram=no_repeat_ngram)
    here, there = Told((probs / probs.sum(1, keepdim=True)).tolist()), Told([[1.0]])
    there.log_probs = here.log_probs.cuda()
    assert there.found(config, 3, longest=[9, 3, 12]) == here.found(config, 3, longest=[9, 3, 12])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_choice_that_is_replayed_is_the_usual_one() -> None:
    probs = torch.rand(70, 70, generator=torch.Generator().manual_seed(0)).mul(4).round().add(0.01)  # many ties
    here, there = Told((probs / probs.sum(1, keepdim=True)).tolist()), Told([[1.0]])
    here.log_probs = here.log_probs.float()
    there.log_probs = here.log_probs.cuda()
    for beam, n_best, B in ((4, 4, 3), (4, None, 9), (1, 1, 9), (4, 2, 3)):
        config, limits = BeamConfig(beam=beam, n_best=n_best), [20 + 3 * (i % 4) for i in range(B)]
        assert there.found(config, B, longest=limits) == here.found(config, B, longest=limits)


@pytest.mark.parametrize(("encoder", "decoder"), [("lstm", "lstm"), ("transformer", "transformer")])
def test_a_translator_writes_the_same_for_a_source_alone_and_in_a_batch(encoder: str, decoder: str) -> None:
    torch.manual_seed(0)
    attention = "scaled-dot" if decoder == "transformer" else "mlp"
    sizes = Seq2SeqConfig(encoder=encoder, decoder=decoder, attention=attention, d_model=8, n_heads=2, p_dropout=0.0)
    model = seq2seq(sizes, vocab_size=9).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    translating, config = Translating(model), BeamConfig(beam=4, n_best=3, length_penalty="wu", alpha=0.6)
    lengths, limits = [5, 1, 3], [7, 4, 9]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    ids = torch.randint(1, 9, (3, 5)) * mask

    def found(ids: Tensor, mask: Tensor, limits: list[int]) -> list[list[Hypothesis]]:
        begun = translating.begin(ids, mask, None, max(limits))
        return beam_search(translating, *begun, config, max_lengths=limits, stop=0)

    together = found(ids, mask, limits)
    for row, n in enumerate(lengths):
        (alone,) = found(ids[row : row + 1, :n], mask[row : row + 1, :n], limits[row : row + 1])
        assert [h.tokens for h in alone] == [h.tokens for h in together[row]]
        assert [h.score for h in alone] == pytest.approx([h.score for h in together[row]], rel=0, abs=1e-10)


def test_what_a_beam_config_refuses_and_remarks() -> None:
    with pytest.raises(RegardError, match=r"min_length 9 is above max_length 8, which allows no text\. Lower the one"):
        BeamConfig(min_length=9, max_length=8)
    with pytest.raises(RegardError, match=r"^length_penalty must be one of none, length, wu, not 'lenght'.*'length'"):
        BeamConfig(length_penalty="lenght")
    with pytest.raises(RegardError, match=r"alpha must be between 0 and 20, not -1"):
        BeamConfig(alpha=-1.0)
    assert BeamConfig(length_penalty="none", alpha=0.6).notes() == [
        "alpha changes nothing where length_penalty is none."
    ]
    assert BeamConfig(alpha=0.6).notes() == []
