"""Numbers and days in English words."""

from __future__ import annotations

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
            "twelve": "twelfth"}  # fmt: skip
MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip


def below_hundred(n: int) -> str:
    """
    >>> below_hundred(7), below_hundred(40), below_hundred(42)
    ('seven', 'forty', 'forty-two')
    """
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")


def below_thousand(n: int, says_and: bool = True) -> str:
    """
    >>> below_thousand(305), below_thousand(305, says_and=False), below_thousand(300)
    ('three hundred and five', 'three hundred five', 'three hundred')
    """
    if n < 100:
        return below_hundred(n)
    rest = n % 100
    link = " and " if says_and else " "
    return f"{ONES[n // 100]} hundred" + (link + below_hundred(rest) if rest else "")


def in_words(n: int, says_and: bool = True) -> str:
    """Any number below a thousand million.

    >>> in_words(2_000_017), in_words(41_500, says_and=False)
    ('two million and seventeen', 'forty-one thousand five hundred')
    """
    millions, thousands, rest = n // 1_000_000, n // 1000 % 1000, n % 1000
    parts = [f"{below_thousand(millions, says_and)} million"] if millions else []
    if thousands:
        parts.append(f"{below_thousand(thousands, says_and)} thousand")
    if rest or not parts:
        is_small = bool(parts) and 0 < rest < 100 and says_and
        parts.append(("and " if is_small else "") + below_thousand(rest, says_and))
    return " ".join(parts)


def ordinal(n: int) -> str:
    """The number of a day.

    >>> ordinal(3), ordinal(20), ordinal(31)
    ('third', 'twentieth', 'thirty-first')
    """
    *before, last = below_hundred(n).split("-")
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return "-".join([*before, ORDINALS.get(last, regular)])


def year_in_words(year: int) -> str:
    """As it is read aloud, from 1100 to 2099.

    >>> year_in_words(1984), year_in_words(1905), year_in_words(1900), year_in_words(2007), year_in_words(2021)
    ('nineteen eighty-four', 'nineteen oh five', 'nineteen hundred', 'two thousand and seven', 'twenty twenty-one')
    """
    century, rest = divmod(year, 100)
    if 2000 <= year < 2010:
        return in_words(year)
    if rest == 0:
        return f"{below_hundred(century)} hundred"
    return f"{below_hundred(century)} {'oh ' if rest < 10 else ''}{below_hundred(rest)}"
