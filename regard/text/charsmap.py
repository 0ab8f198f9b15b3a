"""SentencePiece's changes of a text before it is cut: a table of rules, and one space between words.

The table (precompiled_charsmap; Unicode's NFKC and more) has as keys texts of one character or several, in a
double-array trie of their UTF-8 bytes (Yata's Darts-clone). At each place the longest rule that fits is taken. What
Hugging Face does with the same table differs: it looks at what is seen as one character, not at the longest rule.
"""

from __future__ import annotations

import numpy as np

from regard.untrusted.small_files import COPY_AGAIN, MB, DamagedFileError

SPACE = "\u2581"
"""What stands for a space inside pieces: ▁."""
MAX_BYTES = 8 * MB  # of a table; that of nmt_nfkc has a quarter of one
MAX_WRITTEN = 1000  # bytes that a rule writes at most
MAX_READ = 64  # characters that a rule is for at most, a few in nmt_nfkc; a broken trie may lead in circles


class Charsmap:
    """The rules of a table; none where it is empty."""

    def __init__(self, data: bytes, where: str = "the table of characters") -> None:
        n_trie = int.from_bytes(data[:4], "little")
        is_whole = not data or (len(data) > 4 + n_trie and n_trie % 4 == 0 and n_trie > 0 and len(data) <= MAX_BYTES)
        if not is_whole or max(map(len, data[4 + n_trie :].split(b"\0"))) > MAX_WRITTEN:
            raise DamagedFileError(f"{where} has a broken table of characters (precompiled_charsmap). {COPY_AGAIN}.")
        self._units: list[int] = np.frombuffer(data[4 : 4 + n_trie], dtype="<u4").tolist()
        self._written = data[4 + n_trie :]
        self._plain: set[str] = set()  # characters that no rule begins with

    def apply(self, text: str, at: int) -> tuple[str, int]:
        """What the longest rule writes for the text from `at` on, and where the text goes on."""
        if not self._units or text[at] in self._plain:
            return text[at], at + 1
        found, node = None, _offset(self._units[0])
        for end in range(at, min(len(text), at + MAX_READ)):
            for byte in text[end].encode():
                unit = self._unit(node ^ byte)
                if unit & 0x800000FF != byte:
                    break
                node ^= byte ^ _offset(unit)
            else:
                if unit & 0x100:  # a rule ends here
                    found = self._unit(node) & 0x7FFFFFFF, end + 1
                continue
            if end == at:
                self._plain.add(text[at])
            break
        return (text[at], at + 1) if found is None else (self._read(found[0]), found[1])

    def _unit(self, place: int) -> int:
        return self._units[place] if place < len(self._units) else 0x80000000

    def _read(self, begin: int) -> str:
        end = self._written.find(b"\0", begin)
        return self._written[begin : end if end >= 0 else begin].decode("utf-8", "replace")

    def normalize(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The text as it is cut, and for each of its characters those of `text`, [start, end), that it came from.

        Every word begins with `SPACE`; there is one space between two words and none around them.
        """
        characters, spans = [SPACE], [(0, 0)]
        at, is_after_space = 0, True
        while at < len(text):
            begin = at
            written, at = self.apply(text, at)
            if is_after_space:
                written = written.lstrip(" ")
            if written:
                is_after_space = written.endswith(" ")
                characters.append(written.replace(" ", SPACE))
                spans += [(begin, at)] * len(written)
        found = "".join(characters)
        found = found[: len(found.rstrip(SPACE))]
        return found, spans[: len(found)]


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)
