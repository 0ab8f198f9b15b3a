"""A comparison in plain language, computed from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from regard.compare.result import Comparison, Contender, CostToScore, PairResult, Setup
from regard.score.figures import flops_text, join_names, p_text

NEAR = 16.0  # bytes of context from which on the gain is counted: a few words
LEAST_GAIN = 0.05
MOST_NAMES = 3  # of a group whose order is open; of a larger one the first and the last are named
MOST_GROUPS = 3
MOST_WORSE = 0.25  # what is further off than this is no bargain, however cheap
LEAST_FACTOR = 1.25  # costs that lie closer are not worth a sentence
ONE_SEED = "one seed: other seeds were not tried"


def write_headline(
    contenders: Sequence[Contender],
    ranked: Sequence[Contender],
    pairs: Sequence[PairResult],
    costs: Sequence[CostToScore],
    setup: Setup,
) -> tuple[str, ...]:
    """What was found, in a few sentences; `contenders` are in the order of `costs`, `ranked` are best first."""
    failed = [c.name for c in contenders if c.score is None]
    if not ranked:
        return (f"No contender finished: {', '.join(failed)} failed.",)
    found = {(pair.better, pair.worse): pair for pair in pairs}
    steps = [found.get((a.name, b.name)) for a, b in pairwise(ranked)]
    neighbours = [pair for pair in steps if pair is not None]
    sentences = [
        _tell_first(ranked, neighbours, setup),
        _tell_ties(ranked, neighbours, setup),
        _tell_bargain(ranked, setup) or _tell_cost(contenders, costs, setup),
        _tell_memory(ranked),
        _tell_lossy(ranked, setup),
        f"{join_names(failed)} did not finish." if failed else "",
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _tell_first(ranked: Sequence[Contender], neighbours: Sequence[PairResult], setup: Setup) -> str:
    best, measure = ranked[0], setup.measure
    assert best.score is not None
    lead = next((pair for pair in neighbours if pair.better == best.name), None)
    if lead is None:
        return f"{best.name} reaches {measure.named(best.score.value)}."
    if lead.difference == 0:
        return f"{best.name} and {lead.worse} are level at {measure.named(best.score.value)}."
    start = f"{best.name} is best at {measure.named(best.score.value)}"
    if not lead.is_clear:
        why = explain_unsettled(lead, ranked, setup)
        return f"{start}, but its lead of {measure.gap(lead.difference)} over {lead.worse} is not settled ({why})."
    interval = f"95% interval {measure.gap(lead.low)} to {measure.gap(lead.high)}"
    return f"{start}, {measure.gap(lead.difference)} ahead of {lead.worse} ({interval})."


def explain_unsettled(pair: PairResult, contenders: Sequence[Contender], setup: Setup) -> str:
    """Why the order of two is open: too few items, one seed, or seeds that differ too much."""
    if pair.p >= 0.05:
        return p_text(pair.p)
    if setup.needs_seeds and any(c.has_one_seed for c in contenders if c.name in (pair.better, pair.worse)):
        return ONE_SEED
    return "it may change with the seed"


def _tell_ties(ranked: Sequence[Contender], neighbours: Sequence[PairResult], setup: Setup) -> str:
    """Whose order behind the best is open, in groups: a reader wants those, not eleven pairs."""
    groups = _open_groups(neighbours[1:])
    if not groups:
        return ""
    open_pairs = [pair for pair in neighbours[1:] if not pair.is_clear]
    has_one_seed = any(explain_unsettled(pair, ranked, setup) == ONE_SEED for pair in open_pairs)
    by = f" ({ONE_SEED})" if has_one_seed else " by this much test data"
    lead = neighbours[0]
    if not lead.is_clear and explain_unsettled(lead, ranked, setup) == ONE_SEED and has_one_seed:
        by = " either"  # for the reason that stands in the sentence before
    if len(groups) > MOST_GROUPS:
        return f"Further down, {len(open_pairs)} of {len(neighbours) - 1} pairs of neighbours are not settled{by}."
    n_behind = len(ranked) - 1
    if len(groups[0]) == n_behind > MOST_NAMES:
        return f"The order of the {n_behind} behind it is not settled{by}."
    return f"The order {join_names([f'of {_name_group(group)}' for group in groups])} is not settled{by}."


def _open_groups(neighbours: Sequence[PairResult]) -> list[list[str]]:
    """Contenders, best first, that no settled step parts from the next one."""
    groups: list[list[str]] = []
    for pair in neighbours:
        if pair.is_clear:
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
        if contender.is_comparable and worse <= MOST_WORSE and 0 < contender.seconds < best.seconds / 5:
            times = best.seconds / contender.seconds
            return f"{contender.name} comes within {worse:.0%} of it in 1/{times:.0f} of the training time."
    return ""


def _tell_cost(contenders: Sequence[Contender], costs: Sequence[CostToScore], setup: Setup) -> str:
    """Of the hardest score that at least two reached: who needed least, and how much more the next one did."""
    for row in reversed(costs):
        spent = sorted(
            (flops, c.name) for flops, c in zip(row.flops, contenders, strict=True) if flops and c.is_comparable
        )
        if len(spent) < 2:
            continue
        (least, name), (more, other) = spent[:2]
        if more < LEAST_FACTOR * least:
            return ""
        what = setup.watched_measure.level(row.level)
        return (
            f"To {what} on the validation data, {name} needs {flops_text(least)} training FLOPs, {other} "
            f"{more / least:.1f} times as many."
        )
    return ""


def _tell_memory(ranked: Sequence[Contender]) -> str:
    """Who gets the most out of a long past, where someone does."""
    gains = []
    for contender in ranked:
        early = [p for p in contender.views.positions if p.n_bytes_before >= NEAR]
        if contender.is_comparable and len(early) > 1:
            gains.append((early[0].bits_per_byte - early[-1].bits_per_byte, contender.name, early))
    gain, name, points = max(gains, key=lambda g: g[0], default=(0.0, "", []))
    if gain < LEAST_GAIN or len(ranked) < 2:
        return ""
    near, far = (f"{p.n_bytes_before:.0f}" for p in (points[0], points[-1]))
    return f"{name} gains most from a long past: {gain:.2f} bits per byte between {near} and {far} bytes of it."


def _tell_lossy(ranked: Sequence[Contender], setup: Setup) -> str:
    names = [c.name for c in ranked if not c.is_comparable]
    if not names:
        return ""
    verb = "uses" if len(names) == 1 else "use"
    use = f"{join_names(names)} {verb} a tokenizer that loses text"
    if len(names) == len(ranked):
        return f"{use}: these {setup.metric} can be compared with each other, and with nothing else."
    return f"{use}, so {setup.metric} are not comparable there."


def find_disagreement(comparison: Comparison) -> str:
    """A sentence on the contenders that validation and test put in another order; empty where both agree."""
    setup = comparison.setup
    rows = [(c, c.valid) for c in comparison.ranked if c.valid is not None and c.is_comparable]
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


def explain_seeds(comparison: Comparison) -> str:
    """What the intervals hold of luck with seeds."""
    n_runs = [len(c.runs) for c in comparison.ranked if c.has_seeds]
    if not n_runs or max(n_runs) == 1:
        return "Each contender is one run: what another seed would give is not in it." if n_runs else ""
    text = "Of several runs with different seeds scores are means, and intervals hold what another seed would give."
    return text if min(n_runs) > 1 else text + " Of a single run they do not."
