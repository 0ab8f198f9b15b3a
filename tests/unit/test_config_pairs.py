"""Run configs of models that read pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_pairs import GRID

from regard.config import with_settings
from regard.data.pairs_config import PairsConfig
from regard.errors import RegardError
from regard.models.table import MODELS
from regard.run.folder import load_config
from regard.tasks.table import TASKS, build_config, sections_of
from regard.training.teaching_config import TeachingConfig

GIVEN: dict[str, Any] = {"data": {"train": ["my.en", "my.de"]}, "model": {"name": "seq2seq"}}


@pytest.mark.parametrize("variant", GRID)
@pytest.mark.parametrize("target", [None, {}, {"kind": "char", "vocab_size": 50}], ids=["one", "default", "chars"])
def test_a_config_round_trips_through_yaml(variant: str, target: dict[str, Any] | None, tmp_path: Path) -> None:
    name, settings = GRID[variant]
    given = GIVEN | {"model": {"name": name, **settings}, "target_tokenizer": target, "teaching": {"mode": "free"}}
    config = build_config(given)
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert load_config(tmp_path / "config.yaml") == config
    assert config.to_dict()["model"].keys() == {"name", *(line.name for line in MODELS[name].config.help())}


def test_every_default_is_written_out_and_no_second_vocabulary_is_said_to_be_none() -> None:
    config = build_config(GIVEN)
    written = config.to_dict()
    assert written["target_tokenizer"] is None
    kinds = sections_of(TASKS["translation"])
    for section in ("data", "teaching", "optimizer"):
        assert written[section].keys() == {line.name for line in kinds[section].help()}
    assert "n_batch" not in written["train"]  # which does nothing for pairs
    assert (config.task, config.section("data", PairsConfig).train) == ("translation", ("my.en", "my.de"))
    assert config.section("teaching", TeachingConfig).smoothing == 0.1


def test_an_empty_section_is_a_second_vocabulary_with_every_default() -> None:
    assert build_config(GIVEN | {"target_tokenizer": {}}).sections["target_tokenizer"] is not None
    assert build_config(GIVEN | {"target_tokenizer": None}).sections["target_tokenizer"] is None


def test_parts_with_tags_can_be_given_on_the_command_line() -> None:
    given = with_settings(GIVEN, ["data.train=[[a.en, a.de, <2de>], [a.en, a.fr, <2fr>]]", "teaching.n_half=9"])
    config = build_config(given)
    assert [part.tag for part in config.section("data", PairsConfig).parts("train")] == ["<2de>", "<2fr>"]
    assert build_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teaching": {"smothing": 0}}, r"Unknown key 'teaching.smothing'. Did you mean 'teaching.smoothing'\?"),
        ({"teaching": 3}, r"'teaching' must be a mapping of keys to values, not 3"),
        ({"target_tokenizer": "word"}, r"'target_tokenizer' must be a mapping of keys to values, not 'word'"),
        ({"target_tokenizer": {"kind": "words"}}, r"target_tokenizer.kind must be one of char, byte, word"),
        ({"data": {"train": ["a.en", "b.en", "c.en"]}}, r"data.train names 3 files of lines|train names 3 files"),
        ({"data": {}}, r"'data.train' is required"),
        ({"data": {"train": "a.tsv", "document": "line"}}, r"Unknown key 'data.document'"),
        ({"model": {"name": "seq2sek"}}, r"There is no model 'seq2sek'. Did you mean 'seq2seq'\?"),
        ({"model": {"name": "vaswani", "size": "huge"}}, r"model.size must be one of base, big, not 'huge'"),
    ],
)
def test_a_wrong_config_is_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        build_config(GIVEN | changes)


@pytest.mark.parametrize("key", ["teaching", "target_tokenizer"])
def test_what_is_for_pairs_is_refused_where_text_is_read(key: str) -> None:
    text = {"data": {"train": "my.txt"}, "model": {"name": "lstm"}}
    with pytest.raises(
        RegardError, match=f"'{key}' is only for translation.*, and the model lstm is for language-model"
    ):
        build_config(text | {key: {}})
    config = build_config(text | {key: None})
    assert config.task == "language-model"
    assert key not in config.sections
    assert key not in config.to_dict()


def test_what_changes_nothing_is_noted_with_its_section() -> None:
    changes = {"model": {"name": "seq2seq", "is_bidirectional": False}, "teaching": {"n_half": 3}}
    notes = build_config(GIVEN | changes).notes()
    assert [note.split()[0] for note in notes] == ["model.is_bidirectional", "teaching.n_half"]


TRAINED_OTHERWISE = {"n_context": 8, "varies_context": True, "order": "stream", "max_eval_tokens": None}


def test_what_says_how_texts_are_read_is_noted_where_pairs_are() -> None:
    notes = build_config(GIVEN | {"train": TRAINED_OTHERWISE | {"n_batch": 8}}).notes()
    assert [note.partition(" changes nothing: ")[0] for note in notes] == [
        "train.n_batch", "train.n_context", "train.varies_context", "train.order", "train.max_eval_tokens",
    ]  # fmt: skip
    assert notes[0].endswith(": a batch has as many pairs as make teaching.max_tokens tokens.")
    used = {"max_steps": 5, "n_accumulate": 2, "eval_every": 7, "patience": 3, "average": "ema", "average_decay": 0.9}
    assert build_config(GIVEN | {"train": used}).notes() == []
    text = {"data": {"train": "my.txt"}, "model": {"name": "lstm"}, "train": TRAINED_OTHERWISE | {"n_batch": 8}}
    assert build_config(text).notes() == []


def test_what_says_how_texts_are_read_is_noted_where_pictures_are() -> None:
    given = {"data": {"pictures": "photos", "captions": "said.txt"}, "model": {"name": "captioner"}}
    assert build_config(given | {"train": {"n_batch": 8}}).notes() == []
    taught = {"max_tokens": 9, "p_bpe_dropout": 0.1}
    notes = build_config(given | {"train": TRAINED_OTHERWISE, "teaching": taught}).notes()
    assert [note.split()[0] for note in notes] == [
        "teaching.max_tokens", "teaching.p_bpe_dropout", "train.n_context", "train.varies_context", "train.order",
        "train.max_eval_tokens",
    ]  # fmt: skip


def test_more_parts_than_rows_are_refused_where_a_batch_has_a_number_of_rows() -> None:
    parts = {"train": {"n_batch": 4, "n_accumulate": 8}}
    assert build_config(GIVEN | parts).train.n_accumulate == 8
    for given in (
        {"data": {"train": "my.txt"}, "model": {"name": "lstm"}},
        {"data": {"pictures": "photos", "captions": "said.txt"}, "model": {"name": "captioner"}},
    ):
        with pytest.raises(RegardError, match=r"train.n_accumulate 8 is more than train.n_batch 4.*Lower it or raise"):
            build_config(given | parts)


@pytest.mark.parametrize(
    ("data", "notes"),
    [
        ({"train": "a.jsonl", "source_field": "en", "p_valid": 0.1, "split_seed": 3}, []),
        ({"train": "a.tsv", "source_field": "2", "target_field": "1"}, []),
        (
            {"train": ["a.en", "a.de"], "source_field": "en", "target_field": "de", "tree_words": "tag"},
            [
                "data.source_field changes nothing: no file has fields or columns.",
                "data.target_field changes nothing: no file has fields or columns.",
                "data.tree_words changes nothing: the targets are no trees.",
            ],
        ),
        (
            {"train": "a.tsv", "valid": "b.tsv", "p_valid": 0.1, "p_test": 0.2, "split_seed": 1},
            ["data.p_valid changes nothing: validation pairs are named, or the grammar's own."],
        ),
        (
            {"train": "grammar:en-trees", "p_test": 0.2, "split_seed": 1, "tree_words": "tag"},
            [
                "data.p_test changes nothing: test pairs are named, or the grammar's own.",
                "data.split_seed changes nothing: nothing is cut from train.",
            ],
        ),
    ],
)
def test_what_pairs_are_not_read_by_is_noted(data: dict[str, Any], notes: list[str]) -> None:
    assert build_config(GIVEN | {"data": data}).notes() == notes


def test_a_model_of_pairs_is_not_built_as_a_language_model() -> None:
    given = {"task": "language-model", "data": {"train": "my.txt"}, "model": {"name": "vaswani"}}
    with pytest.raises(RegardError, match="vaswani is not for the task language-model, but for parsing and tr"):
        build_config(given)
