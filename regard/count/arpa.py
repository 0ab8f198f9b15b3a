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

Writing is fast, since the digits of all numbers of a block are computed at once, by numpy: Python's own "%.7f" took
3.2 s for the 2.3 million n-grams of the Penn Treebank; this takes 1 s.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from regard.count.counts import EOS, Floats, Index
from regard.count.estimate import Estimate
from regard.count.trie import Trie
from regard.errors import RegardError
from regard.files import write_atomically

BOS_NAME, EOS_NAME, UNK_NAME = "<s>", "</s>", "<unk>"
LOG10_ZERO = -99.0

_RESERVED = {BOS_NAME, EOS_NAME, UNK_NAME, UNK_NAME.upper()}
_BREAKING = re.compile("[\x00-\x20\x7f\x85\u2028\u2029\ud800-\udfff]|<(?=0x[0-9A-F]*>)")
_ESCAPE = re.compile("<0x([0-9A-F]*)>")

BLOCK = 1 << 13  # lines made at a time; 16 times more or 8 times fewer cost 40% in speed
N_DECIMALS = 7  # KenLM keeps 32-bit floats, which hold no more

Names = npt.NDArray[np.object_]  # the bytes of each token's name and what separates it from the next field
_PADDING = b"\0"  # no escaped word holds it


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


def write_arpa(path: Path, trie: Trie, estimate: Estimate, words: Sequence[str], unk: int | None) -> None:
    """Write the model whole or not at all; gzip where the name ends in .gz."""
    if len(words) != trie.base - 1:
        raise RegardError(f"The model has {trie.base - 1} tokens, but {len(words)} words were given to name them.")
    names = [name.encode() for name in token_names(words, unk)]

    def fill(aside: Path) -> None:
        with aside.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                    packed.writelines(_blocks(trie, estimate, names))
            else:
                raw.writelines(_blocks(trie, estimate, names))

    write_atomically(path, fill)


def _blocks(trie: Trie, estimate: Estimate, names: list[bytes]) -> Iterator[bytes]:
    yield b"\\data\\\n"
    for n, size in enumerate(trie.sizes, start=1):
        yield b"ngram %d=%d\n" % (n, size)
    inner = np.array([name + b" " for name in names], object)
    for n, size in enumerate(trie.sizes, start=1):
        is_highest = n == trie.order
        last = np.array([name + (b"\n" if is_highest else b"\t") for name in names], object)
        yield b"\n\\%d-grams:\n" % n
        for first in range(0, size, BLOCK):
            rows = slice(first, first + BLOCK)
            log_backoffs = None if is_highest else estimate.log_backoffs[n - 1][rows]
            yield _block(trie.ngrams(n, rows), estimate.log_probs[n - 1][rows], log_backoffs, inner, last)
    yield b"\n\\end\\\n"


def _block(ngrams: Index, log_probs: Floats, log_backoffs: Floats | None, inner: Names, last: Names) -> bytes:
    """Lines of one order: their pieces in a table, a row a line, joined once."""
    n = ngrams.shape[1]
    pieces = np.empty((len(ngrams), n + (1 if log_backoffs is None else 2)), object)
    pieces[:, 0] = _numbers(log_probs, b"\t")
    pieces[:, 1:n] = inner[ngrams[:, :-1]]
    pieces[:, n] = last[ngrams[:, -1]]
    if log_backoffs is not None:
        pieces[:, n + 1] = _numbers(log_backoffs, b"\n")
    return b"".join(pieces.ravel().tolist()).translate(None, _PADDING)


def _numbers(nats: Floats, end: bytes) -> npt.NDArray[np.bytes_]:
    """log10 of each value with 7 decimals and `end` behind it, as bytes that may hold padding."""
    log10 = np.maximum(nats / np.log(10), LOG10_ZERO)
    left = np.rint(np.abs(log10) * 10**N_DECIMALS).astype(np.int64)
    digits = np.empty((len(nats), N_DECIMALS + 5), np.uint8)  # sign, tens, ones, point, decimals, end
    digits[:, 0] = np.where((log10 < 0) & (left > 0), ord("-"), 0)
    digits[:, 3] = ord(".")
    digits[:, -1] = ord(end)
    for column in [*range(N_DECIMALS + 3, 3, -1), 2, 1]:
        left, digit = np.divmod(left, 10)
        digits[:, column] = digit + ord("0")
    digits[digits[:, 1] == ord("0"), 1] = 0
    return digits.view(f"S{digits.shape[1]}").ravel()
