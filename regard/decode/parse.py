"""Sentences in, trees out: a model that writes trees as sequences and is held to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from regard.data.tree_lines import TreeLimits, build_tree, escape_word
from regard.data.tree_pairs import FORMS
from regard.data.trees import Tree
from regard.decode.config import BeamConfig
from regard.decode.lines import LinesDone, batches_by_tokens, decode_lines
from regard.decode.translate import Sentence, Translation, Translator
from regard.decode.tree_constraint import TreeConstraint
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.text.tokenizer import UNK, Tokenizer

MAX_TOKENS = 8192
"""Tokens of a batch of sentences."""


@dataclass(frozen=True)
class Parse:
    """The best tree of a sentence; None where there was no sentence, or, unconstrained, what was written is no tree."""

    tree: Tree | None
    log_prob: float
    others: tuple[Parse, ...] = ()
    """The next best trees, where several were asked for."""

    @property
    def probability(self) -> float:
        """P(tree | sentence), as the model has it."""
        return math.exp(self.log_prob)

    @property
    def all(self) -> tuple[Parse, ...]:
        """This tree and the others, best first; none where there was no sentence."""
        return (replace(self, others=()), *self.others) if self.tree is not None else ()


NOTHING = Parse(None, 0.0)
"""What an empty line becomes."""


@dataclass(frozen=True)
class _Words:
    """A sentence as it was given, and as the models read it."""

    words: tuple[str, ...]
    sentence: Sentence

    def __len__(self) -> int:
        return len(self.sentence)


class Parser:
    """One model, or several whose probabilities are averaged, that write trees.

    A sentence is its words with spaces between them. With `is_constrained`, whatever the models' weights, every tree is
    whole and over exactly these words (`TreeConstraint`); without, only luck and learning make it one. The beam's own
    limits of length do not count: a tree has its own.
    """

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        tree_words: str,
        config: BeamConfig | None = None,
        *,
        tag: str | None = None,
        is_constrained: bool = True,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self.max_tokens = max_tokens
        self.tree_words, self.form = tree_words, FORMS[tree_words]
        self._tokens = [target_tokenizer.token_text(i) for i in range(target_tokenizer.vocab_size)]
        self._stop, self._device = target_tokenizer.eos, models[0].embedding.device
        self._translator = Translator(
            models,
            source_tokenizer,
            target_tokenizer,
            config or BeamConfig(),
            tag=tag,
            constrain=self._constraint if is_constrained else None,
            max_lengths=lambda sentences: [self.limits.max_length(n) for n in _n_words(sentences)],
        )
        self.limits = TreeLimits(max_tokens=self._translator.max_target)

    def all(
        self,
        sentences: Sequence[str],
        tags: Sequence[str | None] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Parse]:
        """The parse of every sentence, in their order; an empty one has no tree.

        `progress` is told after every batch how many are parsed.
        """
        read = [self._read(text, tag) for text, tag in zip(sentences, tags or [None] * len(sentences), strict=True)]
        lengths, results, n_done = [len(words) for words in read], [NOTHING] * len(read), 0
        for batch in batches_by_tokens([i for i, n in enumerate(lengths) if n], lengths, self.max_tokens):
            for i, parse in zip(batch, self._parse([read[i] for i in batch]), strict=True):
                results[i] = parse
            n_done += len(batch)
            if progress is not None:
                progress(n_done)
        return results

    def lines(
        self,
        lines: Iterable[str],
        *,
        max_tokens: int | None = None,
        window: int = 2000,
        skips_long: bool = False,
        progress: Callable[[LinesDone], None] | None = None,
    ) -> Iterator[Parse]:
        """The parse of each line as it comes, in order, in bounded memory."""

        def read(text: str) -> _Words | None:
            return None if skips_long and self._is_too_long(text.split()) else self._read(text)

        max_tokens = max_tokens or self.max_tokens
        return decode_lines(
            lines,
            read,
            self._parse,
            empty=NOTHING,
            max_tokens=max_tokens,
            window=window,
            max_line=self._translator.longest_line(max_tokens),
            skips_long=skips_long,
            progress=progress,
        )

    def _is_too_long(self, words: Sequence[str]) -> bool:
        return self.limits.max_words is not None and len(words) > self.limits.max_words

    def _read(self, text: str, tag: str | None = None) -> _Words:
        words = tuple(text.split())
        if self._is_too_long(words):
            raise RegardError(
                f"The sentence that begins '{' '.join(words[:5])}' has {len(words)} words, and the model writes "
                f"trees of at most {self.limits.max_words}. Split it, or leave it out: --skip-bad."
            )
        return _Words(words, self._translator.read(" ".join(map(escape_word, words)), tag))

    def _parse(self, read: list[_Words]) -> list[Parse]:
        found = self._translator.translate([words.sentence for words in read])
        parses = [[self._build_parse(each, words) for each in best] for best, words in zip(found, read, strict=True)]
        return [replace(first, others=tuple(others)) for first, *others in parses]

    def _build_parse(self, best: Translation, read: _Words) -> Parse:
        tokens = [self._tokens[token] for token in best.tokens]
        try:
            tree = None if UNK in tokens else build_tree(tokens, read.words, form=self.form)
        except RegardError:
            assert self._translator.constrain is None, "a constraint lets nothing but trees through"
            tree = None
        return Parse(tree, best.log_prob)

    def _constraint(self, sentences: Sequence[Sentence]) -> TreeConstraint:
        return TreeConstraint(
            self._tokens,
            _n_words(sentences),
            stop=self._stop,
            form=self.form,
            limits=self.limits,
            device=self._device,
        )


def _n_words(sentences: Sequence[Sentence]) -> list[int]:
    return [len(sentence.text.split()) for sentence in sentences]
