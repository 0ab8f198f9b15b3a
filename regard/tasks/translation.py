"""The job of writing one text for another: translation, and whatever else comes in pairs of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.pairs import Pairs
from regard.decode.config import MAX_RATIO, BeamConfig, SamplingConfig
from regard.decode.forced import ForcedPair, force_targets, read_pair, score_pairs
from regard.decode.translate import Sentence, Translation, Translator
from regard.errors import RegardError
from regard.layers.taps import Taps, is_recorded
from regard.lens.prediction import Prediction
from regard.lens.trace import Trace
from regard.lens.whole_words import MAX_PIECES, Opened
from regard.models.seq2seq import Seq2Seq
from regard.models.seq2seq_next_token import Translating
from regard.score.alignment import Alignment, hard_alignment, word_weights
from regard.score.judges import Bleu
from regard.score.measured import Figure, Measured
from regard.score.scored import Scored
from regard.score.translation import BleuScore, ChrfScore, bleu, chrf
from regard.tasks.base_run import check_text, count_done, list_items
from regard.tasks.pair_run import MAX_TOKENS, PairEvaluation, PairRun, check_source, warn_of_split_words
from regard.tasks.pairs import PairTask
from regard.text.learning import Progress
from regard.text.word_pieces import words_of_tokens
from regard.weights.ctranslate2_engine import TranslatorEngine


@dataclass(frozen=True, kw_only=True)
class TranslationEvaluation(PairEvaluation):
    """How well targets are predicted, and how good the translations are; None where none were made."""

    bleu: BleuScore | None = None
    chrf: ChrfScore | None = None

    def to_dict(self) -> dict[str, Any]:
        scores = {"bleu": self.bleu, "chrf": self.chrf}
        return super().to_dict() | {name: score.to_dict() for name, score in scores.items() if score is not None}

    def measure(self) -> Measured:
        figures = [*self.figures()]
        if self.bleu is not None and self.chrf is not None:
            figures += [Figure("chrF", self.chrf.score), Figure("BLEU", self.bleu.score)]
        return Measured(
            figures=tuple(figures),
            headline=figures[-1].name,
            is_higher_better=self.bleu is not None,
            counts={"pairs": self.n_pairs, "target tokens": self.n_tokens},
            signature="" if self.bleu is None else f"sacreBLEU {self.bleu.signature}",
            notes=self.list_notes(),
        )


@dataclass(frozen=True)
class ForcedTranslation:
    """A pair as the model read it when it was made to write the target."""

    source: Sentence
    tokens: tuple[int, ...]
    nats: NDArray[np.float64]
    """-log P of every target token, and of the end where the model has room for it."""
    attention: NDArray[np.float64] | None
    """Weights (T + 1, S) on the source's tokens, a row for each target token and the end; None: it does not attend."""


class TranslationRun(PairRun):
    """A trained translator: translate, score, evaluate, align words."""

    verbs = ("translate", "score", "align", "force", "evaluate", "trace", "prediction")
    old_names: ClassVar[Mapping[str, str]] = {
        "looked": "force", "aligned": "align", "pairs_of": "reader.pairs_of", "wanted_tag": "reader.choose_tag",
    }  # fmt: skip

    engine: TranslatorEngine | None = None
    """What searches for targets instead of the model itself."""

    def translator(
        self,
        beam: BeamConfig | None = None,
        *,
        others: Sequence[TranslationRun] = (),
        tag: str | None = None,
        sampling: SamplingConfig | None = None,
    ) -> Translator:
        """What translates lines; with `others`, runs of the same vocabularies, by the mean of all probabilities.

        With `sampling` targets are drawn, the beam's n_best of them, and not searched for.
        """
        tag, config = self.reader.check_tag(tag), beam or BeamConfig(max_ratio=MAX_RATIO)
        models, tokenizers = self.join_models(others), (self.source_tokenizer, self.target_tokenizer)
        engine = None if is_recorded(self.model) else self.engine
        if engine is not None and (others or sampling is not None):
            what = "draws targets (--sample)" if sampling is not None else "averages several runs (--with)"
            raise RegardError(f"Only the engine torch {what}: leave out --engine (in Python: engine), or that.")
        search = None if engine is None else engine.search
        return Translator(models, *tokenizers, config, tag=tag, sampling=sampling, search=search)

    def use_ctranslate2(self, precision: str) -> None:
        """Search for targets by CTranslate2 from now on."""
        tokenizers = self.source_tokenizer, self.target_tokenizer
        self.engine = TranslatorEngine(self.model, self.config.model, *tokenizers, precision, f"'{self.folder}'")

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
        translator = self.translator(config, tag=self.reader.choose_tag(tag), sampling=sampling)
        given = list_items(texts, "text")
        found = translator.all([translator.read(text) for text in given], MAX_TOKENS)
        results: list[Any] = [best[0].text for best in found] if config.n_best == 1 else list(found)
        return results[0] if isinstance(texts, str) else results

    def predict(self, items: Iterable[str], tag: str | None = None, **beam: Any) -> Iterator[list[Translation]]:
        """The best translations of each line, as many as n_best says, in bounded memory."""
        config = BeamConfig.from_dict({"max_ratio": MAX_RATIO} | beam)
        return self.translator(config, tag=self.reader.choose_tag(tag)).lines(items)

    def score(self, source: str | Sequence[str], target: str | Sequence[str], tag: str | None = None) -> Any:
        """How probable the model finds a target for a source (forced decoding), or a list for a list of each.

        What every token of the target costs, its end included; None where neither has any text.
        """
        one = isinstance(source, str)
        sources, targets = (list_items(text, "text") for text in (source, target))
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
        """What every token of each target costs, pair by pair, in bounded memory.

        None stands for a pair without text and, where `skips_bad`, for one that cannot be scored; it is else an error
        with its number.
        """
        return score_pairs(self.translator(tag=self.reader.choose_tag(tag)), pairs, skips_bad=skips_bad)

    def evaluate(
        self,
        data: str | Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | int | None = None,
        is_translated: bool = True,
        skips_bad: bool = False,
        tag: str | None = None,
        progress: Progress | None = None,
    ) -> TranslationEvaluation:
        """Loss, BLEU and chrF on other pairs, or on a split of those the run was trained on.

        A line of other pairs that cannot be used is an error, or, where `skips_bad`, left out and counted. With `tag`
        only pairs that have it are looked at, and other pairs have it where they name none. `progress` is told how many
        sources are translated.
        """
        pairs, skipped = self.reader.select(data, split, skips_bad, tag)
        config = BeamConfig(beam=beam, max_ratio=MAX_RATIO) if isinstance(beam, int) else beam
        return replace(self.evaluate_pairs(pairs, config, is_translated, progress), skipped=skipped)

    def evaluate_pairs(
        self, pairs: Pairs, beam: BeamConfig | None = None, is_translated: bool = True, progress: Progress | None = None
    ) -> TranslationEvaluation:
        """Loss, BLEU and chrF on pairs that are read already."""
        pairs, loss = self.sum_loss(pairs)
        if not is_translated:
            return TranslationEvaluation(**loss)
        texts = self.translations(pairs, beam, progress)
        references = [pairs.target_text(i) for i in range(len(pairs))]
        notes = warn_of_split_words(references)
        return TranslationEvaluation(**loss, notes=notes, bleu=bleu(texts, references), chrf=chrf(texts, references))

    def translations(self, pairs: Pairs, beam: BeamConfig | None = None, progress: Progress | None = None) -> list[str]:
        """The best target of every source, in their order."""
        translator = self.translator(beam)
        sentences = [translator.read(pairs.source_text(i), pairs.tag(i)) for i in range(len(pairs))]
        tell = count_done(progress, "translating", len(sentences))
        return [best[0].text for best in translator.all(sentences, MAX_TOKENS, tell)]

    def force(self, source: str, target: str, tag: str | None = None) -> ForcedTranslation:
        """Make the model write `target` for `source`: what each token costs, and where it attended."""
        pair = self._read_pair(source, target, tag)
        check_source(pair)
        record = Taps()
        (nats,) = force_targets(self.model, self.target_tokenizer, [pair], record)
        layers = list(record.named("cross_attention").values())  # (1, N, T, S) each, lowest layer first
        attention = layers[-1][0].mean(dim=0).double().cpu().numpy() if layers else None
        return ForcedTranslation(pair.source, tuple(pair.ids.tolist()), nats, attention)

    def _read_pair(self, source: str, target: str, tag: str | None) -> ForcedPair:
        translator = self.translator(tag=self.reader.choose_tag(tag))
        return read_pair(translator, check_text(source, "source"), check_text(target, "target"))

    def trace(self, source: str, target: str | None = None, tag: str | None = None) -> Trace:
        """What the model computed when it was made to write `target` for `source`, by token of the target.

        Without a `target` it is the model's own translation.
        """
        target = self.translate(check_text(source, "source"), tag) if target is None else target
        return self.trace_pair(self._read_pair(source, target, tag))

    def prediction(
        self,
        source: str,
        written: str | None = None,
        tag: str | None = None,
        *,
        at: int | None = None,
        target: int | str | None = None,
    ) -> Prediction:
        """The token that comes after `written` in the translation of `source`, as a prediction to be explained.

        With `at`, the token at that row of `trace(source, written)`; without `written`, the text is the model's own
        translation, or where `at` is not given either, nothing yet. `target` is the token whose probability is
        explained, by its text or id; None: the most probable one.
        """
        if written is None:
            written = "" if at is None else self.translate(check_text(source, "source"), tag)
        return self.predict_pair(self._read_pair(source, written, tag), at, target)

    def open_target(self, source: str, target: str = "", tag: str | None = None) -> Opened:
        """Read a source and the beginning of its target, to go on from."""
        pair = self._read_pair(source, target, tag)
        check_source(pair)
        start = self.target_tokenizer.start
        stepper = Translating(self.model, start=start, is_start_written=start == self.target_tokenizer.eos)
        V, unknown = self.target_tokenizer.vocab_size, self.target_tokenizer.unk
        ids = torch.from_numpy(pair.source.ids)[None]
        words = None if pair.source.words is None else torch.from_numpy(pair.source.words)[None]
        log_probs, state = stepper.begin(ids, torch.ones_like(ids, dtype=torch.bool), words, len(pair.ids) + MAX_PIECES)
        for token in pair.ids.tolist():
            log_probs, state = stepper.step(torch.tensor([token if token < V else unknown]), state)
        return Opened(stepper, log_probs[:, :V], state, self.target_tokenizer, target)

    def align(self, source: str, target: str, tag: str | None = None) -> Alignment:
        """Which word of `source` each of `target` comes from, by where the model attended; words are between spaces."""
        if not check_text(source, "source").strip() or not check_text(target, "target").strip():
            return Alignment(frozenset())
        weights = self.attend_words(source, target, tag)
        if weights is None:
            raise RegardError(
                f"'{self.folder}' has no attention to align words by: it was trained with attention none. Train one "
                "with model.attention mlp, say."
            )
        return hard_alignment(weights)

    def attend_words(self, source: str, target: str, tag: str | None = None) -> NDArray[np.float64] | None:
        """How much each word of `target` attended to each of `source`, (target words, source words); None: to none."""
        source, target = check_text(source, "source").strip(), check_text(target, "target").strip()
        words = [
            words_of_tokens(tokenizer, text)
            for tokenizer, text in ((self.target_tokenizer, target), (self.source_tokenizer, source))
        ]
        forced = self.force(source, target, tag)
        if forced.attention is None:
            return None
        n = len(words[1])
        n_tags = len(forced.source) - n - self.source_tokenizer.ends_sources
        weights = forced.attention[: len(forced.tokens), n_tags : n_tags + n]  # an end is no word, nor is a tag
        return word_weights(weights, *words)

    def read_target(self, pairs: Pairs, i: int) -> str:
        """The target of pair i, as answers are compared with it."""
        return pairs.target_text(i)

    def decoder(self, pairs: Pairs, beam: int) -> Callable[[Sequence[int]], list[str]]:
        """What answers pairs by their numbers, by a beam search of that width."""
        translator = self.translator(BeamConfig(beam=beam, max_ratio=MAX_RATIO))

        def decode(numbers: Sequence[int]) -> list[str]:
            sentences = [translator.read(pairs.source_text(i), pairs.tag(i)) for i in numbers]
            return [best[0].text for best in translator.all(sentences)]

        return decode


def greedy_bleu(model: Seq2Seq, pairs: Pairs, max_tokens: int) -> float:
    """BLEU of the most probable words, one after the other."""
    numbers, config = range(len(pairs)), BeamConfig(beam=1, max_ratio=2.0)
    translator = Translator([model], pairs.source.tokenizer, pairs.target.tokenizer, config)
    found = translator.all([translator.read(pairs.source_text(i), pairs.tag(i)) for i in numbers], max_tokens)
    return bleu([best[0].text for best in found], [pairs.target_text(i) for i in numbers]).score


TRANSLATION = PairTask(
    name="translation",
    verb="translate",
    summary="translates",
    example="--data train.en --data train.de",
    has_trees=False,
    run_type=TranslationRun,
    greedy_scores=lambda config: {"bleu": greedy_bleu},
    make_judge=lambda references, config: Bleu([(reference,) for reference in references]),
)
