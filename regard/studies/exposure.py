"""Exposure bias: a model that was taught with the true words before each word has to go on from its own.

    forced_t = -log P(y_t | x, y_1 ... y_{t-1})
    free_t   = -log P(y_t | x, ŷ_1 ... ŷ_{t-1}),   gap_t = free_t - forced_t

ŷ are the model's own words, written greedily, for as many places as the reference y has: it goes on after an end that
it writes too soon. As long as ŷ has been y the two are one number. After the first word that differs free_t says how
well the reference can still be continued from what the model wrote; that is not the quality of its text, since a good
one in other words, or with one word more, is charged at every later place. BLEU judges the text.

Teacher forcing, free running and scheduled sampling between them are compared (Bengio et al. 2015; the name is of
Ranzato et al. 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.pair_batches import PairBatch, read_in_order
from regard.data.pairs import Pairs
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq, write_own_inputs
from regard.score.figures import join_names
from regard.score.translation import bleu
from regard.studies import brief
from regard.studies.config import ExposureConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import TENTHS, Spread, percent, say_seeds, spread, spread_of_scores, to_text
from regard.studies.trainer import Trainer, Training
from regard.tasks.pair_objective import readable_pairs
from regard.tasks.task import reopen_data
from regard.tasks.translation import TRANSLATION, TranslationRun
from regard.text.learning import Progress
from regard.training.teaching_config import TeachingConfig

WAYS = {"teacher": "teacher forcing", "scheduled": "scheduled sampling", "free": "free running"}
VOCAB_SIZE = 1000  # of the models that are made
N_VALID = 50  # sentences for the one score that training asks for
AT_ONCE = 4096  # tokens measured at once
MIN_TEXTS = 20  # a place that fewer texts reach is not drawn: its mean would be that of a few sentences

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Exposure:
    """One training on held-out pairs: a row a pair, a column a place of the target, NaN behind its end."""

    forced: Floats
    free: Floats
    is_same: NDArray[np.bool_]
    """Whether all of the model's own words before this place are the reference's."""
    bleu: float

    @property
    def is_real(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.forced)

    @property
    def gap(self) -> float:
        """Nats a token."""
        return float(np.nanmean(self.free - self.forced))

    @property
    def p_same(self) -> float:
        """The share of the texts whose every word is the reference's, up to its end."""
        last = self.is_real.sum(axis=1) - 1
        return float(self.is_same[np.arange(len(last)), last].mean())

    def after_drift(self) -> tuple[float, float] | None:
        """Forced and free loss at the places after the first other word; None where there are none."""
        chosen = self.is_real & ~self.is_same
        return (float(self.forced[chosen].mean()), float(self.free[chosen].mean())) if chosen.any() else None

    def places(self) -> set[int]:
        """The columns that enough texts reach."""
        return set(np.flatnonzero(self.is_real.sum(axis=0) >= min(MIN_TEXTS, len(self.forced))).tolist())


Trials = list[Exposure]  # of one model, a seed each


def measure(config: ExposureConfig, runs: Sequence[TranslationRun], tell: Progress, n_jobs: int = 1) -> Finding:
    """Models taught in each of the ways, on the same pairs in the same order; or the user's own, as they are."""
    found: dict[str, Trials] = {}
    notes: dict[str, str] = {}
    for models in _models(config, runs, Trainer(tell, n_jobs)):
        for name, model in brief.watch("measuring", list(models.items()), tell):
            pairs, n_left_out = _held_out(model, config, is_own=bool(runs))
            if n_left_out:
                notes[name] = f"Held-out pairs left out, since they are longer than {name} reads: {n_left_out:,}."
            found.setdefault(name, []).append(exposure(model, pairs))
    return _finding(config, found, runs, tuple(notes.values()))


def _models(
    config: ExposureConfig, runs: Sequence[TranslationRun], trainer: Trainer
) -> Iterator[dict[str, TranslationRun]]:
    """The user's runs; or for every seed a model for each way of teaching, whose folders end with the last seed."""
    seeds = brief.seeds_of(config, runs, trainer.tell)
    if runs:
        kinds = [WAYS[run.config.section("teaching", TeachingConfig).mode] for run in runs]
        yield from (dict(zip(brief.name_runs(runs, kinds), runs, strict=True)) for _ in seeds)
        return
    with brief.open_workplace() as folder:
        plan = {seed: _plan(config, seed, folder / str(seed), trainer.tell) for seed in brief.list_seeds(config)}
        trainer.train_ahead([training for of in plan.values() for training in of.values()], folder / "logs")
        for seed in seeds:
            made = {}
            for way, training in plan[seed].items():
                run = trainer.train(training)
                assert isinstance(run, TranslationRun)
                made[way] = run
            yield made


def _plan(config: ExposureConfig, seed: int, folder: Path, tell: Progress) -> dict[str, Training]:
    """The trainings of a seed by way of teaching; the pairs they learn from are written into `folder`."""
    folder.mkdir()
    data: dict[str, Any] = {"train": config.data}
    if config.data is None:
        n_of = {"train": config.n_pairs, "valid": N_VALID, "test": config.n_texts}
        brief.write_grammar(folder, n_of, seed, tell)
        data = {split: [str(folder / f"{split}.en"), str(folder / f"{split}.de")] for split in n_of}
    plan = {}
    for mode in config.modes:
        given = brief.small_translator(config.d_model, VOCAB_SIZE) | {"data": data}
        # Without smoothing: what is learned is what is measured.
        given["teaching"] |= {"mode": mode, "smoothing": 0.0}
        if mode == "scheduled":  # from true words alone to half of them at the end
            given["teaching"]["n_half"] = config.n_steps
        what = f"training with {WAYS[mode]}"
        plan[WAYS[mode]] = Training(folder / f"{mode}-{seed}", given, config.n_steps, seed, what)
    return plan


def _held_out(run: TranslationRun, config: ExposureConfig, is_own: bool) -> tuple[Pairs, int]:
    """The pairs a run is measured on, and how many are too long for it."""
    if is_own and config.data is not None:
        pairs = run.reader.other_pairs(config.data).train
    else:
        prepared = reopen_data(TRANSLATION, run.reader.opened)
        pairs = prepared.test if len(prepared.test) else prepared.valid
        if not len(pairs):
            raise RegardError(f"'{run.folder}' held out no pairs to measure on. Name some with --set data=PAIRS.")
    readable = readable_pairs(run.model, pairs)
    if not len(readable):
        raise RegardError(
            f"Every pair is longer than the {run.model.max_context} tokens that '{run.folder}' reads. Name shorter "
            "ones with --set data=PAIRS."
        )
    return readable.take_evenly(config.n_texts), len(pairs) - len(readable)


def exposure(run: TranslationRun, pairs: Pairs) -> Exposure:
    """Both losses of every target token, and BLEU of what the model writes by itself, greedily."""
    shape = (len(pairs), int(pairs.target_lengths.max()) + 1)
    forced, free, is_same = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    longest = int((pairs.source_lengths + pairs.target_lengths).max()) + 1
    for numbers, batch in read_in_order(pairs, max(AT_ONCE, longest), copies=run.model.copies):
        T = batch.mask.shape[1]
        both = [tensor.cpu().numpy() for tensor in losses(run.model, batch)]
        forced[numbers, :T] = np.where(batch.mask, both[0], np.nan)
        free[numbers, :T] = np.where(batch.mask, both[1], np.nan)
        is_same[numbers, :T] = both[2] & batch.mask
    texts = run.translations(pairs, BeamConfig(beam=1, max_ratio=2.0))
    references = [pairs.target_text(i) for i in range(len(pairs))]
    return Exposure(forced, free, is_same, bleu(texts, references).score)


@torch.inference_mode()
def losses(model: Seq2Seq, batch: PairBatch) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """-log P of every target after the true words and after the model's own, and where these still are the same."""
    device = model.embedding.device
    source, source_mask, inputs, targets = (
        torch.from_numpy(array).to(device) for array in (batch.source, batch.source_mask, batch.inputs, batch.targets)
    )
    words = None if batch.words is None else torch.from_numpy(batch.words).to(device)
    encoded = model.eval().encode(source, source_mask, words)
    is_own = torch.ones_like(inputs, dtype=torch.bool)
    is_own[:, 0] = False  # the first input is a mark, and no word
    own = write_own_inputs(model.target, encoded, inputs, is_own)
    forced = model.target.nats_each(model.target.hidden(inputs, encoded)[0], targets).double()
    free = model.target.nats_each(model.target.hidden(own, encoded)[0], targets).double()
    is_same = torch.ones_like(is_own)
    is_same[:, 1:] = (own[:, 1:] == targets[:, :-1]).cumprod(dim=1).bool()
    return forced, free, is_same


def figures_of(trials: Trials) -> dict[str, Spread]:
    """The losses a token, the gap between them, the share of exact texts and BLEU, over seeds."""
    forced, free = (
        [float(np.nanmean(losses)) for losses in sides]
        for sides in zip(*((e.forced, e.free) for e in trials), strict=True)
    )
    return {
        "forced": spread(forced),
        "free": spread(free),
        "gap": spread([e.gap for e in trials]),
        "p_same": spread_of_scores([e.p_same for e in trials]),
        "bleu": spread_of_scores([e.bleu for e in trials]),
    }


def _finding(
    config: ExposureConfig, found: Mapping[str, Trials], runs: Sequence[TranslationRun], notes: tuple[str, ...]
) -> Finding:
    figures = {name: figures_of(trials) for name, trials in found.items()}
    places = {name: by_place(trials) for name, trials in found.items()}
    rows = [
        (name, to_text(of["forced"].mean), to_text(of["free"].mean), str(of["gap"]), percent(of["p_same"].mean),
         of["bleu"].write(TENTHS))
        for name, of in figures.items()
    ]  # fmt: skip
    return Finding(
        question="What does a model lose where it reads its own words?",
        sentence=exposure_sentence(figures, n_seeds=len(next(iter(found.values())))),
        charts=_charts(places),
        summary=Numbers(
            "Loss a token after the true words and after the model's own, in nats",
            ("run" if runs else "taught by", "true", "own", "gap", "exact", "BLEU"),
            tuple(rows),
            note="Exact: texts in which every word of the model's is the reference's. BLEU is that of the texts which "
            "the model writes by itself, greedily: the most probable word at every step. In brackets 95% intervals "
            "over seeds.",
        ),
        tables=(_after_drift(found), *(_by_place(name, of) for name, of in places.items())),
        notes=notes,
        method=_method(config, found, runs),
        numbers={
            "models": [
                {
                    "model": name, **{key: value.mean for key, value in figures[name].items()},
                    "intervals": {key: (value.low, value.high) for key, value in figures[name].items()},
                    "after_drift": [e.after_drift() for e in trials], "n_texts": len(trials[0].forced),
                    "by_place": [{**p._asdict(), **vars(p.gap), "gap": p.gap.mean} for p in places[name]],
                }
                for name, trials in found.items()
            ]
        },
    )  # fmt: skip


def _after_drift(found: Mapping[str, Trials]) -> Numbers:
    rows = []
    for name, trials in found.items():
        share = spread([100 * float(1 - e.is_same[e.is_real].mean()) for e in trials])
        drifted = [losses for e in trials if (losses := e.after_drift()) is not None]
        both = [str(spread(side)) for side in zip(*drifted, strict=True)] or ["–", "–"]
        rows.append((name, f"{share.mean:.0f}%", *both))
    return Numbers(
        "After the first word that differs",
        ("", "of all places", "true words", "own words"),
        tuple(rows),
        note="Loss at the places after the first word in which the model's text is not the reference: all of the gap "
        "is made there.",
    )


class Place(NamedTuple):
    """Means over the texts that reach a place; the gap with its 95% interval, over seeds or of one over texts."""

    place: int
    n_texts: int
    forced: float
    free: float
    gap: Spread
    p_same: float


def by_place(trials: Trials) -> list[Place]:
    """The means at each place that enough texts reach with every seed."""
    rows = []
    for t in sorted(set[int].intersection(*(e.places() for e in trials))):
        at = [(e.forced[e.is_real[:, t], t], e.free[e.is_real[:, t], t]) for e in trials]
        forced, free = (float(np.mean([side.mean() for side in sides])) for sides in zip(*at, strict=True))
        gaps = [own - true for true, own in at]
        gap = spread([float(each.mean()) for each in gaps])
        if len(trials) == 1:
            half = 1.96 * float(gaps[0].std(ddof=1)) / len(gaps[0]) ** 0.5 if len(gaps[0]) > 1 else 0.0
            gap = Spread(gap.mean, gap.mean - half, gap.mean + half)
        p_same = float(np.mean([e.is_same[e.is_real[:, t], t].mean() for e in trials]))
        rows.append(Place(t + 1, min(map(len, gaps)), forced, free, gap, p_same))
    return rows


def _by_place(name: str, places: Sequence[Place]) -> Numbers:
    rows = tuple(
        (p.place, p.n_texts, to_text(p.forced), to_text(p.free), str(p.gap), f"{100 * p.p_same:.0f}%") for p in places
    )
    columns = ("place", "texts", "true words", "own words", "gap (95% interval)", "still the reference")
    return Numbers(f"By place: {name}", columns, rows, is_folded=True)


def _charts(found: Mapping[str, Sequence[Place]]) -> tuple[Chart, ...]:
    losses, gaps, same = [], [], []
    for name, places in found.items():
        losses.append(Line(name, tuple((float(p.place), p.forced) for p in places)))
        own = tuple((float(p.place), p.free) for p in places)
        losses.append(Line(f"{name}, own words", own, dash="5 4", of=name))
        gaps.append(Line.over(name, {p.place: p.gap for p in places}))
        same.append(Line(name, tuple((float(p.place), 100 * p.p_same) for p in places)))
    bands = [band for line in gaps for band in line.band]
    return (
        Chart(
            "Loss by place", "place in the target", "nats a token", tuple(losses), is_y_log=False,
            y_limits=(0.0, 1.4 * max(y for line in losses for _, y in line.points)),  # room for six names
            note="How surprising the reference's word is at each place: whole lines with the true words before it, "
            "dashed ones with the words that the model itself wrote so far.",
        ),
        Chart(
            "The gap", "place in the target", "nats a token", tuple(gaps), is_y_log=False,
            y_limits=(min(band[1] for band in bands) - 0.1, 1.1 * max(band[2] for band in bands) + 0.1),
            note="Dashed minus whole; bands are 95% intervals, over seeds or of one training over texts. While a "
            "model's words are the reference's its gap is zero. After the first other word the gap says how hard it is "
            "to come back to the reference, "
            "and not how bad the text is: a good text in other words, or with one word more, is charged at every place "
            "that follows.",
        ),
        Chart(
            "Texts that still are the reference", "place in the target", "% of texts", tuple(same), is_y_log=False,
            y_limits=(0.0, 103.0), note="Those in which every word before this place is the reference's.",
        ),
    )  # fmt: skip


def exposure_sentence(figures: Mapping[str, Mapping[str, Spread]], n_seeds: int) -> str:
    """What the numbers say, in one sentence."""
    costs = [f"{of['gap']}{' nats a token' * (i == 0)} with {name}" for i, (name, of) in enumerate(figures.items())]
    scores = join_names([of["bleu"].write(TENTHS) for of in figures.values()])
    return (
        f"{say_seeds(n_seeds)}: reading its own words in place of the true ones costs a model "
        f"{join_names(costs)}; BLEU of {'its' if len(figures) == 1 else 'their'} own texts is {scores}."
    )


def _method(config: ExposureConfig, found: Mapping[str, Trials], runs: Sequence[TranslationRun]) -> dict[str, str]:
    named = config.data if isinstance(config.data, str) else ", ".join(config.data or ())
    if runs:
        models, pairs = brief.describe_runs(runs), named or "each run's own held-out pairs"
    else:
        held_out = f"{named}, the part held out for test"
        pairs = held_out if named else "the built-in grammar, English to German, its test split"
        models = _made(config)
    return {
        "Models": models,
        "Pairs": f"{pairs}; {max(len(trials[0].forced) for trials in found.values())} at most",
        "True words": "-log P of each word of the reference, and of its end, after its words before that",
        "Own words": "-log P of them after the words that the model writes greedily; where it ends before the "
        "reference does, it is made to go on. Both losses are one number until the two texts differ",
        "Places": f"tokens of each model's own vocabulary; those that at least {MIN_TEXTS} texts reach",
        **brief.describe_seeds(config, runs),
    }


def _made(config: ExposureConfig) -> str:
    ways = join_names([WAYS[mode] for mode in config.modes])
    decay = "; scheduled sampling: the share of own words grows by inverse sigmoid to a half at the end"
    return (
        f"{brief.describe_small_translator(config.d_model, VOCAB_SIZE)}, no label smoothing, one for each of {ways}; "
        f"{config.n_steps:,} updates each by `regard train`, the same pairs in the same order for each"
        f"{decay if 'scheduled' in config.modes else ''}"
    )
