"""The job of writing the constituency tree of a sentence: the same models as for translation, held to write trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from regard.config import RunConfig
from regard.data.pairs import Pairs
from regard.data.tree_lines import escape_word, linearise, to_brackets
from regard.data.tree_pairs import FORMS, rebuild_tree
from regard.data.trees import Tree
from regard.decode.config import BeamConfig, search_trees
from regard.decode.forced import ForcedPair, read_pair
from regard.decode.parse import Parse, Parser
from regard.decode.translate import Translator
from regard.errors import RegardError
from regard.lens.prediction import Prediction
from regard.lens.trace import Trace
from regard.models.seq2seq import Seq2Seq
from regard.score.bracket_f1 import BracketScore, bracket_f1
from regard.score.judges import BracketF1
from regard.score.measured import Figure, Measured
from regard.tasks.base_run import check_text, count_done, list_items
from regard.tasks.pair_run import PairEvaluation, PairRun
from regard.tasks.pairs import PairTask
from regard.tasks.translation import greedy_bleu
from regard.text.config import TokenizerConfig
from regard.text.learning import Progress


@dataclass(frozen=True, kw_only=True)
class ParseScore:
    """How good parses are, and how many would be ill-formed without the constraint that makes them trees."""

    brackets: BracketScore
    n_ill_formed: int

    def to_dict(self) -> dict[str, Any]:
        return self.brackets.to_dict() | {"n_ill_formed": self.n_ill_formed}


@dataclass(frozen=True, kw_only=True)
class ParsingEvaluation(PairEvaluation):
    """How well trees are predicted, and how good the parses are; None where none were made."""

    parses: ParseScore | None = None

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | ({} if self.parses is None else {"parses": self.parses.to_dict()})

    def measure(self) -> Measured:
        figures = [*self.figures()]
        notes = [*self.list_notes()]
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


class ParsingRun(PairRun):
    """A trained parser: parse, evaluate."""

    verbs = ("parse", "evaluate", "trace", "prediction")

    def parser(
        self,
        beam: BeamConfig | None = None,
        *,
        others: Sequence[ParsingRun] = (),
        tag: str | None = None,
        is_constrained: bool = True,
    ) -> Parser:
        """What parses lines; with `others`, runs of the same vocabularies, by the mean of all probabilities."""
        models, tokenizers = self.join_models(others), (self.source_tokenizer, self.target_tokenizer)
        form, tag = self.reader.config.tree_words, self.reader.check_tag(tag)
        return Parser(models, *tokenizers, form, beam, tag=tag, is_constrained=is_constrained)

    def parse(self, sentences: str | Sequence[str], tag: str | None = None, **beam: Any) -> Any:
        """The tree of a sentence, or a list of them; words, punctuation too, have spaces between them.

        `beam`: beam, length_penalty, alpha as in BeamConfig. A sentence without words has no tree but None. With
        n_best > 1 each sentence has a list of Parses, the most probable trees first, each with its `probability`.
        """
        given = list_items(sentences, "sentence")
        parser = self.parser(BeamConfig.from_dict(search_trees(**beam)), tag=self.reader.choose_tag(tag))
        found = parser.all(given)
        trees: list[Any] = [parse.tree for parse in found] if beam.get("n_best", 1) == 1 else [p.all for p in found]
        return trees[0] if isinstance(sentences, str) else trees

    def predict(self, items: Iterable[str], tag: str | None = None, **beam: Any) -> Iterator[Parse]:
        """The parse of each line, in bounded memory."""
        return self.parser(BeamConfig.from_dict(search_trees(**beam)), tag=self.reader.choose_tag(tag)).lines(items)

    def evaluate(
        self,
        data: str | Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | int | None = None,
        is_parsed: bool = True,
        skips_bad: bool = False,
        tag: str | None = None,
        progress: Progress | None = None,
    ) -> ParsingEvaluation:
        """Loss and labelled F1 on other trees, or on a split of those the run was trained on.

        A tree that cannot be used is an error, or, where `skips_bad`, left out and counted. With `tag` only trees that
        have it are looked at. `progress` is told how many sentences are parsed.
        """
        pairs, skipped = self.reader.select(data, split, skips_bad, tag)
        config = BeamConfig(beam=beam) if isinstance(beam, int) else beam
        return replace(self.evaluate_pairs(pairs, config, is_parsed, progress), skipped=skipped)

    def evaluate_pairs(
        self, pairs: Pairs, beam: BeamConfig | None = None, is_parsed: bool = True, progress: Progress | None = None
    ) -> ParsingEvaluation:
        """Loss and labelled F1 on sentences and trees that are read already."""
        pairs, loss = self.sum_loss(pairs)
        if not is_parsed:
            return ParsingEvaluation(**loss)
        parses = score_parses(self.parser(beam), self.parser(beam, is_constrained=False), pairs, progress)
        return ParsingEvaluation(**loss, parses=parses)

    def trace(self, sentence: str, tree: Tree | None = None, tag: str | None = None) -> Trace:
        """What the model computed when it was made to write a tree, its own or another, by token of the tree."""
        return self.trace_pair(self._read_tree(sentence, tree, tag))

    def prediction(
        self,
        sentence: str,
        tree: Tree | None = None,
        tag: str | None = None,
        *,
        at: int | None = None,
        target: int | str | None = None,
    ) -> Prediction:
        """The token at row `at` of `trace(sentence, tree)` as a prediction to be explained; None: the tree's end.

        `target` is the token whose probability is explained, by its text or id; None: the most probable one.
        """
        return self.predict_pair(self._read_tree(sentence, tree, tag), at, target)

    def write_tree(self, tree: Tree) -> str:
        """A tree as the model writes it: its tokens, with spaces between them."""
        return " ".join(linearise(tree, FORMS[self.reader.config.tree_words]))

    def _read_tree(self, sentence: str, tree: Tree | None, tag: str | None) -> ForcedPair:
        """A sentence and its tree, or the model's own, as the model reads and writes them."""
        words = check_text(sentence, "sentence").split()
        if tree is not None and not isinstance(tree, Tree):
            raise RegardError(f"A tree is a regard.data.trees.Tree, as `parse` gives it, and not {tree!r:.60}.")
        tree = self.parse(sentence, tag) if tree is None else tree
        if tree is None:
            raise RegardError("The sentence to look into is empty; give at least one word.")
        translator = Translator(
            [self.model], self.source_tokenizer, self.target_tokenizer, BeamConfig(), tag=self.reader.choose_tag(tag)
        )
        return read_pair(translator, " ".join(map(escape_word, words)), self.write_tree(tree))

    def read_target(self, pairs: Pairs, i: int) -> str:
        """The tree of pair i in brackets, as answers are compared with it."""
        return to_brackets(rebuild_tree(pairs, i, self.reader.config.tree_words))

    def decoder(self, pairs: Pairs, beam: int) -> Callable[[Sequence[int]], list[str]]:
        """What answers pairs by their numbers, by a beam search of that width."""
        parser = self.parser(BeamConfig(beam=beam))

        def decode(numbers: Sequence[int]) -> list[str]:
            parses = parser.all([pairs.source_text(i) for i in numbers], [pairs.tag(i) for i in numbers])
            return ["" if parse.tree is None else to_brackets(parse.tree) for parse in parses]

        return decode


def score_parses(constrained: Parser, free: Parser, pairs: Pairs, progress: Progress | None = None) -> ParseScore:
    """Labelled F1 of the constrained parses; `free` is the same model without a constraint."""
    tell = count_done(progress, "parsing without the constraint", len(pairs))
    n_ill_formed = sum(parse.tree is None for parse in free.all(*_sentences(pairs), tell))
    brackets = score_brackets(constrained, pairs, count_done(progress, "parsing", len(pairs)))
    return ParseScore(brackets=brackets, n_ill_formed=n_ill_formed)


def score_brackets(parser: Parser, pairs: Pairs, tell: Callable[[int], None] | None = None) -> BracketScore:
    """The score of the parses of all sources, against the trees that the targets are."""
    trees = [parse.tree for parse in parser.all(*_sentences(pairs), tell)]
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


def _add_tokenizer_of_trees(config: RunConfig) -> RunConfig:
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


PARSING = PairTask(
    name="parsing",
    verb="parse",
    summary="parses",
    example="--data grammar:en-trees",
    has_trees=True,
    run_type=ParsingRun,
    greedy_scores=lambda config: {"bleu": greedy_bleu, "f1": partial(greedy_f1, config.tree_words)},
    make_judge=lambda references, config: BracketF1(references, FORMS[config.tree_words].has_tags),
    check_sections=_add_tokenizer_of_trees,
)
