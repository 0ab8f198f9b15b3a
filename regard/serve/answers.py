"""What the JSON API answers, for its OpenAPI document; the answers themselves are plain values made by `verbs`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class ErrorAnswer(BaseModel):
    """What was wrong, in a sentence or two."""

    error: str


class RunAnswer(BaseModel):
    """A run that is served."""

    name: str
    task: str
    summary: str = Field(description="What runs of its task do.")
    model: str
    n_parameters: int
    verbs: list[str] = Field(description="What it can be asked: the last part of an address.")
    tags: list[str] = Field(description="What a translator can be told to write.")
    n_texts: int = Field(description="Texts that `predict` wants: 2 for pairs, and for questions with passages.")
    columns: str = Field(description="What these texts are.")
    colour: str = Field(description="What it is drawn in, as #rrggbb.")
    views: list[str] = Field(description="Views that it may have something for.")


class RunsAnswer(BaseModel):
    """All runs that are served, and the views that can be asked of them."""

    runs: list[RunAnswer]
    views: dict[str, str]
    slow_views: list[str] = Field(description="Views that take seconds; few of them are computed, beside all else.")


class CountsAnswer(BaseModel):
    """What waits and what has been done since the server began."""

    waiting: int
    waiting_to_write: int
    writing: int
    batches: int
    answered: int
    stopped: int
    waiting_for_slow_views: int


class ScoreAnswer(BaseModel):
    """What a text cost; the last token may be the end of the text, which is empty."""

    bits: float | None
    bits_per_byte: float | None
    bits_per_character: float | None
    tokens: list[str]
    token_bits: list[float | None]


class Choice(BaseModel):
    """A token and its probability."""

    text: str
    probability: float | None


class NextAnswer(BaseModel):
    """What may come next, the most probable first."""

    tokens: list[Choice]


class WrittenAnswer(BaseModel):
    """A token that was written; where the answer is streamed, one a line."""

    text: str = Field(description="What can be shown for certain since this token came.")
    token: str
    probability: float | None
    alternatives: list[Choice]


class GenerateAnswer(BaseModel):
    """A continuation, and how it was written."""

    text: str
    tokens: list[WrittenAnswer]


class TranslationText(BaseModel):
    """A translation and its log-probability in nats."""

    text: str
    log_prob: float | None


class TranslateAnswer(BaseModel):
    """Translations, the best first, and where the best one looked."""

    translations: list[TranslationText]
    source_words: list[str]
    target_words: list[str]
    weights: list[list[float]] | None = Field(description="Of each target word on each source word; null: none.")


class ParsedTree(BaseModel):
    """A tree, a label with children of which each is a tree or a word, and its log-probability in nats."""

    tree: dict[str, Any]
    brackets: str
    log_prob: float | None


class ParseAnswer(BaseModel):
    """The most probable tree of a sentence, null where it has no words; and all that were asked for, the best first."""

    tree: dict[str, Any] | None
    brackets: str
    log_prob: float | None
    trees: list[ParsedTree]


class CaptionAnswer(BaseModel):
    """Captions of a picture, the best first."""

    captions: list[TranslationText]


class PredictAnswer(BaseModel):
    """What was told of a text; which other fields there are, `kind` decides."""

    model_config = {"extra": "allow"}

    kind: str = Field(description="classification, rating, tagging or answering.")


class FilledToken(BaseModel):
    """A token for a masked place."""

    token: str
    probability: float | None


class FillAnswer(BaseModel):
    """What stands in masked places."""

    text: str
    best: str
    places: list[list[FilledToken]]


class EmbedAnswer(BaseModel):
    """The vector of a text."""

    vector: list[float]


class Neighbour(BaseModel):
    """A word and the cosine of its vector."""

    text: str
    cosine: float


class NearestAnswer(BaseModel):
    """The nearest words."""

    words: list[Neighbour]


class ExampleAnswer(BaseModel):
    """An example of what a run was tested on; what it does not read is null."""

    text: str | None
    second: str | None = Field(description="The second text of a pair; of answering the passage.")
    picture: str | None = Field(description="A JPEG file in base64.")


class PassageAnswer(BaseModel):
    """A passage of the text that a run was tested on."""

    before: str
    text: str
