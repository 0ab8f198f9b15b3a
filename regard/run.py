"""A trained model in the hands of a user: generate, score, evaluate, look inside."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.card import sample_prompt
from regard.config import RunConfig
from regard.count.ngram import NgramModel
from regard.data.config import DataConfig
from regard.data.encode import encode_with
from regard.data.source import documents
from regard.decode.config import SamplingConfig
from regard.decode.generate import StopText, generate
from regard.errors import RegardError
from regard.folder import RunFacts, open_folder, prepared_again
from regard.models.gradient_model import GradientModel
from regard.models.next_token import NextToken, as_next_token, check_numbers
from regard.models.pointer import PointerModel
from regard.models.table import build_language_model, model_entry
from regard.score.evaluate import Evaluation, evaluate
from regard.score.scored import Scored, scored
from regard.text.extended import ExtendedVocabulary
from regard.text.tokenizer import Tokenizer
from regard.training.device import pick_device
from regard.training.weights import load_weights, read_tensors

if TYPE_CHECKING:
    from regard.lens.trace import Trace


PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}


class Run:
    """What `regard.load` returns: config, tokenizer and model of a run folder, and what one does with them."""

    def __init__(
        self, folder: Path, config: RunConfig, facts: RunFacts, tokenizer: Tokenizer, model: GradientModel | NgramModel
    ) -> None:
        self.folder, self.config, self.facts, self.tokenizer, self.model = folder, config, facts, tokenizer, model
        self.next_token: NextToken = as_next_token(model, tokenizer.eos)

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    def generate(self, prompt: str = "", n: int = 1, **sampling: Any) -> str | list[str]:
        """A continuation of `prompt`, prompt included; a list of them where n > 1.

        `sampling`: temperature, top_k, top_p, min_p, beam, max_tokens, seed, stop (texts to stop before).
        """
        texts = [prompt] * n
        for index, piece in self.stream(prompt, n, **sampling):
            texts[index] += piece
        return texts[0] if n == 1 else texts

    def stream(
        self, prompt: str = "", n: int = 1, *, stop: Sequence[str] = (), **sampling: Any
    ) -> Iterator[tuple[int, str]]:
        """(which continuation, next piece of its text), as soon as whole characters are there."""
        if n < 1:
            raise RegardError(f"n is how many continuations are wanted, at least 1, not {n}.")
        config = SamplingConfig.from_dict(sampling)
        words = self._vocabulary_of_a_text()
        ids = words.encode(prompt)
        prompts = torch.from_numpy(ids.astype(np.int64)).expand(n, -1)
        decoders = [words.stream_decoder(after=ids) for _ in range(n)]
        stops = [StopText(stop) for _ in range(n)]
        # For words, <eos> is only the end of a line; elsewhere the document ends with it.
        end = None if self.tokenizer.kind == "word" else self.tokenizer.eos
        is_stopped = [False] * n
        for row, token in generate(self.next_token, prompts, config, stop=end, is_done=is_stopped.__getitem__):
            if piece := stops[row].push(decoders[row].push(token)):
                yield row, piece
            is_stopped[row] = stops[row].is_stopped
        for row in range(n):
            if piece := stops[row].push(decoders[row].flush()) + stops[row].flush():
                yield row, piece

    def score(self, text: str) -> Scored:
        """What every token of `text` costs, the end of the text included."""
        ids, spans = self._vocabulary_of_a_text().encode_with_offsets(text)
        has_end = len(ids) > 0 and ids[-1] == self.tokenizer.eos
        nats = self.next_token.nats(ids if has_end else np.append(ids, self.tokenizer.eos))
        check_numbers(nats)
        return scored(text, spans, nats)

    def score_source(self, source: str) -> Iterator[Scored]:
        """Every document of a source (a path, a glob, - for standard input), scored."""
        for document in documents(self._other_text(source)):
            yield self.score(document)

    def _other_text(self, source: str | Sequence[str]) -> DataConfig:
        """Another source, read the way the run's own text was: the same documents, format and field."""
        train = source if isinstance(source, str) else tuple(source)
        return self.config.text.replace(train=train, valid=None, test=None, max_bytes=None)

    def evaluate(
        self, data: str | Sequence[str] | None = None, *, split: str = "test", stride: int | None = None
    ) -> Evaluation:
        """Loss, perplexities and bits per byte on other text, or on a split of the text the run was trained on."""
        if split not in ("train", "valid", "test"):
            raise RegardError(f"split must be train, valid or test, not '{split}'.")
        if data is not None:
            stream = encode_with(self.tokenizer, self._other_text(data))
        else:
            stream = getattr(prepared_again(self.folder, self.config), split)
        result = evaluate(self.next_token, stream, stride=stride)
        check_numbers([result.nats])
        return result

    def trace(self, text: str) -> Trace:
        """What the model computed on `text`: surprise, attention, gates, cells and hidden states, by token."""
        from regard.lens.trace import trace_text

        return trace_text(self.model, self._vocabulary_of_a_text(), text)

    def _vocabulary_of_a_text(self) -> Tokenizer | ExtendedVocabulary:
        """The tokenizer; where the model can copy words, one that tells those of a text apart that it does not have."""
        return ExtendedVocabulary(self.tokenizer) if self.can_copy_words else self.tokenizer

    @property
    def can_copy_words(self) -> bool:
        """Whether words that the tokenizer does not have are told apart, in `score`, `generate` and `trace`.

        `evaluate` reads ids that were encoded before, where they are all one <unk>.
        """
        return isinstance(self.model, PointerModel) and self.tokenizer.kind == "word"

    def sample_prompt(self) -> str:
        """The first words of a line of the kind of text the model knows."""
        return sample_prompt(prepared_again(self.folder, self.config))

    def test_result(self) -> Evaluation | None:
        """The test score that was written when training ended."""
        path = self.folder / "test.json"
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        nats = math.inf if found["nats"] is None else found["nats"]
        return Evaluation(nats=nats, **{name: found[name] for name in ("n_tokens", "n_bytes", "n_words")})


def load(folder: str | Path, device: str = "auto", precision: str = "float32") -> Run:
    """Open a run folder. Nothing in it is executed: weights are safetensors, the rest is YAML and JSON.

    `precision="bf16"` rounds the weights to bfloat16: half the memory, and faster on a GPU.
    """
    if precision not in PRECISIONS:
        raise RegardError(f"precision must be one of {', '.join(PRECISIONS)}, not '{precision}'.")
    folder = Path(folder)
    config, facts, tokenizer = open_folder(folder)
    if config.reads_pairs:
        raise RegardError(
            f"'{folder}' reads pairs ({config.model_name}) and is no language model. Use regard translate and regard "
            "eval with it."
        )
    if config.reads_pictures:
        raise RegardError(
            f"'{folder}' describes pictures ({config.model_name}) and is no language model. Use regard caption and "
            "regard eval with it."
        )
    weights, tensors = folder / "model.safetensors", weights_of(folder)
    model: GradientModel | NgramModel
    if model_entry(config.model_name).kind == "count":
        model = NgramModel.from_tensors({name: t.numpy() for name, t in tensors.items()})
    else:
        model = build_language_model(config.model_name, config.model, facts.vocab_size)
        load_weights(model, tensors, weights)
        model.to(pick_device(device), PRECISIONS[precision]).eval()
    return Run(folder, config, facts, tokenizer, model)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """The weights in a run folder."""
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise RegardError(
            f"'{folder}' has no model.safetensors yet: its training has not reached the first evaluation. "
            f"Continue it with: regard train --resume --out {folder}"
        )
    return read_tensors(weights)
