"""What makes a comparison doubtful: each finding is a sentence in compare.json, the report and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from regard.compare.result import Contender, Setup
from regard.score.significance import MANY_DOCUMENTS

NEAR = 16.0  # bytes of context from which on a long memory counts: a few words
LEAST_GAIN = 0.01  # bits per byte
MOST_WORSE = 0.15  # a seed that is further behind its siblings has not learned what they have


def find_warnings(contenders: Sequence[Contender], setup: Setup) -> tuple[str, ...]:
    """Everything that a reader must know before the ranking is believed."""
    found: list[str] = []
    if setup.n_documents == 1:
        found.append(
            "One text was tested: nothing is known about other texts, and nothing is called settled. Give more "
            "documents, or raise data.p_test."
        )
    elif setup.n_documents is not None and setup.n_documents < MANY_DOCUMENTS:
        found.append(
            f"The test text has {setup.n_documents} documents: with fewer than {MANY_DOCUMENTS}, intervals are wide "
            "and few differences are settled. More documents, or a larger data.p_test, narrow them."
        )
    for contender in contenders:
        found += [*_check_baseline(contender, setup), *_check_context(contender), *_check_seeds(contender, setup)]
    return tuple(found)


def _check_baseline(contender: Contender, setup: Setup) -> Iterator[str]:
    if contender.score is None or contender.baseline is None:
        return
    if not setup.measure.is_better(contender.score.value, contender.baseline):
        reached, simple = (setup.measure.value(v) for v in (contender.score.value, contender.baseline))
        yield (
            f"{contender.name} learned nothing from context: it reaches {reached} {setup.metric}, and how often each "
            f"token stands in the training text reaches {simple}."
        )


def _check_context(contender: Contender) -> Iterator[str]:
    """A model that attends or recurs should gain from more than a few words; any other from more than none."""
    has_memory = contender.views.attention is not None or contender.views.cells is not None
    points = [p for p in contender.views.positions if not has_memory or p.n_bytes_before >= NEAR]
    if len(points) > 1 and points[0].bits_per_byte - points[-1].bits_per_byte < LEAST_GAIN:
        near, far = (f"{p.n_bytes_before:.0f}" for p in (points[0], points[-1]))
        yield (
            f"{contender.name} gains nothing from more than {near} bytes of context: its loss is no lower after {far}."
        )


def _check_seeds(contender: Contender, setup: Setup) -> Iterator[str]:
    for run in contender.runs:
        others = [other.score for other in contender.runs if other is not run]
        if not others:
            continue
        middle = median(others)
        behind = (middle - run.score if setup.is_higher_better else run.score - middle) / max(abs(middle), 1e-9)
        if not math.isfinite(run.score) or behind > MOST_WORSE:
            yield (
                f"Seed {run.seed} of {contender.name} diverged or was unlucky: it ends at "
                f"{setup.measure.value(run.score)} {setup.metric}, its siblings at {setup.measure.value(middle)}."
            )
