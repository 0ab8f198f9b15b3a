import pytest
import torch

from regard.layers.dropout import embed_dropping_words


def test_a_dropped_word_is_gone_everywhere_at_once_and_the_others_are_scaled() -> None:
    torch.manual_seed(0)
    V, p = 50, 0.3
    E = torch.randn(V, 4, dtype=torch.float64)
    ids = torch.arange(V).repeat(6).view(6, V)[:, torch.randperm(V)]  # every word once in every sequence
    x = embed_dropping_words(ids, E, p, is_training=True)
    n_dropped = 0
    for w in range(V):
        at_w = x[ids == w]  # (6, 4)
        if (at_w == 0).all():
            n_dropped += 1
        else:
            torch.testing.assert_close(at_w, (E[w] / (1 - p)).expand(6, 4), rtol=0, atol=1e-15)
    assert 5 <= n_dropped <= 25


def test_the_gradient_is_that_of_a_mask_on_the_rows_of_the_matrix() -> None:
    E = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    ids = torch.randint(0, 9, (4, 5))
    torch.manual_seed(3)
    embed_dropping_words(ids, E, 0.5, is_training=True).square().sum().backward()
    found, E.grad = E.grad, None
    torch.manual_seed(3)
    m = torch.nn.functional.dropout(torch.ones(9, dtype=torch.float64), 0.5)
    (E * m[:, None])[ids].square().sum().backward()
    assert found is not None
    torch.testing.assert_close(found, E.grad, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("p", "is_training"), [(0.5, False), (0.0, True)])
def test_nothing_is_dropped_in_evaluation_or_at_zero(p: float, is_training: bool) -> None:
    E, ids = torch.randn(9, 3), torch.randint(0, 9, (4, 5))
    assert torch.equal(embed_dropping_words(ids, E, p, is_training), E[ids])
