"""What the JSON API reads: one class a verb, whose limits are checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from regard.serve.pictures import pixels_of

MAX_TEXT = 20_000
"""Characters of a text that is scored, continued, told about or made a vector of."""
MAX_LOOKED_AT = 8_000
"""Characters of a text of which all is kept that a model computes."""
MAX_SENTENCE = 1_000
"""Characters of a text that is translated or parsed: a search takes longer than a reading, and others wait for it."""
MAX_EXPLAINED = 400
"""Characters of a text whose views compute it again for every word: influence and faithfulness."""
MAX_COMPARED = 12
"""Texts in which one word is compared."""
MAX_PICTURE = 900_000
"""Characters of a picture in base64: a file of 675,000 bytes."""
MAX_NEW_TOKENS = 2_000
MAX_BODY = 1_000_000
"""Bytes of a request; more is refused before it is read to the end."""


Text = Annotated[str, Field(max_length=MAX_TEXT)]
SomeText = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
LookedAt = Annotated[str, Field(min_length=1, max_length=MAX_LOOKED_AT)]
Sentence = Annotated[str, Field(max_length=MAX_SENTENCE)]
Tag = Annotated[str, Field(max_length=40)]
Picture = Annotated[str, Field(min_length=1, max_length=MAX_PICTURE)]
OF_SEVERAL = "Of a run that translates into several languages: which, such as <2de>."
OF_CAPTIONER = "Of a run that captions: a picture file (JPEG, PNG, ...) in base64."
MADE_TO_WRITE = "Of a run that translates or captions: what it is made to write; null: its own."


class Question(BaseModel):
    """Nothing is converted and nothing unknown is passed over: a mistake is told, not guessed at."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    old_names: ClassVar[Mapping[str, str]] = {}
    """Fields of earlier versions, and what they are called now: both are read."""

    @model_validator(mode="before")
    @classmethod
    def rename_old(cls, given: Any) -> Any:
        """Read fields by their old names too; one that is given twice is a mistake."""
        if not isinstance(given, dict):
            return given
        for old, new in cls.old_names.items():
            if old in given and new in given:
                raise ValueError(f"{old} is the old name of {new}: give {new} alone")
        return {cls.old_names.get(name, name): value for name, value in given.items()}

    def size(self) -> int:
        """Characters of what is asked about."""
        return sum(len(value) for value in self.items().values() if isinstance(value, str))

    def items(self) -> dict[str, Any]:
        """What differs between questions that are answered together."""
        return {
            name: getattr(self, name)
            for name in ("text", "target", "second", "picture")
            if name in type(self).model_fields
        }

    def options(self) -> dict[str, Any]:
        """What questions must share to be answered together."""
        return self.model_dump(exclude=set(self.items()))


class GenerateQuestion(Question):
    """How a text is continued."""

    old_names = {"prompt": "text"}

    text: Text = Field("", description="Text to continue; empty: start from scratch.")
    max_tokens: int = Field(100, ge=1, le=MAX_NEW_TOKENS, description="New tokens at most.")
    temperature: float = Field(0.8, ge=0.0, le=100.0, description="0 always takes the most probable token.")
    top_k: int | None = Field(None, ge=1, le=1_000_000, description="Only the k most probable tokens.")
    top_p: float | None = Field(None, gt=0.0, le=1.0, description="Only the fewest tokens with this much probability.")
    min_p: float | None = Field(None, ge=0.0, le=1.0, description="Only tokens with this share of the best one's.")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="The same seed gives the same text.")
    stop: list[SomeText] = Field(default_factory=list, max_length=8, description="Texts to stop before.")
    alternatives: int = Field(0, ge=0, le=50, description="How many other tokens are told for each place.")
    stream: bool = Field(False, description="One JSON object a line as tokens are written, instead of one at the end.")


class ScoreQuestion(Question):
    """What a text costs."""

    text: Text = Field(description="The text; of a run that translates, the source.")
    target: Text | None = Field(None, description="Of a run that translates: the target.")
    tag: Tag | None = Field(None, description=OF_SEVERAL)


class NextQuestion(Question):
    """What may come after a text."""

    old_names = {"n": "top_k"}

    text: Text = Field(description="What stands before; empty: the beginning of a text.")
    top_k: int = Field(10, ge=1, le=200, description="How many tokens.")


class TranslateQuestion(Question):
    """How a text is translated."""

    text: Sentence
    tag: Tag | None = Field(None, description=OF_SEVERAL)
    beam: int = Field(5, ge=1, le=20, description="Width of the beam search; 1 is greedy.")
    n_best: int = Field(1, ge=1, le=10, description="How many translations.")


class ParseQuestion(Question):
    """How a sentence is parsed."""

    text: Sentence = Field(description="Words with spaces between them, punctuation split off.")
    tag: Tag | None = Field(None, description=OF_SEVERAL)
    beam: int = Field(5, ge=1, le=20, description="Width of the beam search; 1 is greedy.")
    n_best: int = Field(1, ge=1, le=10, description="How many trees, the most probable first.")


class CaptionQuestion(Question):
    """What is said of a picture."""

    picture: Picture = Field(description="A picture file (JPEG, PNG, ...) in base64.")
    beam: int = Field(5, ge=1, le=20, description="Width of the beam search; 1 is greedy.")
    n_best: int = Field(1, ge=1, le=10, description="How many captions.")

    def size(self) -> int:
        """A picture takes about the memory of so many characters, and the more the more pixels it unpacks to."""
        return 2_000 + pixels_of(self.picture) // 1_000


class PredictQuestion(Question):
    """What is told of a text: a class, a number, tags, an answer."""

    text: SomeText = Field(description="The text; of pairs the first, of answering the question.")
    second: SomeText | None = Field(None, description="The second text of a pair; of answering the passage.")


class FillQuestion(Question):
    """What stands in masked places."""

    text: SomeText = Field(description="A text with [MASK] where a word is to be found.")
    top_k: int = Field(5, ge=1, le=100, description="How many tokens a place.")


class EmbedQuestion(Question):
    """The vector of a text."""

    text: Text
    layers: str = Field("last", max_length=40, description="last, first, concat-last-four, ... as in regard embed.")
    pool: Literal["mean", "max", "first", "last"] = "mean"


class NearestQuestion(Question):
    """The words with the nearest vectors."""

    old_names = {"n": "top_k"}

    text: SomeText = Field(description="A word.")
    top_k: int = Field(10, ge=1, le=200, description="How many words.")


class TraceQuestion(Question):
    """What a model computed on a text."""

    text: LookedAt | None = Field(None, description="The text; null for a run that captions.")
    picture: Picture | None = Field(None, description=OF_CAPTIONER)
    target: Sentence | None = Field(None, description=MADE_TO_WRITE)
    tag: Tag | None = Field(None, description=OF_SEVERAL)
    taps: list[Annotated[str, Field(max_length=100)]] = Field(
        default_factory=list, max_length=200, description="Names of the arrays to send; none: the names of all."
    )
    kind: Literal["float32", "float16", "uint8"] = Field("float16", description="What the numbers are rounded to.")

    def size(self) -> int:
        return len(self.text or "") + len(self.target or "")


class PassageQuestion(Question):
    """A passage of the text that a run was tested on."""

    seed: int = Field(0, ge=0, le=2**31, description="Another number, another passage.")
    n_before: int = Field(200, ge=0, le=2_000, description="Characters that are shown.")
    n: int = Field(120, ge=1, le=1_000, description="Characters that are to be guessed.")


class ExampleQuestion(Question):
    """An example of what a run was tested on."""

    seed: int = Field(0, ge=0, le=2**31, description="Another number, another example.")


class LookQuestion(Question):
    """What models show of a text: the views of `regard look`."""

    runs: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=4, description="Names of runs.")
    text: LookedAt | None = Field(
        None, description="The text; null where there are texts or a picture. Two texts, of pairs, have a tab between."
    )
    texts: list[LookedAt] = Field(
        default_factory=list, max_length=MAX_COMPARED, description="Texts in which `word` is compared (view vectors)."
    )
    picture: Picture | None = Field(None, description=OF_CAPTIONER)
    target: Sentence | None = Field(None, description=MADE_TO_WRITE)
    tag: Tag | None = Field(None, description=OF_SEVERAL)
    views: list[Annotated[str, Field(max_length=40)]] | None = Field(
        None, min_length=1, max_length=40, description="Names of views; null: all that the models have something for."
    )
    top_k: int = Field(8, ge=1, le=50, description="Alternatives that are shown for a token.")
    layer: int | None = Field(None, ge=1, le=1_000, description="Layer to begin with.")
    head: int | None = Field(None, ge=1, le=1_000, description="Head to begin with.")
    word: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="The word that is asked about: its text, or its number from 1 on."
    )

    def all_texts(self) -> list[str]:
        """The texts that are looked at, `text` first; the others are for comparing a word."""
        return list(dict.fromkeys([*([] if self.text is None else [self.text]), *self.texts]))

    def size(self) -> int:
        return sum(map(len, self.all_texts())) + len(self.target or "")


class DrawQuestion(LookQuestion):
    """One view of one run as a picture file."""

    runs: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=1, description="One run.")
    views: list[Annotated[str, Field(max_length=40)]] = Field(min_length=1, max_length=1, description="One view.")
    kind: Literal["svg", "png"] = "svg"


class HeadQuestion(Question):
    """The attention weights of one head on a text."""

    text: LookedAt | None = Field(None, description="The text; null for a run that captions.")
    picture: Picture | None = Field(None, description=OF_CAPTIONER)
    target: Sentence | None = Field(None, description=MADE_TO_WRITE)
    tag: Tag | None = Field(None, description=OF_SEVERAL)
    layer: int = Field(ge=1, le=1_000)
    head: int = Field(ge=1, le=1_000)
    stack: int = Field(1, ge=1, le=2, description="Of a run with encoder and decoder: 1 is the encoder, 2 the decoder.")
