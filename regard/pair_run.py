"""A trained model of pairs in the hands of a user: translate, parse, evaluate, see which word looked where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import RunConfig
from regard.data.pair_grammar import complete_name, is_grammar
from regard.data.pairs import Pairs
from regard.data.prepared_pairs import PreparedPairs, encode_pairs
from regard.decode.config import MAX_RATIO, BeamConfig, SamplingConfig
from regard.decode.forced import forced_nats, read_pair, scored_pairs
from regard.decode.translate import Sentence, Translator
from regard.errors import RegardError, nearest
from regard.folder import RunFacts, open_folder, prepared_pairs_again, target_tokenizer_of
from regard.layers.record import Record
from regard.models.seq2seq import Seq2Seq
from regard.models.table import build_pair_model
from regard.pair_evaluation import PairEvaluation
from regard.parsing import Parser, parse_score
from regard.run import PRECISIONS, weights_of
from regard.score.alignment import Alignment, hard_alignment, word_weights
from regard.score.scored import Scored
from regard.score.translation import bleu, chrf
from regard.text.tokenizer import Tokenizer
from regard.text.word_pieces import words_of_tokens
from regard.training.device import pick_device
from regard.training.pair_task import readable_pairs, summed_nats
from regard.training.weights import load_weights

MAX_TOKENS = 8192
"""Tokens of a batch that is translated or scored."""


class PairRun:
    """What `regard.load` returns for a model that reads pairs."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        facts: RunFacts,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        model: Seq2Seq,
    ) -> None:
        self.folder, self.config, self.facts, self.model = folder, config, facts, model
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer

    def __repr__(self) -> str:
        return f"<PairRun {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    def translator(
        self,
        beam: BeamConfig | None = None,
        *,
        others: Sequence[PairRun] = (),
        tag: str | None = None,
        sampling: SamplingConfig | None = None,
    ) -> Translator:
        """What translates lines; with `others`, runs of the same vocabularies, by the mean of all probabilities.

        With `sampling` targets are drawn, the beam's n_best of them, and not searched for.
        """
        if self.is_parser:
            raise RegardError(
                f"'{self.folder}' was trained on trees and translates nothing. Use regard parse with it (in Python: "
                "parse)."
            )
        tag = self._known_tag(tag)
        config = beam or BeamConfig(max_ratio=MAX_RATIO)
        tokenizers = self.source_tokenizer, self.target_tokenizer
        return Translator(self._with(others), *tokenizers, config, tag=tag, sampling=sampling)

    def parser(
        self,
        beam: BeamConfig | None = None,
        *,
        others: Sequence[PairRun] = (),
        tag: str | None = None,
        is_constrained: bool = True,
    ) -> Parser:
        """What parses lines, of a run that was trained on trees."""
        if not self.is_parser:
            raise RegardError(
                f"'{self.folder}' was not trained on trees and can parse nothing. Give a run whose data are trees "
                "(data.format: trees)."
            )
        tokenizers, form = (self.source_tokenizer, self.target_tokenizer), self.config.pairs.tree_words
        tag = self._known_tag(tag)
        return Parser(self._with(others), *tokenizers, form, beam, tag=tag, is_constrained=is_constrained)

    @property
    def is_parser(self) -> bool:
        """Whether it was trained on trees."""
        return self.config.pairs.has_trees

    def _with(self, others: Sequence[PairRun]) -> list[Seq2Seq]:
        for other in others:
            for side in ("source", "target"):
                if getattr(other, f"{side}_tokenizer").hash != getattr(self, f"{side}_tokenizer").hash:
                    raise RegardError(
                        f"'{other.folder}' and '{self.folder}' have different vocabularies of the {side}: only runs "
                        "that share them can translate together. Train the one with the other's tokenizer.path."
                    )
        return [self.model, *(other.model for other in others)]

    @property
    def tags(self) -> tuple[str, ...]:
        """What can be put before a source to say what is wanted: those it was trained with."""
        return tuple(sorted({part.tag for part in self.config.pairs.parts("train") if part.tag is not None}))

    def _known_tag(self, tag: str | None) -> str | None:
        """`tag`, or the one that all data have; an error where the run was not trained with it."""
        tag = tag if tag is not None else self.config.pairs.tag
        if tag is not None and tag not in self.tags:
            known = f"It knows {', '.join(self.tags)}." if self.tags else "It was trained with none: leave it out."
            raise RegardError(f"'{self.folder}' does not know the tag {tag}.{nearest(tag, self.tags)} {known}")
        return tag

    def wanted_tag(self, tag: str | None) -> str | None:
        """`tag`, or the only one there is; an error where one of several has to be chosen."""
        tag = self.config.pairs.tag if tag is None else tag
        if tag is not None or not all(part.tag for part in self.config.pairs.parts("train")):
            return tag
        if len(self.tags) > 1:
            raise RegardError(
                f"'{self.folder}' was trained to give several kinds of targets and has to be told which: --to (or tag) "
                f"is one of {', '.join(self.tags)}."
            )
        return self.tags[0]

    def translate(
        self,
        texts: str | Sequence[str],
        tag: str | None = None,
        *,
        sampling: SamplingConfig | Mapping[str, Any] | None = None,
        **beam: Any,
    ) -> Any:
        """The translation of a text, or a list of them for a list of texts.

        `beam`: beam, length_penalty, alpha, max_length, max_ratio, ... as in BeamConfig. With n_best > 1 each text has
        a list of Translations instead of one string. `sampling`, such as {"temperature": 0.8, "seed": 1} (see
        SamplingConfig), draws them; what a text draws depends on the seed and its place in the list.
        """
        config = BeamConfig.from_dict({"max_ratio": MAX_RATIO} | beam)
        if sampling is not None and not isinstance(sampling, SamplingConfig):
            sampling = SamplingConfig.from_dict(sampling)
        translator = self.translator(config, tag=self.wanted_tag(tag), sampling=sampling)
        given = [texts] if isinstance(texts, str) else list(texts)
        found = translator.all([translator.read(text) for text in given], MAX_TOKENS)
        results: list[Any] = [best[0].text for best in found] if config.n_best == 1 else list(found)
        return results[0] if isinstance(texts, str) else results

    def score(self, source: str | Sequence[str], target: str | Sequence[str], tag: str | None = None) -> Any:
        """How probable the model finds a target for a source (forced decoding), or a list for a list of each.

        What every token of the target costs, its end included; None where neither has any text.
        """
        one = isinstance(source, str)
        sources, targets = ([text] if isinstance(text, str) else list(text) for text in (source, target))
        if one != isinstance(target, str) or len(sources) != len(targets):
            raise RegardError(
                f"Sources and targets come in twos, and {len(sources)} and {len(targets)} were given. Give one text of "
                "each, or lists of equal length."
            )
        found = list(self.scores(zip(sources, targets, strict=True), tag))
        return found[0] if one else found

    def scores(
        self, pairs: Iterable[tuple[str, str]], tag: str | None = None, *, skips_bad: bool = False
    ) -> Iterator[Scored | None]:
        """The same for pairs that come one after another, in bounded memory.

        None also stands for a pair that cannot be scored, where `skips_bad`; it is else an error with its number.
        """
        if self.is_parser:
            raise RegardError(
                f"'{self.folder}' was trained on trees, which it writes in a form of its own. Use regard eval with it, "
                "and a file of trees."
            )
        return scored_pairs(self.translator(tag=self.wanted_tag(tag)), pairs, skips_bad=skips_bad)

    def parse(self, sentences: str | Sequence[str], tag: str | None = None, **beam: Any) -> Any:
        """The tree of a sentence, or a list of them; words, punctuation too, have spaces between them.

        `beam`: beam, length_penalty, alpha as in BeamConfig. A sentence without words has no tree but None.
        """
        given = [sentences] if isinstance(sentences, str) else list(sentences)
        parser = self.parser(BeamConfig.from_dict(beam), tag=self.wanted_tag(tag))
        trees = [parse.tree for parse in parser.all(given)]
        return trees[0] if isinstance(sentences, str) else trees

    def evaluate(
        self,
        data: str | Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | None = None,
        is_translated: bool = True,
        skips_bad: bool = False,
        tag: str | None = None,
    ) -> PairEvaluation:
        """Loss, BLEU and chrF, or F1 of trees, on other pairs, or on a split of those the run was trained on.

        A line of other pairs that cannot be used is an error, or, where `skips_bad`, left out and counted. With `tag`
        only pairs that have it are looked at, and other pairs have it where they name none.
        """
        if tag is not None:
            self._known_tag(tag)  # before anything is read
        if data is None:
            return self.evaluate_pairs(_with_tag(self.pairs_of(None, split), tag), beam, is_translated)
        other = self.other_pairs(data, split, skips_bad, tag)
        found = self.evaluate_pairs(_with_tag(other.train, tag), beam, is_translated)
        return replace(found, skipped=other.counts.skipped)

    def evaluate_pairs(
        self, pairs: Pairs, beam: BeamConfig | None = None, is_translated: bool = True
    ) -> PairEvaluation:
        """The same on pairs that are read already."""
        n_given, pairs = len(pairs), readable_pairs(self.model, pairs)
        if not len(pairs):
            raise RegardError(
                f"Of {n_given:,} given, no pair is short enough for the model, which reads {self.model.max_context} "
                "tokens. Give shorter "
                "ones, or train one with a larger model.max_context."
            )
        nats, n_tokens = summed_nats(self.model, pairs, MAX_TOKENS)
        known = {"nats": nats, "n_tokens": n_tokens, "n_bytes": pairs.n_bytes, "n_pairs": len(pairs)}
        known["n_left_out"] = n_given - len(pairs)
        if not is_translated:
            return PairEvaluation(**known)  # type: ignore[arg-type]
        if self.is_parser:
            parsers = self.parser(beam), self.parser(beam, is_constrained=False)
            return PairEvaluation(**known, parses=parse_score(*parsers, pairs))  # type: ignore[arg-type]
        texts = self.translations(pairs, beam)
        references = [pairs.target_text(i) for i in range(len(pairs))]
        return PairEvaluation(**known, bleu=bleu(texts, references), chrf=chrf(texts, references))  # type: ignore[arg-type]

    def translations(self, pairs: Pairs, beam: BeamConfig | None = None) -> list[str]:
        """The best target of every source, in their order."""
        translator = self.translator(beam)
        sentences = [translator.read(pairs.source_text(i), pairs.tag(i)) for i in range(len(pairs))]
        return [best[0].text for best in translator.all(sentences, MAX_TOKENS)]

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended."""
        path = self.folder / "test.json"
        found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return found

    def example(self) -> tuple[str, str | None]:
        """A source of the kind that the model knows, and its tag."""
        prepared = prepared_pairs_again(self.folder, self.config)
        pairs = prepared.valid if len(prepared.valid) else prepared.train
        return pairs.source_text(0), pairs.tag(0)

    def pairs_of(self, data: str | Sequence[str] | None = None, split: str = "test") -> Pairs:
        """Other pairs, or a split of the run's own."""
        if data is not None:
            return self.other_pairs(data, split).train
        pairs: Pairs = getattr(prepared_pairs_again(self.folder, self.config), _checked_split(split))
        if not len(pairs):
            raise RegardError(f"There are no pairs to evaluate on: the {split} split is empty. Name some with --data.")
        return pairs

    def other_pairs(
        self, data: str | Sequence[str], split: str = "test", skips_bad: bool = False, tag: str | None = None
    ) -> PreparedPairs:
        """Other pairs, in the form that `data.train` has, all in the split train, and what was left out of them.

        `tag` is that of pairs which name none. Those of the built-in grammar are of `split`, where their name says no
        other (grammar:en-de@train).
        """
        given = _of_split(data, _checked_split(split))
        own = self.config.pairs
        form = "trees" if self.is_parser else own.format  # whatever its files are called
        other = own.replace(train=given, valid=None, test=None, max_pairs=None, format=form)
        other = other.replace(skips_bad=skips_bad or own.skips_bad)
        if other.has_trees != self.is_parser:
            raise RegardError(
                f"'{self.folder}' was trained on translations, and {data} holds trees. Give pairs such as it knows."
            )
        if tag is not None:
            other = other.replace(tag=tag)
        elif not all(part.tag for part in other.parts("train")):
            other = other.replace(tag=self.wanted_tag(None))
        return encode_pairs(self.source_tokenizer, self.target_tokenizer, other)

    def looked(self, source: str, target: str, tag: str | None = None) -> Looked:
        """Which tokens of `source` the model looked at when it is made to write `target` (forced decoding)."""
        pair = read_pair(self.translator(tag=self.wanted_tag(tag)), source, target)
        record = Record()
        (nats,) = forced_nats(self.model, self.target_tokenizer, [pair], record)
        layers = list(record.named("cross_attention").values())  # (1, N, T, S) each, lowest layer first
        attention = layers[-1][0].mean(dim=0).double().cpu().numpy() if layers else None
        return Looked(pair.source, tuple(pair.ids.tolist()), nats, attention)

    def aligned(self, source: str, target: str, tag: str | None = None) -> Alignment:
        """Which word of `source` each of `target` comes from, by where the model looked; words are between spaces."""
        source, target = source.strip(), target.strip()
        words = [
            words_of_tokens(tokenizer, text)
            for tokenizer, text in ((self.target_tokenizer, target), (self.source_tokenizer, source))
        ]
        if not all(words):
            return Alignment(frozenset())
        looked = self.looked(source, target, tag)
        if looked.attention is None:
            raise RegardError(
                f"'{self.folder}' has no attention to align words by: it was trained with attention none. Train one "
                "with model.attention mlp, say."
            )
        n_tags = len(looked.source) - len(words[1])
        weights = looked.attention[: len(looked.tokens), n_tags:]  # the end is no word, nor is a tag
        return hard_alignment(word_weights(weights, *words))


def _checked_split(split: str) -> str:
    if split not in ("train", "valid", "test"):
        raise RegardError(f"split must be train, valid or test, not '{split}'.")
    return split


def _with_tag(pairs: Pairs, tag: str | None) -> Pairs:
    """Those that have it; all where None is asked for."""
    if tag is None:
        return pairs
    if not len(chosen := pairs.tagged(tag)):
        raise RegardError(f"There are no pairs to evaluate on: no pair that is given has the tag {tag}. Give some.")
    return chosen


def _of_split(data: Any, split: str) -> Any:
    """What `data.train` may be, where every name of the built-in grammar's has a split."""
    if isinstance(data, str):
        return complete_name(data, split) if is_grammar(data) else data
    return tuple(_of_split(part, split) for part in data)


@dataclass(frozen=True)
class Looked:
    """A pair as the model read it."""

    source: Sentence
    tokens: tuple[int, ...]
    nats: NDArray[np.float64]
    """-log P of every target token, and of the end where the model has room for it."""
    attention: NDArray[np.float64] | None
    """Weights (T + 1, S) on the source's tokens, one row for each target token and the end; None: it does not look."""


def load_pair_run(folder: str | Path, device: str = "auto", precision: str = "float32") -> PairRun:
    """Open the folder of a run that reads pairs. Nothing in it is executed."""
    if precision not in PRECISIONS:
        raise RegardError(f"precision must be one of {', '.join(PRECISIONS)}, not '{precision}'.")
    folder = Path(folder)
    config, facts, tokenizer = open_folder(folder)
    if config.reads_pictures:
        raise RegardError(
            f"'{folder}' describes pictures ({config.model_name}) and reads no pairs of texts. Use regard caption with "
            "it."
        )
    if not config.reads_pairs:
        raise RegardError(
            f"'{folder}' is a language model ({config.model_name}) and reads text, not pairs of texts. Give a run of a "
            "model that reads pairs, such as seq2seq."
        )
    target = target_tokenizer_of(folder, facts) or tokenizer
    tensors = weights_of(folder)
    is_shared = facts.target_tokenizer is None
    model = build_pair_model(
        config.model_name, config.model, target.vocab_size, None if is_shared else tokenizer.vocab_size
    )
    load_weights(model, tensors, folder / "model.safetensors")
    model.to(pick_device(device), PRECISIONS[precision]).eval()
    return PairRun(folder, config, facts, tokenizer, target, model)
