"""BLEU and chrF of a text against one or several references, as sacreBLEU counts them.

Scores of different tokenizations do not compare, so every score carries sacreBLEU's signature: who prints the same
signature computed the same thing, and its own command line gives the same number on the same files.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.errors import RegardError, nearest
from regard.score.significance import Sample, take_sample

References = Sequence[str] | Sequence[Sequence[str]]
"""What each hypothesis is compared with: one text for each, or a list of texts for each, of any lengths."""

TOKENIZERS = ("13a", "intl", "char", "zh", "none")  # those of sacreBLEU's that need no further package or download
MANY_ENDS = 100  # so many hypotheses that end in " ." are tokenized text, as sacreBLEU has it


@dataclass(frozen=True, kw_only=True)
class BleuScore:
    """BLEU = 100 · BP · exp(mean over n = 1 ... 4 of log p_n), all between 0 and 100 (Papineni et al. 2002).

    p_n is the share of the hypotheses' n-grams that some reference has (each counted as often as one reference has it
    at most), and BP = min(1, exp(1 - r / h)) for h words against the r of the references of nearest length.
    """

    score: float
    precisions: tuple[float, ...]
    """p_1 ... p_4, in percent."""
    brevity_penalty: float
    n_words: int
    n_reference_words: int
    n_sentences: int
    looks_tokenized: bool
    """Many hypotheses end in " .": the text was split into words, and compares with no published score."""
    signature: str

    @property
    def up_to(self) -> tuple[float, ...]:
        """BLEU-1 ... BLEU-4 as papers on captions print them: only n-grams up to that order count."""
        logs = [math.log(p) if p > 0 else -math.inf for p in self.precisions]
        return tuple(self.brevity_penalty * math.exp(sum(logs[:n]) / n) for n in range(1, len(logs) + 1))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"precisions": list(self.precisions), "up_to": list(self.up_to)}

    def __str__(self) -> str:
        shares = "/".join(f"{p:.1f}" for p in self.precisions)
        return (
            f"BLEU {self.score:.2f} ({shares}, brevity penalty {self.brevity_penalty:.3f}, "
            f"{self.n_words:,} words against {self.n_reference_words:,}; {self.signature})"
        )


@dataclass(frozen=True, kw_only=True)
class ChrfScore:
    """chrF = 100 · (1 + β²) P R / (β² P + R) over n-grams of 1 to 6 characters, β = 2 (Popović 2015)."""

    score: float
    n_sentences: int
    signature: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return f"chrF {self.score:.2f} ({self.signature})"


def bleu(
    hypotheses: Sequence[str], references: References, *, tokenizer: str = "13a", is_lowercase: bool = False
) -> BleuScore:
    """Of a whole corpus, with upper and lower case unless told otherwise.

    Every pair, triple and four is in one of the references, but none of them has `the` twice:

    >>> score = bleu(["the cat sat on the mat"], [["the cat sat on a mat", "a cat sat on the mat"]])
    >>> [round(p, 1) for p in score.precisions], score.brevity_penalty
    ([83.3, 100.0, 100.0, 100.0], 1.0)
    >>> score.signature.rsplit("|", 1)[0]
    'nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp'
    """
    metric = bleu_metric(tokenizer=tokenizer, is_lowercase=is_lowercase)
    found = metric.corpus_score(list(hypotheses), streams(hypotheses, references))
    return BleuScore(
        score=float(found.score),
        precisions=tuple(float(p) for p in found.precisions),
        brevity_penalty=float(found.bp),
        n_words=int(found.sys_len),
        n_reference_words=int(found.ref_len),
        n_sentences=len(hypotheses),
        looks_tokenized=sum(text.rstrip().endswith(" .") for text in hypotheses) >= MANY_ENDS,
        signature=str(metric.get_signature()),
    )


def chrf(hypotheses: Sequence[str], references: References, *, is_lowercase: bool = False) -> ChrfScore:
    """Of a whole corpus, with upper and lower case unless told otherwise.

    >>> round(chrf(["abc"], ["abd"]).score, 1)  # P = R: 2/3 of the letters, 1/2 of the pairs, none of the triples
    38.9
    """
    metric = CHRF(lowercase=is_lowercase)
    found = metric.corpus_score(list(hypotheses), streams(hypotheses, references))
    return ChrfScore(score=float(found.score), n_sentences=len(hypotheses), signature=str(metric.get_signature()))


def bleu_metric(*, tokenizer: str = "13a", is_lowercase: bool = False) -> BLEU:
    if tokenizer not in TOKENIZERS:
        raise RegardError(
            f"BLEU's tokenizer must be one of {', '.join(TOKENIZERS)}, not '{tokenizer}'."
            f"{nearest(tokenizer, TOKENIZERS)}"
        )
    # force: what looks tokenized is in the result, where a warning on stderr would be lost
    return BLEU(tokenize=tokenizer, lowercase=is_lowercase, force=True)


def sample_sentences(hypotheses: Sequence[str], references: References, *, tokenizer: str = "13a") -> Sample:
    """The BLEU of a system, whole and without each sentence.

    >>> one, other = (sample_sentences([text, "a b c d"], ["a b c d", "a b c d"]) for text in ("a b c d", "a b x d"))
    >>> (one - other).value > 0, round(one.estimate.value), (one - one).p
    (True, 100, 1.0)
    """
    scorer = bleu_metric(tokenizer=tokenizer)
    counts = statistics_of(scorer, hypotheses, references)
    return take_sample(score_by(scorer), counts[None], range(len(counts)))


def statistics_of(scorer: Metric, hypotheses: Sequence[str], references: References) -> NDArray[np.int64]:
    """What sacreBLEU counts in each sentence, so that the score of any set of sentences is that of a sum: (n, k)."""
    counted = scorer._extract_corpus_statistics(list(hypotheses), streams(hypotheses, references))
    return np.array(counted, dtype=np.int64)


def score_by(scorer: Metric) -> Callable[[NDArray[np.int64]], float]:
    """sacreBLEU's score of what it counted, (k,)."""
    return lambda summed: float(scorer._compute_score_from_stats(summed.tolist()).score)


def streams(hypotheses: Sequence[str], references: References) -> list[list[Any]]:
    """The references as sacreBLEU takes them: first ones, second ones, ..., None where a sentence has no more.

    sacreBLEU reads None as no reference, though its types deny it.

    >>> streams(["x", "y"], [["a", "b"], ["c"]])
    [['a', 'c'], ['b', None]]
    """
    _check(hypotheses, references)
    lists = [[given] if isinstance(given, str) else list(given) for given in references]
    for number, given in enumerate(lists, 1):
        if not given:
            raise RegardError(f"Sentence {number} has no reference: give at least one for every hypothesis.")
    longest = max(len(given) for given in lists)
    return [[given[i] if i < len(given) else None for given in lists] for i in range(longest)]


def _check(hypotheses: Sequence[str], references: References) -> None:
    for name, given in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(given, str):
            raise RegardError(f"The {name} must be a list of sentences, not one text: give [text].")
    if len(hypotheses) != len(references):
        raise RegardError(
            f"There are {len(hypotheses):,} hypotheses and references for {len(references):,} sentences. Give one "
            "entry for every hypothesis: a text, or a list of texts where it has several references."
        )
    if not hypotheses:
        raise RegardError("There is nothing to score: no hypothesis was given. Give at least one sentence.")
