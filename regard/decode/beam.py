"""Beam search: the most probable text, not a typical one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.models.next_token import NextToken, check_numbers


@dataclass(frozen=True)
class Hypothesis:
    tokens: tuple[int, ...]
    log_prob: float
    score: float
    """log P / length^α."""


def search(
    model: NextToken, prompt: Sequence[int], beam: int, max_tokens: int, *, stop: int | None = None, alpha: float = 1.0
) -> list[Hypothesis]:
    """All complete hypotheses of a beam search, best first: score = log P(w_1 ... w_L) / L^α.

    α = 1 is the mean log-probability of a token. Wu et al. (2016) divide by ((5 + L) / 6)^α instead, and add a term for
    the source sentence, which a language model does not have.

    At every length the `beam` most probable continuations are kept. One that ends in `stop` is complete and leaves;
    those that are open at max_tokens count as complete. So a beam of 1 is greedy, and one that never prunes is
    exhaustive.
    """
    done: list[Hypothesis] = []
    log_probs, state = model.start(torch.tensor([list(prompt)], dtype=torch.long), len(prompt) + max_tokens)
    texts: list[tuple[int, ...]] = [()]
    totals = torch.zeros(1, dtype=torch.float64, device=log_probs.device)
    for length in range(1, max_tokens + 1):
        candidates = totals[:, None] + log_probs.double()  # (R, V)
        check_numbers(log_probs.amax(dim=-1).tolist())
        rows, tokens = best(candidates, log_probs, beam)
        texts = [(*texts[row], token) for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
        is_done = [length == max_tokens or text[-1] == stop for text in texts]
        for text, log_prob, done_now in zip(texts, candidates[rows, tokens].tolist(), is_done, strict=True):
            if done_now:
                done.append(Hypothesis(text, log_prob, log_prob / length**alpha))
        still = [i for i, done_now in enumerate(is_done) if not done_now]
        if not still:
            break
        texts, totals = [texts[i] for i in still], candidates[rows, tokens][still]
        log_probs, state = model.step(tokens[still], model.reorder(state, rows[still]))
    return sorted(done, key=lambda hypothesis: -hypothesis.score)


def best(candidates: Tensor, log_probs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Rows and tokens of the k most probable candidates. Ties go to the more probable token, then to the lower id.

    So that a beam of 1 decides every tie, and what rounding makes one, as greedy decoding does.
    """
    k = min(k, max(1, int(candidates.isfinite().sum())))  # one at least, impossible or not
    rows, tokens = (candidates >= candidates.flatten().topk(k).values[-1]).nonzero().unbind(1)  # by row, then by id
    order = log_probs[rows, tokens].argsort(descending=True, stable=True)
    order = order[candidates[rows, tokens][order].argsort(descending=True, stable=True)][:k]
    return rows[order], tokens[order]
