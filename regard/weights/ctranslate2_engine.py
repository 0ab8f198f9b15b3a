"""Decoding by CTranslate2: a Transformer's weights handed to it in memory, and its answers in our form.

It runs on a CPU, in float32 or in eight bits, and has its own loop over tokens, in C++. Greedy texts are those of our
own decoding, but for rounding; a beam may prune other hypotheses than ours, which lets complete texts leave it; and
draws are from its own generator.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.decode.beam import Hypothesis
from regard.decode.config import BeamConfig, SamplingConfig
from regard.errors import RegardError
from regard.settings import Settings
from regard.text.tokenizer import Tokenizer
from regard.weights.ctranslate2 import build_lm_spec, build_spec, check_marks, describe_as_lm, describe_as_transformer
from regard.weights.ctranslate2 import spell_vocabulary as spell

if TYPE_CHECKING:
    from regard.models.seq2seq import Seq2Seq

PRECISIONS = ("float32", "int8")


class _Model:
    """A model as CTranslate2 reads it, in memory, and how it computes."""

    def __init__(self, spec: Any, precision: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            spec.save(folder)
            self._files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        self._how = {"device": "cpu", "compute_type": precision, "intra_threads": _count_threads()}

    def open(self, kind: str) -> Any:
        import ctranslate2

        return getattr(ctranslate2, kind)("regard", files=self._files, **self._how)


def _count_threads() -> int:
    import torch

    return torch.get_num_threads()


class TranslatorEngine:
    """An encoder-decoder Transformer that CTranslate2 searches with."""

    def __init__(
        self, model: Seq2Seq, config: Settings, source: Tokenizer, target: Tokenizer, precision: str, where: str
    ) -> None:
        described = describe_as_transformer(config, where)
        check_marks((source, target), where)
        self._translator = _Model(build_spec(model, described, source, target), check_precision(precision)).open(
            "Translator"
        )
        self._spellings, self._ids = spell(source), {token: i for i, token in enumerate(spell(target))}

    def search(
        self, sources: Sequence[Sequence[int]], config: BeamConfig, limits: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The best targets of each source, best first, each of at most its limit of tokens, its end included."""
        _check_beam(config)
        found = self._search(sources, config, max(limits))
        # CTranslate2 has one limit for a whole batch. Where that let a text grow too long, the source is asked again.
        long = [i for i, best in enumerate(found) if any(len(each.tokens) > limits[i] for each in best)]
        for limit in {limits[i] for i in long}:
            rows = [i for i in long if limits[i] == limit]
            for i, best in zip(rows, self._search([sources[i] for i in rows], config, limit), strict=True):
                found[i] = best
        return found

    def _search(self, sources: Sequence[Sequence[int]], config: BeamConfig, limit: int) -> list[list[Hypothesis]]:
        alpha = config.alpha if config.length_penalty == "length" else 0.0
        results = self._translator.translate_batch(
            [[self._spellings[i] for i in source] for source in sources],
            beam_size=config.beam,
            num_hypotheses=config.n_best,
            length_penalty=alpha,
            no_repeat_ngram_size=config.no_repeat_ngram or 0,
            min_decoding_length=config.min_length - 1,  # theirs do not count the end, ours do
            max_decoding_length=limit,
            max_input_length=0,  # what is too long was refused before
            return_scores=True,
        )
        return [
            [
                self._read(tokens, score, alpha, limit)
                for tokens, score in zip(each.hypotheses, each.scores, strict=True)
            ]
            for each in results
        ]

    def _read(self, tokens: Sequence[str], score: float, alpha: float, limit: int) -> Hypothesis:
        """A target of theirs as ours: with its end where there was room for one, which the length counts."""
        ids = [self._ids[token] for token in tokens]
        length = min(len(ids) + 1, limit)
        return Hypothesis(tuple(ids), score * length**alpha, score)


class GeneratorEngine:
    """A Transformer language model that CTranslate2 writes with."""

    def __init__(
        self, model: Any, name: str, config: Settings, tokenizer: Tokenizer, precision: str, where: str
    ) -> None:
        described = describe_as_lm(name, config, where)
        self._model = _Model(build_lm_spec(model, described, tokenizer), check_precision(precision))
        self._generator = self._model.open("Generator")
        self._spellings, self._eos = spell(tokenizer), tokenizer.eos
        self._max_context = described.max_context

    def generate(self, prompt: Sequence[int], n: int, config: SamplingConfig, stop: int | None) -> list[list[int]]:
        """Continue a prompt n times; the token `stop` ends a text and is its last."""
        self._check(len(prompt), config)
        how: dict[str, float] = {}
        generator = self._generator
        if config.beam is not None:
            how = {"beam_size": max(config.beam, n), "num_hypotheses": n}
        elif config.temperature > 0:
            how = {"sampling_topk": config.top_k or 0, "sampling_topp": config.top_p or 1.0}
            how["sampling_temperature"] = config.temperature
            generator = self._open_with_seed(config.seed)
        text = [self._spellings[i] for i in (self._eos, *prompt)]
        n_rows = 1 if config.beam is not None or config.temperature == 0 else n
        results = generator.generate_batch(
            [text] * n_rows,
            max_length=config.max_tokens,
            include_prompt_in_result=False,
            end_token=[len(self._spellings) if stop is None else stop],  # beyond the vocabulary: nothing ends a text
            return_end_token=True,
            **how,
        )
        texts = [list(ids) for each in results for ids in each.sequences_ids]
        return texts if len(texts) == n else texts * n  # greedy ones are all alike

    def _open_with_seed(self, seed: int) -> Any:
        """A generator that draws from the beginning: one that is there already would go on where it stopped."""
        import ctranslate2

        ctranslate2.set_random_seed(seed)
        return self._model.open("Generator")

    def _check(self, n_prompt: int, config: SamplingConfig) -> None:
        if config.min_p is not None:
            raise RegardError("CTranslate2 has no min_p: leave it out, or choose the engine torch.")
        if n_prompt + config.max_tokens > self._max_context:
            raise RegardError(
                f"The prompt has {n_prompt} tokens and {config.max_tokens} more are asked for; with CTranslate2 a text "
                f"has {self._max_context} at most, which the model sees at once. Give --max-tokens "
                f"{max(1, self._max_context - n_prompt)} (in Python: max_tokens), or leave out --engine."
            )


def check_precision(precision: str) -> str:
    """A precision that CTranslate2 computes in here, or an error."""
    if precision not in PRECISIONS:
        raise RegardError(f"With CTranslate2 precision is one of {', '.join(PRECISIONS)}, not '{precision}'.")
    return precision


def _check_beam(config: BeamConfig) -> None:
    if config.length_penalty == "wu" and config.alpha:
        raise RegardError(
            "CTranslate2 has the length penalties none and length, not wu: choose one of these, or the engine torch."
        )
    if config.n_best is None:
        raise RegardError("CTranslate2 has to be told how many targets are wanted: n_best is null. Give a number.")
