"""The job of writing the constituency tree of a sentence: the same models as for translation, held to write trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from regard.config import RunConfig
from regard.data.pairs import Pairs
from regard.data.pairs_config import PairsConfig
from regard.data.tree_lines import to_brackets
from regard.data.tree_pairs import FORMS, rebuild_tree
from regard.decode.config import BeamConfig
from regard.decode.parse import Parse, Parser
from regard.errors import RegardError
from regard.lens.trace import Trace
from regard.models.seq2seq import Seq2Seq
from regard.score.bracket_f1 import BracketScore, bracket_f1
from regard.score.judges import BracketF1
from regard.score.measured import Figure, Measured
from regard.score.target_loss import TargetLoss
from regard.tasks.pair_objective import GreedyScore, sum_nats
from regard.tasks.pairs import MAX_TOKENS, PairReader, PairTask, check_together, readable_or_refuse
from regard.tasks.task import Ending, OpenRun, read_test_result
from regard.tasks.translation import greedy_bleu, tell_left_out
from regard.text.config import TokenizerConfig


@dataclass(frozen=True, kw_only=True)
class ParseScore:
    """How good parses are, and how many would be ill-formed without the constraint that makes them trees."""

    brackets: BracketScore
    n_ill_formed: int

    def to_dict(self) -> dict[str, Any]:
        return self.brackets.to_dict() | {"n_ill_formed": self.n_ill_formed}


@dataclass(frozen=True, kw_only=True)
class ParsingEvaluation(TargetLoss):
    """How well trees are predicted, and how good the parses are; None where none were made."""

    n_pairs: int
    n_left_out: int = 0
    """Sentences that are longer than the model reads; they count nowhere."""
    parses: ParseScore | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Trees that could not be used and were left out, by kind."""

    def to_dict(self) -> dict[str, Any]:
        found = self.plain("n_pairs", "n_left_out") | {"skipped": dict(self.skipped)}
        return found | ({} if self.parses is None else {"parses": self.parses.to_dict()})

    def measure(self) -> Measured:
        figures = [*self.figures()]
        notes = [*self.notes, *tell_left_out(self.n_pairs, self.n_left_out, self.skipped)]
        if self.parses is not None:
            found = self.parses.brackets
            figures += [
                Figure("labelled precision", 100 * found.precision),
                Figure("labelled recall", 100 * found.recall),
                Figure("sentences all right, %", 100 * found.exact),
                Figure("labelled F1", 100 * found.f1),
            ]
            share = f"{self.parses.n_ill_formed:,} of {self.n_pairs:,}"
            notes.append(f"Ill-formed without the constraint that makes every parse a tree: {share}.")
        return Measured(
            figures=tuple(figures),
            headline=figures[-1].name,
            is_higher_better=self.parses is not None,
            counts={"sentences": self.n_pairs, "target tokens": self.n_tokens},
            signature="" if self.parses is None else "brackets by the rules of evalb",
            notes=tuple(notes),
        )


class ParsingRun:
    """A trained parser: parse, evaluate."""

    def __init__(self, opened: OpenRun, model: Seq2Seq) -> None:
        self.folder, self.config, self.facts, self.model = opened.folder, opened.config, opened.facts, model
        self.tokenizers = opened.tokenizers
        self.ending: Ending | None = None
        self.source_tokenizer, self.target_tokenizer = opened.tokenizers[0], opened.tokenizers[-1]
        self.reader = PairReader(PARSING, opened)

    def __repr__(self) -> str:
        return f"<ParsingRun {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended."""
        return read_test_result(self.folder)

    def parser(
        self,
        beam: BeamConfig | None = None,
        *,
        others: Sequence[ParsingRun] = (),
        tag: str | None = None,
        is_constrained: bool = True,
    ) -> Parser:
        """What parses lines; with `others`, runs of the same vocabularies, by the mean of all probabilities."""
        models, tokenizers = check_together(self, others), (self.source_tokenizer, self.target_tokenizer)
        form, tag = self.reader.config.tree_words, self.reader.check_tag(tag)
        return Parser(models, *tokenizers, form, beam, tag=tag, is_constrained=is_constrained)

    def parse(self, sentences: str | Sequence[str], tag: str | None = None, **beam: Any) -> Any:
        """The tree of a sentence, or a list of them; words, punctuation too, have spaces between them.

        `beam`: beam, length_penalty, alpha as in BeamConfig. A sentence without words has no tree but None.
        """
        given = [sentences] if isinstance(sentences, str) else list(sentences)
        parser = self.parser(BeamConfig.from_dict(beam), tag=self.reader.choose_tag(tag))
        trees = [parse.tree for parse in parser.all(given)]
        return trees[0] if isinstance(sentences, str) else trees

    def predict(self, items: Iterable[str], tag: str | None = None, **beam: Any) -> Iterator[Parse]:
        """The parse of each line, in bounded memory."""
        return self.parser(BeamConfig.from_dict(beam), tag=self.reader.choose_tag(tag)).lines(items)

    def evaluate(
        self,
        data: str | Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | int | None = None,
        is_parsed: bool = True,
        skips_bad: bool = False,
        tag: str | None = None,
    ) -> ParsingEvaluation:
        """Loss and labelled F1 on other trees, or on a split of those the run was trained on.

        A tree that cannot be used is an error, or, where `skips_bad`, left out and counted. With `tag` only trees that
        have it are looked at.
        """
        pairs, skipped = self.reader.select(data, split, skips_bad, tag)
        config = BeamConfig(beam=beam) if isinstance(beam, int) else beam
        return replace(self.evaluate_pairs(pairs, config, is_parsed), skipped=skipped)

    def evaluate_pairs(self, pairs: Pairs, beam: BeamConfig | None = None, is_parsed: bool = True) -> ParsingEvaluation:
        """Loss and labelled F1 on sentences and trees that are read already."""
        n_given, pairs = len(pairs), readable_or_refuse(self.model, pairs)
        nats, n_tokens = sum_nats(self.model, pairs, MAX_TOKENS)
        loss = ParsingEvaluation(
            nats=nats, n_tokens=n_tokens, n_bytes=pairs.n_bytes, n_pairs=len(pairs), n_left_out=n_given - len(pairs)
        )
        if not is_parsed:
            return loss
        return replace(loss, parses=score_parses(self.parser(beam), self.parser(beam, is_constrained=False), pairs))

    def trace(self, *texts: str) -> Trace:
        raise RegardError("A parser cannot be traced yet: it writes trees in a form of its own.")


def score_parses(constrained: Parser, free: Parser, pairs: Pairs) -> ParseScore:
    """Labelled F1 of the constrained parses; `free` is the same model without a constraint."""
    n_ill_formed = sum(parse.tree is None for parse in free.all(*_sentences(pairs)))
    return ParseScore(brackets=score_brackets(constrained, pairs), n_ill_formed=n_ill_formed)


def score_brackets(parser: Parser, pairs: Pairs) -> BracketScore:
    """The score of the parses of all sources, against the trees that the targets are."""
    trees = [parse.tree for parse in parser.all(*_sentences(pairs))]
    gold = [rebuild_tree(pairs, i, parser.tree_words) for i in range(len(pairs))]
    return bracket_f1([tree for tree in trees if tree is not None], gold, has_tags=parser.form.has_tags)


def _sentences(pairs: Pairs) -> tuple[list[str], list[str | None]]:
    """The sources and their tags."""
    numbers = range(len(pairs))
    return [pairs.source_text(i) for i in numbers], [pairs.tag(i) for i in numbers]


def greedy_f1(tree_words: str, model: Seq2Seq, pairs: Pairs, max_tokens: int) -> float:
    """Labelled F1, in per cent, of the most probable brackets, one after the other."""
    tokenizers = pairs.source.tokenizer, pairs.target.tokenizer
    parser = Parser([model], *tokenizers, tree_words, BeamConfig(beam=1), max_tokens=max_tokens)
    return 100 * score_brackets(parser, pairs).f1


def _greedy_scores(config: PairsConfig) -> Mapping[str, GreedyScore]:
    return {"bleu": greedy_bleu, "f1": partial(greedy_f1, config.tree_words)}


def _with_tokenizer_of_trees(config: RunConfig) -> RunConfig:
    """Brackets and slots are whole words, and all are needed: what was opened must be closed."""
    whole = TokenizerConfig(kind="word", vocab_size=None)
    given = config.section_or_none("target_tokenizer", TokenizerConfig)
    if given is None:
        return config.with_section("target_tokenizer", whole)
    if given.path is None and given.replace(max_bytes=whole.max_bytes) != whole:
        raise RegardError(
            "The targets are trees, whose vocabulary is every bracket as a word of its own: target_tokenizer must be "
            "{kind: word, vocab_size: null}, or be left out."
        )
    return config


def _read_target(run: ParsingRun, pairs: Pairs, i: int) -> str:
    return to_brackets(rebuild_tree(pairs, i, run.reader.config.tree_words))


def _decoder(run: ParsingRun, pairs: Pairs, beam: int) -> Callable[[Sequence[int]], list[str]]:
    parser = run.parser(BeamConfig(beam=beam))

    def decode(numbers: Sequence[int]) -> list[str]:
        parses = parser.all([pairs.source_text(i) for i in numbers], [pairs.tag(i) for i in numbers])
        return ["" if parse.tree is None else to_brackets(parse.tree) for parse in parses]

    return decode


def _make_judge(references: Sequence[str], config: PairsConfig) -> BracketF1:
    return BracketF1(references, FORMS[config.tree_words].has_tags)


PARSING = PairTask(
    name="parsing",
    verb="parse",
    summary="parses",
    example="--data grammar:en-trees",
    has_trees=True,
    run_type=ParsingRun,
    evaluate_pairs=ParsingRun.evaluate_pairs,
    greedy_scores=_greedy_scores,
    read_target=_read_target,
    decoder=_decoder,
    make_judge=_make_judge,
    check_sections=_with_tokenizer_of_trees,
)
