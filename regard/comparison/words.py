"""A comparison in plain language, computed from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from regard.comparison.result import ContenderResult, Neighbours

NEAR = 16.0  # bytes of context from which on the gain is counted: a few words
LEAST_GAIN = 0.05
MOST_NAMES = 3  # of a group whose order is open; of a larger one the first and the last are named
MOST_GROUPS = 3
MOST_WORSE = 0.25  # what is further off than this is no bargain, however cheap
ONE_SEED = "one seed: other seeds were not tried"


def p_text(p: float) -> str:
    """A p-value as it is printed.

    >>> p_text(0.0312), p_text(0.00021), p_text(0.00009)
    ('p = 0.031', 'p = 0.0002', 'p < 0.0001')
    """
    if p < 0.0001:
        return "p < 0.0001"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.4f}"


def headline(
    ranked: Sequence[ContenderResult], neighbours: Sequence[Neighbours], failed: Sequence[str]
) -> tuple[str, ...]:
    """What was found, in one to four sentences; `ranked` is best first and comparable ones only count for the title."""
    rows = [c for c in ranked if c.score is not None]
    if not rows:
        return (f"No contender finished: {', '.join(failed)} failed.",)
    sentences = [_first(rows, neighbours)]
    sentences += [s for s in (_ties(rows, neighbours), _cheapest(rows), _memory(rows), _lossy(rows)) if s]
    if failed:
        sentences.append(f"{_joined(list(failed))} did not finish.")
    return tuple(sentences)


def _first(rows: list[ContenderResult], neighbours: Sequence[Neighbours]) -> str:
    best = rows[0]
    assert best.score is not None
    start = f"{best.name} is best at {best.score.bits_per_byte:.2f} bits per byte"
    lead = next((n for n in neighbours if n.better == best.name), None)
    if lead is None:
        return f"{best.name} reaches {best.score.bits_per_byte:.2f} bits per byte."
    if not lead.is_clear:
        why = why_unsettled(lead, rows)
        return f"{start}, but its lead of {lead.difference:.3f} over {lead.worse} is not settled ({why})."
    return (
        f"{start}, {_gap(lead.difference)} ahead of {lead.worse} (95% interval {_gap(lead.low)} to {_gap(lead.high)})."
    )


def why_unsettled(pair: Neighbours, contenders: Sequence[ContenderResult]) -> str:
    """Why the order of two is open: too few texts, one seed, or seeds that differ too much."""
    if pair.p >= 0.05:
        return p_text(pair.p)
    if any(c.has_one_seed for c in contenders if c.name in (pair.better, pair.worse)):
        return ONE_SEED
    return "it may change with the seed"


def _gap(difference: float) -> str:
    return f"{difference:.2f}" if difference >= 0.0095 else f"{difference:.4f}"


def _ties(rows: list[ContenderResult], neighbours: Sequence[Neighbours]) -> str:
    """Whose order behind the best is open, in groups: a reader wants those, not eleven pairs."""
    groups = _open_groups(neighbours[1:])
    if not groups:
        return ""
    open_pairs = [n for n in neighbours[1:] if not n.is_clear]
    has_one_seed = any(why_unsettled(n, rows) == ONE_SEED for n in open_pairs)
    by = f" ({ONE_SEED})" if has_one_seed else " by this much data"
    lead = neighbours[0]
    if not lead.is_clear and why_unsettled(lead, rows) == ONE_SEED and has_one_seed:
        by = " either"  # for the reason that stands in the sentence before
    if len(groups) > MOST_GROUPS:
        return f"Further down, {len(open_pairs)} of {len(neighbours) - 1} pairs of neighbours are not settled{by}."
    n_behind = len(rows) - 1
    if len(groups[0]) == n_behind > MOST_NAMES:
        return f"The order of the {n_behind} behind it is not settled{by}."
    return f"The order {_joined([f'of {_members(g)}' for g in groups])} is not settled{by}."


def _open_groups(neighbours: Sequence[Neighbours]) -> list[list[str]]:
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


def _members(group: list[str]) -> str:
    return _joined(group) if len(group) <= MOST_NAMES else f"the {len(group)} from {group[0]} to {group[-1]}"


def _cheapest(rows: list[ContenderResult]) -> str:
    """Who comes near the best for a fraction of the time, where someone does."""
    best = rows[0].score
    assert best is not None
    for contender in rows[1:]:
        score = contender.score
        assert score is not None
        worse = score.bits_per_byte / best.bits_per_byte - 1
        if contender.is_comparable and worse <= MOST_WORSE and 0 < score.seconds < best.seconds / 5:
            times = best.seconds / score.seconds
            return f"{contender.name} comes within {worse:.0%} of it in 1/{times:.0f} of the training time."
    return ""


def _memory(rows: list[ContenderResult]) -> str:
    """Who gets the most out of a long past, where someone does."""
    gains = []
    for contender in rows:
        early = [p for p in contender.positions if p.n_bytes_before >= NEAR]
        if contender.is_comparable and len(early) > 1:
            gains.append((early[0].bits_per_byte - early[-1].bits_per_byte, contender.name, early))
    gain, name, points = max(gains, key=lambda g: g[0], default=(0.0, "", []))
    if gain < LEAST_GAIN or len(rows) < 2:
        return ""
    near, far = (f"{p.n_bytes_before:.0f}" for p in (points[0], points[-1]))
    return f"{name} gains most from a long past: {gain:.2f} bits per byte between {near} and {far} bytes of it."


def _lossy(rows: list[ContenderResult]) -> str:
    names = [c.name for c in rows if not c.is_comparable]
    if not names:
        return ""
    verb = "uses" if len(names) == 1 else "use"
    use = f"{_joined(names)} {verb} a tokenizer that loses text"
    if len(names) == len(rows):
        return f"{use}: these bits per byte can be compared with each other, and with nothing else."
    return f"{use}, so bits per byte are not comparable there."


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
