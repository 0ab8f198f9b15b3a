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

import tempfile
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
from regard.studies.finding import Chart, Finding, Line, Numbers
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


def measure(config: ZeroShotConfig, runs: Sequence[Any], tell: Progress) -> Finding:
    """Train a model that never saw a pair of the first and the last language, and one that did; translate with both."""
    given = brief.small_translator(config.d_model, VOCAB_SIZE)
    given["model"]["tying"] = "all"
    if config.recipe is not None:  # without what the study decides
        decided = ("seed", "data", "train", "checkpoint")
        given = {key: value for key, value in read_yaml(Path(config.recipe)).items() if key not in decided}
    with tempfile.TemporaryDirectory(prefix="regard-study-") as name:
        folder = Path(name)
        data = _write_grammar(folder, config, tell) if config.data is None else Path(config.data)
        n_of = write_parts(data, folder, config)
        count_lines(data, config.splits[2], config.languages)
        test = read_texts(data, config.splits[2], config.languages, config.n_test)
        guesser = LanguageGuesser.learn(read_texts(data, config.splits[0], config.languages, N_GUESSED))
        ways: list[Way] = []
        taught: list[tuple[str, Direction, float]] = []
        directions = taught_directions(config.languages)
        a, _, c = config.languages
        for model, learned in (("zero-shot", directions), ("supervised", (*directions, (a, c)))):
            run = _train(config, given, folder, model, learned, tell)
            asked = ("zero-shot", "pivot") if model == "zero-shot" else ("supervised",)
            ways += _translate_at_points(config, run, asked, test, guesser, tell)
            taught += [(model, (x, y), _bleu(translate_texts(config, run, test[x], y), test[y])) for x, y in learned]
        recognised = {language: guesser.shares(texts)[language] for language, texts in test.items()}
        return _finding(config, Found(tuple(ways), tuple(taught), recognised, test, n_of[config.splits[0]]))


def _write_grammar(folder: Path, config: ZeroShotConfig, tell: Progress) -> Path:
    assert config.n_pairs is not None, "the settings refuse it"
    written = folder / "grammar"
    written.mkdir()
    sizes = config.n_pairs * (1 if config.shares_sentences else 3), N_VALID, config.n_test
    brief.write_grammar(written, dict(zip(config.splits, sizes, strict=True)), config.seed, tell)
    return written


def _train(
    config: ZeroShotConfig, given: Mapping[str, Any], folder: Path, model: str, directions: Sequence[Direction],
    tell: Progress,
) -> TranslationRun:  # fmt: skip
    """A model that was taught these directions, with its weights at every point kept."""
    train, valid, _ = (list_tagged_files(folder, split, directions) for split in config.splits)
    n_between = -(-config.n_steps // config.n_points)
    whole = {
        **given,
        "data": {"train": train, "valid": valid},
        "checkpoint": {"every_steps": n_between, "keep": config.n_points + 1},
    }
    what = f"training for {model}"
    return brief.train_pairs(folder / model, whole, n_steps=config.n_steps, seed=config.seed, what=what, tell=tell)


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
    for (point,) in brief.report_batches(f"translating: {', '.join(names)}", checkpoint_folders(run.folder), 1, tell):
        load_weights(run.model, read_tensors(point / "model.safetensors"))
        step = int(point.name.removeprefix("step-"))
        for name in names:
            sources = translate_texts(config, run, test[a], b) if name == "pivot" else test[a]
            texts = translate_texts(config, run, sources, c)
            ways.append(Way(name, step, tuple(texts), _bleu(texts, test[c]), guesser.shares(texts)))
    return ways


def translate_texts(config: ZeroShotConfig, run: TranslationRun, texts: Sequence[str], language: str) -> list[str]:
    """One text for each; what is longer than the model reads, as a pivot's can be, is not translated, and empty."""
    translator = run.translator(BeamConfig(beam=config.beam, max_ratio=MAX_RATIO), tag=tag_of(language))
    return [best[0].text for best in translator.lines(texts, skips_long=True)]


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float:
    return bleu(texts, references).score


def _finding(config: ZeroShotConfig, found: Found) -> Finding:
    a, _, c = config.languages
    last = {name: found.last(name) for name in WAYS}
    sure = intervals(last, found.test[c])
    rows = []
    for name in WAYS:
        low, high = sure[name]
        shares = (f"{100 * last[name].languages[language]:.0f}%" for language in config.languages)
        rows.append((name, f"{last[name].bleu:.1f}", f"{low:.1f} to {high:.1f}", *shares))
    return Finding(
        question=f"Can a model translate {a} to {c} if it never saw such a pair?",
        sentence=zero_shot_sentence(config.languages, last),
        charts=_charts(config, found),
        summary=Numbers(
            f"From {a} to {c}: BLEU, and how many of the translations are in each language",
            ("way", "BLEU", "95% interval", *(f"in {language}" for language in config.languages)),
            tuple(rows),
            note="A text that is empty is in no language; that of a source longer than the model reads is empty.",
        ),
        tables=(_taught_table(found), _recognised_table(found), _examples(config.languages, found, last)),
        method=_method(config, found),
        numbers={
            "ways": [
                {"way": way.name, "step": way.step, "bleu": way.bleu, "languages": way.languages} for way in found.ways
            ],
            "intervals": sure,
            "taught": [
                {"model": model, "from": x, "to": y, "bleu": score} for model, (x, y), score in found.taught
            ],
            "recognised": found.recognised,
            "texts": {name: last[name].texts for name in WAYS},
        },
    )  # fmt: skip


def intervals(ways: Mapping[str, Way], references: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The 95% interval of each BLEU over test sentences."""
    return {name: sample_sentences(ways[name].texts, references).estimate.interval for name in WAYS}


def zero_shot_sentence(languages: Sequence[str], last: Mapping[str, Way]) -> str:
    """What the numbers say, in one sentence."""
    a, b, c = languages
    zero = last["zero-shot"]
    off = _off(zero, c)
    tongue = f"{_share(off)} of it in the wrong language" if off else "all of it in the right language"
    return (
        f"From {a} to {c}, of which it saw no pair, the model reaches BLEU {zero.bleu:.1f} with {tongue}; "
        f"by way of {b} it reaches {last['pivot'].bleu:.1f}, and a model that was taught {a} to {c} "
        f"{last['supervised'].bleu:.1f}."
    )


def _off(way: Way, wanted: str) -> float:
    """The share of the texts that are not in the wanted language; empty ones are in none."""
    return 1 - way.languages[wanted]


def _share(share: float) -> str:
    """A share for a sentence: neither nothing nor all is said of a part.

    >>> _share(0.002), _share(0.25), _share(0.998), _share(1.0)
    ('under 1%', '25%', 'over 99%', '100%')
    """
    if 0 < share < 0.01:
        return "under 1%"
    return "over 99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def _ways_note(languages: Sequence[str]) -> str:
    a, b, c = languages
    return (
        f"Zero-shot and pivot are one model, taught {a}–{b} and {b}–{c} in both directions: the first asks it for {c} "
        f"at once, the second for {b} and then for {c}. Supervised is another that was taught {a} to {c} too."
    )


def _charts(config: ZeroShotConfig, found: Found) -> tuple[Chart, ...]:
    a, _, c = config.languages
    by_way = {name: sorted((w for w in found.ways if w.name == name), key=lambda w: w.step) for name in WAYS}
    steps = tuple(float(way.step) for way in by_way["zero-shot"])
    scores = [Line(name, tuple((float(way.step), way.bleu) for way in ways)) for name, ways in by_way.items()]
    off = [Line(name, tuple((float(way.step), 100 * _off(way, c)) for way in ways)) for name, ways in by_way.items()]
    return (
        Chart(
            f"From {a} to {c} while the models learn", "updates", "BLEU", tuple(scores), is_y_log=False,
            y_limits=(0.0, 1.1 * max(way.bleu for way in found.ways) + 1.0), measured_at=steps,
            note=_ways_note(config.languages),
        ),
        Chart(
            "In the wrong language", "updates", "% of translations", tuple(off), is_y_log=False,
            y_limits=(-2.0, 103.0), measured_at=steps, note=f"Translations that are not in {c}.",
        ),
    )  # fmt: skip


def _taught_table(found: Found) -> Numbers:
    directions = list(dict.fromkeys(direction for _, direction, _ in found.taught))
    scores = {(model, direction): score for model, direction, score in found.taught}
    rows = tuple(
        (f"{x} to {y}", *(_score(scores.get((model, (x, y)))) for model in ("zero-shot", "supervised")))
        for x, y in directions
    )
    return Numbers(
        "What the models were taught",
        ("BLEU", "zero-shot and pivot", "supervised"),
        rows,
        note="On the same test sentences. What a pivot can reach is bounded by both of its steps.",
    )


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.1f}"


def _recognised_table(found: Found) -> Numbers:
    rows = tuple((language, f"{100 * share:.1f}%") for language, share in found.recognised.items())
    return Numbers(
        "How well languages are recognised",
        ("language", "recognised"),
        rows,
        note="Of the true test sentences in each language, those that are taken for it.",
    )


def _examples(languages: Sequence[str], found: Found, last: Mapping[str, Way]) -> Numbers:
    a, _, c = languages
    rows = tuple(
        (what, text)
        for i in range(min(N_EXAMPLES, len(found.test[a])))
        for what, text in (
            (a, found.test[a][i]),
            (f"{c}, reference", found.test[c][i]),
            *((name, last[name].texts[i]) for name in WAYS),
        )
    )
    return Numbers("Examples", ("", "text"), rows, is_folded=True, note="The first test sentences, as they came.")


def _method(config: ZeroShotConfig, found: Found) -> tuple[tuple[str, str], ...]:
    a, b, c = config.languages
    own = "the same" if config.shares_sentences else "others"
    where = f"'{config.data}'" if config.data is not None else "the built-in grammar"
    made = (
        f"as `{config.recipe}` says"
        if config.recipe is not None
        else brief.describe_small_translator(config.d_model, VOCAB_SIZE)
    )
    return (
        (
            "Models",
            f"{made}; {config.n_steps:,} updates each by `regard train`, one vocabulary for all languages, {tag_of(b)} "
            f"and so on before the source",
        ),
        ("Taught", f"{a}–{b} and {b}–{c} in both directions; the supervised model {a} to {c} too, in as many updates"),
        ("Texts", f"{where}: {found.n_train:,} sentences for each two languages, {own} for each"),
        ("Test", f"{len(found.test[a])} sentences, beam {config.beam}; BLEU as sacreBLEU counts it, 13a, with case"),
        ("Intervals", "1,000 draws of the test sentences with replacement (Koehn 2004); one training a model"),
        ("Language", "naive Bayes on three characters in a row, counted in the training texts"),
        ("Seed", str(config.seed)),
    )
