"""Every shipped recipe is read, and trains."""

from pathlib import Path

import pytest
from tiny_captions import write_pictures
from tiny_gpt2 import write_hf_folder

from regard import api
from regard.compare.read_plan import read_plan
from regard.config import read_yaml
from regard.models.table import ENCODER_TASKS, models_for
from regard.run.folder import load_config

FOLDER = Path(__file__).parents[2] / "recipes"
COMPARISONS = sorted(p for p in FOLDER.glob("*.yaml") if "contenders" in read_yaml(p))
STARTED = sorted(p for p in FOLDER.glob("*.yaml") if "start_from" in read_yaml(p))
PAIRS = sorted(
    p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("model", {}).get("name") in models_for("translation")
)
PICTURES = sorted(
    p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("model", {}).get("name") in models_for("captions")
)
LABELLED = sorted(p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("task") in ENCODER_TASKS)
MASKED = sorted(
    p
    for p in {*FOLDER.glob("*.yaml")} - {*LABELLED}
    if read_yaml(p).get("model", {}).get("name") in models_for("masked-language-model")
)
VECTORS = sorted(
    p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("model", {}).get("name") in models_for("word-vectors")
)
RECIPES = sorted(set(FOLDER.glob("*.yaml")) - {*COMPARISONS, *STARTED, *PAIRS, *PICTURES, *MASKED, *LABELLED, *VECTORS})
QUICK = ["tokenizer.vocab_size=300", "train.max_steps=2", "train.n_batch=2", "train.eval_every=1",
         "train.n_accumulate=1", "runtime.is_compiled=false", "data.p_test=0.05"]  # fmt: skip
SMALL = {"d_model": 8, "d_hidden": 12, "max_context": 16, "order": 2, "n_heads": 2}


def test_every_model_has_a_recipe() -> None:
    of_texts = {*models_for("language-model"), *models_for("bidirectional-language-model")}
    assert {load_config(p).model_name for p in RECIPES} == of_texts
    assert {load_config(p).model_name for p in PAIRS} == set(models_for("translation"))
    assert {load_config(p).task for p in LABELLED} == set(ENCODER_TASKS)
    assert {load_config(p).model_name for p in PICTURES} == set(models_for("captions"))
    assert {load_config(p).model_name for p in VECTORS} == set(models_for("word-vectors"))
    assert {load_config(p).model_name for p in MASKED} == set(models_for("masked-language-model"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_trains(recipe: Path, text: Path, tmp_path: Path) -> None:
    keys = load_config(recipe).model.to_dict()
    small = [f"model.{key}={value}" for key, value in SMALL.items() if key in keys]
    settings = [*QUICK, *small, "train.n_context=16"]
    run = api.train(recipe, data=str(text), settings=settings, out=tmp_path / "run")
    assert run.test_result()["nats_per_token"] > 0
    assert (tmp_path / "run" / "README.md").read_text().startswith("# run:")


@pytest.mark.parametrize("recipe", MASKED, ids=lambda p: p.stem)
def test_a_recipe_for_masked_text_trains(recipe: Path, text: Path, tmp_path: Path) -> None:
    small = ["model.d_model=8", "model.n_heads=2", "train.n_context=16", "model.max_context=16"]
    run = api.train(recipe, data=str(text), settings=[*QUICK, *small], out=tmp_path / "run")
    assert run.test_result()["n_masked"] > 0
    assert (tmp_path / "run" / "README.md").read_text().startswith("# run:")


LABELLED = sorted(p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("task") in ENCODER_TASKS)
VECTORS = sorted(
    p for p in FOLDER.glob("*.yaml") if read_yaml(p).get("model", {}).get("name") in models_for("word-vectors")
)
RECIPES = sorted(set(FOLDER.glob("*.yaml")) - {*COMPARISONS, *STARTED, *PAIRS, *PICTURES, *MASKED, *LABELLED, *VECTORS})


@pytest.mark.parametrize("recipe", PAIRS, ids=lambda p: p.stem)
def test_a_recipe_for_pairs_trains(recipe: Path, tmp_path: Path) -> None:
    has_trees = load_config(recipe).task == "parsing"
    words = [(a, b, c) for a in "abcde" for b in "fghij" for c in "klmno"]
    lines = [
        f"(S (NP (DT {a}) (NN {b})) (VP (VB {c})))" if has_trees else f"{a} {b} {c}\t{c} {a} {b}" for a, b, c in words
    ]
    (tmp_path / "my.pairs").write_text("\n".join(lines) + "\n")
    small = [
        "model.d_model=8",
        "model.n_heads=2",
        "model.n_layers=1",
        "tokenizer.vocab_size=300",
        "teaching.max_tokens=400",
    ]
    quick = [*small, "train.max_steps=2", "train.eval_every=1", "runtime.precision=float32"]
    quick += ["data.format=trees" if has_trees else "data.format=tsv"]
    run = api.train(recipe, data=str(tmp_path / "my.pairs"), settings=quick, out=tmp_path / "run")
    assert run.test_result()["n_pairs"] > 0
    assert (tmp_path / "run" / "README.md").read_text().startswith("# run:")


@pytest.mark.parametrize("recipe", PICTURES, ids=lambda p: p.stem)
def test_a_recipe_for_pictures_trains(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers stand in for the weights that a package carries."""
    monkeypatch.setattr("regard.tasks.captions.find_published", lambda: None)
    monkeypatch.setattr("regard.tasks.captions.load_published", lambda network: None)
    pictures, captions = write_pictures(tmp_path)
    small = ["model.d_model=8", "model.n_layers=1", "data.size=64", "data.p_valid=0.2", "data.p_test=0.2"]
    quick = [*small, "tokenizer.min_count=1", "train.n_batch=4", "train.max_steps=2", "train.eval_every=1"]
    quick.append("runtime.precision=float32")
    run = api.train(recipe, data=[str(pictures), str(captions)], settings=quick, out=tmp_path / "run")
    assert run.test_result()["n_pictures"] > 0
    assert (tmp_path / "run" / "README.md").read_text().startswith("# run:")


@pytest.mark.parametrize("recipe", STARTED, ids=lambda p: p.stem)
def test_a_recipe_that_starts_from_weights_trains(recipe: Path, text: Path, tmp_path: Path) -> None:
    quick = [setting for setting in QUICK if "vocab_size" not in setting]
    if read_yaml(recipe)["start_from"] == "gpt2":
        pytest.importorskip("transformers")
        write_hf_folder(tmp_path / "gpt2")
        start = tmp_path / "gpt2"
    else:
        small = ["model.d_model=8", "model.d_hidden=12", "train.n_context=16"]
        start = api.train(
            FOLDER / "elmo-tiny.yaml", data=str(text), settings=[*quick, *small], out=tmp_path / "e"
        ).folder
    run = api.train(recipe, data=str(text), start_from=start, settings=quick, out=tmp_path / "run")
    assert run.test_result()["nats_per_token"] > 0


def test_the_fine_tuning_recipe_says_what_the_one_command_does(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    write_hf_folder(tmp_path / "gpt2")
    start = {"data": str(text), "start_from": tmp_path / "gpt2"}
    assert api.resolve(FOLDER / "gpt2-finetune.yaml", **start) == api.resolve(None, **start)


@pytest.mark.parametrize("recipe", COMPARISONS, ids=lambda p: p.stem)
def test_a_comparison_is_read(recipe: Path) -> None:
    plan = read_plan([str(recipe)])
    assert len(plan.contenders) >= 2
