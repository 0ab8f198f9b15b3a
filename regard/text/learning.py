"""Learning a vocabulary from text: what is built here is complete in its tokenizer.json."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from regard.errors import RegardError
from regard.text.checking import MARK_PATTERN, WORD_PATTERN
from regard.text.config import TokenizerConfig
from regard.text.decoding import byte_characters
from regard.text.likely_pieces import join_by_likelihood
from regard.text.marks import BERT_MARKS
from regard.text.tokenizer import EOS, UNK, Tokenizer
from regard.text.units import split_bert_words, split_words

if TYPE_CHECKING:
    import tokenizers
    from tokenizers import normalizers

# what is being done, how much of it is done, of how much (None: not known)
Progress = Callable[[str, int, int | None], None]
T = TypeVar("T")
MAX_WORD = 500  # characters of a stretch without white space that is learned from as one word
MAX_WITHOUT_BLANK = 2**20  # characters of longer stretches that are learned from: 4 times as many take 20 s
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")


def train_tokenizer(config: TokenizerConfig, texts: Iterable[str], progress: Progress | None = None) -> Tokenizer:
    """A tokenizer of the kind asked for, learned from `texts`, which are read once and not kept."""
    if config.path is not None:
        return Tokenizer.load(config.path)
    watched = _watch(texts, progress)
    if config.kind == "byte":
        return Tokenizer(_byte())
    if config.kind == "char":
        return Tokenizer(_char(config, watched))
    if config.kind == "word":
        return Tokenizer(_word(config, watched))
    watched = cut_long_words(watched)
    return Tokenizer(_bpe(config, watched) if config.kind == "bpe" else _wordpiece(config, watched))


def choose_part_to_learn_from(config: TokenizerConfig, n_bytes: int) -> float:
    """How much of a text of so many bytes a tokenizer is learned from."""
    is_capped = config.max_bytes is not None and config.kind in ("bpe", "wordpiece")
    return min(1.0, (config.max_bytes or 0) / n_bytes) if is_capped else 1.0


def take_evenly(items: Iterable[T], part: float) -> Iterator[T]:
    """So large a part of the items, spread evenly over them.

    >>> list(take_evenly(range(6), 0.5))
    [1, 3, 5]
    """
    taken = 0.0
    for item in items:
        taken += part
        if taken >= 1:
            taken -= 1
            yield item


def cut_long_words(texts: Iterable[str]) -> Iterator[str]:
    """Texts in which no stretch without white space is longer than twice MAX_WORD, and such stretches are few.

    The library counts words and joins inside each that differs. A text without blanks is one word, in which joining
    takes the square of its length: 64 KB took 4 s, 256 KB 47 s, and 25 MB never ended.
    """
    room = MAX_WITHOUT_BLANK
    for text in texts:
        if not _has_long_word(text):
            yield text
            continue
        end = 0
        for found in _LONG_WORD.finditer(text):
            yield text[end : found.start()]
            end = found.end()
            for begin in range(found.start(), min(end, found.start() + room), MAX_WORD):
                yield text[begin : min(begin + MAX_WORD, end)]
            room = max(0, room - len(found[0]))
        yield text[end:]


def _has_long_word(text: str) -> bool:
    """Whether so many characters in a row, from one of these places on, hold no blank; nearly always not, and fast."""
    begins = range(0, len(text) - MAX_WORD, MAX_WORD)
    return any(text.find(" ", i, i + MAX_WORD) < 0 and text.find("\n", i, i + MAX_WORD) < 0 for i in begins)


def _byte() -> tokenizers.Tokenizer:
    """No merges: id = byte + 1."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocab = {EOS: 0} | {char: byte + 1 for byte, char in enumerate(byte_characters())}
    hf = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    hf.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    hf.decoder = decoders.ByteLevel()
    return hf


def _char(config: TokenizerConfig, texts: Iterable[str]) -> tokenizers.Tokenizer:
    """Characters by frequency; others are written as their UTF-8 bytes, <0x00> .. <0xFF>, ids 1 to 256."""
    from tokenizers import Tokenizer, decoders, models

    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    tokens = [EOS, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += _most_frequent(counts, config, room_taken=len(tokens))
    hf = Tokenizer(models.BPE(vocab=_number(tokens), merges=[], byte_fallback=True))
    hf.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return hf


def _word(config: TokenizerConfig, texts: Iterable[str]) -> tokenizers.Tokenizer:
    """Words by frequency, parted by white space, and from their punctuation where that is asked; a newline is <eos>."""
    from tokenizers import normalizers

    fold = normalizers.Lowercase() if config.lowercase else None
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_words(fold.normalize_str(text) if fold else text))
    if config.punctuation != "attached":
        counts = _part_punctuation(counts, config.punctuation)
    del counts[EOS], counts[UNK]  # a text may spell them, as PTB does
    return _word_level([EOS, UNK, *_most_frequent(counts, config, room_taken=2)], fold, config.punctuation)


def _part_punctuation(counts: Counter[str], punctuation: str) -> Counter[str]:
    """Counts of words without their punctuation, from counts of what white space parts."""
    splitter = _word_level([EOS, UNK], None, punctuation).pre_tokenizer
    assert splitter is not None
    parted: Counter[str] = Counter()
    for word, count in counts.items():
        for part, _ in splitter.pre_tokenize_str(word):
            parted[part] += count
    return parted


def word_tokenizer(words: Sequence[str]) -> Tokenizer:
    """The word tokenizer of a vocabulary that is there already: `<eos>`, `<unk>`, then the words."""
    assert list(words[:2]) == [EOS, UNK], "the ids of <eos> and <unk> are fixed"
    return Tokenizer(_word_level(words, None))


def _word_level(
    words: Sequence[str], fold: normalizers.Normalizer | None, punctuation: str = "attached"
) -> tokenizers.Tokenizer:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    hf = Tokenizer(models.WordLevel(vocab=_number(words), unk_token=UNK))
    newline = normalizers.Replace("\n", f" {EOS} ")
    hf.normalizer = normalizers.Sequence([fold, newline] if fold else [newline])
    if punctuation == "attached":
        hf.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        kept = WORD_PATTERN if punctuation == "dropped" else WORD_PATTERN + MARK_PATTERN
        hf.pre_tokenizer = pre_tokenizers.Split(Regex(kept), "removed", invert=True)
    return hf


def _bpe(config: TokenizerConfig, texts: Iterable[str]) -> tokenizers.Tokenizer:
    """Byte-level BPE with GPT-2's pre-tokenizer (Sennrich et al. 2016; Radford et al. 2019)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    assert config.vocab_size is not None  # the config checked it
    hf = Tokenizer(models.BPE())
    hf.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    hf.decoder = decoders.ByteLevel()
    alphabet = sorted(byte_characters())
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size, special_tokens=[EOS], initial_alphabet=alphabet, show_progress=False
    )
    hf.train_from_iterator(texts, trainer)
    return _drop_special_tokens(hf)


def _wordpiece(config: TokenizerConfig, texts: Iterable[str]) -> tokenizers.Tokenizer:
    """WordPiece as BERT uses it (Schuster & Nakajima 2012; Devlin et al. 2019).

    The library numbers the pieces "##c" in the order of a hash table, which differs from call to call, and breaks ties
    between merges by these numbers. So the words are counted first, and the pieces handed to it in order.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    assert config.vocab_size is not None  # the config checked it
    unk = BERT_MARKS[1] if config.has_marks else UNK
    hf = Tokenizer(models.WordPiece(unk_token=unk))
    hf.normalizer = normalizers.BertNormalizer(lowercase=config.lowercase)
    hf.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    hf.decoder = decoders.WordPiece()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_bert_words(text))
    marks = list(BERT_MARKS) if config.has_marks else [EOS, UNK]
    if config.joins_by == "likelihood":
        pieces = join_by_likelihood(
            _count_bert_tokens(hf, counts), config.vocab_size - len(marks), max(config.min_count, 1)
        )
        hf.model = models.WordPiece(vocab=_number([*marks, *pieces]), unk_token=unk)
    else:
        continuing = {"##" + char for word in _bert_tokens(hf, counts) for char in word[1:]}
        trainer = trainers.WordPieceTrainer(
            vocab_size=config.vocab_size, special_tokens=[*marks, *sorted(continuing)], show_progress=False
        )
        hf.train_from_iterator(_write_out(counts), trainer)
    if hf.get_vocab_size() > config.vocab_size:
        raise RegardError(
            f"The text has too many different characters for a wordpiece vocabulary of {config.vocab_size}: every one "
            f"needs an entry, {hf.get_vocab_size()} in all. Make vocab_size larger, or use bpe, which works on bytes."
        )
    return _drop_special_tokens(hf)


def _bert_tokens(hf: tokenizers.Tokenizer, words: Iterable[str]) -> Iterator[str]:
    normalizer, pre_tokenizer = hf.normalizer, hf.pre_tokenizer
    assert normalizer is not None
    assert pre_tokenizer is not None
    for word in words:
        yield from (token for token, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(word)))


def _count_bert_tokens(hf: tokenizers.Tokenizer, words: Counter[str]) -> Counter[str]:
    """How often each word occurs once it is cleaned and its punctuation split off."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for token in _bert_tokens(hf, [word]):
            counts[token] += count
    return counts


def _write_out(counts: Counter[str]) -> Iterator[str]:
    """A text with these counts of words, some thousand at a time."""
    waiting: list[str] = []
    for word, count in counts.items():
        for begin in range(0, count, 1000):
            waiting += [word] * min(1000, count - begin)
            if len(waiting) >= 1000:
                yield " ".join(waiting)
                waiting = []
    yield " ".join(waiting)


def _drop_special_tokens(hf: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The trainer also lists <eos> as a token to be searched for in the text; here it is only a vocabulary entry."""
    import tokenizers

    parsed = json.loads(hf.to_str())
    parsed["added_tokens"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(parsed))


def _most_frequent(counts: Counter[str], config: TokenizerConfig, room_taken: int) -> list[str]:
    """Those seen often enough, most frequent first, ties in the order of their code points."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [token for token, count in ordered if count >= config.min_count]
    return kept if config.vocab_size is None else kept[: max(config.vocab_size - room_taken, 0)]


def _number(tokens: Sequence[str]) -> dict[str, int]:
    return {token: i for i, token in enumerate(tokens)}


def _watch(texts: Iterable[str], progress: Progress | None) -> Iterator[str]:
    done = 0
    for text in texts:
        yield text
        done += len(text.encode())
        if progress is not None:
            progress("learning the vocabulary", done, None)
