"""Run configs: complete, round-tripping, and refused in words that say what to change."""

from pathlib import Path

import pytest

from regard.api import resolve
from regard.config import read_yaml, with_settings
from regard.errors import RegardError
from regard.models.table import MODELS, models_for
from regard.run.folder import load_config
from regard.settings import COMMON_NAMES
from regard.tasks.table import build_config

GIVEN = {"data": {"train": "my.txt"}, "model": {"name": "lstm", "d_model": 64}}


@pytest.mark.parametrize("name", models_for("language-model"))
def test_a_config_round_trips_through_yaml_with_every_default_written_out(name: str, tmp_path: Path) -> None:
    config = build_config({"data": {"train": "my.txt"}, "model": {"name": name}})
    (tmp_path / "config.yaml").write_text(config.to_yaml())
    assert load_config(tmp_path / "config.yaml") == config
    assert config.to_dict()["model"].keys() >= {line.name for line in MODELS[name].config.help()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"modle": {}},
            r"Unknown key 'modle'. Did you mean 'model'\? Allowed here: task, seed, start_from, data",
        ),
        ({"model": {}}, r"'model.name' is required: one of ngram, bag"),
        ({"model": {"name": "lsmt"}}, r"There is no model 'lsmt'. Did you mean 'lstm'\?"),
        ({"model": {"name": "lstm", "d_mdel": 1}}, r"Unknown key 'model.d_mdel'. Did you mean 'model.d_model'\?"),
        ({"model": {"name": "lstm", "d_model": "wide"}}, r"model.d_model must be a whole number, not 'wide'"),
        ({"train": {"max_step": 1}}, r"Unknown key 'train.max_step'. Did you mean 'train.max_steps'\?"),
        ({"train": 3}, r"'train' must be a mapping of keys to values, not 3"),
        ({"seed": -1}, r"'seed' must be a whole number from 0 to 2\^63 - 1, not -1"),
        ({"seed": True}, r"'seed' must be a whole number"),
        ({"data": {}}, r"'data.train' is required"),
        (
            {"model": {"name": "pointer", "n_vocab": 9}, "tokenizer": {"kind": "bpe"}},
            r"only word and wordpiece tokenizers have <unk>; tokenizer.kind is bpe. Leave out model.n_vocab, or take",
        ),
    ],
)
def test_a_wrong_config_is_refused_in_one_sentence(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        build_config({**GIVEN, **changes})


def test_settings_lie_on_top_and_are_read_as_yaml() -> None:
    given = with_settings(GIVEN, ["model.d_model=128", "train.max_tokens=5e6", "data.valid=[a.txt, b.txt]", "seed=3"])
    config = build_config(given)
    assert (config.model.to_dict()["d_model"], config.train.max_tokens, config.seed) == (128, 5_000_000, 3)
    assert config.data.valid == ("a.txt", "b.txt")
    assert GIVEN["model"] == {"name": "lstm", "d_model": 64}


@pytest.mark.parametrize("assignment", ["model.d_model", "=3", "a.b.c=1", ".x=1"])
def test_a_malformed_setting_is_refused(assignment: str) -> None:
    with pytest.raises(RegardError, match=r"A setting is KEY=VALUE such as model.d_model=256"):
        with_settings(GIVEN, [assignment])


def test_a_setting_inside_a_single_value_is_refused() -> None:
    with pytest.raises(RegardError, match="'seed' is a single value and has no keys inside it"):
        with_settings({"seed": 1}, ["seed.x=1"])


def test_a_missing_recipe_names_the_nearest_file(tmp_path: Path) -> None:
    (tmp_path / "lstm.yaml").write_text("seed: 1")
    with pytest.raises(RegardError, match=r"There is no file '.*lsmt.yaml'. Did you mean '.*/lstm.yaml'\?"):
        read_yaml(tmp_path / "lsmt.yaml")


def test_a_model_in_the_place_of_a_recipe_is_the_model() -> None:
    assert resolve("lstm", data="my.txt") == resolve(None, model="lstm", data="my.txt")
    assert resolve("lstm", model="lstm", data="my.txt") == resolve(None, model="lstm", data="my.txt")


def test_two_models_are_refused_and_so_is_what_is_neither_model_nor_recipe() -> None:
    with pytest.raises(RegardError, match=r"'lstm' and --model gru name two models\. Leave one of them out"):
        resolve("lstm", model="gru", data="my.txt")
    with pytest.raises(
        RegardError, match=r"'lsmt' is neither a model nor a recipe\. Did you mean 'lstm'\? .*regard mod"
    ):
        resolve("lsmt", data="my.txt")


def test_broken_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("seed: 1\nmodel: {name: lstm\n")
    with pytest.raises(RegardError, match=r"is not valid YAML at line 3, column 1"):
        read_yaml(tmp_path / "x.yaml")
    (tmp_path / "y.yaml").write_text("just words")
    with pytest.raises(RegardError, match=r"must hold a mapping of keys"):
        read_yaml(tmp_path / "y.yaml")


def test_what_is_no_recipe_is_refused_with_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(RegardError, match=r"is empty\. Write keys and values such as data: {train: my.txt}"):
        read_yaml(tmp_path / "empty.yaml")
    with pytest.raises(RegardError, match=r"is a folder, not a YAML recipe\. Train on a folder of texts with --data"):
        read_yaml(tmp_path)


def test_the_name_of_a_model_alone_is_answered_with_its_form() -> None:
    with pytest.raises(RegardError, match=r"not 'lstm'\. Write it as model: {name: lstm}\."):
        build_config({"model": "lstm", "data": {"train": "x.txt"}})
    with pytest.raises(RegardError, match=r"not 'x\.txt'\. Write it as data: {train: x\.txt}\."):
        build_config({"model": {"name": "lstm"}, "data": "x.txt"})


def test_a_comparison_is_sent_to_its_verb() -> None:
    with pytest.raises(RegardError, match=r"'contenders' belongs in a comparison, which `regard compare FILE` runs"):
        build_config({"contenders": ["lstm"], "data": {"train": "x.txt"}})


def test_a_binary_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RegardError, match=r"cannot be read as a YAML recipe"):
        read_yaml(tmp_path / "x.yaml")


@pytest.mark.parametrize("given", [{"lr": 1}, {"learning_rate": 1}, {"train": {"lr": 1}}, {"runtime": {"rate": 1}},
                                   {"optimizer": {"learning_rate": 1}}])  # fmt: skip
def test_a_common_name_of_a_setting_is_answered_with_its_own(given: dict[str, object]) -> None:
    plain = {"data": {"train": "x.txt"}, "model": {"name": "lstm"}} | given
    with pytest.raises(RegardError, match=r"Unknown key '[a-z._]+'\. Did you mean 'optimizer\.lr'\?"):
        build_config(plain)


def test_every_setting_that_a_common_name_leads_to_exists() -> None:
    known = set()
    for name in ("lstm", "transformer", "seq2seq"):
        data = {"train": ["a.en", "a.de"] if name == "seq2seq" else "my.txt"}
        whole = build_config({"data": data, "model": {"name": name}}).to_dict()
        known |= {f"{section}.{key}" for section, keys in whole.items() if isinstance(keys, dict) for key in keys}
    assert COMMON_NAMES.keys() <= known


@pytest.mark.parametrize(
    "written", ["model: {name: lstm}\nseed: 1\nmodel: {name: rnn}\n", "model:\n  name: a\n  name: b\n"]
)
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / "twice.yaml").write_text(written)
    with pytest.raises(
        RegardError, match=r"not valid YAML at line 3, column \d: the key '(model|name)' is there twice"
    ):
        read_yaml(tmp_path / "twice.yaml")


def test_a_key_that_is_merged_in_may_be_written_over(tmp_path: Path) -> None:
    (tmp_path / "merged.yaml").write_text("a: &a {x: 1, y: 2}\nb: {c: &c {<<: *a, y: 3}}\nd: {<<: *c}\n")
    assert read_yaml(tmp_path / "merged.yaml")["d"] == {"x": 1, "y": 3}


def test_a_character_that_yaml_does_not_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "escape.yaml").write_text("seed: 1\nname: \x1b[2J\n")
    with pytest.raises(RegardError, match="not valid YAML at line 2: it has a character that no YAML has, number 27"):
        read_yaml(tmp_path / "escape.yaml")
