import math

import torch

from regard.decode.choice import ChoiceGraph, continuations, onward
from regard.decode.rules import IMPOSSIBLE


def test_continuations_that_are_over_are_open_no_more() -> None:
    found = torch.tensor([[[0.0, 1.0], [1.0, 0.0]], [[5.0, 9.0], [9.0, 6.0]], [[-1.0, -2.0], [-3.0, -4.0]]])
    rows, tokens, log_probs, totals = onward(found.double(), 3, torch.tensor([2, 1]), stop=9)
    assert rows.tolist() == [[0, 1], [4, 3]]  # the second source's rows come after the first's three
    assert tokens.tolist() == [[5, 9], [9, 6]]
    assert log_probs.tolist() == [[-1, -2], [-3, -4]]
    assert totals.tolist() == [[-1, -math.inf], [-math.inf, -math.inf]]  # 9 ends a text, and so does the last place


def test_of_what_is_impossible_the_first_goes_on() -> None:
    found = torch.tensor([[[0.0, 0.0]], [[1.0, 2.0]], [[IMPOSSIBLE, IMPOSSIBLE]]], dtype=torch.float64)
    assert onward(found, 1, torch.tensor([5]), None)[3].tolist() == [[IMPOSSIBLE, -math.inf]]


def test_a_choice_in_its_place_is_the_usual_one_for_any_number_of_sources() -> None:
    draws = torch.Generator().manual_seed(0)
    graph = ChoiceGraph(torch.device("cpu"), n_sources=5, vocab_size=70, beam=3, stop=0)
    for b in (5, 2, 4, 1):
        log_probs = torch.rand(3 * b, 70, generator=draws).mul(6).round().log_softmax(-1)  # many ties
        totals = -torch.rand(b, 3, generator=draws, dtype=torch.float64)
        totals[0, 1] = -math.inf
        n_left = torch.randint(1, 3, (b,), generator=draws)
        plain = onward(continuations(totals, log_probs, 3), 3, n_left, 0)
        torch.testing.assert_close(graph(totals, log_probs, n_left), plain, rtol=0, atol=0)
