"""How often the statistics of a comparison are wrong: simulated models that are equally good, on texts that are not.

    python benchmarks/calibration.py            # the table of docs/statistics.md, ten minutes on one core
    python benchmarks/calibration.py --tiny     # try the script

Two models are compared that are equally good on texts of their kind, so that whatever is called different is called so
wrongly. Texts are simulated as real ones are: documents of unequal length (log-normal), in which one model is better
throughout, and blocks in which what one model finds hard the next block has too. Neighbouring blocks' differences
correlate by 0.56, most of which is their document, as was measured on novels. Seeds shift a whole model.
BLEU is simulated as sentences whose n-grams are found with a probability of their own, the same for both systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from timing import Figures, options

from regard.score.judges import BitsPerByte
from regard.score.significance import Counts, Estimate, take_sample, why_unsettled
from regard.score.translation import bleu_metric, score_by

BLOCK_BYTES = 2000.0
SPREAD = 0.8  # standard deviation of the logarithm of a document's length
ICC, LAG = 0.45, 0.2  # of a difference's variance, what its document holds; of the rest, what the next block shares
SD_TEXT, SD_SEED = 0.05, 0.01  # bits per byte: of a block's difference, and of a seed
N_BLOCKS = 100
SENTENCE_SEED = 0.004  # how much a seed shifts the probability of a match


@dataclass(frozen=True)
class Texts:
    """Blocks of a test text: to which document each belongs, and how hard each is."""

    documents: list[int]
    hardness: np.ndarray


def draw_texts(draw: Generator, n_documents: int) -> Texts:
    lengths = np.exp(draw.normal(0, SPREAD, n_documents))
    n_blocks = max(N_BLOCKS, 2 * n_documents)
    sizes = np.maximum(1, np.round(n_blocks * lengths / lengths.sum())).astype(int)
    documents = np.repeat(np.arange(n_documents), sizes)
    return Texts(documents.tolist(), draw.normal(2.0, 0.3, len(documents)))


def draw_errors(draw: Generator, texts: Texts) -> np.ndarray:
    """What a model costs above the hardness of each block, of variance 1: correlated as real texts are."""
    own, found = draw.normal(size=len(texts.documents)), np.empty(len(texts.documents))
    for i, noise in enumerate(own):
        is_first = i == 0 or texts.documents[i] != texts.documents[i - 1]
        found[i] = noise if is_first else LAG * found[i - 1] + math.sqrt(1 - LAG**2) * noise
    by_document = draw.normal(size=max(texts.documents) + 1)[texts.documents]
    return math.sqrt(ICC) * by_document + math.sqrt(1 - ICC) * found


def draw_model(draw: Generator, texts: Texts, n_seeds: int, gap: float = 0.0) -> Counts:
    """Nats and bytes of every block, (S, n, 2); a counted model has no seeds, and `gap` is how much worse it is."""
    errors = SD_TEXT / math.sqrt(2) * draw_errors(draw, texts)
    seeds = draw.normal(0, SD_SEED, (n_seeds, 1)) if n_seeds else np.zeros((1, 1))
    nats = (texts.hardness + errors + seeds + gap) * math.log(2) * BLOCK_BYTES
    return np.stack([nats, np.full_like(nats, BLOCK_BYTES)], axis=-1)


def draw_translator(draw: Generator, hardness: np.ndarray, n_seeds: int, gap: float = 0.0) -> Counts:
    """What sacreBLEU counts in every sentence, (S, n, 10); `gap` is the match probability that the system lacks."""
    n = np.clip(np.round(8 + 30 * hardness[:, 1]), 5, None).astype(int)
    own = np.clip(hardness[:, 0] + draw.normal(0, 0.05, len(n)) - gap, 0.05, 0.95)
    runs = []
    for _ in range(n_seeds):
        p = np.clip(own + draw.normal(0, SENTENCE_SEED), 0.02, 0.98)
        total = np.stack([n - k for k in range(4)], axis=1)
        correct = draw.binomial(total, (p[:, None] ** np.array([0.5, 1.0, 1.5, 2.0])))
        runs.append(np.concatenate([n[:, None], n[:, None], correct, total], axis=1))
    return np.stack(runs)


def compare_texts(
    draw: Generator, n_documents: int, n_seeds: tuple[int, int], gap: float = 0.0, foil: str = ""
) -> Estimate:
    """The difference of two language models; a foil resamples blocks, or stretches of five, in place of documents."""
    texts = draw_texts(draw, n_documents)
    groups = texts.documents
    if foil == "blocks":
        groups = list(range(len(groups)))
    elif foil == "stretches":
        groups = [1000 * g + (i - groups.index(g)) // 5 for i, g in enumerate(groups)]
    models = (draw_model(draw, texts, n, extra) for n, extra in zip(n_seeds, (0.0, gap), strict=True))
    one, two = (take_sample(BitsPerByte(()).score, counts, groups) for counts in models)
    return two - one


def compare_translators(draw: Generator, n_sentences: int, n_seeds: tuple[int, int], gap: float = 0.0) -> Estimate:
    """The difference of two systems' BLEU."""
    hardness, score = draw.uniform((0.3, 0.0), (0.8, 1.0), (n_sentences, 2)), score_by(bleu_metric())
    systems = (draw_translator(draw, hardness, n, extra) for n, extra in zip(n_seeds, (0.0, gap), strict=True))
    one, two = (take_sample(score, counts, range(n_sentences)) for counts in systems)
    return one - two


def share_significant(make: Callable[..., Estimate], n_times: int, **given: Any) -> float:
    """How often p is below 0.05, in per cent."""
    draw = np.random.default_rng(0)
    return round(100 * sum(make(draw, **given).p < 0.05 for _ in range(n_times)) / n_times, 1)


def tabulate(n_times: int, n_documents: Sequence[int], n_seeds: Sequence[int]) -> Iterator[tuple[str, dict[str, str]]]:
    """How often p < 0.05; in brackets where too few seeds or documents forbid to call that settled."""

    def row(make: Callable[..., Estimate], n_texts: int, n_times: int, is_counted: bool = False, **given: Any) -> Any:
        found = {}
        for s in n_seeds:
            share = share_significant(make, n_times, n_seeds=(0 if is_counted else s, s), **given)
            found[f"{s} seed{'s' * (s > 1)}"] = f"({share})" if why_unsettled(n_texts, [s]) else f"{share}"
        return found

    for n in n_documents:
        texts = f"bits per byte, {n} document{'s' * (n > 1)}"
        yield f"{texts}: equal", row(compare_texts, n, n_times, n_documents=n)
        yield f"{texts}: equal, one is counted", row(compare_texts, n, n_times, True, n_documents=n)
        yield f"{texts}: 0.05 apart", row(compare_texts, n, n_times, n_documents=n, gap=0.05)
    few = max(20, n_times // 4)  # BLEU takes its time
    yield "BLEU, 200 sentences: equal", row(compare_translators, 200, few, n_sentences=200)
    yield "BLEU, 200 sentences: 2.1 apart", row(compare_translators, 200, few, n_sentences=200, gap=0.02)
    for foil in ("blocks", "stretches"):
        for n in n_documents:
            name = f"{foil} resampled, {n} document{'s' * (n > 1)}: equal"
            yield name, row(compare_texts, n, n_times, n_documents=n, foil=foil)


def main() -> None:
    given = options(__doc__).parse_args()
    rows = tabulate(20, (2, 20), (1, 3)) if given.tiny else tabulate(2000, (1, 2, 5, 20, 100), (1, 2, 3, 4, 5))
    figures = Figures()
    for name, row in rows:
        print(f"{name:55}", *(f"{n} {share:7}" for n, share in row.items()), flush=True)
        figures[name] = row
    figures.write(given.out)


if __name__ == "__main__":
    main()
