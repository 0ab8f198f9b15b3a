"""`regard look` and `regard next` on tiny runs: pages, pictures, JSON, and a sentence for what cannot work."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bert import write_hf_bert
from tiny_gpt2 import write_hf_folder

import regard as package
from regard.errors import RegardError
from regard.lens.look import VIEWS
from regard.lens.view import unpack

Command = Callable[..., Any]
TEXT = "the cat sat on"


@pytest.fixture(scope="session")
def translator_run(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Path:
    given = {
        "data": {"train": "grammar:en-de:40"},
        "tokenizer": {"kind": "word", "vocab_size": 200},
        "model": {"name": "vaswani", "d_model": 16, "n_layers": 1, "n_heads": 2},
        "train": {"max_steps": 2, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }
    return package.train(given, out=tmp_path_factory.mktemp("runs") / "translator", is_tested=False).folder


def test_look_writes_a_page_pictures_and_numbers(regard: Command, transformer_run: Path, tmp_path: Path) -> None:
    done = regard("look", transformer_run, "--text", TEXT, "--out", tmp_path / "look")
    assert done.code == 0, done.err
    assert "Where it looks: 2 heads in 1 layer" in " ".join(done.out.split())
    names = {path.name for path in (tmp_path / "look").iterdir()}
    views = ("next", "surprise", "attention")
    assert {"index.html", "look.json", *(f"{v}.{kind}" for v in views for kind in ("png", "svg"))} <= names
    found = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]
    run = package.load(transformer_run)
    trace = run.trace(TEXT)
    stack = found["views"]["attention"]["data"]["stacks"][0]
    head = unpack(stack["full"]["0,1"])
    assert np.abs(head - trace["layers.0.attention"][1]).max() < 1 / 255
    assert found["views"]["surprise"]["data"]["bits"] == pytest.approx((trace.nats / np.log(2)).tolist(), abs=1e-3)
    assert found["wordTexts"] == ["<eos>", "the", "cat", "sat", "on"]


def test_two_models_stand_side_by_side(regard: Command, lstm_run: Path, ngram_run: Path, tmp_path: Path) -> None:
    done = regard("look", lstm_run, ngram_run, "--text", TEXT, "--view", "surprise", "--out", tmp_path / "two")
    assert done.code == 0, done.err
    page = (tmp_path / "two" / "index.html").read_text()
    assert page.count('data-view="surprise"') == 2
    assert {path.name for path in (tmp_path / "two").glob("*.png")} == {"surprise-1.png", "surprise-2.png"}


def test_steps_are_the_numbers_of_the_trace(regard: Command, transformer_run: Path, tmp_path: Path) -> None:
    words = ("--steps", "--layer", 1, "--head", 2, "--word", "cat")
    done = regard("look", transformer_run, "--text", TEXT, *words, "--out", tmp_path / "steps")
    assert done.code == 0, done.err
    data = json.loads((tmp_path / "steps" / "look.json").read_text())["panels"][0]["views"]["steps"]["data"]
    trace = package.load(transformer_run).trace(TEXT)
    t = data["token"]
    assert trace.tokens[t] == "t"  # the last piece of "cat"
    assert unpack(data["z"]) == pytest.approx(trace["layers.0.z"][1, t], abs=1e-5)
    example = data["examples"][0]
    q, k = np.array(example["query"]), np.array(example["keys"])
    assert k @ q / np.sqrt(example["d"]) == pytest.approx(trace["layers.0.scores"][1, t, : t + 1], abs=1e-2)
    assert "q·k" in done.out


def test_a_translation_is_drawn_with_the_links_that_are_right(
    regard: Command, translator_run: Path, tmp_path: Path
) -> None:
    pair = ("--text", "She was rude .", "--target", "Sie war unhöflich .")
    done = regard("look", translator_run, *pair, "--out", tmp_path / "look")
    assert done.code == 0, done.err
    views = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]["views"]
    data = views["alignment"]["data"]
    assert data["rows"] == ["Sie", "war", "unhöflich", "."]
    assert data["columns"] == ["She", "was", "rude", "."]
    assert data["gold"] == [[i, i, "sure"] for i in range(4)]  # the grammar wrote this pair
    forced = package.load(translator_run).force("She was rude .", "Sie war unhöflich .")
    assert unpack(data["mean"]) == pytest.approx(forced.attention[:4], abs=1 / 255)
    assert [stack["title"] for stack in views["attention"]["data"]["stacks"]] == [
        "reading the source", "writing the target",
    ]  # fmt: skip


def test_alignments_of_many_lines_are_one_page(regard: Command, translator_run: Path, tmp_path: Path) -> None:
    for name, text in (("a.en", "She was rude .\n\nHe sleeps .\n"), ("a.de", "Sie war unhöflich .\n\nEr schläft .\n")):
        (tmp_path / name).write_text(text)
    done = regard("align", translator_run, tmp_path / "a.en", tmp_path / "a.de", "--out", tmp_path / "al")
    assert done.code == 0, done.err
    assert (tmp_path / "al" / "index.html").read_text().count('data-view="alignment"') == 2
    done = regard("translate", translator_run, tmp_path / "a.en", "--out", tmp_path / "none")
    assert done.code == 2
    assert "--out draws word alignments: add --align" in done.err


def test_next_shows_models_side_by_side_in_80_columns(regard: Command, lstm_run: Path, ngram_run: Path) -> None:
    done = regard("next", lstm_run, ngram_run, "the cat s", "--top-k", 4)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["lstm", "ngram"]
    assert max(map(len, lines[:5])) <= 80
    assert "An n-gram model of order 3" in done.out
    assert "“a” order 3, after “s”: " in done.out


def test_next_gives_json_and_a_page(regard: Command, ngram_run: Path, tmp_path: Path) -> None:
    done = regard("next", ngram_run, "the cat sat on the ", "--json", "--top-k", 3, "--out", tmp_path / "next")
    found = json.loads(done.out)["models"][0]
    tokens = {item["text"]: item["probability"] for item in found["distributions"]["tokens"]}
    assert tokens == dict(package.load(ngram_run).predict_next("the cat sat on the ", 3))
    assert {"mat", "hat", "boat", "garden", "moon"} & {item["text"] for item in found["distributions"]["words"]}
    assert (tmp_path / "next" / "index.html").exists()


def test_counts_of_an_ngram_model_are_those_of_its_text(regard: Command, ngram_run: Path) -> None:
    run = package.load(ngram_run)
    done = regard("next", ngram_run, "the c", "--json", "--top-k", 2)
    stream = run.text_of(None, "train")
    text = run.tokenizer.decode(stream[0 : len(stream)])
    reason = json.loads(done.out)["models"][0]["reasons"]["a"]
    assert reason == f"order 3, after “c”: {text.count(' ca'):,} of {text.count(' c'):,} times"


def test_an_ngram_that_begins_a_text_is_counted_where_texts_begin(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("the cat sat . now the cat ran . and the cat ran .")
    (tmp_path / "valid.txt").write_text("the dog sat .")
    (tmp_path / "test.txt").write_text("the dog ran .")
    data = {"train": "my.txt", "valid": "valid.txt", "test": "test.txt"}
    given = {"data": {name: str(tmp_path / file) for name, file in data.items()}, "tokenizer": {"kind": "word"},
             "model": {"name": "ngram", "order": 4}}  # fmt: skip
    run = package.train(given, out=tmp_path / "ngram", is_tested=False)
    found = package.predict_next(run, "the cat", n=20)[0]
    assert found.reasons is not None
    assert found.reasons["sat"] == "order 4, after the start and “the cat”: 1 of 1 times"
    assert found.reasons["ran"] == "order 3, after “the cat”: 2 of 3 times"
    assert found.notes == ("An n-gram model of order 4. In training one of these followed the text's last 2 tokens.",)


def test_next_of_a_translator_goes_on_its_target(regard: Command, translator_run: Path) -> None:
    done = regard("next", translator_run, "She was rude .", "--target", "Sie", "--json")
    found = json.loads(done.out)["models"][0]["distributions"]["words"]
    run = package.load(translator_run)
    prediction = run.prediction("She was rude .", "Sie")
    assert found[0]["probability"] == pytest.approx(prediction.best(1)[0][1], abs=1e-5)


def test_hugging_face_folders_stand_in_for_runs(regard: Command, tmp_path: Path) -> None:
    write_hf_folder(tmp_path / "gpt2")
    write_hf_bert(tmp_path / "bert")
    done = regard("look", tmp_path / "gpt2", tmp_path / "bert", "--text", "the cat", "--out", tmp_path / "look")
    assert done.code == 0, done.err
    panels = json.loads((tmp_path / "look" / "look.json").read_text())["panels"]
    assert [panel["name"] for panel in panels] == ["gpt2", "bert"]
    words = ("look", tmp_path / "bert", "--text", "the [MASK] sat", "--view", "layers", "--out", tmp_path / "masked")
    done = regard(*words)
    assert done.code == 0, done.err
    view = json.loads((tmp_path / "masked" / "look.json").read_text())["panels"][0]["views"]["layers"]
    assert [place["own"] is None for place in view["data"]["places"]] == [False, True, False]  # the mask has no answer
    done = regard("next", tmp_path / "bert", "the [MASK] sat")
    assert "What stands in the last [MASK]." in done.out


BAD: list[tuple[tuple[object, ...], str]] = [
    ((), "Give the text to look at"),
    (("--text", "   "), "There is no text to look at"),
    (("--text", "x" * 40), "The text is 40 tokens long"),
    (("--text", TEXT, "--view", "atention"), "There is no view 'atention'. Did you mean 'attention'?"),
    (("--text", TEXT, "--layer", 9), "--layer 9: the model has 1 layer there"),
    (("--text", TEXT, "--steps", "--word", "dog"), "--word dog: the text has no such word. It has “<eos>”, “the”"),
    (("--text", TEXT, "--steps", "--word", "²"), "--word ²: the text has no such word"),
    (("--text", TEXT, "--steps", "--word", "99"), "--word 99: the text has 5 words there; give 1 to 5."),
    (("--text", TEXT, "--word", "dog"), "The word 'dog' is not in the text"),
    (("--text", TEXT, "--target", "x"), "--target is what a translator is made to write"),
    (("--text", TEXT, "--to", "<2de>"), "--to says what a translator writes"),
    (("--text", TEXT, "--picture", "x.png"), "looks at no picture"),
    (("--text", TEXT, "--view", "alignment"), "There is nothing to show (transformer, alignment: it attends to no"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_looked_at_is_said_in_a_sentence(
    regard: Command, transformer_run: Path, tmp_path: Path, words: tuple[object, ...], said: str
) -> None:
    done = regard("look", transformer_run, *words, "--out", tmp_path / "look")
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert not (tmp_path / "look").exists()


def test_the_end_of_a_long_text_can_be_looked_at(regard: Command, transformer_run: Path, tmp_path: Path) -> None:
    done = regard("look", transformer_run, "--text", "x" * 40 + TEXT, "--last", 15, "--out", tmp_path / "look")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]
    assert found["text"] == "x" + TEXT


def test_an_ngram_has_no_attention_and_a_folder_may_be_no_run(regard: Command, ngram_run: Path, tmp_path: Path) -> None:
    done = regard("look", ngram_run, "--text", TEXT, "--view", "attention", "--out", tmp_path / "look")
    assert "its tokens do not attend to one another" in " ".join(done.err.split())
    assert regard("look", tmp_path, "--text", TEXT).err.startswith("regard: ")
    assert "There is no run folder" in regard("next", tmp_path / "none", "the").err
    assert "put the text that is gone on behind all runs" in regard("next", ngram_run, ngram_run).err
    assert "Give one run or several, then the text" in regard("next", ngram_run).err
    assert "--by is words or tokens, not 'letters'" in regard("next", ngram_run, "the", "--by", "letters").err


def test_a_word_that_is_a_number_is_found_by_its_text(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    words = ("--view", "influence", "--word", "99", "--out", tmp_path / "look")
    done = regard("look", lstm_run, "--text", "the cat 99 sat", *words)
    assert done.code == 0, done.err


def test_the_help_of_look_names_every_view(regard: Command) -> None:
    said = " ".join(regard("look", "--help").out.replace("│", " ").split())
    assert f"Views: {', '.join(VIEWS)}." in said


def test_the_end_of_a_text_has_at_least_one_token(lstm_run: Path) -> None:
    with pytest.raises(RegardError, match="last=0: give how many tokens of the end to look at, from 1 on"):
        package.look(lstm_run, TEXT, last=0)


def test_hostile_text_is_never_markup(regard: Command, lstm_run: Path, tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    done = regard("look", lstm_run, "--text", hostile, "--out", tmp_path / "look")
    assert done.code == 0, done.err
    page = (tmp_path / "look" / "index.html").read_text()
    assert "<script>alert" not in page
    assert "<img" not in page


def test_a_look_shows_itself_in_a_notebook(lstm_run: Path) -> None:
    found = package.look(lstm_run, TEXT, views=["surprise"])
    assert list(found.views) == ["surprise"]
    assert found._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert repr(found) == f"<Look into {lstm_run.name}: surprise>"


def test_a_text_too_long_for_the_name_of_a_file_is_still_a_text(regard: Command, lstm_run: Path) -> None:
    done = regard("next", lstm_run, "the cat " * 40 + "c" * 300, "--top-k", 2)
    assert done.code == 0, done.err


def test_views_of_a_look_are_found_whichever_model_has_them(lstm_run: Path, transformer_run: Path) -> None:
    look = package.look([lstm_run, transformer_run], TEXT, views=["surprise", "attention"])
    assert look.views["attention"] is look.panels[1].views[1]
    assert look.views["surprise"] is look.panels[0].views[0]


def test_the_steps_of_a_word_can_be_asked_for_as_a_view(regard: Command, transformer_run: Path, tmp_path: Path) -> None:
    done = regard("look", transformer_run, "--text", TEXT, "--view", "steps", "--word", 3, "--out", tmp_path / "steps")
    assert done.code == 0, done.err
    views = json.loads((tmp_path / "steps" / "look.json").read_text())["panels"][0]["views"]
    assert list(views) == ["steps"]


def test_a_study_without_seeds_says_so(regard: Command, tmp_path: Path) -> None:
    done = regard("study", "by-hand", "--seeds", 1, "--out", tmp_path / "study")
    assert done.code == 2
    assert "the study 'by-hand' has no seeds to repeat it over" in " ".join(done.err.split())


def test_a_folder_that_is_no_run_is_called_so(regard: Command, tmp_path: Path) -> None:
    done = regard("look", tmp_path, "--text", TEXT)
    assert done.code == 2
    assert "is not a run folder" in " ".join(done.err.split())
