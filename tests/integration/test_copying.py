"""A run that copies, on words that no vocabulary has; its weights are all zero, so its numbers are worked by hand."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import api
from regard.errors import RegardError
from regard.tasks.language_model_run import LanguageModelRun

G = 0.01  # the vocabulary's share


@pytest.fixture
def run(text: Path, tmp_path: Path) -> LanguageModelRun:
    given = {
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": {"name": "pointer", "d_model": 4, "n_layers": 1, "mix": "fixed", "p_vocabulary": G, "copies": "word"},
        "train": {"max_steps": 1, "n_batch": 4, "n_context": 16, "eval_every": 1},
        "checkpoint": {"has_tensorboard": False},
    }
    run = regard.train(given, data=str(text), out=tmp_path / "run")
    for parameter in run.model.parameters():
        torch.nn.init.zeros_(parameter)
    return run


def test_a_word_that_is_in_no_vocabulary_is_generated_by_copying_it(run: LanguageModelRun) -> None:
    text = run.generate("wug sat , wug left , wug .", temperature=0, max_tokens=2)
    assert text == "wug sat , wug left , wug . wug wug"
    assert run.generate("wug sat , wug left , wug .", beam=2, max_tokens=2) == text


def test_an_unknown_word_is_scored_by_its_copies_where_it_was_seen_and_as_unk_where_not(run: LanguageModelRun) -> None:
    n = run.tokenizer.vocab_size
    found = [math.exp(-token.nats) for token in run.score("wug wug wug blick wug").tokens[:5]]
    # What can be copied: nothing; <eos>; <eos> wug; <eos> wug wug; <eos> wug wug wug. The newest word never can.
    assert found == pytest.approx([1 / n, G / n, (1 - G) / 2, G / n, (1 - G) * 3 / 4], rel=1e-5)


def test_a_trace_shows_the_word_itself_and_where_it_was_copied_from(run: LanguageModelRun) -> None:
    trace = run.trace("wug sat wug")
    assert trace.tokens == ("<eos>", "wug", "sat", "wug")
    weights = trace.attention["layers.1.attention"]
    assert weights.shape == (1, 4, 4)
    assert weights[0, 3].tolist() == pytest.approx([(1 - G) / 3] * 3 + [0])
    assert trace["layers.1.gates.vocabulary"][:, 0].tolist() == pytest.approx([1, G, G, G])


def test_other_runs_know_no_such_words(text: Path, tmp_path: Path) -> None:
    given = {"tokenizer": {"kind": "word"}, "model": {"name": "ngram", "order": 2}}
    run = regard.train(given, data=str(text), out=tmp_path / "run")
    assert run.score("wug wug").tokens[1].nats == run.score("wug blick").tokens[1].nats


POINTER = {"name": "pointer", "d_model": 4, "n_layers": 1, "n_vocab": 9}
BRIEF = {"train": {"max_steps": 1, "n_batch": 4, "n_context": 16}, "checkpoint": {"has_tensorboard": False}}


def test_a_tokenizer_from_a_file_must_have_unk_where_tokens_are_left_out(
    text: Path, lstm_run: Path, tmp_path: Path
) -> None:
    """The tokenizer here is one of characters: id 1 is some character, which would be read for all that are rare."""
    given = {"tokenizer": {"path": str(lstm_run)}, "model": POINTER, **BRIEF}
    sentence = r"model\.n_vocab 9 leaves tokens out .* the one at tokenizer\.path is char\. Leave out model\.n_vocab"
    with pytest.raises(RegardError, match=sentence):
        regard.train(given, data=str(text), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RegardError, match=sentence):
        api.plan(given, data=str(text))


def test_word_pieces_have_an_unk_too(text: Path, tmp_path: Path) -> None:
    given = {"tokenizer": {"kind": "wordpiece", "vocab_size": 80}, "model": POINTER, **BRIEF}
    run = regard.train(given, data=str(text), out=tmp_path / "run")
    assert run.tokenizer.id_of("<unk>") == run.tokenizer.unk == 1


def test_eval_says_that_it_does_not_tell_unknown_words_apart(
    run: LanguageModelRun, lstm_run: Path, regard: Callable[..., Any]
) -> None:
    sentence = "Words that the tokenizer does not have all count as one <unk> here; `regard score` tells them apart."
    assert sentence in regard("eval", run.folder).out
    assert "<unk>" not in regard("eval", lstm_run).out
    assert "<unk>" not in regard("eval", run.folder, "--json").out
