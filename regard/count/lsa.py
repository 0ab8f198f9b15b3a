"""Word vectors by counting: positive pointwise mutual information, and its largest singular vectors (LSA).

    PPMI_ij = max(0, log( X_ij Σ / (x_i c_j) ) - log k),   c_j = x_j^α Σ / Σ_j x_j^α,   x_i = Σ_j X_ij,   Σ = Σ_i x_i
    PPMI ≈ U diag(s) V^T,   vectors = U diag(s)^p

Deerwester et al. 1990; Bullinaria & Levy 2007; α, k and p: Levy, Goldberg & Dagan 2015.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.count.cooccurrence import Cooccurrence

DENSE = 1500
"""Up to so many words all singular vectors are computed; of more, the largest are found by iteration."""
OVERSAMPLING, MAX_ITERATIONS = 16, 60


def positive_mutual_information(counts: Cooccurrence, smoothing: float = 0.75, shift: float = 1.0) -> Cooccurrence:
    """PPMI of the pairs that were seen; all others have none. Pairs with none are left out."""
    total = counts.values.sum()
    x = np.bincount(counts.rows, weights=counts.values, minlength=counts.n_words)
    smoothed = np.where(x > 0, x, 1.0) ** smoothing * (x > 0)
    c = smoothed * total / max(smoothed.sum(), 1e-300)
    information = np.log(counts.values * total / (x[counts.rows] * c[counts.columns])) - np.log(shift)
    kept = information > 0
    return Cooccurrence(counts.rows[kept], counts.columns[kept], information[kept], counts.n_words)


def reduce_by_svd(matrix: Cooccurrence, rank: int, power: float, seed: int = 0) -> Tensor:
    """U diag(s)^power of the `rank` largest singular values, (V, rank); zeros where the matrix has fewer."""
    u, s = truncated_svd(matrix, min(rank, matrix.n_words), seed)
    # A singular vector has two signs: the one whose largest number is positive is taken.
    signs = u.gather(0, u.abs().argmax(dim=0, keepdim=True)).sign()
    vectors = u.new_zeros(matrix.n_words, rank)
    vectors[:, : u.shape[1]] = u * signs * s**power * (s > s.max() * 1e-12)
    return vectors


def truncated_svd(matrix: Cooccurrence, rank: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The `rank` largest singular values and their left vectors, (V, rank) and (rank,).

    Where there are many words: subspace iteration from random vectors with some to spare (Halko et al. 2011), until
    the singular values stand still.
    """
    a = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([matrix.rows, matrix.columns])),
        torch.from_numpy(matrix.values),
        (matrix.n_words, matrix.n_words),
        is_coalesced=True,
        check_invariants=False,
    )
    if matrix.n_words <= DENSE:
        u, s, _ = torch.linalg.svd(a.to_dense())
        return u[:, :rank], s[:rank]
    n = min(matrix.n_words, rank + max(OVERSAMPLING, rank // 2))
    start = torch.randn(matrix.n_words, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    at = a.t().coalesce()
    q, before = torch.linalg.qr(a @ start)[0], None
    for _ in range(MAX_ITERATIONS):
        q = torch.linalg.qr(a @ torch.linalg.qr(at @ q)[0])[0]
        u, s, _ = torch.linalg.svd((at @ q).T, full_matrices=False)  # of the small matrix q^T A
        if before is not None and ((s - before)[:rank].abs().max() <= 1e-6 * s[0]).item():
            break
        before = s
    return (q @ u)[:, :rank], s[:rank]
