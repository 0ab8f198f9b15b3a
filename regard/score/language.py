"""Which language is a text in? Naive Bayes on the three characters at every place, learned from the texts at hand.

    log P(text | language) = Σ over trigrams c of text of log (n(c, language) + 1) / (n(language) + C)

n counts trigrams of the language's texts, C is the number of different trigrams in all of them and one more, which
stands for those never seen; no language is likelier than another beforehand (Cavnar & Trenkle 1994 rank the same
n-grams; Dunning 1994 gives them probabilities). It is made to tell the few languages of one model apart, not to
recognise any in the world.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from regard.errors import RegardError


class LanguageGuesser:
    """Tells the languages apart whose texts it was shown."""

    def __init__(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """`counts` are those of every language's trigrams."""
        if len(counts) < 2:
            raise RegardError(
                f"Texts in {', '.join(counts) or 'no language'} were given: to tell languages apart, give texts in "
                "two or more."
            )
        self.languages = tuple(counts)
        self._counts = counts
        n_kinds = len(set().union(*counts.values())) + 1
        self._log_total = {language: math.log(sum(seen.values()) + n_kinds) for language, seen in counts.items()}

    @classmethod
    def learn(cls, texts: Mapping[str, Iterable[str]]) -> LanguageGuesser:
        """From texts in each language.

        >>> guesser = LanguageGuesser.learn({"en": ["the cat sleeps"], "de": ["die Katze schläft"]})
        >>> guesser.guess("the sheep"), guesser.guess("die Katzen"), guesser.guess(" ")
        ('en', 'de', None)
        """
        counts: dict[str, Counter[str]] = {}
        for language, given in texts.items():
            counts[language] = Counter(trigram for text in given for trigram in trigrams(text))
            if not counts[language]:
                raise RegardError(f"There is no text in '{language}' to learn the language from: give it some.")
        return cls(counts)

    def log_probs(self, text: str) -> dict[str, float]:
        """log P(language | text) for each."""
        seen = Counter(trigrams(text))
        joint = {
            language: sum(n * (math.log(counts.get(c, 0) + 1) - self._log_total[language]) for c, n in seen.items())
            for language, counts in self._counts.items()
        }
        most = max(joint.values())
        total = most + math.log(sum(math.exp(value - most) for value in joint.values()))
        return {language: value - total for language, value in joint.items()}

    def guess(self, text: str) -> str | None:
        """The likeliest language; None for a text of nothing but white space."""
        if not text.strip():
            return None
        found = self.log_probs(text)
        return max(found, key=found.__getitem__)

    def shares(self, texts: Iterable[str]) -> dict[str, float]:
        """Which part of the texts is in each language; what is empty is in none.

        >>> guesser = LanguageGuesser.learn({"en": ["the cat sleeps"], "de": ["die Katze schläft"]})
        >>> guesser.shares(["the cat", "the sheep", "die Katze", ""])
        {'en': 0.5, 'de': 0.25}
        """
        found = [self.guess(text) for text in texts]
        if not found:
            raise RegardError("There is no text whose language could be guessed: give at least one.")
        return {language: found.count(language) / len(found) for language in self.languages}


def trigrams(text: str) -> Iterator[str]:
    """Every three characters in a row, in lower case, with a space around every word.

    >>> list(trigrams("A  cat"))
    [' a ', 'a c', ' ca', 'cat', 'at ']
    """
    words = " ".join(text.lower().split())
    spaced = f" {words} " if words else ""
    return (spaced[i : i + 3] for i in range(len(spaced) - 2))
