"""The settings of every study. This file imports no torch, so that settings are read and checked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import RegardError, nearest
from regard.settings import Settings, setting
from regard.training.config import check_device
from regard.training.teaching_config import MODES

_DATA = "text to measure on, as --data of `regard train`; null: python-docs, or each run's own held-out text"
_SEED = "seed of weights, batches and draws; the same seed gives the same numbers on a CPU"
_SEEDS = "trainings of each model, with seeds `seed`, `seed` + 1 and so on; two or more give intervals"
MOST_SEEDS = 1000  # more would change no interval that is shown
SPLITS = ("train", "valid", "test")
MOST_WORDS = 60  # of long sentences of the built-in grammar that are drawn often enough
N_HEADS = 4  # of attention, in the models that a study makes
_DEVICE = "auto, cpu, cuda or cuda:N; auto takes a GPU where there is one"


@dataclass(frozen=True, kw_only=True)
class GradientsConfig(Settings):
    """How the gradient of a prediction fades with distance."""

    models: tuple[str, ...] = setting(
        ("bag", "rnn", "lstm", "rnn-attention", "attention"), "models to make where no --run is given"
    )
    data: str | None = setting(None, _DATA)
    n_steps: int = setting(500, "updates of the brief training; 0: fresh models only", low=0)
    d_model: int = setting(64, "width of the models", low=4)
    n_layers: int = setting(1, "layers of the models", low=1)
    max_distance: int = setting(64, "steps back that are looked at", low=4)
    n_texts: int = setting(256, "positions averaged over, each in a text of its own", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(5, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[rnn, lstm]")


@dataclass(frozen=True, kw_only=True)
class ByHandConfig(Settings):
    """Attention worked by hand."""

    base: float = setting(3.0, "what e is taken as in the example A A B A, to count in the head", low=1.01)
    bandwidth: float = setting(0.6, "width h of the kernel in the regression", low=0.01)


@dataclass(frozen=True, kw_only=True)
class ABConfig(Settings):
    """The A/B task: was there any B?"""

    models: tuple[str, ...] = setting(("bag", "rnn", "lstm", "attention"), "models that try")
    lengths: tuple[int, ...] = setting((10, 30, 100, 300, 1000), "lengths of the sequences", low=2)
    d_model: int = setting(32, "width of the models; a multiple of 4", low=4)
    n_steps: int = setting(150, "updates at most, for each model, length and learning rate", low=1)
    n_batch: int = setting(16, "sequences an update", low=2)
    rates: tuple[float, ...] = setting((0.01, 0.003), "learning rates, each tried with every seed", low=1e-6)
    n_test: int = setting(500, "sequences each accuracy is measured on", low=10)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(5, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[rnn, lstm]")
        check_listed("lengths", self.lengths, "[10, 100]")
        check_listed("rates", self.rates, "[0.01]")
        _check_heads(self.d_model)


@dataclass(frozen=True, kw_only=True)
class RecencyConfig(Settings):
    """How far back a token can be and still change the prediction."""

    models: tuple[str, ...] = setting(
        ("ngram", "window", "rnn", "lstm", "transformer"), "models to make where no --run is given"
    )
    data: str | None = setting(None, _DATA)
    n_steps: int = setting(1500, "updates of the brief training", low=1)
    d_model: int = setting(64, "width of the models; a multiple of 4", low=4)
    max_distance: int = setting(64, "tokens back that are looked at", low=2)
    n_texts: int = setting(200, "texts in which tokens are replaced", low=2)
    threshold: float = setting(
        0.01, "an effect counts while it is at least this share of the last token's", low=1e-9, high=1.0
    )
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[rnn, lstm]")
        _check_heads(self.d_model)


@dataclass(frozen=True, kw_only=True)
class CostConfig(Settings):
    """Time and memory of one layer by length and by width."""

    # From about 1,500 tokens on the weights of plain attention are larger than a cache, and time grows evenly.
    lengths: tuple[int, ...] = setting((640, 1024, 1600, 2560, 4096), "lengths n, at width `d_fixed`", low=8)
    # On a CPU the overhead of a recurrent step, some 45 µs, hides d² up to a width of about 400, and from 2,000
    # on its weights leave the cache.
    widths: tuple[int, ...] = setting((160, 256, 400, 640, 1024), "widths d, at length `n_fixed`", low=4)
    d_fixed: int = setting(64, "the width while the length grows", low=4)
    n_fixed: int = setting(1024, "the length while the width grows", low=8)
    n_window: int = setting(64, "r: tokens that restricted attention sees", low=1)
    n_kernel: int = setting(3, "k: tokens that the convolution sees", low=1)
    n_largest: int = setting(3, "exponents are fitted to so many of the largest sizes", low=3)
    n_repeats: int = setting(8, "measurements of each size, in turns; the shortest counts", low=1)
    has_projections: bool = setting(False, "measure attention with the d x d products that make q, k, v and output")
    device: str = setting("auto", _DEVICE)

    def check(self) -> None:
        check_device(self.device)
        for name in ("lengths", "widths"):
            sizes = list(getattr(self, name))
            if len(sizes) < 2 or sizes != sorted(set(sizes)):
                raise RegardError(f"{name} must be two or more sizes, each larger than the one before, not {sizes}.")


@dataclass(frozen=True, kw_only=True)
class ExposureConfig(Settings):
    """What a model loses where it reads its own words in place of the true ones."""

    modes: tuple[str, ...] = setting(
        ("teacher", "scheduled", "free"), "ways of teaching, a model each, where no --run is given"
    )
    data: str | tuple[str, ...] | None = setting(
        None,
        "pairs to train and measure on, as data.train of `regard train`: one TSV or two aligned files; null: the "
        "built-in grammar, English to German, or each run's own held-out pairs",
    )
    n_pairs: int = setting(4000, "sentences of the grammar to learn from", low=10)
    n_steps: int = setting(600, "updates of the brief training", low=1)
    d_model: int = setting(128, "width of the models; even", low=4)
    n_texts: int = setting(300, "held-out pairs to measure on, at most", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("modes", self.modes, "[teacher, free]")
        for mode in self.modes:
            if mode not in MODES:
                raise RegardError(f"modes must be out of {', '.join(MODES)}, not '{mode}'.{nearest(mode, MODES)}")
        _check_even(self.d_model)


@dataclass(frozen=True, kw_only=True)
class ZeroShotConfig(Settings):
    """Translation between two languages of which no pair was seen."""

    data: str | None = setting(
        None, "a folder of aligned files, such as train.en, train.de and train.fr; null: the built-in grammar"
    )
    languages: tuple[str, str, str] = setting(
        ("en", "de", "fr"), "from, by way of, into: the endings of the files. The first and the last never meet"
    )
    splits: tuple[str, str, str] = setting(
        SPLITS, "what the files to learn from, to watch and to measure on are called"
    )
    n_pairs: int | None = setting(3000, "sentences for each two languages; null: as many as there are", low=10)
    shares_sentences: bool = setting(
        False, "the same sentences for each two languages; false: different ones, so that none is in all three"
    )
    recipe: str | None = setting(
        None, "a YAML file of `regard train` that says how both models are made and taught; null: small ones"
    )
    n_steps: int = setting(2000, "updates of each model", low=1)
    d_model: int = setting(128, "width of the small models; even", low=4)
    n_test: int = setting(300, "sentences to translate, at most", low=2)
    n_points: int = setting(5, "how often each model is measured while it learns, the end included", low=1)
    beam: int = setting(1, "width of the beam search; 1: greedy", low=1)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(1, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("languages", self.languages, "[en, de, fr]")
        check_listed("splits", self.splits, "[train, val, test]")
        wrong = next((name for name in self.languages if not name.isalnum()), None)
        if wrong is not None:
            raise RegardError(f"languages must be short names of letters, such as en, not {wrong!r}.")
        if self.data is None and set(self.languages) != {"en", "de", "fr"}:
            raise RegardError(
                f"The built-in grammar writes en, de and fr, not {', '.join(self.languages)}. Name a folder with files "
                "in these languages: --set data=FOLDER."
            )
        if self.data is None and self.splits != SPLITS:
            raise RegardError("splits names files of a folder, and none is given: leave it out, or --set data=FOLDER.")
        if self.data is None and self.n_pairs is None:
            raise RegardError("n_pairs is null, and the built-in grammar has no end: say how many sentences to take.")
        _check_even(self.d_model)


TRANSLATORS = ("no attention", "attention", "Transformer")


@dataclass(frozen=True, kw_only=True)
class BottleneckConfig(Settings):
    """Translation by the length of the source, with attention and without."""

    models: tuple[str, ...] = setting(TRANSLATORS, "translators to make where no --run is given")
    data: str | tuple[str, ...] | None = setting(
        None,
        "pairs to train and measure on, as data.train of `regard train`: one TSV or two aligned files; null: long "
        "sentences of the built-in grammar, English to German, or each run's own test pairs",
    )
    max_words: int = setting(15, "words of the longest source to learn from", low=3)
    lengths: tuple[int, ...] = setting(
        (8, 15, 22, 30, 40, 50),
        "words of the longest source of each bin that is measured, of the built-in grammar",
        low=3,
    )
    n_pairs: int = setting(5000, "sentences of the grammar to learn from", low=10)
    n_steps: int = setting(1500, "updates of each training", low=1)
    lr: float = setting(0.003, "learning rate", low=1e-6)
    d_model: int = setting(128, "width of the models; a multiple of 4", low=4)
    n_test: int = setting(80, "test sentences of each bin, at most", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[no attention, attention]")
        for name in self.models:
            if name not in TRANSLATORS:
                raise RegardError(
                    f"models must be out of {', '.join(TRANSLATORS)}, not '{name}'.{nearest(name, TRANSLATORS)}"
                )
        if list(self.lengths) != sorted(set(self.lengths)) or len(self.lengths) < 2:
            raise RegardError(
                "lengths must be two or more numbers of words, each larger than the one before, not "
                f"{list(self.lengths)}."
            )
        if self.data is None and self.lengths[-1] > MOST_WORDS:
            raise RegardError(
                f"lengths ends with {self.lengths[-1]}, and the built-in grammar writes too few sentences of more than "
                f"{MOST_WORDS} words. End it there, or give longer ones: --set data=PAIRS."
            )
        _check_heads(self.d_model)


@dataclass(frozen=True, kw_only=True)
class CopyingConfig(Settings):
    """The loss of words seen before and of new ones, with a pointer and without."""

    data: str | None = setting(None, _DATA)
    vocab_size: int = setting(4096, "words that the models know, the most frequent ones", low=100)
    d_model: int = setting(128, "width of the models", low=4)
    max_memory: int = setting(128, "places back that the pointer can copy from", low=1)
    n_steps: int = setting(1500, "updates of each training", low=1)
    n_tokens: int = setting(512, "tokens of a passage", low=8)
    n_texts: int = setting(200, "passages to measure on, at most", low=2)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)


@dataclass(frozen=True, kw_only=True)
class FaithfulnessConfig(Settings):
    """Whether attention explains what a model says."""

    models: tuple[str, ...] = setting(
        ("bag", "lstm", "transformer", "language-model"),
        "models to make where no --run is given: classifiers that pool by attention, and language-model, a Transformer",
    )
    data: str = setting("grammar:en-sentiment:3000", "labelled sentences that the classifiers learn from")
    n_texts: int = setting(20, "predictions of each model that are asked about", low=1)
    n_permutations: int = setting(50, "permutations of the attention of each prediction", low=1)
    n_steps: int = setting(300, "updates of each training", low=1)
    d_model: int = setting(32, "width of the models; a multiple of 4", low=4)
    seed: int = setting(0, _SEED, low=0)
    n_seeds: int = setting(3, _SEEDS, low=1, high=MOST_SEEDS)

    def check(self) -> None:
        check_listed("models", self.models, "[lstm, transformer]")
        known = ("bag", "rnn", "gru", "lstm", "convolution", "transformer", "language-model")
        for name in self.models:
            if name not in known:
                raise RegardError(
                    f"models are some of {', '.join(known)}, not '{name}'.{nearest(name, known)} Other models can be "
                    "given as runs: --run."
                )


def _check_even(d_model: int) -> None:
    if d_model % 2:
        raise RegardError(f"d_model must be even, half for each direction of the encoder, not {d_model}.")


def check_listed(name: str, values: Sequence[object], example: str) -> None:
    """Refuse a list that names nothing, or one thing twice."""
    if not values:
        raise RegardError(f"{name} must name at least one, such as {name}={example}, not [].")
    twice = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if twice is not None:
        raise RegardError(f"{name} names {twice} twice; leave one out.")


def _check_heads(d_model: int) -> None:
    if d_model % N_HEADS:
        raise RegardError(f"d_model must be a multiple of {N_HEADS}, the number of attention heads, not {d_model}.")
