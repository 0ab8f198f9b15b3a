"""The conditional random field against enumeration of all tag sequences."""

from itertools import product

import pytest
import torch

from regard.models.crf import ConditionalRandomField


def random_field(n_tags: int) -> ConditionalRandomField:
    crf = ConditionalRandomField(n_tags).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def score_of(crf: ConditionalRandomField, u: torch.Tensor, tags: tuple[int, ...]) -> torch.Tensor:
    total = crf.begin[tags[0]] + crf.end[tags[-1]]
    for t, tag in enumerate(tags):
        total = total + u[t, tag] + (crf.follow[tags[t - 1], tag] if t else 0.0)
    return total


@pytest.mark.parametrize("n_words", [1, 2, 4])
def test_nats_and_best_tags_are_those_of_enumeration(n_words: int) -> None:
    torch.manual_seed(n_words)
    crf, K, N = random_field(3), 3, 4
    u = torch.randn(2, N, K, dtype=torch.float64)
    mask = torch.tensor([[t < n_words for t in range(N)], [True] * N])
    for b, n in enumerate((n_words, N)):
        paths = list(product(range(K), repeat=n))
        scores = torch.stack([score_of(crf, u[b], path) for path in paths])
        best = paths[int(scores.argmax())]
        tags = torch.zeros(2, N, dtype=torch.int64)
        tags[b, :n] = torch.tensor(paths[len(paths) // 2])
        nats = crf.nats(u, tags, mask)[b]
        torch.testing.assert_close(nats, scores.logsumexp(0) - scores[len(paths) // 2], rtol=0, atol=1e-12)
        assert tuple(crf.decode(u, mask)[b, :n].tolist()) == best


def test_padding_changes_neither_nats_nor_tags() -> None:
    torch.manual_seed(0)
    crf = random_field(4)
    u, tags = torch.randn(1, 3, 4, dtype=torch.float64), torch.tensor([[1, 3, 0]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    padded = torch.cat([u, torch.full((1, 2, 4), 9.0, dtype=torch.float64)], dim=1)
    long_tags, long_mask = torch.tensor([[1, 3, 0, 2, 2]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(crf.nats(padded, long_tags, long_mask), crf.nats(u, tags, mask), rtol=0, atol=1e-12)
    assert crf.decode(padded, long_mask)[:, :3].tolist() == crf.decode(u, mask).tolist()
