from __future__ import annotations

import pytest
import torch

from regard.kernels.word2vec import cbow_gradients, mark_contexts, skipgram_gradients
from regard.models.word2vec import word2vec_loss

B, L, W, N, D, K = 3, 8, 3, 4, 6, 5


def draw(seed: int = 0) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(seed)
    vectors, outputs = (torch.randn(B, L + 2 * W, D, dtype=torch.float64, generator=random) for _ in range(2))
    negatives = torch.randn(B, N, D, dtype=torch.float64, generator=random)
    reach = torch.randint(0, W + 1, (B, L), generator=random)
    segments = torch.randint(0, 2, (B, L + 2 * W), generator=random)
    return vectors, outputs, negatives, mark_contexts(reach, segments)


def test_a_context_is_within_reach_in_the_same_segment_and_not_the_word_itself() -> None:
    found = mark_contexts(torch.tensor([[1, 2]]), torch.tensor([[7, 0, 0, 0, 0, 0]]))
    assert found.long().tolist() == [[[0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 1]]]


def plain_loss(
    vectors: torch.Tensor, outputs: torch.Tensor, negatives: torch.Tensor, near: torch.Tensor, is_cbow: bool
) -> torch.Tensor:
    """The equations, word by word."""
    loss = torch.zeros((), dtype=torch.float64)
    for b in range(B):
        for t in range(L):
            contexts = [m for m in range(L + 2 * W) if near[b, t, m]]
            if not contexts:
                continue
            if is_cbow:
                h = torch.stack([vectors[b, m] for m in contexts]).mean(dim=0)
                loss = loss - (h @ outputs[b, t + W]).sigmoid().log()
                loss = loss - K / N * sum((-h @ negatives[b, n]).sigmoid().log() for n in range(N))
            else:
                v = vectors[b, t + W]
                for m in contexts:
                    loss = loss - (v @ outputs[b, m]).sigmoid().log()
                    loss = loss - K / N * sum((-v @ negatives[b, n]).sigmoid().log() for n in range(N))
    return loss


@pytest.mark.parametrize("is_cbow", [False, True])
def test_the_loss_is_that_of_the_equations_word_by_word(is_cbow: bool) -> None:
    rows = draw()
    assert word2vec_loss(*rows, K, is_cbow).item() == pytest.approx(plain_loss(*rows, is_cbow).item(), rel=1e-13)


def test_skipgram_gradients_are_those_of_the_loss() -> None:
    vectors, outputs, negatives, near = draw()
    rows = [each.requires_grad_() for each in (vectors, outputs, negatives)]
    wanted = torch.autograd.grad(-word2vec_loss(*rows, near, K, False), rows)
    with torch.no_grad():
        found = skipgram_gradients(vectors[:, W : W + L], outputs, negatives, near, K)
    padded = torch.zeros_like(vectors)
    padded[:, W : W + L] = found.centres
    for one, other in zip((padded, found.contexts, found.negatives), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_cbow_gradients_are_those_of_the_loss_and_contexts_get_the_step_of_their_mean() -> None:
    vectors, outputs, negatives, near = draw()
    rows = [each.requires_grad_() for each in (vectors, outputs, negatives)]
    wanted = torch.autograd.grad(-word2vec_loss(*rows, near, K, True), rows)
    with torch.no_grad():
        found = cbow_gradients(outputs[:, W : W + L], vectors, negatives, near, K)
    padded = torch.zeros_like(outputs)
    padded[:, W : W + L] = found.centres
    torch.testing.assert_close(padded, wanted[1], rtol=0, atol=1e-13)
    torch.testing.assert_close(found.negatives, wanted[2], rtol=0, atol=1e-13)
    # word2vec.c does not divide a context's step by their number, as the gradient would.
    alone = near.clone()
    alone[:] = False
    alone[0, 2, 6] = True  # one context: there both are the same
    wanted_alone = torch.autograd.grad(-word2vec_loss(*rows, alone, K, True), rows)[0]
    with torch.no_grad():
        found_alone = cbow_gradients(outputs[:, W : W + L], vectors, negatives, alone, K)
    torch.testing.assert_close(found_alone.contexts, wanted_alone, rtol=0, atol=1e-13)
