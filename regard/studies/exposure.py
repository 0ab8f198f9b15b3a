"""Exposure bias: a model that was taught with the true words before each word has to go on from its own.

    forced_t = -log P(y_t | x, y_1 ... y_{t-1})
    free_t   = -log P(y_t | x, ŷ_1 ... ŷ_{t-1}),   gap_t = free_t - forced_t

ŷ are the model's own words, the likeliest one after the other, for as many places as the reference y has: it goes on
after an end that it writes too soon. As long as ŷ has been y the two are one number. After the first word that differs
free_t says how well the reference can still be continued from what the model wrote; that is not the quality of its
text, since a good one in other words, or with one word more, is charged at every later place. BLEU judges the text.

Teacher forcing, free running and scheduled sampling between them are compared (Bengio et al. 2015; the name is of
Ranzato et al. 2016).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.pair_batches import PairBatch, read_in_order
from regard.data.pairs import Pairs
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.folder import prepared_pairs_again
from regard.models.seq2seq import Seq2Seq, own_inputs
from regard.pair_run import PairRun
from regard.score.translation import bleu
from regard.studies.brief_pairs import brief_pair_run, write_grammar
from regard.studies.config import ExposureConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import listed, short
from regard.training.pair_task import readable_pairs

if TYPE_CHECKING:
    from regard.text.learning import Progress

WAYS = {"teacher": "teacher forcing", "scheduled": "scheduled sampling", "free": "free running"}
VOCAB_SIZE, MAX_TOKENS, RATE = 1000, 1024, 5e-3  # of the models that are made: BPE, tokens an update, learning rate
N_VALID = 50  # sentences for the one score that training asks for
AT_ONCE = 4096  # tokens measured at once
MIN_TEXTS = 20  # a place that fewer texts reach is not drawn: its mean would be that of a few sentences

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Exposure:
    """One model on held-out pairs: a row a pair, a column a place of the target, NaN behind its end."""

    model: str
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

    def places(self) -> list[int]:
        """The columns that enough texts reach."""
        n = self.is_real.sum(axis=0)
        return [t for t in range(len(n)) if n[t] >= min(MIN_TEXTS, len(self.forced))]


def study_exposure(config: ExposureConfig, runs: Sequence[PairRun], tell: Progress) -> Finding:
    """Models taught in each of the ways, on the same pairs in the same order; or the user's own, as they are."""
    if runs:
        return _measured(config, runs, _names(runs), [str(run.folder) for run in runs], tell)
    with _taught(config, tell) as made:
        return _measured(config, made, [WAYS[mode] for mode in config.modes], [], tell)


@contextmanager
def _taught(config: ExposureConfig, tell: Progress) -> Iterator[list[PairRun]]:
    """A model for each way of teaching; the folders end with the block."""
    with tempfile.TemporaryDirectory(prefix="regard-study-") as name:
        folder = Path(name)
        data: dict[str, Any] = {"train": config.data}
        if config.data is None:
            n_of = {"train": config.n_pairs, "valid": N_VALID, "test": config.n_texts}
            write_grammar(folder, n_of, config.seed, tell)
            data = {split: [str(folder / f"{split}.en"), str(folder / f"{split}.de")] for split in n_of}
        made = []
        for mode in config.modes:
            given = {
                "data": data,
                "tokenizer": {"kind": "bpe", "vocab_size": VOCAB_SIZE},
                "model": {"name": "seq2seq", **_lstm(config)},
                # Without smoothing: what is learned is what is measured.
                "teaching": {"mode": mode, "smoothing": 0.0, "max_tokens": MAX_TOKENS, **_scheduled(mode, config)},
                "optimizer": {"lr": RATE},
            }
            what = f"training with {WAYS[mode]}"
            run = brief_pair_run(folder / mode, given, n_steps=config.n_steps, seed=config.seed, what=what, tell=tell)
            made.append(run)
        yield made


def _lstm(config: ExposureConfig) -> dict[str, Any]:
    return {"encoder": "lstm", "decoder": "lstm", "attention": "mlp", "d_model": config.d_model, "n_layers": 1}


def _scheduled(mode: str, config: ExposureConfig) -> dict[str, Any]:
    """From true words alone to half of them at the end."""
    return {"n_half": config.n_steps} if mode == "scheduled" else {}


def _measured(
    config: ExposureConfig, runs: Sequence[PairRun], names: Sequence[str], folders: Sequence[str], tell: Progress
) -> Finding:
    found, notes = [], []
    for name, run in zip(names, runs, strict=True):
        pairs, n_left_out = _held_out(run, config, is_own=bool(folders))
        if n_left_out:
            notes.append(f"Held-out pairs left out, since they are longer than {name} reads: {n_left_out:,}.")
        tell(f"measuring {name}", 0, len(pairs))
        found.append(exposure(name, run, pairs))
        tell(f"measuring {name}", len(pairs), len(pairs))
    return _finding(config, found, folders, notes)


def _held_out(run: PairRun, config: ExposureConfig, is_own: bool) -> tuple[Pairs, int]:
    """The pairs a run is measured on, and how many are too long for it."""
    if is_own and config.data is not None:
        pairs = run.pairs_of(config.data)
    else:
        prepared = prepared_pairs_again(run.folder, run.config)
        pairs = prepared.test if len(prepared.test) else prepared.valid
        if not len(pairs):
            raise RegardError(f"'{run.folder}' held out no pairs to measure on. Name some with --set data=PAIRS.")
    readable = readable_pairs(run.model, pairs)
    if not len(readable):
        raise RegardError(
            f"Every pair is longer than the {run.model.max_context} tokens that '{run.folder}' reads. Name shorter "
            "ones with --set data=PAIRS."
        )
    return readable.some(config.n_texts), len(pairs) - len(readable)


def _names(runs: Sequence[PairRun]) -> list[str]:
    """Folder names where these tell the runs apart, whole paths where they do not; each with how it was taught."""
    short_names = [run.folder.resolve().name for run in runs]
    names = short_names if len(set(short_names)) == len(runs) else [str(run.folder) for run in runs]
    return [f"{name} ({_way(run)})" for name, run in zip(names, runs, strict=True)]


def _way(run: PairRun) -> str:
    assert run.config.teaching is not None, "a model that reads pairs is taught"
    return WAYS[run.config.teaching.mode]


def exposure(name: str, run: PairRun, pairs: Pairs) -> Exposure:
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
    return Exposure(name, forced, free, is_same, bleu(texts, references).score)


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
    own = own_inputs(model, encoded, inputs, is_own)
    forced = model.nats_each(model.hidden(inputs, encoded)[0], targets).double()
    free = model.nats_each(model.hidden(own, encoded)[0], targets).double()
    is_same = torch.ones_like(is_own)
    is_same[:, 1:] = (own[:, 1:] == targets[:, :-1]).cumprod(dim=1).bool()
    return forced, free, is_same


def _finding(
    config: ExposureConfig, found: Sequence[Exposure], folders: Sequence[str], notes: Sequence[str]
) -> Finding:
    return Finding(
        question="What does a model lose where it reads its own words?",
        sentence=exposure_sentence(found),
        charts=_charts(found),
        summary=Numbers(
            "Loss a token after the true words and after the model's own, in nats",
            ("taught by" if not folders else "run", "true words", "own words", "gap", "exact", "BLEU"),
            tuple(_row(e) for e in found),
            note="Exact: texts in which every word of the model's is the reference's. BLEU is that of the texts which "
            "the model writes by itself, one likeliest word after the other.",
        ),
        tables=(_after_drift(found), *(_by_place(e) for e in found)),
        notes=tuple(notes),
        method=_method(config, found, folders),
        numbers={
            "models": [
                {
                    "model": e.model, "forced": float(np.nanmean(e.forced)), "free": float(np.nanmean(e.free)),
                    "gap": e.gap, "after_drift": e.after_drift(), "p_same": e.p_same, "bleu": e.bleu,
                    "n_texts": len(e.forced), "by_place": [dict(zip(PLACE, row, strict=True)) for row in by_place(e)],
                }
                for e in found
            ],
        },
    )  # fmt: skip


def _row(e: Exposure) -> tuple[str, ...]:
    nats = (float(np.nanmean(e.forced)), float(np.nanmean(e.free)), e.gap)
    return (e.model, *(short(n) for n in nats), f"{100 * e.p_same:.0f}%", f"{e.bleu:.1f}")


def _after_drift(found: Sequence[Exposure]) -> Numbers:
    rows = []
    for e in found:
        share = 1 - e.is_same[e.is_real].mean()
        forced, free = e.after_drift() or (None, None)
        rows.append((e.model, f"{100 * share:.0f}%", short(forced), short(free)))
    return Numbers(
        "After the first word that differs",
        ("", "of all places", "true words", "own words"),
        tuple(rows),
        note="Loss at the places after the first word in which the model's text is not the reference: all of the gap "
        "is made there.",
    )


PLACE = ("place", "n_texts", "forced", "free", "gap", "gap_low", "gap_high", "p_same")


def by_place(e: Exposure) -> list[tuple[int, int, float, float, float, float, float, float]]:
    """What `PLACE` names, for each place that enough texts reach; the gap with its 95% interval over texts."""
    rows = []
    for t in e.places():
        real = e.is_real[:, t]
        forced, free = e.forced[real, t], e.free[real, t]
        gaps, n = free - forced, int(real.sum())
        half = 1.96 * float(gaps.std(ddof=1)) / n**0.5 if n > 1 else 0.0
        gap = float(gaps.mean())
        p_same = float(e.is_same[real, t].mean())
        rows.append((t + 1, n, float(forced.mean()), float(free.mean()), gap, gap - half, gap + half, p_same))
    return rows


def _by_place(e: Exposure) -> Numbers:
    rows = tuple(
        (place, n, short(forced), short(free), short(gap), f"{short(low)} to {short(high)}", f"{100 * same:.0f}%")
        for place, n, forced, free, gap, low, high, same in by_place(e)
    )
    columns = ("place", "texts", "true words", "own words", "gap", "95% interval", "still the reference")
    return Numbers(f"By place: {e.model}", columns, rows, is_folded=True)


def _charts(found: Sequence[Exposure]) -> tuple[Chart, ...]:
    places = [by_place(e) for e in found]

    def points(i: int, column: str, factor: float = 1.0) -> tuple[tuple[float, float], ...]:
        at = PLACE.index(column)
        return tuple((float(row[0]), factor * row[at]) for row in places[i])

    both = [
        line
        for i, e in enumerate(found)
        for line in (
            Line(e.model, i, points(i, "forced")),
            Line(f"{e.model}, own words", i, points(i, "free"), dash="5 4"),
        )
    ]
    low, high = PLACE.index("gap_low"), PLACE.index("gap_high")
    gaps = [
        Line(e.model, i, points(i, "gap"), tuple((float(row[0]), row[low], row[high]) for row in places[i]))
        for i, e in enumerate(found)
    ]
    bands = [band for line in gaps for band in line.band]
    same = [Line(e.model, i, points(i, "p_same", 100.0)) for i, e in enumerate(found)]
    return (
        Chart(
            "Loss by place", "place in the target", "nats a token", tuple(both), is_y_log=False,
            y_limits=(0.0, 1.4 * max(y for line in both for _, y in line.points)),  # room for six names
            note="How surprising the reference's word is at each place: whole lines with the true words before it, "
            "dashed ones with the words that the model itself wrote so far.",
        ),
        Chart(
            "The gap", "place in the target", "nats a token", tuple(gaps), is_y_log=False,
            y_limits=(min(band[1] for band in bands) - 0.1, 1.1 * max(band[2] for band in bands) + 0.1),
            note="Dashed minus whole; bands are 95% intervals over texts. While a model's words are the reference's "
            "its gap is zero. After the first other word the gap says how hard it is to come back to the reference, "
            "and not how bad the text is: a good text in other words, or with one word more, is charged at every place "
            "that follows.",
        ),
        Chart(
            "Texts that still are the reference", "place in the target", "% of texts", tuple(same), is_y_log=False,
            y_limits=(0.0, 103.0), note="Those in which every word before this place is the reference's.",
        ),
    )  # fmt: skip


def exposure_sentence(found: Sequence[Exposure]) -> str:
    """What the numbers say, in one sentence."""
    parts = []
    for i, e in enumerate(found):
        forced, free = float(np.nanmean(e.forced)), float(np.nanmean(e.free))
        nats = f"{short(e.gap)} nats a token ({short(forced)} to {short(free)})" if i == 0 else f"{short(e.gap)}"
        parts.append(f"{nats} with {e.model}")
    scores = [f"{e.bleu:.1f}" for e in found]
    texts = f"BLEU of {'its' if len(found) == 1 else 'their'} own texts is {listed(scores)}"
    return f"Reading its own words in place of the true ones costs a model {listed(parts)}; {texts}."


def _method(config: ExposureConfig, found: Sequence[Exposure], folders: Sequence[str]) -> tuple[tuple[str, str], ...]:
    models = f"your runs: {', '.join(folders)}" if folders else _made(config)
    own = "each run's own held-out pairs" if folders else "the built-in grammar, English to German, its test split"
    named = config.data if isinstance(config.data, str) else ", ".join(config.data or ())
    pairs = f"{named}{'' if folders else ', the part held out for test'}" if named else own
    return (
        ("Models", models),
        ("Pairs", f"{pairs}; {max(len(e.forced) for e in found)} at most"),
        (
            "True words",
            "-log P of each word of the reference, and of its end, after the words of the reference before it",
        ),
        (
            "Own words",
            "the same after the words that the model writes, the likeliest one after the other; where it ends its text "
            "before the reference does, it is made to go on. Both are one number until the two texts differ",
        ),
        ("Places", f"tokens of each model's own vocabulary; those that at least {MIN_TEXTS} texts reach"),
        ("Limits", "one training a way: another seed gives somewhat other numbers, which the intervals leave out"),
        ("Seed", "that of each run" if folders else str(config.seed)),
    )


def _made(config: ExposureConfig) -> str:
    ways = listed([WAYS[mode] for mode in config.modes])
    decay = "; scheduled sampling: the share of own words grows by inverse sigmoid to a half at the end"
    return (
        f"an LSTM with attention for each of {ways}, one layer each side, width {config.d_model}, {config.n_steps:,} "
        f"updates of {MAX_TOKENS:,} tokens of source and target by `regard train`, learning rate {RATE:g}, no label "
        f"smoothing, a vocabulary of {VOCAB_SIZE:,} pieces of words (BPE); the same pairs in the same order for each"
        f"{decay if 'scheduled' in config.modes else ''}"
    )
