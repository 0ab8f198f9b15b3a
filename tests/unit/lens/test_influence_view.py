"""Views of one prediction: the words that it comes from, and whether attention says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_prediction import look_and_answer, predict_by_hand

from regard.errors import RegardError
from regard.lens.attribution import LEAST
from regard.lens.influence_view import join_tokens, predict_subject, view_faithfulness, view_influence
from regard.lens.prediction import Prediction, predict_next
from regard.lens.subject import Subject
from regard.lens.trace import trace_text
from regard.lens.view import LookOptions
from regard.mixers.config import LSTMConfig, PointerConfig, TransformerConfig
from regard.models.table import build_model
from regard.text.config import TokenizerConfig
from regard.text.extended import ExtendedVocabulary
from regard.text.learning import train_tokenizer

TEXT = "the cat sat on the mat"


def make_run(name: str = "transformer") -> Any:
    """As much of a run of a language model as views ask for."""
    torch.manual_seed(0)
    words = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT + "\n"])
    config: Any = {
        "lstm": LSTMConfig(d_model=8, n_layers=1),
        "transformer": TransformerConfig(d_model=8, n_layers=1, n_heads=2, max_context=16),
        "pointer": PointerConfig(d_model=8, n_layers=1),
    }[name]
    model = build_model(name, config, words.vocab_size).double()

    def predict(text: str, at: int | None = None) -> Prediction:
        return predict_next(model, ExtendedVocabulary(words) if name == "pointer" else words, text, at)

    return SimpleNamespace(
        model=model, tokenizer=words, tokenizers=(words,), folder=Path("made"), prediction=predict,
        trace=lambda text: trace_text(model, words, text), facts=SimpleNamespace(n_parameters=1000),
        task=SimpleNamespace(verb="generate", name="language-model", summary="writes"),
    )  # fmt: skip


def test_the_words_before_a_word_explain_its_own_prediction() -> None:
    subject, options = Subject(make_run(), TEXT), LookOptions(word="on")
    prediction = predict_subject(subject, options)
    assert prediction is not None
    assert prediction.tokens == ("<eos>", "the", "cat", "sat")
    assert prediction.target_name == "on"
    view = view_influence(subject, options)
    assert view is not None
    assert view.data["words"] == ("<eos>", "the", "cat", "sat")
    assert view.data["marks"] == (True, False, False, False)
    assert set(view.data["methods"]) == {"erasure", "gradient × input", "integrated gradients"}
    assert view.data["methods"]["erasure"][0] == 0  # the mark before a text is not erased
    assert view.data["tokens"] == [[0], [1], [2], [3]]
    assert "“on”" in view.summary


def test_without_a_word_the_next_token_is_explained() -> None:
    subject = Subject(make_run(), TEXT)
    view = view_faithfulness(subject, LookOptions())
    assert view is not None
    assert len(view.data["words"]) == 7
    assert all(sum(shares) == pytest.approx(1, abs=1e-3) for shares in view.data["shares"].values())
    assert view.data["verdict"] in view.summary
    assert view.table is not None
    assert view.table[1][0][0] == "agreement with gradients, τ"


def test_a_model_that_does_not_attend_has_no_faithfulness() -> None:
    assert view_faithfulness(Subject(make_run("lstm"), TEXT), LookOptions()) is None
    assert view_influence(Subject(make_run("lstm"), TEXT), LookOptions()) is not None


def test_pieces_of_a_word_are_one_word() -> None:
    prediction = predict_by_hand([1, 2], look_and_answer([0.0, 0.0], lambda x: x))
    words = join_tokens(prediction)
    assert words.texts == ("w1", "w2")
    assert words.tokens == ((0,), (1,))


def test_the_start_of_a_text_is_not_predicted() -> None:
    with pytest.raises(
        RegardError,
        match=r"--word 1: “<eos>” is a mark that stands before the text or after it",
    ):
        predict_subject(Subject(make_run(), TEXT), LookOptions(word="1"))


def test_of_a_text_that_takes_long_the_last_words_are_erased_and_the_page_says_so() -> None:
    run = make_run()
    run.facts.n_parameters = 10**9  # a pass over 13 tokens takes 1.3e10 multiply-adds: 7 of them may, and 8 always do
    view = view_influence(Subject(run, " ".join([TEXT] * 2)), LookOptions())
    assert view is not None
    n = sum(score != 0 for score in view.data["methods"]["erasure"])
    assert n == 8
    assert "The last 8 of 12 words were erased" in view.note
    assert "integrated gradients" not in view.data["methods"]


def test_a_word_that_can_only_be_copied_is_explained_by_the_place_it_is_copied_from() -> None:
    run = make_run("pointer")
    predict = run.prediction
    run.prediction = lambda text, at=None: predict(text, at).choose(predict(text, at).inputs[2])
    view = view_influence(Subject(run, "the wug sat"), LookOptions())
    assert view is not None
    assert view.data["target"] == "wug"
    assert view.summary.endswith("Without “wug” it could not be said at all.")
    erased = view.data["methods"]["erasure"]
    assert max(range(4), key=lambda i: erased[i]) == 2
    assert erased[2] == pytest.approx(float(run.prediction("the wug sat").log_probs()[-1]) - LEAST, abs=1e-4)
