import pytest
import torch
from table_stepper import TableStepper, Texts
from torch import Tensor

from regard.decode.config import SamplingConfig
from regard.decode.generate import Decoded, generate_all, sample_texts
from regard.errors import RegardError
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel

GREEDY = SamplingConfig(temperature=0.0)


class Watched:
    """Token 1 always; remembers with how many rows it was asked."""

    def __init__(self) -> None:
        self.n_rows: list[int] = []

    def step(self, tokens: Tensor, state: tuple[int, ...]) -> tuple[Tensor, tuple[int, ...]]:
        assert len(state) == len(tokens)
        self.n_rows.append(len(tokens))
        return torch.tensor([[-2.0, -0.2]]).expand(len(tokens), -1), state

    def reorder(self, state: tuple[int, ...], rows: Tensor) -> tuple[int, ...]:
        return tuple(state[row] for row in rows.tolist())


def test_rows_that_ended_are_dropped_once_they_are_a_quarter() -> None:
    watched, limits = Watched(), [1, 2, 5, 5, 5, 5, 5, 5]
    texts = sample_texts(watched, torch.zeros(8, 2), tuple(range(8)), GREEDY, max_lengths=limits, stop=0)
    assert texts[0] == Decoded([0], 0.0)
    assert [len(text.tokens) for text in texts] == [1] * 8  # of equals, the lowest id: <eos>
    first = torch.tensor([[-2.0, -0.2]]).expand(8, -1)
    texts = sample_texts(watched, first, tuple(range(8)), GREEDY, max_lengths=limits, stop=0)
    assert [text.tokens for text in texts] == [[1] * n for n in limits]
    assert [text.log_prob for text in texts] == pytest.approx([-0.2 * n for n in limits], rel=0, abs=1e-6)
    assert watched.n_rows == [8, 6, 6, 6]


def test_one_length_for_all_and_guards() -> None:
    stepper = TableStepper(V=4, seed=3)
    texts = sample_texts(stepper, *stepper.start([0, 1]), GREEDY, max_lengths=4, stop=None, no_repeat_ngram=1)
    assert [sorted(text.tokens) for text in texts] == [[0, 1, 2, 3]] * 2
    texts = sample_texts(stepper, *stepper.start(list(range(9))), GREEDY, max_lengths=9, stop=0, min_length=4)
    assert min(len(text.tokens) for text in texts) >= 4


@pytest.mark.parametrize("config", [GREEDY, SamplingConfig(seed=5, top_p=0.9)])
def test_a_language_model_says_what_generate_lets_it_say(tiny_model, config: SamplingConfig) -> None:  # type: ignore[no-untyped-def]
    language_model: LanguageModel = tiny_model("lstm")
    model, prompts = as_next_token(language_model), torch.tensor([[4, 5], [6, 7], [1, 2]])
    texts = sample_texts(model, *model.start(prompts), config, max_lengths=12, stop=0)
    assert [text.tokens for text in texts] == generate_all(model, prompts, config.replace(max_tokens=12), stop=0)


def test_the_log_probability_is_that_of_the_model_whatever_is_drawn_from() -> None:
    """Half, a quarter, an eighth: a nucleus of 0.6 leaves 1 and 2, and a temperature of 2 makes them more alike."""
    probs = torch.tensor([0.125, 0.5, 0.25, 0.125]).log()

    class Steady:
        def step(self, tokens: Tensor, state: None) -> tuple[Tensor, None]:
            return probs.expand(len(tokens), -1), None

        def reorder(self, state: None, rows: Tensor) -> None:
            return None

    config = SamplingConfig(temperature=2.0, top_p=0.6, seed=3)
    texts = sample_texts(Steady(), probs.expand(200, -1), None, config, max_lengths=2, stop=0)
    assert {tuple(text.tokens) for text in texts} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    for text in texts:
        assert text.log_prob == pytest.approx(sum(float(probs[token]) for token in text.tokens), rel=0, abs=1e-6)
    share = sum(text.tokens[0] == 1 for text in texts) / 200
    assert abs(share - 2**0.5 / (1 + 2**0.5)) < 0.12  # √0.5 / (√0.5 + √0.25), within 3.5 standard errors


def test_a_row_draws_by_its_numbers_wherever_it_stands() -> None:
    stepper, config = TableStepper(V=6, seed=1), SamplingConfig(seed=9)
    numbers = [(7, 0), (7, 1), (3, 0), (8, 2)]
    found = sample_texts(stepper, *stepper.start([2, 2, 4, 5]), config, max_lengths=9, stop=0, numbers=numbers)
    other = sample_texts(
        stepper, *stepper.start([5, 2, 2]), config, max_lengths=9, stop=0, numbers=[(8, 2), (7, 1), (7, 0)]
    )
    assert other == [found[3], found[1], found[0]]
    assert found[0] != found[1]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_predictions_that_are_not_numbers_are_refused(temperature: float) -> None:
    class Broken(TableStepper):
        def step(self, tokens: Tensor, state: Texts) -> tuple[Tensor, Texts]:
            log_probs, state = super().step(tokens, state)
            log_probs[0, 1] = torch.nan
            return log_probs, state

    broken = Broken(V=3, seed=0)
    with pytest.raises(RegardError, match=r"The model's predictions are not numbers \(NaN\)"):
        sample_texts(broken, *broken.start([0, 1]), SamplingConfig(temperature=temperature), max_lengths=5, stop=None)
