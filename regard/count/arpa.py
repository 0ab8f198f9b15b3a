r"""The ARPA format of n-gram models: what KenLM, SRILM and others write and read.

    \data\
    ngram 1=4674
    ngram 2=13681

    \1-grams:
    -2.409231	we	-0.16277252         log10 P, the words, log10 of the back-off weight (absent: 0)
    ...
    \2-grams:
    -0.62342	we proceed              the highest order has no back-off weights

    \end\

`</s>` ends a sentence, `<s>` begins one (its own probability means nothing), `<unk>` is any other word. -99 stands for
the logarithm of zero.

White space separates the fields, so a word may hold none. A token of ours may (a byte-pair token often begins with a
space), and it may be called `<s>`. Such characters are written as `<0x20>`, their code point in hexadecimal, and an
empty word as `<0x>`; everything else stands as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from regard.count.counts import EOS
from regard.errors import RegardError

BOS_NAME, EOS_NAME, UNK_NAME = "<s>", "</s>", "<unk>"
LOG10_ZERO = -99.0

_RESERVED = {BOS_NAME, EOS_NAME, UNK_NAME, UNK_NAME.upper()}
_BREAKING = re.compile("[\x00-\x20\x7f\x85\u2028\u2029\ud800-\udfff]|<(?=0x[0-9A-F]*>)")
_ESCAPE = re.compile("<0x([0-9A-F]*)>")


def escape(word: str) -> str:
    """A name for `word` that an ARPA file can hold and no special word has.

    >>> escape("corn"), escape(" the"), escape("<s>"), escape("")
    ('corn', '<0x20>the', '<0x3C>s>', '<0x>')
    """
    if word in _RESERVED:
        return "<0x3C>" + word[1:]
    return _BREAKING.sub(lambda found: f"<0x{ord(found[0]):X}>", word) or "<0x>"


def unescape(name: str) -> str:
    """The word that `escape` wrote as `name`.

    >>> unescape("<0x20>the")
    ' the'
    """
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", name)


def token_names(words: Sequence[str], unk: int | None) -> list[str]:
    """What each token id is called in the file, `<s>` (id V) last."""
    names = [escape(word) for word in words]
    names[EOS] = EOS_NAME
    if unk is not None:
        names[unk] = UNK_NAME
    if len(set(names)) < len(names):
        first: dict[str, int] = {}
        again = next(i for i, name in enumerate(names) if first.setdefault(name, i) != i)
        raise RegardError(
            f"Tokens {first[names[again]]} and {again} are both called {words[again]!r}; "
            "an ARPA file needs a different word for each token."
        )
    return [*names, BOS_NAME]
