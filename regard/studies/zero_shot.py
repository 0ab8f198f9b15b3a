"""Zero-shot translation: one model learns A to B, B to A, B to C and C to B, and is then asked for A to C.

A tag before the source, such as <2fr>, says which language is wanted; encoder, decoder and vocabulary are one for all
(Johnson et al. 2017). Side by side:

    zero-shot    A -> C, of which no pair was seen
    pivot        A -> B -> C, with the same model
    supervised   A -> C, with another model that was taught A -> C too

What goes wrong in the first is often the language: the text is in B, which is what followed every A in training. So
next to BLEU the page says in which language each translation is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import read_yaml
from regard.decode.config import BeamConfig
from regard.score.language import LanguageGuesser
from regard.score.translation import bleu, sample_sentences
from regard.studies import brief
from regard.studies.config import ZeroShotConfig
from regard.studies.finding import Chart, Finding, Numbers, lines_of
from regard.studies.fits import TENTHS, Spread, percent, say_seeds, spread, spread_of_scores
from regard.studies.three_languages import (
    Direction,
    Texts,
    count_lines,
    list_tagged_files,
    read_texts,
    tag_of,
    taught_directions,
    write_parts,
)
from regard.studies.trainer import Trainer, Training
from regard.tasks.translation import TranslationRun
from regard.text.learning import Progress
from regard.training.checkpoint import checkpoint_folders
from regard.training.weights import load_weights, read_tensors

WAYS = ("zero-shot", "pivot", "supervised")
VOCAB_SIZE = 2000  # of the small models
N_VALID = 100  # sentences of the grammar for the one score that training asks for
N_GUESSED = 20_000  # sentences from which a language's trigrams are counted, at most
N_EXAMPLES = 4
MAX_RATIO = 2.0  # tokens of a translation for each of its source, and ten more: a model that learned little has no end


@dataclass(frozen=True)
class Way:
    """One way from the first language to the last, after so many updates."""

    name: str
    step: int
    texts: tuple[str, ...]
    bleu: float
    languages: Mapping[str, float]
    """Which share of the texts is in each language."""

    def off(self, wanted: str) -> float:
        """The share of the texts that are not in the wanted language; empty ones are in none."""
        return 1 - self.languages[wanted]


@dataclass(frozen=True)
class Found:
    """All that is measured."""

    ways: tuple[Way, ...]
    taught: tuple[tuple[str, Direction, float], ...]
    """Model, direction and BLEU, for the directions it was taught."""
    recognised: Mapping[str, float]
    """Which share of each language's true sentences is taken for that language."""
    test: Texts
    n_train: int

    def last(self, name: str) -> Way:
        return max((way for way in self.ways if way.name == name), key=lambda way: way.step)


def measure(config: ZeroShotConfig, runs: Sequence[Any], tell: Progress, n_jobs: int = 1) -> Finding:
    """Train a model that never saw a pair of the first and the last language, and one that did; translate with both."""
    given = brief.small_translator(config.d_model, VOCAB_SIZE)
    given["model"]["tying"] = "all"
    if config.recipe is not None:  # without what the study decides
        decided = ("seed", "data", "train", "checkpoint")
        given = {key: value for key, value in read_yaml(Path(config.recipe)).items() if key not in decided}
    trainer = Trainer(tell, n_jobs)
    with brief.open_workplace() as folder:
        plan = {seed: _plan(config, given, seed, folder / str(seed), tell) for seed in brief.list_seeds(config)}
        trainer.train_ahead([training for of in plan.values() for training in of.trainings.values()], folder / "logs")
        return _finding(config, [_measure(config, plan[seed], trainer) for seed in brief.seeds_of(config, runs, tell)])


@dataclass(frozen=True)
class Plan:
    """The sentences of a seed, and the trainings that read them."""

    data: Path
    n_train: int
    taught: Mapping[str, Sequence[Direction]]
    """By model the directions it is taught."""
    trainings: Mapping[str, Training]


def _plan(config: ZeroShotConfig, given: Mapping[str, Any], seed: int, folder: Path, tell: Progress) -> Plan:
    """Write the sentences of a seed into `folder`, and say what is to be trained on them."""
    folder.mkdir()
    data = Path(config.data or folder / "grammar")
    if config.data is None:
        assert config.n_pairs is not None, "the settings refuse it"
        sizes = config.n_pairs * (1 if config.shares_sentences else 3), N_VALID, config.n_test
        brief.write_grammar(data, dict(zip(config.splits, sizes, strict=True)), seed, tell)
    n_of = write_parts(data, folder, config)
    count_lines(data, config.splits[2], config.languages)
    directions = taught_directions(config.languages)
    a, _, c = config.languages
    taught = {"zero-shot": directions, "supervised": (*directions, (a, c))}
    trainings = {model: _plan_training(config, given, seed, folder, model, taught[model]) for model in taught}
    return Plan(data, n_of[config.splits[0]], taught, trainings)


def _measure(config: ZeroShotConfig, plan: Plan, trainer: Trainer) -> Found:
    test = read_texts(plan.data, config.splits[2], config.languages, config.n_test)
    guesser = LanguageGuesser.learn(read_texts(plan.data, config.splits[0], config.languages, N_GUESSED))
    ways: list[Way] = []
    taught: list[tuple[str, Direction, float]] = []
    for model, learned in plan.taught.items():
        run = trainer.train(plan.trainings[model])
        assert isinstance(run, TranslationRun)
        asked = ("zero-shot", "pivot") if model == "zero-shot" else ("supervised",)
        ways += _translate_at_points(config, run, asked, test, guesser, trainer.tell)
        taught += [(model, (x, y), bleu(translate_texts(config, run, test[x], y), test[y]).score) for x, y in learned]
    recognised = {language: guesser.shares(texts)[language] for language, texts in test.items()}
    return Found(tuple(ways), tuple(taught), recognised, test, plan.n_train)


def _plan_training(
    config: ZeroShotConfig, given: Mapping[str, Any], seed: int, folder: Path, model: str,
    directions: Sequence[Direction],
) -> Training:  # fmt: skip
    """The training of a model that is taught these directions, with its weights at every point kept."""
    train, valid, _ = (list_tagged_files(folder, split, directions) for split in config.splits)
    n_between = -(-config.n_steps // config.n_points)
    whole = {
        **given,
        "data": {"train": train, "valid": valid},
        "checkpoint": {"every_steps": n_between, "keep": config.n_points + 1},
    }
    return Training(folder / f"{model}-{seed}", whole, config.n_steps, seed, f"training for {model}")


def _translate_at_points(
    config: ZeroShotConfig,
    run: TranslationRun,
    names: Sequence[str],
    test: Texts,
    guesser: LanguageGuesser,
    tell: Progress,
) -> list[Way]:
    """Each of the ways at each point of the training; the run ends with the weights of the last."""
    a, b, c = config.languages
    ways = []
    for point in brief.watch(f"translating: {', '.join(names)}", checkpoint_folders(run.folder), tell):
        load_weights(run.model, read_tensors(point / "model.safetensors"))
        step = int(point.name.removeprefix("step-"))
        for name in names:
            sources = translate_texts(config, run, test[a], b) if name == "pivot" else test[a]
            texts = translate_texts(config, run, sources, c)
            ways.append(Way(name, step, tuple(texts), bleu(texts, test[c]).score, guesser.shares(texts)))
    return ways


def translate_texts(config: ZeroShotConfig, run: TranslationRun, texts: Sequence[str], language: str) -> list[str]:
    """One text for each; what is longer than the model reads, as a pivot's can be, is not translated, and empty."""
    translator = run.translator(BeamConfig(beam=config.beam, max_ratio=MAX_RATIO), tag=tag_of(language))
    return [best[0].text for best in translator.lines(texts, skips_long=True)]


def _finding(config: ZeroShotConfig, found: Sequence[Found]) -> Finding:
    a, _, c = config.languages
    scores = scores_of(found, c)
    rows = []
    for name in WAYS:
        shares = (spread([f.last(name).languages[language] for f in found]).mean for language in config.languages)
        rows.append((name, scores[name].write(TENTHS), *(f"{100 * share:.0f}%" for share in shares)))
    return Finding(
        question=f"Can a model translate {a} to {c} if it never saw such a pair?",
        sentence=zero_shot_sentence(config.languages, scores, [f.last("zero-shot").off(c) for f in found]),
        charts=_charts(config, found),
        summary=Numbers(
            f"From {a} to {c}: BLEU, and how many of the translations are in each language",
            ("way", "BLEU", *(f"in {language}" for language in config.languages)),
            tuple(rows),
            note=f"In brackets 95% intervals over {'seeds' if len(found) > 1 else 'the test sentences'}. A text that "
            "is empty is in no language; that of a source longer than the model reads is empty.",
        ),
        tables=(
            _taught_table(found),
            Numbers(
                "How well languages are recognised",
                ("language", "recognised"),
                tuple((language, f"{100 * share:.1f}%") for language, share in found[0].recognised.items()),
                note="Of the true test sentences in each language, those that are taken for it.",
            ),
            _examples(config.languages, found[0]),
        ),
        method=_method(config, found[0]),
        numbers={
            "ways": [
                {"seed": seed, "way": way.name, "step": way.step, "bleu": way.bleu, "languages": way.languages}
                for seed, f in enumerate(found, start=config.seed)
                for way in f.ways
            ],
            "intervals": {name: (score.low, score.high) for name, score in scores.items()},
            "taught": [
                {"seed": seed, "model": model, "from": x, "to": y, "bleu": score}
                for seed, f in enumerate(found, start=config.seed)
                for model, (x, y), score in f.taught
            ],
            "recognised": found[0].recognised,
            "texts": {name: found[0].last(name).texts for name in WAYS},
        },
    )


def scores_of(found: Sequence[Found], wanted: str) -> dict[str, Spread]:
    """BLEU of each way with its 95% interval: over seeds, or of one training over draws of the test sentences."""
    if len(found) > 1:
        return {name: spread_of_scores([f.last(name).bleu for f in found]) for name in WAYS}
    last = {name: found[0].last(name) for name in WAYS}
    sure = intervals(last, found[0].test[wanted])
    return {name: Spread(last[name].bleu, *sure[name]) for name in WAYS}


def intervals(ways: Mapping[str, Way], references: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The 95% interval of each BLEU over test sentences."""
    return {name: sample_sentences(ways[name].texts, references).estimate.interval for name in WAYS}


def zero_shot_sentence(languages: Sequence[str], scores: Mapping[str, Spread], off: Sequence[float]) -> str:
    """What the numbers say, in one sentence; `off` is the share in the wrong language, of each seed."""
    a, b, c = languages
    zero, pivot, supervised = (scores[name].write(TENTHS) for name in WAYS)
    begin = say_seeds(len(off)) + " (95% intervals over sentences in brackets)" * (len(off) == 1)
    share = spread(off).mean
    tongue = f"{percent(share)} of it in the wrong language" if share else "all of it in the right language"
    return (
        f"{begin}: from {a} to {c}, of which it saw no pair, the model reaches BLEU {zero} with {tongue}; by way of "
        f"{b} it reaches {pivot}, and a model that was taught {a} to {c} {supervised}."
    )


def _charts(config: ZeroShotConfig, found: Sequence[Found]) -> tuple[Chart, ...]:
    a, b, c = config.languages
    ways = [way for f in found for way in f.ways]
    steps = tuple(sorted({float(way.step) for way in ways}))
    bands = " Bands are 95% intervals over seeds." * (len(found) > 1)
    return (
        Chart(
            f"From {a} to {c} while the models learn", "updates", "BLEU",
            lines_of((way.name, way.step, way.bleu) for way in ways), is_y_log=False,
            y_limits=(0.0, 1.1 * max(way.bleu for way in ways) + 1.0), measured_at=steps,
            note=f"Zero-shot and pivot are one model, taught {a}–{b} and {b}–{c} in both directions: the first asks it "
            f"for {c} at once, the second for {b} and then for {c}. Supervised is another that was taught {a} to {c} "
            f"too.{bands}",
        ),
        Chart(
            "In the wrong language", "updates", "% of translations",
            lines_of((way.name, way.step, 100 * way.off(c)) for way in ways), is_y_log=False,
            y_limits=(-2.0, 103.0), measured_at=steps, note=f"Translations that are not in {c}.",
        ),
    )  # fmt: skip


def _taught_table(found: Sequence[Found]) -> Numbers:
    scores: dict[Direction, dict[str, list[float]]] = {}
    for model, direction, score in (row for f in found for row in f.taught):
        scores.setdefault(direction, {}).setdefault(model, []).append(score)
    rows = tuple(
        (
            f"{x} to {y}",
            *(spread_of_scores(of[m]).write(TENTHS) if m in of else "–" for m in ("zero-shot", "supervised")),
        )
        for (x, y), of in scores.items()
    )
    return Numbers(
        "What the models were taught",
        ("BLEU", "zero-shot and pivot", "supervised"),
        rows,
        note="On the same test sentences. What a pivot can reach is bounded by both of its steps.",
    )


def _examples(languages: Sequence[str], found: Found) -> Numbers:
    a, _, c = languages
    rows = tuple(
        (what, text)
        for i in range(min(N_EXAMPLES, len(found.test[a])))
        for what, text in (
            (a, found.test[a][i]),
            (f"{c}, reference", found.test[c][i]),
            *((name, found.last(name).texts[i]) for name in WAYS),
        )
    )
    return Numbers("Examples", ("", "text"), rows, is_folded=True, note="The first test sentences, as they came.")


def _method(config: ZeroShotConfig, found: Found) -> dict[str, str]:
    a, b, c = config.languages
    own = "the same" if config.shares_sentences else "others"
    where = f"'{config.data}'" if config.data is not None else "the built-in grammar"
    made = (
        f"as `{config.recipe}` says"
        if config.recipe is not None
        else brief.describe_small_translator(config.d_model, VOCAB_SIZE)
    )
    return {
        "Models": f"{made}; {config.n_steps:,} updates each by `regard train`, one vocabulary for all languages, "
        f"{tag_of(b)} and so on before the source",
        "Taught": f"{a}–{b} and {b}–{c} in both directions; the supervised model {a} to {c} too, in as many updates",
        "Texts": f"{where}: {found.n_train:,} sentences for each two languages, {own} for each",
        "Test": f"{len(found.test[a])} sentences, beam {config.beam}; BLEU as sacreBLEU counts it, 13a, with case",
        "One training": "has 95% intervals over test sentences, by the jackknife",
        "Language": "naive Bayes on three characters in a row, counted in the training texts",
        **brief.describe_seeds(config, ()),
    }
