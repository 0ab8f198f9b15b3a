from collections.abc import Callable

import numpy as np
import pytest
import torch

from regard.count.config import NgramConfig
from regard.count.ngram import NgramModel
from regard.decode.config import SamplingConfig
from regard.decode.generate import generate, generate_all
from regard.errors import RegardError
from regard.models.gradient_next_token import as_next_token
from regard.models.language_model import LanguageModel
from regard.models.next_token import NextToken

Tiny = Callable[..., LanguageModel]
GREEDY = SamplingConfig(temperature=0.0, max_tokens=6)


def cycling() -> NextToken:
    """1 2 3 <eos>, over and over, known by heart."""
    return as_next_token(NgramModel.fit(NgramConfig(order=2, smoothing="mle"), np.array([1, 2, 3, 0] * 5), 4, None))


def prompts(*rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.long)


def test_greedy_follows_the_most_probable_token() -> None:
    assert generate_all(cycling(), prompts([2]), GREEDY) == [[3, 0, 1, 2, 3, 0]]


def test_an_empty_prompt_starts_from_scratch() -> None:
    assert generate_all(cycling(), prompts([]), GREEDY) == [[1, 2, 3, 0, 1, 2]]


def test_the_stop_token_is_a_texts_last() -> None:
    assert generate_all(cycling(), prompts([2], [1]), GREEDY, stop=0) == [[3, 0], [2, 3, 0]]


def test_a_row_that_is_done_gets_no_more_tokens() -> None:
    texts: list[list[int]] = [[], []]
    for row, token in generate(cycling(), prompts([2], [2]), GREEDY, is_done=lambda row: len(texts[row]) == row + 1):
        texts[row].append(token)
    assert texts == [[3], [3, 0]]


def test_tokens_stream_one_step_at_a_time() -> None:
    stream = generate(cycling(), prompts([2], [1]), GREEDY)
    assert [next(stream) for _ in range(4)] == [(0, 3), (1, 2), (0, 0), (1, 3)]


@pytest.mark.parametrize("name", ["window", "lstm", "transformer"])
def test_a_seed_gives_the_same_text_and_batch_mates_change_nothing(tiny_model: Tiny, name: str) -> None:
    model, config = as_next_token(tiny_model(name)), SamplingConfig(max_tokens=20, seed=3)
    alone, beside = (generate_all(model, prompts([4, 5]).expand(n, -1), config) for n in (1, 4))
    assert alone[0] == beside[0]
    assert len(set(map(tuple, beside))) == 4
    other = generate_all(model, prompts([4, 5]), config.replace(seed=4))
    assert other[0] != alone[0]


def test_generation_goes_on_beyond_the_context(tiny_model: Tiny) -> None:
    (text,) = generate_all(as_next_token(tiny_model("transformer")), prompts([1, 2]), SamplingConfig(max_tokens=40))
    assert len(text) == 40


def test_a_prompt_longer_than_the_context_is_refused(tiny_model: Tiny) -> None:
    model = as_next_token(tiny_model("transformer"))
    with pytest.raises(
        RegardError, match=r"The prompt has 7 tokens; this model sees 7 at most.*Shorten .* to 6 tokens"
    ):
        generate_all(model, prompts([1] * 7), GREEDY)
    assert len(generate_all(model, prompts([1] * 6), GREEDY)[0]) == 6


def test_a_prompt_that_comes_twice_gets_the_two_best_texts_of_a_beam(tiny_model: Tiny) -> None:
    model = as_next_token(tiny_model("lstm", vocab_size=3))
    config = SamplingConfig(beam=9, max_tokens=2)
    first, second = generate_all(model, prompts([1], [1]), config)
    assert first != second
    assert generate_all(model, prompts([1]), config) == [first]


def test_a_beam_over_too_few_texts_leaves_the_others_empty() -> None:
    assert generate_all(cycling(), prompts([1], [1]), SamplingConfig(beam=1, max_tokens=2)) == [[2, 3], []]
