"""What each layer would say: the last one says what the model says, and each place is held against what came there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from regard.lens.layers_view import MAX_PLACES, explain_no_layers, list_places, view_layers
from regard.lens.look import look_at
from regard.lens.subject import Subject
from regard.lens.trace import trace_text
from regard.lens.view import LookOptions
from regard.mixers.config import BagConfig, LSTMConfig, PointerConfig, TransformerConfig
from regard.models.table import build_model
from regard.report.lens_pictures import draw_layers
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

TEXT = "the cat sat on the mat"
WORDS = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), [TEXT + "\n"])


def look_into(name: str, config: Any, text: str = TEXT) -> Subject:
    torch.manual_seed(0)
    model = build_model(name, config, WORDS.vocab_size).double()
    run = SimpleNamespace(
        model=model, folder=Path("run"), tokenizer=WORDS, tokenizers=(WORDS,), task=SimpleNamespace(verb="generate"),
        trace=lambda given: trace_text(model, WORDS, given),
    )  # fmt: skip
    return Subject(run, text)


def test_the_last_layer_says_what_the_model_says_and_costs_what_the_text_costs() -> None:
    subject = look_into("transformer", TransformerConfig(d_model=8, n_layers=2, n_heads=2, max_context=16))
    view = view_layers(subject, LookOptions())
    assert view is not None
    assert view.data["layers"] == ["the embedding", "layer 1", "layer 2"]
    places = view.data["places"]
    assert [place["read"] for place in places] == ["<eos>", *TEXT.split()]
    assert [place["came"] for place in places] == [*TEXT.split(), None]
    P = torch.from_numpy(subject.trace["logits"]).softmax(dim=-1).numpy()
    for row, place in zip(P, places, strict=True):
        text, p = place["best"][-1][0]
        assert (text, p) == (WORDS.token_text(int(row.argmax())), pytest.approx(float(row.max()), abs=1e-4))
    assert view.data["bits"][-1] == pytest.approx(subject.trace.nats[1:].mean() / np.log(2))
    assert [place["isOwn"][-1] for place in places] == [p["best"][-1][0][0] == p["came"] for p in places]
    assert view.summary.startswith(
        f"A token costs {view.data['bits'][0]:.1f} bits where the head reads the embedding, "
    )


def test_a_long_text_is_read_out_at_its_end() -> None:
    subject = look_into("lstm", LSTMConfig(d_model=8, n_layers=1), " ".join(["the cat"] * 60))
    view = view_layers(subject, LookOptions())
    assert view is not None
    assert len(view.data["places"]) == MAX_PLACES
    assert f"The last {MAX_PLACES} of 121 places." in view.note
    assert view.data["places"][-1]["token"] is None


def test_what_came_is_unknown_where_tokens_and_text_do_not_go_together() -> None:
    subject = look_into("lstm", LSTMConfig(d_model=8, n_layers=1))
    assert [place.own for place in list_places(subject)] == [*WORDS.encode(TEXT).tolist(), None]
    subject.spans = (None,) * len(subject.tokens)  # as of a text whose characters are not known
    assert [place.own for place in list_places(subject)] == [None] * 7


def test_what_comes_behind_the_last_layer_is_read_out_too() -> None:
    subject = look_into("pointer", PointerConfig(d_model=8, n_layers=1, max_memory=8))
    view = view_layers(subject, LookOptions())
    assert view is not None
    assert view.data["layers"] == ["the embedding", "layer 1", "the whole model"]
    assert view.data["bits"][-1] == pytest.approx(subject.trace.nats[1:].mean() / np.log(2))


def test_what_predicts_no_tokens_says_so() -> None:
    subject = look_into("bag", BagConfig(d_model=8))
    subject.run.model = torch.nn.Linear(2, 2)
    panel = look_at(subject, ["layers"])
    assert not panel.views
    assert dict(panel.missing)["layers"] == explain_no_layers(subject, LookOptions())


def test_the_picture_has_a_row_for_each_place() -> None:
    subject = look_into("transformer", TransformerConfig(d_model=8, n_layers=2, n_heads=2, max_context=16))
    panel = look_at(subject, ["layers"])
    figure = draw_layers(panel.views[0], panel, "#0072b2")
    assert isinstance(figure, Figure)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][:2] == ["after <eos>", "after the"]
