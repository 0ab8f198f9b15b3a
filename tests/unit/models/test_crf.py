"""The conditional random field against enumeration of all tag sequences."""

from itertools import pairwise, product

import pytest
import torch

from regard.models.crf import ConditionalRandomField
from regard.score.tags import list_legal


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


def test_the_fast_total_and_its_gradients_are_those_of_the_plain_one_whatever_the_padding() -> None:
    torch.manual_seed(1)
    crf = random_field(4)
    mask = torch.tensor([[True, True, True, True, True], [True, True, False, False, False], [True] + [False] * 4])
    weights = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)
    found = []
    for total in (crf.log_total, lambda u, mask: crf.nats(u, mask.long(), mask) + crf.score(u, mask.long(), mask)):
        u = torch.where(mask[..., None], torch.linspace(-3, 3, 60, dtype=torch.float64).view(3, 5, 4), 900.0)
        u.requires_grad_()
        crf.zero_grad()
        value = total(u, mask)
        (value * weights).sum().backward()
        found.append([value.detach(), u.grad, *(parameter.grad.clone() for parameter in crf.parameters())])
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-12)


def test_best_tags_are_legal_and_their_probabilities_are_those_among_legal_sequences() -> None:
    torch.manual_seed(2)
    tags = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    first, after = list_legal(tags)
    crf = ConditionalRandomField(len(tags), (first, after)).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    u = torch.randn(1, 3, len(tags), dtype=torch.float64)
    u[..., 2:4] += 3.0  # it would like to go on with what never began
    mask = torch.ones(1, 3, dtype=torch.bool)
    paths = list(product(range(len(tags)), repeat=3))
    paths = [p for p in paths if first[p[0]] and all(after[a][b] for a, b in pairwise(p))]
    p = torch.stack([score_of(crf, u[0], path) for path in paths]).softmax(0)
    best = paths[int(p.argmax())]
    found = crf.decode(u, mask)
    assert tuple(found[0].tolist()) == best
    whole, each = crf.probabilities(u, found, mask)
    torch.testing.assert_close(whole, p.max()[None], rtol=0, atol=1e-12)
    wanted = [sum(p[i] for i, path in enumerate(paths) if path[t] == best[t]) for t in range(3)]
    torch.testing.assert_close(each[0], torch.stack(wanted), rtol=0, atol=1e-12)
