"""The bottleneck: an encoder that hands on one vector, against a decoder that may look at every word of the source.

Sutskever et al. (2014) squeeze a sentence through the encoder's last state; Bahdanau et al. (2015) found that the
longer the sentence, the worse that goes, and let the decoder attend to all states instead. Translators are taught on
sentences of at most so many words and asked for longer ones too: BLEU and chrF by the number of words of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF

from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.models.seq2seq_config import Seq2SeqConfig
from regard.score.by_length import LengthScore, bin_lengths, count_words, score_by_length
from regard.score.translation import bleu_metric, score_by, statistics_of
from regard.studies import brief
from regard.studies.config import BottleneckConfig
from regard.studies.finding import Chart, Finding, Line, Numbers
from regard.studies.fits import TENTHS, Spread, say_seeds, spread_of_scores
from regard.studies.short_and_long import (
    N_VALID,
    SOURCE,
    TARGET,
    Bin,
    Pair,
    cut_bins,
    draw_short,
    draw_test,
    name_bin,
    read_pairs,
)
from regard.studies.trainer import Trainer, Training
from regard.tasks.pair_objective import readable_pairs
from regard.tasks.translation import TranslationRun
from regard.text.learning import Progress

VOCAB_SIZE = 2000  # pieces of words, of the models that are made
MAX_TOKENS = 1024  # an update
MAX_RATIO = 2.0  # tokens of a translation for each of its source, and ten more
MODELS: dict[str, dict[str, Any]] = {
    "no attention": {"encoder": "lstm", "decoder": "lstm", "attention": "none", "n_layers": 1},
    "attention": {"encoder": "lstm", "decoder": "lstm", "attention": "mlp", "n_layers": 1},
    "Transformer": {"encoder": "transformer", "decoder": "transformer", "n_layers": 2, "n_heads": 4},
}


@dataclass(frozen=True)
class Found:
    """One training, or a run of the user's, on the test pairs: BLEU and chrF by length."""

    name: str
    n_parameters: int
    bleu: tuple[LengthScore, ...]
    chrf: tuple[LengthScore, ...]


def measure(config: BottleneckConfig, runs: Sequence[TranslationRun], tell: Progress, n_jobs: int = 1) -> Finding:
    """Translators of three kinds on the same pairs in the same order; or the user's own, as they are."""
    if runs:
        found, bins, notes = _measure_runs(config, runs, tell)
    else:
        found, bins, notes = _measure_own(config, Trainer(tell, n_jobs))
    return _finding(config, found, bins, runs, notes)


def _measure_own(config: BottleneckConfig, trainer: Trainer) -> tuple[list[Found], list[Bin], tuple[str, ...]]:
    found: list[Found] = []
    bins: list[Bin] = []
    with brief.open_workplace() as folder:
        plans = {seed: _plan(config, seed, folder / str(seed), trainer.tell) for seed in brief.list_seeds(config)}
        every = [training for plan in plans.values() for training in plan.trainings.values()]
        trainer.train_ahead(every, folder / "logs")
        for seed in brief.seeds_of(config, (), trainer.tell):
            plan = plans[seed]
            bins = bins or plan.bins
            for name, training in plan.trainings.items():
                run = trainer.train(training)
                assert isinstance(run, TranslationRun)
                trainer.tell(f"translating: {name}", 0, None)
                found.append(translate_by_length(name, run, plan.test, bins))
    return found, bins, ()


def _measure_runs(
    config: BottleneckConfig, runs: Sequence[TranslationRun], tell: Progress
) -> tuple[list[Found], list[Bin], tuple[str, ...]]:
    """Every run on its own test pairs, or on those of `config.data`, in bins that are the same for all."""
    given, notes = [], []
    names = brief.name_runs(runs, [_describe_model(run.config.model) for run in runs])
    for name, run in zip(names, runs, strict=True):
        pairs = run.reader.pairs_of(config.data)
        readable = readable_pairs(run.model, pairs)
        if not len(readable):
            raise RegardError(
                f"Every test pair is longer than '{run.folder}' reads. Name shorter ones: --set data=PAIRS."
            )
        if n_long := len(pairs) - len(readable):
            notes.append(f"Test pairs left out, since they are longer than {name} reads: {n_long:,}.")
        given.append([(readable.source_text(i), readable.target_text(i)) for i in range(len(readable))])
    bins = bin_lengths([count_words(source) for pairs_of in given for source, _ in pairs_of])
    found = []
    for name, run, pairs_of in brief.watch("translating", list(zip(names, runs, given, strict=True)), tell):
        found.append(translate_by_length(name, run, pairs_of, bins))
    return found, bins, tuple(notes)


def _describe_model(config: Any) -> str:
    """What reads, what writes, and whether it attends."""
    assert isinstance(config, Seq2SeqConfig)
    if config.encoder == config.decoder == "transformer":
        return "Transformer"
    return f"{config.encoder}, {'no attention' if config.attention == 'none' else 'attention'}"


@dataclass(frozen=True)
class Plan:
    """The pairs of a seed that are tested on, and the trainings that learn from others."""

    test: Sequence[Pair]
    bins: list[Bin]
    trainings: Mapping[str, Training]


def _plan(config: BottleneckConfig, seed: int, folder: Path, tell: Progress) -> Plan:
    """Write the pairs of a seed into `folder`, those to learn from no longer than `max_words`."""
    folder.mkdir()
    if config.data is None:
        bins = cut_bins(config.lengths)
        pairs = {
            "train": draw_short(seed, "train", config.n_pairs, config.max_words, tell),
            "valid": draw_short(seed, "valid", N_VALID, config.max_words, tell),
            "test": draw_test(seed, bins, config.n_test, tell),
        }
    else:
        pairs = read_pairs(config, tell)
        bins = bin_lengths([count_words(source) for source, _ in pairs["test"]])
    for split in ("train", "valid"):
        for side, language in enumerate((SOURCE, TARGET)):
            text = "".join(f"{pair[side]}\n" for pair in pairs[split])
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    data = {split: [str(folder / f"{split}.{name}") for name in (SOURCE, TARGET)] for split in ("train", "valid")}
    trainings = {}
    for name in config.models:
        given: dict[str, Any] = {
            "data": data | {"p_test": 0.0},
            "tokenizer": {"kind": "bpe", "vocab_size": VOCAB_SIZE},
            "model": {"name": "seq2seq", "d_model": config.d_model, "max_context": 1024, **MODELS[name]},
            "teaching": {"max_tokens": MAX_TOKENS},
            "optimizer": {"lr": config.lr},
            "schedule": {"n_warmup": max(1, config.n_steps // 10), "p_final": 0.05},
        }
        what = f"training: {name}"
        trainings[name] = Training(folder / name.replace(" ", "-"), given, config.n_steps, seed, what)
    return Plan(pairs["test"], bins, trainings)


def translate_by_length(name: str, run: TranslationRun, pairs: Sequence[Pair], bins: Sequence[Bin]) -> Found:
    """Translate all sources greedily, and score the translations of each bin of lengths."""
    sources, references = [source for source, _ in pairs], [target for _, target in pairs]
    translator = run.translator(BeamConfig(beam=1, max_ratio=MAX_RATIO), tag=run.reader.choose_tag(None))
    texts = [best[0].text for best in translator.all([translator.read(source) for source in sources])]
    lengths = [count_words(source) for source in sources]

    def score(metric: Metric) -> tuple[LengthScore, ...]:
        counts = statistics_of(metric, texts, references)[None]
        return score_by_length(score_by(metric), counts, range(len(texts)), lengths, bins)

    n_parameters = sum(p.numel() for p in run.model.parameters())
    return Found(name, n_parameters, score(bleu_metric()), score(CHRF()))


def join_seeds(scores: Sequence[tuple[LengthScore, ...]]) -> dict[Bin, Spread]:
    """The scores of each bin over seeds; of one training the interval is over sentences."""
    found: dict[Bin, list[LengthScore]] = {}
    for of_seed in scores:
        for point in of_seed:
            found.setdefault((point.shortest, point.longest), []).append(point)
    return {
        one: Spread(points[0].score, points[0].low, min(100.0, points[0].high))
        if len(points) == 1
        else spread_of_scores([point.score for point in points])
        for one, points in sorted(found.items())
    }


def _finding(
    config: BottleneckConfig,
    found: Sequence[Found],
    bins: Sequence[Bin],
    runs: Sequence[TranslationRun],
    notes: tuple[str, ...],
) -> Finding:
    names = list(dict.fromkeys(f.name for f in found))
    n_seeds = sum(f.name == names[0] for f in found)
    scores = {
        measured: {name: join_seeds([getattr(f, measured) for f in found if f.name == name]) for name in names}
        for measured in ("bleu", "chrf")
    }
    at = {one: _mean_length(found, one) for one in bins}
    sizes = {f.name: f.n_parameters for f in found}
    over = "seeds" if n_seeds > 1 else "sentences"
    return Finding(
        question="Does one vector hold a long sentence?",
        sentence=bottleneck_sentence(scores["bleu"], None if runs else config.max_words, n_seeds),
        charts=tuple(
            _chart(title, scores[measured], at, None if runs else config.max_words, over)
            for title, measured in (("BLEU", "bleu"), ("chrF", "chrf"))
        ),
        summary=_table("BLEU", scores["bleu"], sizes, over),
        tables=(_table("chrF", scores["chrf"], sizes, over),),
        notes=notes,
        method=_method(config, found, bins, runs),
        numbers={
            "max_words": None if runs else config.max_words,
            "models": [
                {
                    "model": name, "n_parameters": sizes[name],
                    "by_length": [
                        {
                            "shortest": one[0], "longest": one[1], "mean_length": at[one],
                            **{key: scores[key][name][one].mean for key in scores},
                            "intervals": {key: (of[name][one].low, of[name][one].high) for key, of in scores.items()},
                        }
                        for one in scores["bleu"][name]
                    ],
                }
                for name in names
            ],
        },
    )  # fmt: skip


def _mean_length(found: Sequence[Found], one: Bin) -> float:
    points = [p for f in found for p in f.bleu if (p.shortest, p.longest) == one]
    return sum(p.n_words for p in points) / len(points) if points else float(sum(one)) / 2


def bottleneck_sentence(scores: Mapping[str, Mapping[Bin, Spread]], max_words: int | None, n_seeds: int) -> str:
    """What the numbers say, in one sentence: the longest bin that was trained on, or the shortest, against the last."""
    bins = list(next(iter(scores.values())))
    known = [one for one in bins if max_words is not None and one[1] <= max_words] or bins[:1]
    near, far = known[-1], bins[-1]
    begin = say_seeds(n_seeds) + " (95% intervals over sentences in brackets)" * (n_seeds == 1)
    taught = "" if max_words is None else f"taught with sentences of at most {max_words} words, "
    parts = [f"{of[near].write(TENTHS)} and {of[far].write(TENTHS)} with {name}" for name, of in scores.items()]
    return (
        f"{begin}: {taught}BLEU on sentences of {name_bin(near, ' to ')} words and on those of "
        f"{name_bin(far, ' to ')} is {'; '.join(parts)}."
    )


def _chart(
    title: str, scores: Mapping[str, Mapping[Bin, Spread]], at: Mapping[Bin, float], max_words: int | None, over: str
) -> Chart:
    lines = []
    for name, of in scores.items():
        points = tuple((at[one], value.mean) for one, value in of.items())
        band = tuple((at[one], s.low, s.high) for one, s in of.items() if s.low is not None and s.high is not None)
        lines.append(Line(name, points, band))
    taught = f" The models learned from sentences of at most {max_words} words." if max_words is not None else ""
    return Chart(
        f"{title} by length", "words of the source", title, tuple(lines), is_y_log=False, y_limits=(0.0, 103.0),
        measured_at=tuple(at.values()),
        note=f"Test sentences in bins by their length, each at its mean.{taught} Bands are 95% intervals over {over}.",
    )  # fmt: skip


def _table(title: str, scores: Mapping[str, Mapping[Bin, Spread]], sizes: Mapping[str, int], over: str) -> Numbers:
    bins = list(dict.fromkeys(one for of in scores.values() for one in of))
    rows: list[tuple[str, ...]] = [
        (name_bin((low, high)), *(of[low, high].write(TENTHS) if (low, high) in of else "–" for of in scores.values()))
        for low, high in bins
    ]
    rows.append(("parameters", *(f"{sizes[name]:,}" for name in scores)))
    note = f"In brackets 95% intervals over {over}."
    return Numbers(f"{title} by words of the source", ("words", *scores), tuple(rows), note=note)


def _method(
    config: BottleneckConfig, found: Sequence[Found], bins: Sequence[Bin], runs: Sequence[TranslationRun]
) -> dict[str, str]:
    named = config.data if isinstance(config.data, str) else ", ".join(config.data or ())
    n_of = ", ".join(f"{point.n_items}" for point in found[0].bleu)
    if runs:
        models, pairs = brief.describe_runs(runs), named or "each run's own test pairs"
    else:
        models = (
            f"LSTM to LSTM, one layer each side, without attention and with it (MLP), and a Transformer of two layers "
            f"each side, width {config.d_model}; a vocabulary of {VOCAB_SIZE:,} pieces of words (BPE)"
        )
        pairs = (
            named or "the built-in grammar, its kind long: one to six clauses joined by and or but, English to German"
        )
    taught = {} if runs else {
        "Training": f"{config.n_steps:,} updates of {MAX_TOKENS:,} tokens of source and target by `regard train`, "
        f"learning rate {config.lr:g}, the same pairs in the same order for each; no source has more than "
        f"{config.max_words} words",
    }  # fmt: skip
    return {
        "Models": models,
        "Pairs": f"{pairs}; tested on {n_of} in the bins {', '.join(map(name_bin, bins))}",
        **taught,
        "Translation": "greedy: the most probable word at every step; a translation has at most twice as many tokens "
        "as its source, and ten more",
        "Scores": "sacreBLEU's BLEU and chrF of the translations of each bin as a corpus; words are between spaces",
        **brief.describe_seeds(config, runs),
    }
