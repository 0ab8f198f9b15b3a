"""What copying is worth: the loss of words that the text has had before, against that of new ones.

    loss(d) = mean of -log P(x_t) over all places whose word x_t stood d places before for the last time

A `pointer` shares its probability between the vocabulary and the words of its last `max_memory` places; the LSTM
beside it has as many parameters and no such share (Merity et al. 2016, Grave et al. 2017). Copying can gain where the
word stands in reach, and it pays for that where the word is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from regard.errors import RegardError
from regard.score.figures import join_names
from regard.studies import brief
from regard.studies.config import CopyingConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import Spread, say_seeds, to_text
from regard.studies.repeated_words import (
    ALL,
    N_FREQUENT,
    NEW,
    RARE,
    SEEN,
    Losses,
    cut_distances,
    cut_passages,
    find_distances,
    mean_gap,
    mean_loss,
)
from regard.studies.trainer import Trainer, Training
from regard.tasks.language_model_run import LanguageModelRun
from regard.text.learning import Progress

MODELS = ("pointer", "lstm")
N_BATCH, N_CONTEXT = 16, 64  # of an update; the state and the memory go on from one to the next
RATE = 5e-3
AT_ONCE = 16  # passages read together


def measure(config: CopyingConfig, runs: Sequence[LanguageModelRun], tell: Progress, n_jobs: int = 1) -> Finding:
    """A pointer and the same LSTM on the same text, over seeds; or the user's runs, as they are."""
    found: list[list[Losses]] = []
    for subjects in _subjects(config, runs, Trainer(tell, n_jobs)):
        of_seed = []
        for subject in brief.watch("measuring", subjects, tell):
            of_seed.append(measure_passages(subject, config))
        found.append(of_seed)
    return _finding(config, found, runs)


def _subjects(
    config: CopyingConfig, runs: Sequence[LanguageModelRun], trainer: Trainer
) -> Iterator[list[brief.Subject]]:
    """The models of every seed, or the user's runs, each with the text that it is measured on."""
    if runs:
        names = brief.name_runs(runs, [run.config.model_name for run in runs])
        yield [brief.Subject(name, run, brief.text_of(run, config.data)) for name, run in zip(names, runs, strict=True)]
        return
    with brief.open_workplace() as folder:
        pointer = _given(config, {"name": "pointer", "d_model": config.d_model, "max_memory": config.max_memory})
        n_parameters = brief.count_parameters(pointer)
        width, _ = brief.find_width(lambda d: _given(config, {"name": "lstm", "d_model": d}), n_parameters)
        given = {"pointer": pointer, "lstm": _given(config, {"name": "lstm", "d_model": width})}
        plan = {
            (seed, name): Training(folder / f"{name}-{seed}", given[name], config.n_steps, seed, f"training {name}")
            for seed in brief.list_seeds(config)
            for name in MODELS
        }
        trainer.train_ahead(plan.values(), folder / "logs")
        for seed in brief.seeds_of(config, runs, trainer.tell):
            made = []
            for name in MODELS:
                run = trainer.train(plan[seed, name])
                assert isinstance(run, LanguageModelRun)
                made.append(brief.Subject(name, run, brief.text_of(run, None)))
            yield made


def _given(config: CopyingConfig, model: Mapping[str, Any]) -> dict[str, Any]:
    """The plain config of a run: the same for both models but for the model itself."""
    return {
        "data": {"train": config.data or brief.DATA},
        "tokenizer": {"kind": "word", "vocab_size": config.vocab_size, "punctuation": "apart"},
        "model": {"n_layers": 1, **model},
        "optimizer": {"lr": RATE},
        "schedule": {"n_warmup": max(1, config.n_steps // 20), "p_final": 0.05},
        "train": {"n_batch": N_BATCH, "n_context": N_CONTEXT, "max_eval_tokens": 2048, "max_steps": config.n_steps},
    }


def measure_passages(subject: brief.Subject, config: CopyingConfig) -> Losses:
    """The losses of passages that lie evenly over the text, each read from its own beginning."""
    n_read = subject.n_readable(config.n_tokens + 1)
    windows = cut_passages(subject.text.tokens, n_read, config.n_texts)
    if not len(windows):
        raise RegardError(
            f"The text for '{subject.name}' has {len(subject.text):,} tokens, and a passage has {n_read:,}. Lower "
            "n_tokens, or name a longer text with --set data=FILE."
        )
    parts = [windows[i : i + AT_ONCE] for i in range(0, len(windows), AT_ONCE)]
    nats = np.concatenate([subject.run.next_token.nats_of_windows(part) for part in parts])
    tokenizer = subject.run.tokenizer
    marks = [tokenizer.eos, *([] if tokenizer.unk is None else [tokenizer.unk])]
    targets = windows[:, 1:]
    model = subject.run.model
    return Losses(
        subject.name, nats, find_distances(windows)[:, 1:], ~np.isin(targets, marks), targets >= N_FREQUENT,
        sum(p.numel() for p in model.parameters()) if isinstance(model, nn.Module) else None,
        {"word": "word", "char": "character", "byte": "byte"}.get(tokenizer.kind, "token"),
    )  # fmt: skip


def _can_subtract(found: Sequence[Sequence[Losses]]) -> bool:
    """Whether two models or more read the same tokens, so that one loss may be taken from another."""
    return len(found[0]) > 1 and all(
        other.distances.shape == of_seed[0].distances.shape and bool((other.distances == of_seed[0].distances).all())
        for of_seed in found
        for other in of_seed[1:]
    )


def _finding(config: CopyingConfig, found: Sequence[Sequence[Losses]], runs: Sequence[LanguageModelRun]) -> Finding:
    by_name = {losses.name: [of_seed[i] for of_seed in found] for i, losses in enumerate(found[0])}
    longest = max(int(losses.distances.max()) for of_seed in found for losses in of_seed)
    bins = cut_distances(max(1, longest))
    curves = {
        name: {one: mean_loss(seeds, [s.within(*one) for s in seeds]) for one in bins}
        for name, seeds in by_name.items()
    }
    groups = {
        name: {group: mean_loss(seeds, [s.select(group) for s in seeds]) for group in (ALL, NEW, SEEN, RARE)}
        for name, seeds in by_name.items()
    }
    gaps: dict[str, Spread | None] = {}
    by_distance: dict[tuple[int, int], Spread | None] = {}
    if _can_subtract(found):
        first, second = list(by_name.values())[:2]
        gaps = {group: mean_gap(first, second, [s.select(group) for s in first]) for group in (ALL, NEW, SEEN, RARE)}
        by_distance = {one: mean_gap(first, second, [s.within(*one) for s in first]) for one in bins}
    over = "seeds" if len(found) > 1 else "passages"
    names = list(by_name)
    return Finding(
        question="What is it worth to copy words from the past?",
        sentence=copying_sentence(names, groups, gaps, len(found), found[0][0].tokens),
        charts=_charts(curves, groups, by_distance, names, over, None if runs else config.max_memory),
        summary=_groups_table(by_name, groups, gaps, over),
        tables=(_distance_table(curves, by_distance, names, over, found),),
        method=_method(config, found, runs),
        numbers={
            "models": [
                {
                    "model": name, "n_parameters": by_name[name][0].n_parameters,
                    "groups": {group: _plain(value) for group, value in groups[name].items()},
                    "by_distance": [{"from": a, "to": b, **_plain(curves[name][a, b])} for a, b in bins],
                }
                for name in names
            ],
            "gap": {"of": names[:2], "groups": {group: _plain(value) for group, value in gaps.items()},
                    "by_distance": [{"from": a, "to": b, **_plain(value)} for (a, b), value in by_distance.items()]},
        },
    )  # fmt: skip


def _plain(value: Spread | None) -> dict[str, float | None]:
    return {"nats": None, "low": None, "high": None} if value is None else {
        "nats": value.mean, "low": value.low, "high": value.high
    }  # fmt: skip


def copying_sentence(
    names: Sequence[str],
    groups: Mapping[str, Mapping[str, Spread | None]],
    gaps: Mapping[str, Spread | None],
    n_seeds: int,
    tokens: str,
) -> str:
    """What the numbers say, in one sentence."""
    begin = say_seeds(n_seeds) + " (95% intervals over passages in brackets)" * (n_seeds == 1)
    if not gaps:
        parts = [f"{groups[name][SEEN]} and {groups[name][NEW]} in {name}" for name in names]
        return f"{begin}: {tokens}s seen before in a passage and new ones cost {join_names(parts)}, in nats."
    ours, theirs = names[:2]
    said = {group: _say_gap(gaps[group]) for group in (SEEN, RARE, NEW, ALL)}
    return (
        f"{begin}: against {theirs}, {ours} pays {said[SEEN]} for a {tokens} seen before in the passage, {said[RARE]} "
        f"where that is a rare one, {said[NEW]} for a new one, and {said[ALL]} for all together."
    )


def _say_gap(gap: Spread | None) -> str:
    """A difference in words: less, more, or as much where the interval holds zero."""
    if gap is None:
        return "an unknown amount"
    ends = (None, None) if gap.low is None or gap.high is None else sorted((abs(gap.low), abs(gap.high)))
    if gap.low is not None and gap.high is not None and gap.low <= 0 <= gap.high:
        return f"about as much (a difference of {to_text(-gap.mean)}, {to_text(-gap.high)} to {to_text(-gap.low)} nats)"
    return f"{Spread(abs(gap.mean), *ends)} nats {'less' if gap.mean > 0 else 'more'}"


def _charts(
    curves: Mapping[str, Mapping[tuple[int, int], Spread | None]],
    groups: Mapping[str, Mapping[str, Spread | None]],
    by_distance: Mapping[tuple[int, int], Spread | None],
    names: Sequence[str],
    over: str,
    max_memory: int | None,
) -> tuple[Chart, ...]:
    lines = []
    at = sorted({float(low) for of in curves.values() for low, _ in of})
    for name, of in curves.items():
        lines.append(Line.over(name, {low: value for (low, _), value in of.items() if value is not None}))
        new = groups[name][NEW]
        if new is not None:
            lines.append(Line(f"{name}, new", ((at[0], new.mean), (at[-1], new.mean)), dash="1.5 4", of=name))
    memory = f" A pointer copies from the last {max_memory} places alone." if max_memory is not None else ""
    charts = [
        Chart(
            "Loss by distance to the last occurrence", "places back", "nats", tuple(lines), is_x_log=True,
            is_y_log=False, measured_at=tuple(at),
            note="A word that stood from so many places back to twice as many. Dotted: words that are new in their "
            f"passage. Bands are 95% intervals over {over}.{memory}",
        )
    ]  # fmt: skip
    known = {low: value for (low, _), value in by_distance.items() if value is not None}
    if known:
        ours, theirs = names[:2]
        ends = [end for value in known.values() for end in (value.low, value.high, value.mean, 0.0) if end is not None]
        room = 0.05 * (max(ends) - min(ends)) or 0.1
        charts.append(
            Chart(
                f"What {ours} gains over {theirs}", "places back", "nats less", (Line.over(ours, known),),
                is_x_log=True, is_y_log=False, measured_at=tuple(map(float, known)),
                y_limits=(min(ends) - room, max(ends) + room),
                note=f"The loss of {theirs} less that of {ours}, at the same places.",
            )
        )  # fmt: skip
    return tuple(charts)


def _groups_table(
    by_name: Mapping[str, Sequence[Losses]],
    groups: Mapping[str, Mapping[str, Spread | None]],
    gaps: Mapping[str, Spread | None],
    over: str,
) -> Numbers:
    first = next(iter(by_name.values()))[0]
    share = {
        group: float(first.select(group).sum() / max(1, first.select(ALL).sum())) for group in (ALL, NEW, SEEN, RARE)
    }
    rows: list[tuple[str, ...]] = []
    for group, part in share.items():
        cells = [str(groups[name][group] or "–") for name in by_name]
        rows.append((group, f"{100 * part:.0f}%", *cells, *([str(gaps[group] or "–")] if gaps else [])))
    sizes = [f"{of[0].n_parameters:,}" if of[0].n_parameters is not None else "–" for of in by_name.values()]
    rows.append(("parameters", "", *sizes, *([""] if gaps else [])))
    return Numbers(
        "Loss in nats", ("", "of all", *by_name, *(["difference"] if gaps else [])), tuple(rows),
        note=f"Rare: not among the {N_FREQUENT} most frequent. Line ends and unknown words are left out. In brackets "
        f"95% intervals over {over}.",
    )  # fmt: skip


def _distance_table(
    curves: Mapping[str, Mapping[tuple[int, int], Spread | None]],
    by_distance: Mapping[tuple[int, int], Spread | None],
    names: Sequence[str],
    over: str,
    found: Sequence[Sequence[Losses]],
) -> Numbers:
    rows = []
    for one in next(iter(curves.values())):
        n = sum(int(of_seed[0].within(*one).sum()) for of_seed in found)
        cells = [str(curves[name][one] or "–") for name in names]
        label = f"{one[0]}–{one[1]}" if one[1] > one[0] else str(one[0])
        rows.append((label, f"{n:,}", *cells, *([str(by_distance[one] or "–")] if by_distance else [])))
    columns = ("places back", "tokens", *names, *(["difference"] if by_distance else []))
    return Numbers("Loss by distance, in nats", columns, tuple(rows), note=f"95% intervals over {over}.")


def _method(
    config: CopyingConfig, found: Sequence[Sequence[Losses]], runs: Sequence[LanguageModelRun]
) -> dict[str, str]:
    models = (
        brief.describe_runs(runs)
        if runs
        else f"an LSTM of one layer, width {config.d_model}, with a pointer into its last {config.max_memory} places "
        "(mix learned), and an LSTM of one layer that is wider by as much as gives it the same number of parameters; "
        f"both on the {config.vocab_size:,} most frequent words, "
        f"{config.n_steps:,} updates of {N_BATCH} x {N_CONTEXT} words by `regard train`, learning rate {RATE:g}, the "
        "same text in the same order"
    )
    n_passages, n_tokens = found[0][0].nats.shape
    return {
        "Models": models,
        "Text": f"{brief.describe_text(config.data, bool(runs))}; {n_passages} passages of {n_tokens:,} tokens, evenly "
        "over it, each read from its own beginning",
        "Seen": "a word that stands in the same passage before; its distance is that to the last time",
        **brief.describe_seeds(config, runs),
    }
