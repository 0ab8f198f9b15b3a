"""What a model says comes next after a text, by tokens and by whole words, and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from regard.count.ngram import NgramModel
from regard.errors import RegardError
from regard.layers.copying import copy_probs
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, View
from regard.lens.whole_words import Opened, complete_words, rank_tokens, vocabulary_has_wordpiece
from regard.models.bert import Bert
from regard.models.gradient_model import GradientModel
from regard.models.pointer import PointerModel
from regard.models.seq2seq import Seq2Seq
from regard.text.tokenizer import Tokenizer

LINE_END = "\n"
Ranked = list[tuple[str, float]]
AFTER = "after the text"


@dataclass(frozen=True, kw_only=True)
class NextWord:
    """The most probable next tokens or words of one model, by the name of each distribution, most probable first."""

    name: str
    text: str
    distributions: Mapping[str, Ranked]
    notes: tuple[str, ...] = ()
    reasons: Mapping[str, str] | None = None
    """Of an n-gram model: for each token how often it was counted, and after what."""
    place: str = AFTER
    """Where in the text that stands what is predicted."""

    @property
    def best(self) -> tuple[str, float]:
        return next(iter(self.distributions.values()))[0]

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: [{"text": text, "probability": p} for text, p in ranked]
            for name, ranked in self.distributions.items()
        }
        reasons = {} if self.reasons is None else {"reasons": dict(self.reasons)}
        return {"run": self.name, "text": self.text, "distributions": found, "notes": list(self.notes), **reasons}


def find_next(run: Any, text: str, *, target: str | None = None, n: int = 10, name: str | None = None) -> NextWord:
    """The n most probable continuations of `text`, as its model has them.

    A BERT fills [MASK], or the place after the text; a translator goes on its `target`, which may be empty.
    """
    name, model = str(run.folder.name) if name is None else name, run.model
    if target is not None and not isinstance(model, Seq2Seq):
        raise RegardError(f"--target is what a translator has written so far; '{run.folder}' is none. Leave it out.")
    if isinstance(model, Bert):
        return _fill(run, text, n, name)
    if isinstance(model, Seq2Seq) and run.task.verb == "translate":
        if not text.strip():
            raise RegardError("There is no source to translate: give one, and with --target what is written so far.")
        opened = run.open_target(text, target or "")
        kinds = rank_next(opened, n)
        begun = f"After “{target.strip()}” in the target." if target and target.strip() else "The target's first word."
        return NextWord(name=name, text=text, distributions=kinds, notes=(begun,), place="in the target")
    if not isinstance(model, GradientModel | NgramModel):
        raise RegardError(
            f"'{run.folder}' is a run that {run.task.summary}, and says no next word. Give a language model, a BERT "
            "or a translator."
        )
    opened = run.open_text(text)
    if isinstance(model, PointerModel):
        return NextWord(name=name, text=text, **_split_pointer(model, opened, n))
    if isinstance(model, NgramModel):
        return NextWord(name=name, text=text, **_explain_counts(run, opened, n))
    return NextWord(name=name, text=text, distributions=rank_next(opened, n), notes=_say_cut(run, text))


def _say_cut(run: Any, text: str) -> tuple[str, ...]:
    """That a text is longer than the model sees, where it is."""
    limit, n = run.next_token.max_context, len(run.tokenizer.encode(text))
    if limit is None or n < limit:
        return ()
    return (f"The text is {n:,} tokens long, and the model sees the last {limit - 1:,}.",)


def rank_next(opened: Opened, n: int) -> dict[str, Ranked]:
    """By words, where tokens are pieces of them, and by tokens."""
    tokens = rank_tokens(opened.log_probs, opened.vocabulary, n)
    is_cut = isinstance(opened.vocabulary, Tokenizer) and opened.vocabulary.kind != "word"
    return {"words": complete_words(opened, n), "tokens": tokens} if is_cut else {"words": tokens}


def _fill(run: Any, text: str, n: int, name: str) -> NextWord:
    """What stands in the last masked place of a text; one is put behind it where there is none."""
    mask = run.marks.mask_name
    has_mask = mask in text or "[MASK]" in text
    found = run.fill(text if has_mask else f"{text.rstrip()} {mask}", min(4 * n, run.tokenizer.vocab_size))
    ranked = [(c.text.strip(), c.probability) for c in found.places[-1] if not c.text.startswith("##")]
    tokens = [(c.text, c.probability) for c in found.places[-1]]
    place = f"in the last {mask}" if has_mask else f"in a {mask} behind the text, which ends there"
    whole = {"words": ranked[:n]} if ranked and vocabulary_has_wordpiece(run.tokenizer) else {}
    return NextWord(
        name=name, text=text, distributions=whole | {"tokens": tokens[:n]}, notes=(f"What stands {place}.",),
        place=f"in the last {mask}" if has_mask else f"in a {mask} behind the text",
    )  # fmt: skip


def tell_places(found: Sequence[NextWord]) -> list[NextWord]:
    """Note with every model that predicts another place of the text than the first one does."""
    first = found[0]
    return [
        each
        if each.place == first.place
        else replace(
            each, notes=(*each.notes, f"Another place than that of {first.name}: {each.place}, not {first.place}.")
        )
        for each in found
    ]


@torch.inference_mode()
def _split_pointer(model: PointerModel, opened: Opened, n: int) -> dict[str, Any]:
    """P(w) = g p(w) + c(w): the mixture, the vocabulary's p, and the copy distribution c, scaled to sum to one."""
    device, vocabulary = model.embedding.device, opened.vocabulary
    ids = torch.tensor([[vocabulary.eos, *vocabulary.encode(opened.text).tolist()]], device=device)
    h, _ = model.hidden(ids)
    last = h._replace(h=h.h[:, -1:], log_g=h.log_g[:, -1:], log_a=h.log_a[:, -1:], words=h.words[:, -1:])
    p = functional.linear(last.h, model.output_weight, model.language_model.bias).log_softmax(dim=-1)[:, 0]
    c = copy_probs(last.log_a, last.words, max(vocabulary.vocab_size, int(last.words.max()) + 1))[:, 0]
    g, copied = float(last.log_g.exp()), float(c.sum())
    names = {"mixed": rank_tokens(opened.log_probs, vocabulary, n), "vocabulary": rank_tokens(p, vocabulary, n)}
    if copied > 0:
        ranked = rank_tokens((c / copied).log(), vocabulary, n)
        names["copied"] = [(word, share) for word, share in ranked if share > 0]
    return {
        "distributions": names,
        "notes": (f"The vocabulary has {g:.0%} of the say, words of the text {copied:.0%}.",),
    }


def _explain_counts(run: Any, opened: Opened, n: int) -> dict[str, Any]:
    """The distributions of an n-gram model, and for each token the longest n-gram it was seen in, with its counts."""
    model: NgramModel = run.model
    ids = opened.vocabulary.encode(opened.text)
    kinds = rank_next(opened, n)
    text_ids, gone = _read_training_ids(run)
    values = opened.log_probs[0].topk(min(n, opened.log_probs.shape[1])).indices.tolist()
    reasons, longest = {}, 0
    read = np.append(opened.vocabulary.eos, ids)  # a text begins after <eos>, in training too
    for token in values:
        order = int(model.matched_orders(np.append(ids, token))[-1])
        history = read[len(read) - (order - 1) :]
        own = ids[max(0, len(ids) - (order - 1)) :]
        longest = max(longest, len(own))
        parts = (["the start"] if len(own) < len(history) else []) + (
            [f"“{opened.vocabulary.decode(own).strip()}”"] if len(own) else []
        )
        seen = f"after {' and '.join(parts)}" if parts else "whatever came before"
        name = opened.vocabulary.token_text(token)
        reasons[name] = f"order {order}, {seen}" + _say_counts(text_ids, history, token)
    reach = min(model.order - 1, len(ids))
    rest = "" if longest == reach else f"; none followed the last {longest + 1}, so it backed off"
    notes = [
        f"An n-gram model of order {model.order}. "
        + (
            f"In training one of these followed the text's last {longest} tokens{rest}."
            if longest
            else "None of these followed the text's last token in training: it counts how frequent they are."
        )
    ]
    return {"distributions": kinds, "reasons": reasons, "notes": (*notes, *([gone] if gone else []))}


def _read_training_ids(run: Any) -> tuple[NDArray[np.int64] | None, str]:
    """The ids that were counted, after the <eos> that the first text begins with, or why there are none."""
    try:
        stream = run.text_of(None, "train")
    except RegardError as error:
        return None, f"There are no counts: {error}"
    return np.append(run.tokenizer.eos, stream[0 : len(stream)]), ""


def _say_counts(ids: NDArray[np.int64] | None, history: NDArray[Any], token: int) -> str:
    """How often a token followed its history, of how often the history was there."""
    if ids is None:
        return ""
    n_followed, n_there = count_followed(ids, history, token)
    return f": {n_followed:,} of {n_there:,} times"


def count_followed(ids: NDArray[Any], history: NDArray[Any], token: int) -> tuple[int, int]:
    """How often `token` follows `history` in a stream of ids, and how often any token does.

    >>> count_followed(np.array([1, 2, 3, 1, 2, 4, 1, 2]), np.array([1, 2]), 3)
    (1, 2)
    """
    m = len(history)
    is_there = np.ones(max(0, len(ids) - m), bool)
    for i, word in enumerate(history.tolist()):
        is_there &= ids[i : len(ids) - m + i] == word
    return int((ids[m:][is_there] == token).sum()), int(is_there.sum())


def view_next(subject: Subject, options: LookOptions) -> View | None:
    """What comes after the text; None for a run that says no next word."""
    model = subject.run.model
    if not isinstance(model, GradientModel | NgramModel | Bert):
        return None
    return describe_next(find_next(subject.run, subject.text, n=options.top_k, name=subject.name))


def explain_no_next(subject: Subject, options: LookOptions) -> str:
    """Why there is no view of what comes next."""
    if subject.is_translator:
        return 'its sentence is whole; regard next RUN "SOURCE" --target "BEGINNING" goes on one'
    return "it says no next word"


def describe_next(found: NextWord) -> View:
    """What comes next, as a view of bars."""
    word, p = found.best
    return View(
        name="next",
        title="What comes next",
        note="The most probable continuations. A whole word's probability is the product of those of its pieces.",
        summary=" ".join([f"“{word.replace(LINE_END, '⏎')}” with {p:.1%}.", *found.notes]),
        data={
            "distributions": [{"name": name, "items": [*items]} for name, items in found.distributions.items()],
            "reasons": dict(found.reasons or {}),
        },
        table=(
            ("distribution", "text", "probability"),
            [(name, text, f"{p:.4f}") for name, items in found.distributions.items() for text, p in items],
        ),
    )  # fmt: skip
