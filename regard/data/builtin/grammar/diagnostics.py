"""Small tasks whose every failure is easy to read: rewriting dates and numbers, reversing, copying.

Each task yields (source, target) pairs of words. Pair i is a pure function of (seed, split, i), and the splits hold
out combinations as those of the grammar do (held_out.py): a day with its month, a number as a
whole, two words side by side. Every word of the test pairs is in training pairs; their combinations are not.

>>> list(dates("train", 1)) == list(dates("train", 1))
True
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import NamedTuple

from regard.data.builtin.grammar.held_out import ONE_IN, belongs, check_split, draw_until, find_split
from regard.data.builtin.grammar.lexicon import NOUNS

ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
            "twelve": "twelfth"}  # fmt: skip
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
YEARS = (1900, 2049)
MAX_WORDS = 12
MAX_DIGITS = 7
ENOUGH_NUMBERS = 100
_WORDS = [name for name, noun in NOUNS.items() if " " not in name and not noun.is_mass][:120]


class Pair(NamedTuple):
    """What is read and what is to be written, both as words with spaces between."""

    source: str
    target: str


Drawn = tuple[Pair, Collection[Hashable]]


def dates(split: str, n: int, seed: int = 0) -> Iterator[Pair]:
    """A date in one of seven ways of writing it -> 2021-05-03."""
    return _task("dates", _date, split, n, seed)


def numbers(split: str, n: int, seed: int = 0) -> Iterator[Pair]:
    """A number below ten million in words or figures -> its digits."""
    return _task("numbers", lambda random: _number(random, split), split, n, seed)


def reversal(split: str, n: int, seed: int = 0) -> Iterator[Pair]:
    """Two to twelve words -> the same, the last first."""
    return _task("reversal", lambda random: _sequence(random, lambda words: words[::-1]), split, n, seed)


def copying(split: str, n: int, seed: int = 0) -> Iterator[Pair]:
    """Two to twelve words -> the same."""
    return _task("copying", lambda random: _sequence(random, lambda words: words), split, n, seed)


TASKS: dict[str, Callable[[str, int, int], Iterator[Pair]]] = {
    "dates": dates,
    "numbers": numbers,
    "reversal": reversal,
    "copying": copying,
}


def _task(name: str, draw: Callable[[Random], Drawn], split: str, n: int, seed: int) -> Iterator[Pair]:
    check_split(split)

    def accept(random: Random) -> Pair | None:
        pair, combinations = draw(random)
        return pair if belongs(combinations, split) else None

    return (draw_until(accept, name, seed, split, i) for i in range(n))


def _date(random: Random) -> Drawn:
    year, month = random.randint(*YEARS), random.randint(1, 12)
    day = random.randint(1, calendar.monthrange(year, month)[1])
    name, nth = MONTHS[month - 1], spell_ordinal(day)
    suffix = "th" if 10 < day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    ways = (
        f"the {nth} of {name} {year}",
        f"the {nth} of {name} {spell_year(year)}",
        f"{name} the {nth} , {spell_year(year)}",
        f"{name} {day} , {year}",
        f"{day} {name} {year}",
        f"{day}{suffix} {name[:3]} {year}",
        f"{name} {day}{suffix} , {year}",
    )
    return Pair(random.choice(ways), f"{year}-{month:02}-{day:02}"), [("date", day, month)]


def _number(random: Random, split: str) -> Drawn:
    """The number of digits is drawn first, so that small numbers come too; then one of the split's numbers, evenly."""
    (n_digits,) = random.choices(range(1, MAX_DIGITS + 1), _share_of_lengths(split))
    while True:
        number = random.choice(_of_length(n_digits))
        if find_split(("number", number)) == split:
            break
    ways = (spell_number(number), spell_number(number, says_and=False), f"{number:,}")
    return Pair(random.choice(ways), str(number)), [("number", number)]


def _of_length(n_digits: int) -> range:
    return range(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits)


@cache
def _share_of_lengths(split: str) -> list[float]:
    """How often each length is drawn: alike, but less where the split has few numbers of it, lest these fill it.

    Of ten numbers with one digit validation has 0 alone: drawn as often as other lengths, it would be a sixth of all.
    """
    shares = []
    for n_digits in range(1, MAX_DIGITS + 1):
        numbers = _of_length(n_digits)[: 2 * ENOUGH_NUMBERS * ONE_IN]  # where there are so many, any split has enough
        shares.append(min(1.0, sum(find_split(("number", n)) == split for n in numbers) / ENOUGH_NUMBERS))
    return shares


def _sequence(random: Random, change: Callable[[list[str]], Sequence[str]]) -> Drawn:
    words = random.choices(_WORDS, k=random.randint(2, MAX_WORDS))
    return Pair(" ".join(words), " ".join(change(words))), list(pairwise(words))


def spell_below_hundred(n: int) -> str:
    """
    >>> spell_below_hundred(7), spell_below_hundred(40), spell_below_hundred(42)
    ('seven', 'forty', 'forty-two')
    """
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")


def spell_below_thousand(n: int, says_and: bool = True) -> str:
    """
    >>> spell_below_thousand(305), spell_below_thousand(305, says_and=False), spell_below_thousand(300)
    ('three hundred and five', 'three hundred five', 'three hundred')
    """
    if n < 100:
        return spell_below_hundred(n)
    rest = n % 100
    link = " and " if says_and else " "
    return f"{ONES[n // 100]} hundred" + (link + spell_below_hundred(rest) if rest else "")


def spell_number(n: int, says_and: bool = True) -> str:
    """Any number below a thousand million.

    >>> spell_number(2_000_017), spell_number(41_500, says_and=False)
    ('two million and seventeen', 'forty-one thousand five hundred')
    """
    millions, thousands, rest = n // 1_000_000, n // 1000 % 1000, n % 1000
    parts = [f"{spell_below_thousand(millions, says_and)} million"] if millions else []
    if thousands:
        parts.append(f"{spell_below_thousand(thousands, says_and)} thousand")
    if rest or not parts:
        is_small = bool(parts) and 0 < rest < 100 and says_and
        parts.append(("and " if is_small else "") + spell_below_thousand(rest, says_and))
    return " ".join(parts)


def spell_ordinal(n: int) -> str:
    """The number of a day.

    >>> spell_ordinal(3), spell_ordinal(20), spell_ordinal(31)
    ('third', 'twentieth', 'thirty-first')
    """
    *before, last = spell_below_hundred(n).split("-")
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return "-".join([*before, ORDINALS.get(last, regular)])


def spell_year(year: int) -> str:
    """As it is read aloud, from 1100 to 2099.

    >>> spell_year(1984), spell_year(1905), spell_year(1900), spell_year(2007), spell_year(2021)
    ('nineteen eighty-four', 'nineteen oh five', 'nineteen hundred', 'two thousand and seven', 'twenty twenty-one')
    """
    century, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return spell_number(year)
    if rest == 0:
        return f"{spell_below_hundred(century)} hundred"
    return f"{spell_below_hundred(century)} {'oh ' if rest < 10 else ''}{spell_below_hundred(rest)}"
