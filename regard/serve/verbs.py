"""What can be asked of each run: a table of verbs, each one function of the run and some questions alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.tree_lines import to_brackets
from regard.data.trees import Tree
from regard.decode.caption import MAX_LENGTH
from regard.decode.config import BeamConfig, search_trees
from regard.decode.parse import Parse
from regard.errors import RegardError
from regard.run.embed import can_embed, make_embedder
from regard.serve import questions
from regard.serve.pictures import keep_picture
from regard.serve.questions import Question
from regard.tasks.bidirectional_run import BidirectionalRun
from regard.tasks.caption_run import CaptionRun
from regard.tasks.labelled_run import LabelledRun
from regard.tasks.language_model_run import LanguageModelRun
from regard.tasks.masked_language_model_run import MaskedLanguageModelRun
from regard.tasks.parsing import ParsingRun
from regard.tasks.run_facts import IMPORTED
from regard.tasks.translation import TranslationRun
from regard.tasks.word_vectors_run import WordVectorsRun

Items = Sequence[Mapping[str, Any]]
Answers = list[dict[str, Any]]


def score(run: Any, items: Items, *, tag: str | None) -> Answers:
    """What every token of each text costs."""
    if isinstance(run, TranslationRun):
        if any(item["target"] is None for item in items):
            raise RegardError(f"'{run.folder}' translates: give the source as text, and the target.")
        found: Sequence[Any] = list(run.scores([(item["text"], item["target"]) for item in items], tag))
    elif tag is not None or any(item["target"] is not None for item in items):
        raise RegardError(f"'{run.folder}' is a language model and scores one text: leave out target and tag.")
    elif isinstance(run, LanguageModelRun):
        found = run.scores([item["text"] for item in items])
    else:
        found = [run.score(item["text"]) for item in items]
    return [_describe_scored(one) for one in found]


def _describe_scored(scored: Any) -> dict[str, Any]:
    """What a text cost: in all, by size, and token by token as two lists, which are quick to write and to read."""
    if scored is None:
        return {"bits": 0.0, "bits_per_byte": None, "bits_per_character": None, "tokens": [], "token_bits": []}
    bits, n_characters = scored.total / math.log(2), len(scored.text)
    return {
        "bits": bits,
        "bits_per_byte": scored.bits_per_byte if n_characters else None,
        "bits_per_character": bits / n_characters if n_characters else None,
        "tokens": [token.text for token in scored.tokens],
        "token_bits": np.round(scored.nats / math.log(2), 6).tolist(),
    }


def predict_next(run: Any, items: Items, *, top_k: int) -> Answers:
    """The most probable tokens after each text."""
    return [
        {"tokens": [{"text": text, "probability": p} for text, p in run.predict_next(item["text"], top_k)]}
        for item in items
    ]


def translate(run: Any, items: Items, *, tag: str | None, beam: int, n_best: int) -> Answers:
    """The best translations of each text, and for the best one which words come from which."""
    translator = run.translator(BeamConfig(beam=max(beam, n_best), n_best=n_best), tag=run.reader.choose_tag(tag))
    found = translator.all([translator.read(item["text"]) for item in items])
    return [
        {
            "translations": [{"text": one.text, "log_prob": one.log_prob} for one in best],
            **_align(run, item["text"], best[0].text, tag),
        }
        for item, best in zip(items, found, strict=True)
    ]


def _align(run: TranslationRun, source: str, target: str, tag: str | None) -> dict[str, Any]:
    """Where the model attended: weights of each word written on each word read; None: it has no attention."""
    words = [source.split(), target.split()]
    nothing = {"source_words": words[0], "target_words": words[1], "weights": None}
    if not all(words):
        return nothing
    weights = run.attend_words(source.strip(), target.strip(), tag)
    return nothing | {"weights": None if weights is None else np.round(weights, 4).tolist()}


def parse(run: Any, items: Items, *, tag: str | None, beam: int, n_best: int) -> Answers:
    """The most probable trees of each sentence."""
    search = BeamConfig.from_dict(search_trees(n_best=n_best, beam=max(beam, n_best)))
    found = run.parser(search, tag=run.reader.choose_tag(tag)).all([item["text"] for item in items])
    nothing = {"tree": None, "brackets": "", "log_prob": 0.0}
    trees = [[_describe_parse(one) for one in parsed.all] for parsed in found]
    return [{**(best[0] if best else nothing), "trees": best} for best in trees]


def _describe_parse(parsed: Parse) -> dict[str, Any]:
    assert parsed.tree is not None
    return {
        "tree": _describe_tree(parsed.tree), "brackets": to_brackets(parsed.tree), "log_prob": parsed.log_prob,
    }  # fmt: skip


def caption(run: Any, items: Items, *, beam: int, n_best: int) -> Answers:
    """The best captions of each picture."""
    squares = []
    for item in items:
        with keep_picture(item["picture"]) as path:
            squares.append(run.square(path))
    found = run.captions(squares, BeamConfig(beam=max(beam, n_best), n_best=n_best, max_length=MAX_LENGTH))
    return [{"captions": [{"text": one.text, "log_prob": one.log_prob} for one in best]} for best in found]


def _describe_tree(node: Tree | str) -> Any:
    """A label with its children, or a word."""
    return (
        node if isinstance(node, str) else {"label": node.label, "children": list(map(_describe_tree, node.children))}
    )


def predict(run: Any, items: Items) -> Answers:
    """A class, a number, tags or an answer for each item."""
    wanted = run.task.n_texts(run.config)
    given = []
    for item in items:
        if (item["second"] is not None) != (wanted == 2):
            what = "two texts, text and second" if wanted == 2 else "one text: leave out second"
            raise RegardError(f"'{run.folder}' reads {run.task.columns}: send {what}.")
        given.append((item["text"], item["second"]) if wanted == 2 else (item["text"],))
    return [{"kind": run.task.name, **found.to_dict()} for found in run.predict(given)]


def fill(run: Any, items: Items, *, top_k: int) -> Answers:
    """The most probable tokens for every masked place of each text."""
    return [found.to_dict() for found in run.predict([item["text"] for item in items], top_k)]


def embed(run: Any, items: Items, *, layers: str, pool: str) -> Answers:
    """The vector of each text."""
    vectors = make_embedder(run, layers, pool).embed([item["text"] for item in items])
    return [{"vector": np.round(vector.astype(np.float64), 6).tolist()} for vector in vectors]


def find_nearest(run: Any, items: Items, *, top_k: int) -> Answers:
    """The words whose vectors are nearest to that of each word."""
    found = [run.nearest(item["text"].strip(), top_k) for item in items]
    return [{"words": [{"text": word, "cosine": float(cosine)} for word, cosine in near]} for near in found]


@dataclass(frozen=True)
class Verb:
    """Something that runs can be asked, many questions at a time."""

    summary: str
    question: type[Question]
    answer: Callable[..., Answers]
    """(run, what is asked about, options as keywords) -> one answer each, in their order."""
    is_for: Callable[[Any], bool]


VERBS: dict[str, Verb] = {
    "score": Verb(
        "What every token of a text costs, in bits.", questions.ScoreQuestion, score,
        lambda run: isinstance(run, LanguageModelRun | BidirectionalRun | TranslationRun),
    ),
    "next": Verb(
        "The most probable tokens after a text.", questions.NextQuestion, predict_next,
        lambda run: isinstance(run, LanguageModelRun),
    ),
    "translate": Verb(
        "Translations of a text, and where the best one looked.", questions.TranslateQuestion, translate,
        lambda run: isinstance(run, TranslationRun),
    ),
    "parse": Verb(
        "The most probable trees of a sentence.", questions.ParseQuestion, parse,
        lambda run: isinstance(run, ParsingRun),
    ),
    "caption": Verb(
        "What is said of a picture.", questions.CaptionQuestion, caption, lambda run: isinstance(run, CaptionRun)
    ),
    "predict": Verb(
        "A class, a number, tags or an answer.", questions.PredictQuestion, predict,
        lambda run: isinstance(run, LabelledRun),
    ),
    "fill": Verb(
        "What stands in the masked places of a text.", questions.FillQuestion, fill,
        lambda run: isinstance(run, MaskedLanguageModelRun),
    ),
    "embed": Verb("The vector of a text.", questions.EmbedQuestion, embed, can_embed),
    "nearest": Verb(
        "The words with the nearest vectors.", questions.NearestQuestion, find_nearest,
        lambda run: isinstance(run, WordVectorsRun),
    ),
}  # fmt: skip
"""The verbs that are answered in batches; `generate`, `trace`, `passage` and `example` have routes of their own."""


def list_verbs(run: Any) -> list[str]:
    """What a run can be asked, the API's words."""
    found = [name for name, verb in VERBS.items() if verb.is_for(run)]
    is_vectors, has_data = isinstance(run, WordVectorsRun), run.facts.data != IMPORTED
    if isinstance(run, LanguageModelRun):
        found += ["generate", "passage"] if has_data else ["generate"]
    if not is_vectors:
        found += ["trace"]
    return [*found, "example"] if has_data or is_vectors else found
