"""Tokenizers: a thin, typed face on Hugging Face `tokenizers`, so that what we save loads there with the same ids.

Every vocabulary that is learned here has <eos> as id 0: it ends each document, and each line for the word tokenizer.
word and wordpiece have <unk> as id 1. A vocabulary made for GPT-2 has <|endoftext|> instead, at any id, and one made
for BERT or RoBERTa its five marks (`regard/text/marks.py`), of which the separator ends a document. Those of published
Marians have </s>, <unk> and <pad> at any (`regard/text/marian_tokenizer.py`). The end mark is an
ordinary vocabulary entry, not a special token that is searched for in the text: a document that happens to spell it
stays text (only for the word tokenizer "<eos>" is the line end, as newlines are).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.files import write_atomically
from regard.text.bert_tokenizer import read_vocab_txt
from regard.text.checking import check_parts
from regard.text.config import KINDS, KINDS_WITH_UNK
from regard.text.decoding import StreamDecoder, byte_characters, byte_values
from regard.text.encoding import EachPiece, Encoder, Pieces, choose_encoder
from regard.text.gpt2_tokenizer import END_OF_TEXT, check_pieces, drop_searched_tokens, read_vocab_and_merges
from regard.text.marian_tokenizer import END, PAD, PRE_TOKENIZER, MarianPieces, holds_sentencepiece
from regard.text.marks import Marks, find_marks
from regard.text.words import WordEncoder
from regard.untrusted.small_files import parse_json, read_bytes
from regard.untrusted.values import make_printable, quote

if TYPE_CHECKING:
    import tokenizers

EOS, UNK = "<eos>", "<unk>"
TARGET_TOKENIZER = "target_tokenizer.json"
"""In the folder of a run that reads pairs with two vocabularies; tokenizer.json is then the source's."""

Ids = NDArray[np.int32]


class Tokenizer:
    """Text to ids and back. Several threads may use one tokenizer at the same time.

    >>> from regard.text.config import TokenizerConfig
    >>> from regard.text.learning import train_tokenizer
    >>> words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat sat\\n", "the dog sat\\n"])
    >>> words.encode("the dog slept\\n")
    array([3, 5, 1, 0], dtype=int32)
    >>> words.decode([3, 5, 1, 0])
    'the dog <unk>\\n'
    """

    def __init__(self, hf: tokenizers.Tokenizer) -> None:
        self.hf = hf
        self.json: str = hf.to_str()
        parsed = json.loads(self.json)
        self.kind = _kind_of(parsed, "The given tokenizer")
        vocab = hf.get_vocab()
        self.pieces = MarianPieces(parsed) if self.kind == "unigram" else None
        """What cuts texts as published Marians do; None: the tokenizer is another."""
        self.vocab_size: int = max(vocab.values()) + 1 if self.pieces is None else self.pieces.vocab_size
        # GPT-2's may have holes
        has_marks = vocab.get(EOS) != 0 and self.pieces is None
        self.marks: Marks | None = find_marks(vocab) if has_marks else None
        """Those of BERT's family; None: the vocabulary has none."""
        self.end_mark = EOS if vocab.get(EOS) == 0 else END_OF_TEXT if self.marks is None else self.marks.names[3]
        self.unk: int | None = 1 if self.kind in KINDS_WITH_UNK else None
        if self.marks is not None and self.unk is not None:
            self.unk = self.marks.unknown
        if self.pieces is not None:
            self.end_mark, self.unk = END, vocab[UNK]
        self.eos: int = vocab[self.end_mark]
        self.start: int = self.eos if self.pieces is None else vocab[PAD]
        """What a target begins after: the end mark, or the padding of Marian's, which is never written."""
        self.ends_sources = self.pieces is not None
        """Whether a source that is translated ends with the end mark."""
        # Unknown characters fall back to their bytes, if the vocabulary has them all; others' may not.
        self.is_lossless = self.unk is None and (self.kind != "bpe" or set(byte_characters()) <= vocab.keys())
        canonical = json.dumps(parsed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.hash = hashlib.sha256(canonical.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, vocab_size={self.vocab_size})"

    def encode(self, text: str) -> Ids:
        """The ids of `text`; no end mark is added."""
        return self._encoder([(_check_unicode(text), False)])

    def encode_documents(self, pieces: Pieces) -> Ids:
        """The ids of pieces of documents, one after the other; the end mark after each that ends its document.

        The word tokenizer writes <eos> for a newline, so a document that ends with one has it already.
        """
        return self._encoder(pieces)

    def encode_with_offsets(self, text: str) -> tuple[Ids, list[tuple[int, int]]]:
        """The ids, and for each the characters [start, end) of `text` it came from.

        Tokens that are bytes of one character all point to that character.
        """
        if self.pieces is not None:
            found = self.pieces.cut(_check_unicode(text))
            return np.array([token.id for token in found], dtype=np.int32), [(t.start, t.end) for t in found]
        encoding = self.hf.encode(_check_unicode(text), add_special_tokens=False)
        return np.array(encoding.ids, dtype=np.int32), list(encoding.offsets)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """The text of `ids`; the inverse of `encode` where `is_lossless`.

        The end mark is a newline for the word tokenizer and nothing for the others.
        """
        decoder = self.stream_decoder()
        text = "".join([decoder.push(int(i)) for i in ids]) + decoder.flush()
        return text if self.pieces is None else text.strip()

    def stream_decoder(self, after: Sequence[int] | NDArray[Any] = ()) -> StreamDecoder:
        """A decoder fed one id at a time, as if it had been given the ids `after` (a prompt, say) already."""
        unprinted = frozenset((0,)) if self.marks is None else self.marks.unprinted
        if self.pieces is not None:
            unprinted = frozenset(i for i in (self.eos, self.unk, self.start) if i is not None)  # as transformers does
        decoder = StreamDecoder(self.kind, self._texts, self._bytes, unprinted)
        for i in after:
            decoder.push(int(i))
        return decoder

    def token_text(self, token: int) -> str:
        """One token, to be shown: bytes that are no whole character appear as \\xNN."""
        self._check_id(token)
        if token == self.eos or self._bytes is None:
            return self._texts[token]
        return self._bytes[token].decode("utf-8", "backslashreplace")

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes that a token of a lossless tokenizer stands for (none for the end mark)."""
        self._check_id(token)
        return self._bytes[token] if self._bytes is not None else self._texts[token].encode()

    def id_of(self, token: str) -> int | None:
        """The id of a vocabulary entry as it is spelled in tokenizer.json."""
        found: int | None = self.hf.token_to_id(token)
        if self.pieces is not None and (found is None or found >= self.vocab_size):
            return self.hf.token_to_id(f" {token}") if token else None
        return found

    def save(self, path: Path | str) -> None:
        """Write tokenizer.json, whole or not at all; `path` is the file or the folder it goes into."""
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        write_atomically(path, self.hf.to_str(pretty=True).encode())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a tokenizer.json, that of a run folder, or a Hugging Face folder's, vocab.json and vocab.txt too."""
        path = Path(path)
        if holds_sentencepiece(path):
            raise RegardError(
                f"'{path}' is a published Marian, with a tokenizer for each side. Make it a run (`regard import`) and "
                "set tokenizer.path and target_tokenizer.path to that run."
            )
        if path.is_dir() and not (path / "tokenizer.json").exists() and (path / "vocab.json").exists():
            return cls.from_json(read_vocab_and_merges(path), str(path / "vocab.json"))
        if path.is_dir() and not (path / "tokenizer.json").exists() and (path / "vocab.txt").exists():
            return cls.from_json(read_vocab_txt(path), str(path / "vocab.txt"))
        path = path / "tokenizer.json" if path.is_dir() else path
        try:
            text = read_bytes(path).decode("utf-8")
        except FileNotFoundError:
            raise RegardError(f"There is no tokenizer at {path}. Give a tokenizer.json or a run folder.") from None
        except (UnicodeDecodeError, OSError) as error:
            raise RegardError(f"{path} cannot be read as a tokenizer.json: {error}.") from None
        return cls.from_json(text, str(path))

    @classmethod
    def from_json(cls, text: str, where: str = "the given JSON") -> Tokenizer:
        import tokenizers

        parsed = parse_json(text, f"{where} is no tokenizer.json: it")
        if isinstance(parsed, dict) and isinstance(parsed.get("model"), dict) and "type" in parsed["model"]:
            _kind_of(parsed, where)  # which says which there are
        check_parts(parsed, where)
        try:
            hf = tokenizers.Tokenizer.from_str(text)
            _kind_of(json.loads(hf.to_str()), where)
            if any(parsed.get(name) for name in ("added_tokens", "post_processor", "truncation", "padding")):
                parsed = drop_searched_tokens(parsed, where)
                hf = tokenizers.Tokenizer.from_str(json.dumps(parsed, ensure_ascii=False))
        except RegardError:
            raise
        except BaseException as error:  # the library raises plain Exception, and one of its own where Rust panics
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            why = make_printable(str(error), 200)
            raise RegardError(f"{where} is no tokenizer.json that `tokenizers` can read: {why}.") from None
        is_marked = parsed["model"].get("type") == "Unigram" or hf.token_to_id(EOS) == 0
        if not is_marked and hf.token_to_id(END_OF_TEXT) is None and find_marks(hf.get_vocab()) is None:
            raise RegardError(
                f"{where} was made neither by Regard nor for GPT-2, BERT or RoBERTa: its vocabulary must have {EOS} as "
                f"id 0, {END_OF_TEXT} at any, or the marks of one of the last two. Leave out tokenizer.path to learn "
                "one from the training text."
            )
        check_pieces(parsed, where)
        found = cls(hf)
        _check_ids(found, parsed["model"], where)
        return found

    @property
    def is_quick(self) -> bool:
        """Whether it encodes so fast that more processes would not help: look-up tables, or gigatoken for bpe."""
        return self.pieces is None and isinstance(self._encoder, EachPiece | WordEncoder)

    @cached_property
    def _texts(self) -> list[str]:
        if self.pieces is not None:
            return self.pieces.texts
        texts = [""] * self.vocab_size
        for token, i in self.hf.get_vocab().items():
            texts[i] = token
        return texts

    @cached_property
    def _bytes(self) -> list[bytes] | None:
        unprinted = (self.eos,) if self.marks is None else self.marks.unprinted
        return byte_values(self.kind, self._texts, unprinted) if self.unk is None else None

    @cached_property
    def _encoder(self) -> Encoder:
        if self.pieces is not None:
            return EachPiece(self.pieces.encode, self.eos)
        return choose_encoder(self.kind, self.hf, self.eos)

    def _check_id(self, token: int) -> None:
        if not 0 <= token < self.vocab_size:
            raise RegardError(f"Token id {token} is not in the vocabulary; ids go from 0 to {self.vocab_size - 1}.")


def _kind_of(parsed: dict[str, Any], where: str) -> str:
    """tokenizer.json has no room for our name of the kind, but its parts tell it."""
    model = parsed["model"]
    pre = parsed.get("pre_tokenizer") or {}
    pre = pre if isinstance(pre, dict) else {}
    if model["type"] == "WordLevel":
        return "word"
    if model["type"] == "WordPiece":
        return "wordpiece"
    if model["type"] == "Unigram" and pre == PRE_TOKENIZER:
        return "unigram"
    if model["type"] == "BPE" and model.get("byte_fallback"):
        return "char"
    if model["type"] == "BPE" and pre.get("type") == "ByteLevel":
        return "bpe" if pre.get("use_regex", True) else "byte"
    raise RegardError(
        f"{where} has the model {model['type']!s:.40} and the pre-tokenizer {pre.get('type')!s:.40}, which Regard "
        f"does not read. It reads its own ({', '.join(KINDS)}) and GPT-2's, a byte-level BPE. Leave out "
        "tokenizer.path to learn one from the training text."
    )


def _check_ids(tokenizer: Tokenizer, model: dict[str, Any], where: str) -> None:
    """Refuse a vocabulary whose ids are not where its kind has them: encoders look them up there."""
    vocab, names = tokenizer.hf.get_vocab(), dict[str, int | None]()
    if tokenizer.kind == "byte":
        names = {char: byte + 1 for byte, char in enumerate(byte_characters())}
    elif tokenizer.kind == "char":
        names = {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    elif tokenizer.unk is not None and tokenizer.pieces is None:
        names = {str(model.get("unk_token")): tokenizer.unk}
    wrong = next((name for name, i in names.items() if vocab.get(name) != i), None)
    if wrong is not None or len(set(vocab.values())) < len(vocab):
        what = "two tokens with one id" if wrong is None else f"no {quote(wrong)} with the id {names[wrong]}"
        raise RegardError(
            f"{where} is a {tokenizer.kind} tokenizer and has {what}. Copy it again from where it came from."
        )


def _check_unicode(text: str) -> str:
    """`text`, if it can be written as UTF-8; lone surrogates come from broken bytes on a command line."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RegardError(
            f"The text is no valid Unicode: character {error.start} is the lone surrogate {text[error.start]!r}. "
            "Give it as UTF-8."
        ) from None
    return text
