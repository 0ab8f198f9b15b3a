from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.compare.budget import Budget
from regard.compare.read_plan import read_plan
from regard.data.config import DataConfig
from regard.errors import RegardError


def test_names_and_options_make_a_plan() -> None:
    plan = read_plan(["ngram", "lstm"], data=["my.txt"], budget="90s", params="500k", seeds=2, tokenizer="char")
    assert [c.name for c in plan.contenders] == ["ngram", "lstm"]
    assert [c.config.tokenizer.kind for c in plan.contenders] == ["char", "char"]
    assert plan.config.section("data", DataConfig).train == "my.txt"
    assert plan.budget == Budget(wished_seconds=90)
    assert (plan.n_parameters, plan.seeds, plan.out) == (500_000, (0, 1), Path("compare/my"))


def test_the_command_of_a_plan_makes_the_same_plan() -> None:
    plan = read_plan(["rnn", "lstm"], data="a b.txt", budget="1Mtokens", seeds=2, tokenizer="bpe:512", prompt="It's")
    assert plan.command == (
        "regard compare rnn lstm --data 'a b.txt' --prompt 'It'\"'\"'s' --tokenizer bpe:512 --seeds 2 "
        "--budget 1e6tokens --out compare/a-b"
    )


def test_defaults_are_a_minute_of_work_three_seeds_and_a_million_parameters() -> None:
    plan = read_plan(["rnn"], data="python-docs")
    assert (plan.budget, plan.seeds, plan.n_parameters) == (Budget(wished_seconds=60), (0, 1, 2), 1_000_000)
    assert not plan.is_budget_given
    assert plan.match == "total"


def test_seconds_of_the_clock_are_asked_for_by_their_own_name() -> None:
    plan = read_plan(["rnn"], data="x", seconds=90)
    assert plan.budget == Budget(seconds=90)
    assert plan.command == "regard compare rnn --data x --seconds 90 --out compare/x"
    given = {"contenders": ["rnn"], "data": "x", "seconds": 90}
    assert read_plan(given).budget == Budget(seconds=90)
    assert read_plan(given, budget="1e9flops").budget == Budget(flops=1e9)  # an argument replaces either
    assert read_plan(given).command == f"regard.compare({given!r}, seconds=90)"


def test_contenders_take_turns_seed_by_seed_and_counting_has_one() -> None:
    plan = read_plan(["ngram", "rnn", "lstm"], data="x", seeds=[4, 7])
    turns = [(contender.name, seed) for contender, seed in plan.trainings()]
    assert turns == [("ngram", 4), ("rnn", 4), ("lstm", 4), ("rnn", 7), ("lstm", 7)]


def test_what_of_the_sizes_is_matched_can_be_chosen() -> None:
    assert read_plan(["rnn"], data="x", match="non-embedding").n_parameters == 1_000_000
    assert read_plan(["rnn"], data="x", match="none").n_parameters is None
    plan = read_plan(["rnn"], data="x", budget="2Mparams", match="non-embedding")
    assert plan.command == (
        "regard compare rnn --data x --params 2000000 --match non-embedding --budget 4e7tokens --out compare/x"
    )


def test_a_budget_of_parameters_is_the_size_and_gets_a_stopping_rule() -> None:
    plan = read_plan(["rnn"], data="x.txt", budget="2Mparams")
    assert plan.n_parameters == 2_000_000
    assert plan.budget.tokens == 40_000_000


def test_a_yaml_names_its_contenders_and_options_lie_on_top(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        """
        contenders:
          ngram:
          small-lstm: {model: {name: lstm, n_layers: 1}, optimizer: {lr: 0.003}}
          characters: {model: transformer, tokenizer: {kind: char, vocab_size: null}}
        data: {train: my.txt}
        tokenizer: bpe:512
        optimizer: {lr: 0.001, weight_decay: 0.2}
        train: {n_batch: 4}
        budget: 2min
        params: 200k
        seeds: [3, 5]
        runtime: {device: cpu}
        """
    )
    plan = read_plan([str(path)], budget="1min", out=tmp_path / "out")
    counted, small, characters = plan.contenders
    assert (small.config.model_name, small.model) == ("lstm", {"n_layers": 1})
    assert (small.config.optimizer.lr, small.config.optimizer.weight_decay) == (0.003, 0.2)
    assert (characters.config.model_name, characters.config.tokenizer.kind, characters.config.optimizer.lr) == (
        "transformer",
        "char",
        0.001,
    )
    assert (counted.config.tokenizer.kind, counted.config.tokenizer.vocab_size) == ("bpe", 512)
    assert (plan.seeds, plan.budget, plan.n_parameters) == ((3, 5), Budget(wished_seconds=60), 200_000)
    assert plan.train == {"n_batch": 4, "n_context": 64}
    assert plan.command == f"regard compare {path} --budget 60s --out {tmp_path / 'out'}"


def test_other_data_keeps_how_text_is_read_but_not_its_other_splits(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    data = "{train: a.jsonl, valid: b.jsonl, field: body, boundaries: c.tsv, p_test: 0.2}"
    path.write_text(f"contenders: [lstm]\ndata: {data}\n")
    plan = read_plan([str(path)], data=["other.jsonl"])
    found = plan.config.section("data", DataConfig)
    assert (found.train, found.valid, found.boundaries, found.field) == ("other.jsonl", None, None, "body")
    assert found.p_test == 0.2
    assert plan.command == f"regard compare {path} --data other.jsonl --budget 60s --out compare/other"


def test_numbers_that_yaml_reads_as_text_are_numbers_in_the_plan() -> None:
    contenders = {"a": {"model": {"name": "lstm", "n_layers": "1e0"}}}
    plan = read_plan({"contenders": contenders, "data": "x", "train": {"n_batch": "1e1"}})
    assert plan.train["n_batch"] == 10
    assert type(plan.train["n_batch"]) is int
    assert plan.contenders[0].model == {"n_layers": 1}


@pytest.mark.parametrize("text", ["1.234M", "1234k", "1_234_000", "1.234Mparams", "1.234 M parameters"])
def test_params_may_be_written_with_or_without_their_unit(text: str) -> None:
    assert read_plan(["rnn"], data="x", params=text).n_parameters == 1_234_000


def test_plans_that_differ_in_the_last_digit_differ() -> None:
    first, second = (read_plan(["rnn"], data="x", budget=f"{n}tokens").to_dict() for n in (1234567, 1230001))
    assert first != second


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"contenders": ["lstm"]}, r"Say what to compare on: --data my\.txt"),
        ({"contenders": [], "data": "x"}, r"must name at least one model"),
        ({"contenders": ["lsmt"], "data": "x"}, r"There is no model 'lsmt'\. Did you mean 'lstm'\?"),
        ({"contenders": ["lstm", "lstm"], "data": "x"}, r"'lstm' is named twice"),
        ({"contenders": {"a/b": {}}, "data": "x"}, r"'a/b' cannot name a contender"),
        ({"contenders": {"a": 3}, "data": "x"}, r"'contenders\.a' must be a mapping"),
        ({"contender": ["lstm"], "data": "x"}, r"Unknown key 'contender'\. Did you mean 'contenders'\?"),
        (
            {"contenders": {"a": {"modle": "lstm"}}, "data": "x"},
            r"Unknown key 'contenders\.a\.modle'\. Did you mean 'model'\?",
        ),
        (
            {"contenders": {"a": {"model": {"name": "lstm", "n_layer": 2}}}, "data": "x"},
            r"Unknown key 'contenders\.a\.model\.n_layer'\. Did you mean 'contenders\.a\.model\.n_layers'\?",
        ),
        ({"contenders": {"a": {"train": {}}}, "data": "x"}, r"all else is the same for every contender"),
        ({"contenders": ["lstm"], "data": "x", "train": {"max_steps": 3}}, r"Unknown key 'train\.max_steps'"),
        ({"contenders": ["lstm"], "data": "x", "seeds": 0}, r"seeds must be how many"),
        ({"contenders": ["lstm"], "data": "x", "seeds": [1, 1]}, r"seeds must be how many"),
        ({"contenders": ["lstm"], "data": "x", "seeds": 10**20}, r"seeds must be how many \(1 to 10,000\)"),
        ({"contenders": ["lstm"], "data": "x", "params": 2**63}, r"params must be .*, 100,000,000,000 at most"),
        ({"contenders": ["lstm"], "data": "x", "seeds": [10**20]}, r"seeds must be how many"),
        ({"contenders": ["lstm"], "data": "x", "params": "many"}, r"params must be a number of parameters"),
        ({"contenders": ["lstm"], "data": "x", "params": "1M", "budget": "2Mparams"}, r"ask for different sizes"),
        ({"contenders": ["lstm"], "data": "x", "tokenizer": "bep"}, r"not 'bep'\. Did you mean 'bpe'\?"),
        ({"contenders": ["lstm"], "data": "x", "params": "2min, 1M"}, r"params must be a number of parameters"),
        ({"contenders": ["lstm"], "data": "x", "params": "1e999"}, r"params must be a number of parameters"),
        ({"contenders": ["lstm"], "data": "x", "match": "all"}, r"match must be one of total, non-embedding, none"),
        ({"contenders": ["lstm"], "data": "x", "match": "none", "params": "1M"}, r"params asks for 1,000,000"),
        ({"contenders": ["seq2seq"], "data": ["a", "b"], "match": "non-embedding"}, r"give params, such as 1M"),
        ({"contenders": ["lstm"], "data": "x", "seconds": "9s"}, r"seconds must be a number such as 90, not '9s'"),
        ({"contenders": ["lstm"], "data": "x", "seconds": 9, "budget": "1e9flops"}, r"are two budgets: give one"),
        ({"contenders": ["lstm"], "data": 5}, r"'data' must be a path, a built-in name, .* not 5"),
        ({"contenders": ["lstm"], "data": [5]}, r"data\.train must be .* not 5"),
        ({"contenders": ["lstm"], "data": "x", "out": 5}, r"'out' must be text, not 5"),
        ({"contenders": ["lstm"], "data": "x", "prompt": 5}, r"'prompt' must be text, not 5"),
        ({"contenders": {"a": {"model": 5}}, "data": "x"}, r"'contenders\.a\.model' must be a mapping"),
        ({"contenders": [["lstm"]], "data": "x"}, r"cannot name a contender"),
        ({"contenders": ["runs/none"], "data": "x", "task": "classify"}, r"There is no folder 'runs/none'"),
        ({"contenders": ["lstm"], "data": "-"}, r"Standard input can be read only once"),
    ],
)
def test_a_mistake_in_a_plan_is_told_before_anything_is_trained(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read_plan(given)


def test_names_and_a_yaml_do_not_mix() -> None:
    with pytest.raises(RegardError, match=r"Give model names or one YAML file, not both: lstm a\.yaml"):
        read_plan(["lstm", "a.yaml"], data="x")


def test_models_of_two_tasks_are_not_compared() -> None:
    with pytest.raises(RegardError, match="lstm predicts the next token of a text and seq2seq translates: only"):
        read_plan(["lstm", "seq2seq"], data="my.txt")


def test_translators_keep_their_size_unless_one_is_asked_for() -> None:
    given = {"contenders": ["seq2seq", "vaswani"], "data": {"train": ["a.en", "a.de"]}, "teaching": {"max_tokens": 900}}
    plan = read_plan(given, budget="1e12flops")
    assert (plan.task.name, plan.n_parameters, plan.train) == ("translation", None, {})
    assert plan.to_dict()["teaching"]["max_tokens"] == 900
    assert read_plan(given, params="2M").n_parameters == 2_000_000
    with pytest.raises(RegardError, match="'prompt' is what language models go on with, and the task is translation"):
        read_plan(given, prompt="Once")


def test_a_plan_that_was_written_is_read_again_as_it_was() -> None:
    plan = read_plan(["ngram", "lstm"], data="x.txt", budget="5Mtokens, 1Mparams", seeds=[3, 5], prompt="It")
    assert read_plan(plan.to_dict()).to_dict() == plan.to_dict()
