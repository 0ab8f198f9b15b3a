import pytest
import torch
from table_stepper import TableStepper, Texts
from torch import Tensor

from regard.decode.config import SamplingConfig
from regard.decode.decode_all import decode_all
from regard.decode.generate import generate_all
from regard.errors import RegardError
from regard.models.language_model import LanguageModel
from regard.models.next_token import as_next_token

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
    texts = decode_all(watched, torch.zeros(8, 2), tuple(range(8)), GREEDY, max_lengths=limits, stop=0)
    assert texts[0] == [0]
    assert [len(text) for text in texts] == [1] * 8  # of equals, the lowest id: <eos>
    first = torch.tensor([[-2.0, -0.2]]).expand(8, -1)
    texts = decode_all(watched, first, tuple(range(8)), GREEDY, max_lengths=limits, stop=0)
    assert texts == [[1] * n for n in limits]
    assert watched.n_rows == [8, 6, 6, 6]


def test_one_length_for_all_and_guards() -> None:
    stepper = TableStepper(V=4, seed=3)
    texts = decode_all(stepper, *stepper.start([0, 1]), GREEDY, max_lengths=4, stop=None, no_repeat_ngram=1)
    assert [sorted(text) for text in texts] == [[0, 1, 2, 3]] * 2
    texts = decode_all(stepper, *stepper.start(list(range(9))), GREEDY, max_lengths=9, stop=0, min_length=4)
    assert min(map(len, texts)) >= 4


@pytest.mark.parametrize("config", [GREEDY, SamplingConfig(seed=5, top_p=0.9)])
def test_a_language_model_says_what_generate_lets_it_say(tiny_model, config: SamplingConfig) -> None:  # type: ignore[no-untyped-def]
    language_model: LanguageModel = tiny_model("lstm")
    model, prompts = as_next_token(language_model), torch.tensor([[4, 5], [6, 7], [1, 2]])
    texts = decode_all(model, *model.start(prompts), config, max_lengths=12, stop=0)
    assert texts == generate_all(model, prompts, config.replace(max_tokens=12), stop=0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_predictions_that_are_not_numbers_are_refused(temperature: float) -> None:
    class Broken(TableStepper):
        def step(self, tokens: Tensor, state: Texts) -> tuple[Tensor, Texts]:
            log_probs, state = super().step(tokens, state)
            log_probs[0, 1] = torch.nan
            return log_probs, state

    broken = Broken(V=3, seed=0)
    with pytest.raises(RegardError, match=r"The model's predictions are not numbers \(NaN\)"):
        decode_all(broken, *broken.start([0, 1]), SamplingConfig(temperature=temperature), max_lengths=5, stop=None)
