"""What trained translators and parsers share: the pairs they are asked about, and the loss of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.data.pair_copying import NOT_COPIED
from regard.data.pair_grammar import complete_name, is_grammar
from regard.data.pairs import Pairs
from regard.data.pairs_config import PairsConfig
from regard.data.prepared_pairs import PreparedPairs, encode_pairs
from regard.data.split import describe_skipped
from regard.decode.forced import ForcedPair, force_targets
from regard.decode.translate import Sentence, words_of
from regard.errors import RegardError, nearest
from regard.layers.taps import Taps
from regard.lens.prediction import Prediction, find_stand_in
from regard.lens.trace import Trace
from regard.lens.written import Side, Written, predict_written, trace_written
from regard.models.seq2seq import Seq2Seq
from regard.models.source import Source
from regard.score.target_loss import TargetLoss
from regard.score.translation import MANY_ENDS
from regard.tasks.base_run import Run
from regard.tasks.pair_objective import readable_pairs, sum_nats
from regard.tasks.task import OpenRun, Task, check_split, reopen_data

MAX_TOKENS = 8192
"""Tokens of a batch that is decoded or scored."""


@dataclass(frozen=True, kw_only=True)
class PairEvaluation(TargetLoss):
    """How well targets are predicted from their sources."""

    n_pairs: int
    n_left_out: int = 0
    """Pairs that are longer than the model reads; they count nowhere."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines or trees that could not be used and were left out, by kind."""

    def to_dict(self) -> dict[str, Any]:
        return self.plain("n_pairs", "n_left_out") | {"skipped": dict(self.skipped)}

    def list_notes(self) -> tuple[str, ...]:
        """What has to be known to read the scores, and what was not scored, as sentences."""
        notes = [*self.notes]
        if self.n_left_out:
            share = f"{self.n_left_out:,} of {self.n_pairs + self.n_left_out:,} pairs"
            notes.append(f"Left out, since they are longer than the model reads: {share}.")
        if self.skipped:
            notes.append(f"{describe_skipped(self.skipped)}.")
        return tuple(notes)


class PairRun(Run):
    """A trained model that writes the target of a source."""

    model: Seq2Seq

    def __init__(self, task: Task, opened: OpenRun, model: Seq2Seq) -> None:
        super().__init__(task, opened, model)
        self.source_tokenizer, self.target_tokenizer = opened.tokenizers[0], opened.tokenizers[-1]
        self.reader = PairReader(task, opened)

    def sum_loss(self, pairs: Pairs) -> tuple[Pairs, dict[str, Any]]:
        """The pairs that the model has room for, and the fields of a PairEvaluation of them."""
        found = readable_pairs(self.model, pairs)
        if not len(found):
            raise RegardError(
                f"Of {len(pairs):,} pairs given, none is short enough for the model, which reads "
                f"{self.model.max_context} tokens. Give shorter ones, or train one with a larger model.max_context."
            )
        nats, n_tokens = sum_nats(self.model, found, MAX_TOKENS)
        sizes = {"n_bytes": found.n_bytes, "n_pairs": len(found), "n_left_out": len(pairs) - len(found)}
        return found, {"nats": nats, "n_tokens": n_tokens, **sizes}

    def trace_pair(self, pair: ForcedPair) -> Trace:
        """What the model computed when it was made to write a target, by token of the target."""
        check_source(pair)
        record = Taps()
        (nats,) = force_targets(self.model, self.target_tokenizer, [pair], record)
        return trace_written(self.read_written(pair), nats, record, self.read_side(pair.source))

    def predict_pair(self, pair: ForcedPair, at: int | None, target: int | str | None) -> Prediction:
        """The token that is written at row `at` of a target, as a prediction to be explained."""
        check_source(pair)
        return predict_written(
            self.model.eval().target, self.read_side(pair.source), self.read_written(pair), at, target
        )

    def read_written(self, pair: ForcedPair) -> Written:
        """The target of a pair, with the characters of its tokens."""
        spans = self.target_tokenizer.encode_with_offsets(pair.text)[1] if pair.text else []
        shown = tuple(spans) if len(spans) == len(pair.ids) else (None,) * len(pair.ids)
        return Written(self.target_tokenizer, tuple(pair.ids.tolist()), shown, pair.text, pair.source.unknown)

    def read_side(self, sentence: Sentence) -> Side:
        """A source, and how it is encoded with some of its tokens changed or left out."""
        model, tokenizer, ids = self.model, self.source_tokenizer, tuple(sentence.ids.tolist())
        spans = tokenizer.encode_with_offsets(sentence.text)[1] if sentence.text else []
        n_ends, device = int(tokenizer.ends_sources), model.embedding.device
        n_tags = len(ids) - len(spans) - n_ends

        def encode(inputs: Sequence[int | None], taps: Taps | None) -> Source:
            kept = [i for i, token in enumerate(inputs) if token is not None]
            source = torch.tensor([[inputs[i] for i in kept]], device=device)
            words = None
            if model.copies:  # a word that was changed cannot be copied
                own = words_of(sentence).tolist()
                words = torch.tensor([[own[i] if inputs[i] == ids[i] else NOT_COPIED for i in kept]], device=device)
            return model.encode(source, torch.ones_like(source, dtype=torch.bool), words, taps)

        return Side(
            text=sentence.text,
            tokens=tuple(tokenizer.token_text(i) for i in ids),
            spans=(*(None,) * n_tags, *spans, *(None,) * n_ends),
            inputs=ids,
            stand_ins=(find_stand_in(tokenizer),) * len(ids),
            tap="encoder.embedding",
            encode=encode,
        )

    def _text_of_split(self, split: Pairs, n_chars: int) -> str:
        """The sources of a split, one a line."""
        lines, n = [], 0
        for i in range(len(split)):
            lines.append(split.source_text(i))
            n += len(lines[-1]) + 1
            if n > n_chars:
                break
        return "\n".join(lines)

    def join_models(self, others: Sequence[PairRun]) -> list[Seq2Seq]:
        """The models of several runs that decode together; an error where their vocabularies differ."""
        for other in others:
            for side, own, theirs in (
                ("source", self.source_tokenizer, other.source_tokenizer),
                ("target", self.target_tokenizer, other.target_tokenizer),
            ):
                if own.hash != theirs.hash:
                    raise RegardError(
                        f"'{other.folder}' and '{self.folder}' have different vocabularies of the {side}: only runs "
                        "that share them can decode together. Train the one with the other's tokenizer.path."
                    )
        return [self.model, *(other.model for other in others)]


def check_source(pair: ForcedPair) -> None:
    """Refuse a pair whose source has no text: no encoder reads nothing."""
    if not len(pair.source):
        raise RegardError("The source is empty: there is nothing that a target could be written for. Give some text.")


class PairReader:
    """The pairs of a run, others of their form, and the tags that say which kind of target is wanted."""

    def __init__(self, task: Task, opened: OpenRun) -> None:
        self.task, self.opened, self.folder = task, opened, opened.folder
        self.config = opened.config.section("data", PairsConfig)

    @property
    def tags(self) -> tuple[str, ...]:
        """What can be put before a source to say what is wanted: those it was trained with."""
        return tuple(sorted({part.tag for part in self.config.parts("train") if part.tag is not None}))

    def check_tag(self, tag: str | None) -> str | None:
        """`tag`, or the one that all data have; an error where the run was not trained with it."""
        tag = tag if tag is not None else self.config.tag
        if tag is not None and tag not in self.tags:
            known = f"It knows {', '.join(self.tags)}." if self.tags else "It was trained with none: leave it out."
            raise RegardError(f"'{self.folder}' does not know the tag {tag}.{nearest(tag, self.tags)} {known}")
        return tag

    def choose_tag(self, tag: str | None) -> str | None:
        """`tag`, or the only one there is; an error where one of several has to be chosen."""
        tag = self.config.tag if tag is None else tag
        if tag is not None or not all(part.tag for part in self.config.parts("train")):
            return tag
        if len(self.tags) > 1:
            raise RegardError(
                f"'{self.folder}' was trained to give several kinds of targets and has to be told which: --to (or tag) "
                f"is one of {', '.join(self.tags)}."
            )
        return self.tags[0]

    def pairs_of(self, data: str | Sequence[str] | None = None, split: str = "test") -> Pairs:
        """Other pairs, or a split of the run's own."""
        return self.own_pairs(split) if data is None else self.other_pairs(data, split).train

    def own_pairs(self, split: str = "test") -> Pairs:
        """A split of the pairs that the run was trained on."""
        pairs: Pairs = getattr(reopen_data(self.task, self.opened), check_split(split))
        if not len(pairs):
            raise RegardError(
                f"There are no pairs to evaluate on: the {split} split is empty. Name some: --data (in Python: data)."
            )
        return pairs

    def other_pairs(
        self, data: str | Sequence[str], split: str = "test", skips_bad: bool = False, tag: str | None = None
    ) -> PreparedPairs:
        """Other pairs, in the form that `data.train` has, all in the split train, and what was left out of them.

        `tag` is that of pairs which name none. Those of the built-in grammar are of `split`, where their name says no
        other (grammar:en-de@train).
        """
        own, has_trees = self.config, self.config.has_trees
        form = "trees" if has_trees else own.format  # whatever its files are called
        given = _name_split(data, check_split(split))
        other = own.replace(train=given, valid=None, test=None, max_pairs=None, format=form)
        other = other.replace(skips_bad=skips_bad or own.skips_bad)
        if other.has_trees != has_trees:
            raise RegardError(
                f"'{self.folder}' was trained on translations, and {data} holds trees. Give pairs such as it knows."
            )
        if tag is not None:
            other = other.replace(tag=tag)
        elif not all(part.tag for part in other.parts("train")):
            other = other.replace(tag=self.choose_tag(None))
        return encode_pairs(self.opened.tokenizers[0], self.opened.tokenizers[-1], other)

    def select(
        self, data: str | Sequence[str] | None, split: str, skips_bad: bool, tag: str | None
    ) -> tuple[Pairs, Mapping[str, int]]:
        """The pairs that an evaluation asks for, and what was left out of them, by kind."""
        if tag is not None:
            self.check_tag(tag)  # before anything is read
        if data is None:
            return _with_tag(self.own_pairs(split), tag), {}
        other = self.other_pairs(data, split, skips_bad, tag)
        return _with_tag(other.train, tag), other.counts.skipped


def _with_tag(pairs: Pairs, tag: str | None) -> Pairs:
    """Those that have it; all where None is asked for."""
    if tag is None:
        return pairs
    if not len(chosen := pairs.select_tagged(tag)):
        raise RegardError(f"There are no pairs to evaluate on: no pair that is given has the tag {tag}. Give some.")
    return chosen


def _name_split(data: Any, split: str) -> Any:
    """What `data.train` may be, where every name of the built-in grammar's has a split."""
    if isinstance(data, str):
        return complete_name(data, split) if is_grammar(data) else data
    return tuple(_name_split(part, split) for part in data)


def warn_of_split_words(references: Sequence[str]) -> tuple[str, ...]:
    """A sentence where many references end in " .": text that was split into words; nothing elsewhere."""
    is_split = sum(reference.rstrip().endswith(" .") for reference in references) >= MANY_ENDS
    said = "The references are split into words already: this BLEU compares with no published score."
    return (said,) if is_split else ()
