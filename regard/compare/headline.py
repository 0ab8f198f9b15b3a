"""A comparison in plain language, computed from its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile

from regard.compare.gates import NEAR
from regard.compare.result import (
    SAME_TOKENS,
    Comparison,
    Contender,
    CostToScore,
    PairResult,
    Setup,
    group_by_tokenizer,
)
from regard.score.figures import Measure, flops_text, join_names

LEAST_GAIN = 0.05
MOST_NAMES = 3  # of a group whose order is open; of a larger one the first and the last are named
MOST_GROUPS = 3
MOST_WORSE = 0.25  # what is further off than this is no bargain, however cheap
LEAST_FACTOR = 1.25  # costs that lie closer are not worth a sentence
NO_BEST = (
    "Nobody can be called best: every tokenizer loses text, not the same, and what is lost costs nothing in {metric}."
)


def write_headline(
    contenders: Sequence[Contender],
    ranked: Sequence[Contender],
    pairs: Sequence[PairResult],
    costs: Sequence[CostToScore],
    setup: Setup,
) -> tuple[str, ...]:
    """What was found, in a few sentences; `contenders` are in the order of `costs`, `ranked` are best first.

    An n-gram that counts the same tokens as the others read is left to the tables, unless the one that counts all is
    best: how far the two are apart says nothing about models.
    """
    failed = [c.name for c in contenders if c.score is None]
    if not ranked:
        return (f"No contender finished: {', '.join(failed)} failed.",)
    found = {(pair.better, pair.worse): pair for pair in pairs}
    names = [c.name for c in ranked]
    first, *others = group_by_tokenizer([c for c in ranked if not _has_sibling(c.name, names)])
    neighbours = [found[a.name, b.name] for a, b in pairwise(first)]
    if first[0].lossy and others:
        return (
            NO_BEST.format(metric=setup.metric),
            *_tell_lossy((first, *others), found, setup),
            *_tell_failed(failed),
        )
    sentences = [
        _tell_first(first[0], neighbours, setup),
        _tell_same_tokens(ranked, found, setup),
        _tell_ties(first, neighbours),
        _tell_bargain(first, setup) or _tell_cost(contenders, costs, setup, first),
        _tell_memory(first),
        *_tell_lossy([group for group in (first, *others) if group[0].lossy], found, setup),
        *_tell_failed(failed),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _tell_failed(names: list[str]) -> list[str]:
    return [f"{join_names(names)} did not finish."] if names else []


def _tell_first(best: Contender, neighbours: Sequence[PairResult], setup: Setup) -> str:
    measure = setup.measure
    assert best.score is not None
    if not neighbours:
        return f"{best.name} reaches {measure.named(best.score.value)}."
    lead = neighbours[0]
    if lead.difference == 0:
        level = [best.name, *(pair.worse for pair in _level_with_best(neighbours))]
        return f"{join_names(level)} are level at {measure.named(best.score.value)}."
    start = f"{best.name} is best at {measure.named(best.score.value)}"
    if not lead.is_settled:
        gap = measure.gap(lead.difference)
        return f"{start}, but its lead of {gap} over {lead.worse} is not settled ({lead.why})."
    interval = f"95% interval {measure.gap(lead.low)} to {measure.gap(lead.high)}"
    return f"{start}, {measure.gap(lead.difference)} ahead of {lead.worse} ({interval})."


def _level_with_best(neighbours: Sequence[PairResult]) -> list[PairResult]:
    """The pairs from the best on that have the same score."""
    return list(takewhile(lambda pair: pair.difference == 0, neighbours))


def _has_sibling(name: str, names: Sequence[str]) -> bool:
    """Whether it counts the same tokens as the others read, and one that counts all stands beside it."""
    return name.endswith(SAME_TOKENS) and name.removesuffix(SAME_TOKENS) in names


def _tell_same_tokens(ranked: Sequence[Contender], found: Mapping[tuple[str, str], PairResult], setup: Setup) -> str:
    """How an n-gram that is best does with no more text than the others read, where it has counted more."""
    names = [c.name for c in ranked]
    place = names.index(names[0] + SAME_TOKENS) if names[0] + SAME_TOKENS in names else 0
    score = ranked[place].score
    if not place or score is None:
        return ""
    ahead, twin, behind = names[1:place], names[place], names[place + 1 :]
    pair = found.get((ahead[-1], twin) if ahead else (twin, behind[0])) if ahead or behind else None
    doubt = "" if pair is None or pair.is_settled else f"not settled ({pair.why})"
    if ahead:
        order = f"behind {_name_group(ahead)}" + (f", which is {doubt}" if doubt else "")
    else:
        order = f"and whether it is still ahead of {behind[0]} is {doubt}" if doubt else "and is still ahead of them"
    return (
        f"It counts more text than the others read: with as many tokens as they, it reaches "
        f"{setup.measure.value(score.value)}, {order}."
    )


def _tell_ties(ranked: Sequence[Contender], neighbours: Sequence[PairResult]) -> str:
    """Whose order behind the best is open, in groups: a reader wants those, not eleven pairs."""
    behind = neighbours[max(1, len(_level_with_best(neighbours))) :]
    groups = _open_groups(behind)
    if not groups:
        return ""
    open_pairs = [pair for pair in behind if not pair.is_settled]
    reasons = {pair.why for pair in open_pairs if not pair.why.startswith("p ")}
    by = f" ({reasons.pop()})" if len(reasons) == 1 else ""
    if neighbours[0].why and by == f" ({neighbours[0].why})":
        by = " either"  # for the reason that stands in the sentence before
    if len(groups) > MOST_GROUPS:
        return f"Further down, {len(open_pairs)} of {len(behind)} pairs of neighbours are not settled{by}."
    n_behind = len(ranked) - 1
    if len(groups[0]) == n_behind > MOST_NAMES:
        return f"The order of the {n_behind} behind it is not settled{by}."
    return f"The order {join_names([f'of {_name_group(group)}' for group in groups])} is not settled{by}."


def _open_groups(neighbours: Sequence[PairResult]) -> list[list[str]]:
    """Contenders, best first, that no settled step parts from the next one."""
    groups: list[list[str]] = []
    for pair in neighbours:
        if pair.is_settled:
            continue
        if groups and groups[-1][-1] == pair.better:
            groups[-1].append(pair.worse)
        else:
            groups.append([pair.better, pair.worse])
    return groups


def _name_group(group: list[str]) -> str:
    return join_names(group) if len(group) <= MOST_NAMES else f"the {len(group)} from {group[0]} to {group[-1]}"


def _tell_bargain(ranked: Sequence[Contender], setup: Setup) -> str:
    """Who comes near the best for a fraction of the time, where someone does."""
    best = ranked[0]
    assert best.score is not None
    for contender in ranked[1:]:
        assert contender.score is not None
        ratio = contender.score.value / best.score.value if best.score.value else 1.0
        worse = 1 - ratio if setup.is_higher_better else ratio - 1
        longer, shorter = best.seconds, contender.seconds
        if worse <= MOST_WORSE and longer is not None and shorter is not None and 0 < shorter < longer / 5:
            share = math.ceil(100 * worse - 1e-6)  # rounded up: 11.4% off is not within 11%
            return f"{contender.name} comes within {share}% of it in 1/{longer / shorter:.0f} of the training time."
    return ""


def _tell_cost(
    contenders: Sequence[Contender], costs: Sequence[CostToScore], setup: Setup, ranked: Sequence[Contender]
) -> str:
    """Of the hardest score that at least two of `ranked` reached: who needed least, and how much more the next did.

    Empty where the next had that score at its first evaluation: it may have had it long before.
    """
    for row in reversed(costs):
        pairs = zip(row.flops, contenders, strict=True)
        spent = sorted(((flops, c) for flops, c in pairs if flops and c in ranked), key=lambda pair: pair[0])
        if len(spent) < 2:
            continue
        (least, first), (more, second) = spent[:2]
        if more < LEAST_FACTOR * least or more <= second.curve[0].flops:
            return ""
        what = setup.watched_measure.level(row.level)
        return (
            f"To {what} on the validation data, {first.name} needs {flops_text(least)} training FLOPs, {second.name} "
            f"{more / least:.1f} times as many."
        )
    return ""


def _tell_memory(ranked: Sequence[Contender]) -> str:
    """Who gets the most out of a long past, where someone does."""
    gains = []
    for contender in ranked:
        early = [p for p in contender.views.positions if p.n_bytes_before >= NEAR]
        if len(early) > 1:
            gains.append((early[0].bits_per_byte - early[-1].bits_per_byte, contender.name, early))
    gain, name, points = max(gains, key=lambda g: g[0], default=(0.0, "", []))
    if gain < LEAST_GAIN or len(ranked) < 2:
        return ""
    near, far = (f"{p.n_bytes_before:.0f}" for p in (points[0], points[-1]))
    return f"{name} gains most from a long past: {gain:.2f} bits per byte between {near} and {far} bytes of it."


def _tell_lossy(
    groups: Sequence[Sequence[Contender]], found: Mapping[tuple[str, str], PairResult], setup: Setup
) -> list[str]:
    """Who loses text, and who is ahead among those that lose the same."""
    sentences = []
    for group in groups:
        verb = "uses" if len(group) == 1 else "use"
        start = f"{join_names([c.name for c in group])} {verb} a tokenizer that loses text, {group[0].lossy}"
        if len(group) == 1:
            sentences.append(f"{start}: what is lost costs nothing, so its {setup.metric} compare with no other's.")
            continue
        lead = found[group[0].name, group[1].name]
        order = "is ahead" if lead.is_settled else f"is ahead, which is not settled ({lead.why})"
        sentences.append(f"{start}: their {setup.metric} compare with each other alone, where {group[0].name} {order}.")
    return sentences


def write_difference(pair: PairResult | None, measure: Measure) -> str:
    """By how much the better of two is ahead, with a ? where that is not settled; empty where it was not tested."""
    return "" if pair is None else measure.value(pair.difference) + " ?" * (not pair.is_settled)


def find_disagreement(comparison: Comparison) -> str:
    """A sentence on the contenders that validation and test put in another order; empty where both agree."""
    setup = comparison.setup
    rows = [(c, c.valid) for c in comparison.ranked if c.valid is not None and c.lossy == comparison.ranked[0].lossy]
    if any("different validation data" in note for note in setup.notes):
        return ""
    watched = setup.watched_measure
    pairs = [
        f"{behind.name} ({watched.value(better)}) is ahead of {ahead.name} ({watched.value(worse)})"
        for place, (ahead, worse) in enumerate(rows)
        for behind, better in rows[place + 1 :]
        if watched.is_better(better, worse)
    ]
    if not pairs:
        return ""
    more = f", and {len(pairs) - MOST_NAMES} more pairs" if len(pairs) > MOST_NAMES else ""
    listed = "; ".join(pairs[:MOST_NAMES])
    return f"Validation and test disagree: on the validation data {listed}{more}, on the test data behind it."
