"""Captions as a user makes them: train, evaluate, caption, draw; and what can be wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_captions import THINGS, said, write_pictures
from tiny_training import stop_at

import regard as package
from regard import api
from regard.cli.terminal import MAX_ROWS
from regard.data.pictures import list_pictures
from regard.decode.caption import Caption, measure_attention
from regard.errors import InterruptedRunError, RegardError
from regard.lens.view import unpack
from regard.models.efficientnet_lite import EfficientNetLite0
from regard.tasks import captions as caption_task
from regard.tasks import gradient
from regard.tasks.caption_run import CaptionRun
from regard.training.loop import train_by_gradient

MODEL = {"name": "captioner", "d_model": 16, "n_halvings": 3, "d_first": 8, "p_dropout": 0.1}


def recipe(pictures: Path, captions: Path, **model: Any) -> dict[str, Any]:
    return {
        "data": {"pictures": str(pictures), "captions": str(captions), "size": 32, "p_valid": 0.2, "p_test": 0.2},
        "tokenizer": {"kind": "word", "vocab_size": None},
        "model": MODEL | model,
        "train": {"max_steps": 4, "n_batch": 4, "eval_every": 2},
        "checkpoint": {"has_tensorboard": False},
    }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_pictures(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module")
def run(pictures: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> CaptionRun:
    trained: CaptionRun = api.train(recipe(*pictures), out=tmp_path_factory.mktemp("runs") / "captions")
    return trained


def test_a_run_is_trained_and_captions_in_processes_of_their_own(
    regard_process: Callable[..., Any], pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["train", "--model", "captioner", "--data", pictures[0], "--data", pictures[1], "--out", tmp_path / "run"]
    given = ["model.d_model=16", "model.n_halvings=3", "model.d_first=8", "data.size=32", "data.p_test=0.2",
             "tokenizer.kind=word", "tokenizer.vocab_size=null", "train.max_steps=3", "data.p_valid=0.2"]  # fmt: skip
    done = regard_process(*words, *(word for one in given for word in ("--set", one)))
    assert done.code == 0, done.err
    assert "BLEU-4" in done.out
    assert f"regard caption {tmp_path / 'run'} {pictures[0]}/" in done.out
    assert "pictures for training" in done.out
    few = ("--max-length", 4)  # it learned nothing and would go on, and every word has its panels
    shown = regard_process("caption", tmp_path / "run", pictures[0], "--draw", tmp_path / "looked", *few)
    assert shown.code == 0, shown.err
    assert shown.err.startswith("Where each word looked: ")
    assert len(shown.err.splitlines()) == 1
    lines = [line.split("\t") for line in shown.out.splitlines()]
    assert [Path(name) for name, _ in lines] == sorted(pictures[0].iterdir())
    panels = [panel.name for panel in sorted((tmp_path / "looked").glob("*.png"))]
    assert panels[0] == "0001-blue-bottom-left.png"
    assert panels[-1] == "sheet.png"
    assert len(panels) == 13
    page = (tmp_path / "looked" / "index.html").read_text()
    assert page.count("<section") == 12
    for _, text in lines:
        assert f"<h2>{text or '(nothing)'}</h2>" in page


def test_help_has_an_example_and_the_table_says_what_can_be_set(regard: Callable[..., Any]) -> None:
    assert "regard caption runs/flickr8k photo.jpg" in regard("caption", "--help").out
    told = " ".join(re.sub("[│\n]", " ", regard("train", "--help").out).split())
    assert "Leave out what cannot be used, and count it" in told
    manual = regard("models", "captioner").out
    for key in ("encoder", "is_frozen", "captions", "smoothing", "n_batch", "min_count"):
        assert key in manual
    assert "captioner" in regard("models").out


def test_the_dry_run_shows_captions(regard: Callable[..., Any], pictures: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["train", "--model", "captioner", "--data", pictures[0], "--data", pictures[1], "--dry-run"]
    done = regard(*words, "--set", "tokenizer.kind=word", "--set", "data.size=32", "--set", "train.n_batch=16")
    assert done.code == 0, done.err
    batch = done.out.partition("The first batch, decoded\n")[2].splitlines()
    captions = {text for thing in THINGS for text in said(*thing)}
    assert [line[5:] in captions for line in batch[:MAX_ROWS]] == [True] * MAX_ROWS
    assert batch[MAX_ROWS].split() == ["and", "4", "more"]
    assert "parameters" in done.out


def test_eval_prints_loss_and_four_bleus(regard: Callable[..., Any], run: CaptionRun) -> None:
    table = regard("eval", run.folder)
    assert table.code == 0, table.err
    for part in ("nats a token", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "nrefs:2"):
        assert part in table.out
    found = json.loads(regard("eval", run.folder, "--split", "valid", "--json").out)
    assert found["n_captions"] == 2 * found["n_pictures"] > 0
    assert len(found["bleu"]["up_to"]) == 4
    told: list[tuple[str, int, int | None]] = []
    assert run.evaluate(split="valid", progress=lambda *how_far: told.append(how_far)).to_dict() == found
    n = found["n_pictures"]
    assert (told[0], told[-1]) == (("writing captions", 0, n), ("writing captions", n, n))
    test = run.test_result()
    assert test is not None
    assert run.evaluate().nats == pytest.approx(test["nats"])


def test_other_pictures_are_evaluated(regard: Callable[..., Any], run: CaptionRun, pictures: tuple[Path, Path]) -> None:
    found = json.loads(regard("eval", run.folder, "--data", pictures[0], "--data", pictures[1], "--json").out)
    assert (found["n_pictures"], found["n_captions"]) == (12, 24)
    with pytest.raises(RegardError, match="Other pictures are two names, a folder and a file of captions"):
        run.evaluate([str(pictures[0])])


def test_eval_leaves_out_pictures_that_cannot_be_used_where_it_is_told_to(
    regard: Callable[..., Any], run: CaptionRun, pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    captions = tmp_path / "some.txt"
    captions.write_text("".join(pictures[1].read_text().splitlines(keepends=True)[:6]) + "gone.png#0\ta thing\n")
    words = ("eval", run.folder, "--data", pictures[0], "--data", captions)
    done = regard(*words)
    assert done.code == 2
    assert "has no caption in" in done.err
    assert "leave such out: --skip-bad" in done.err
    done = regard(*words, "--skip-bad")
    assert done.code == 0, done.err
    assert "10 left out (caption without its picture: 1, picture without captions: 9)." in done.out
    found = json.loads(regard(*words, "--skip-bad", "--json").out)
    assert (found["n_pictures"], found["n_captions"]) == (3, 6)
    assert found["skipped"] == {"picture without captions": 9, "caption without its picture": 1}
    assert run.evaluate([str(pictures[0]), str(captions)], skips_bad=True).to_dict() == found


def test_one_picture_gives_one_line_and_json_has_scores(
    regard: Callable[..., Any], run: CaptionRun, pictures: tuple[Path, Path]
) -> None:
    picture = pictures[0] / "red-top-left.png"
    text = package.load(run.folder).caption(picture)
    assert regard("caption", run.folder, picture).out == f"{text}\n"
    lines = regard("caption", run.folder, f"{pictures[0]}/red-*.png", "--n-best", 2, "--json").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert [Path(line["picture"]).name[:4] for line in found] == ["red-"] * 8
    best: list[Caption] = run.caption(picture, n_best=2)
    told = [line for line in found if line["picture"] == str(picture)]
    assert [(line["text"], line["log_prob"]) for line in told] == [(c.text, pytest.approx(c.log_prob)) for c in best]
    assert run.caption([picture, str(picture)]) == [text, text]


def test_a_photograph_of_any_shape_is_cut_as_in_training(run: CaptionRun, tmp_path: Path) -> None:
    wide = np.zeros((40, 100, 3), dtype=np.uint8)
    wide[:, 30:70] = (0, 0, 255)  # the middle square
    Image.fromarray(wide).save(tmp_path / "wide.png")
    seen = run.square(tmp_path / "wide.png")
    assert seen.shape == (32, 32, 3)
    assert (seen[:, 2:-2] == (0, 0, 255)).all()  # but for what the edges take from beside them


def test_a_card_says_how_to_use_it(run: CaptionRun) -> None:
    card = (run.folder / "README.md").read_text()
    assert card.startswith("# captions: says what is in a picture")
    assert "| BLEU-1 | BLEU-2 | BLEU-3 | BLEU-4 |" in card
    example = next(iter(re.findall(r'run\.caption\("(.*)"\)', card)))
    assert run.caption(example)  # a picture that is there
    assert f"regard caption {run.folder} {example}" in card
    assert repr(run).startswith("<CaptionRun ")


def test_a_stopped_run_goes_on_to_the_same_weights(
    run: CaptionRun, pictures: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(gradient, "train_by_gradient", partial(train_by_gradient, on_step=stop_at(3)))
        with pytest.raises(InterruptedRunError, match="--resume --out"):
            api.train(recipe(*pictures), out=tmp_path / "run")
    again = api.train(out=tmp_path / "run", resume=True)
    assert (again.folder / "model.safetensors").read_bytes() == (run.folder / "model.safetensors").read_bytes()
    assert again.test_result() == run.test_result()


def test_changed_captions_are_not_resumed(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    captions = tmp_path / "captions.txt"
    captions.write_text(pictures[1].read_text())
    api.train(recipe(pictures[0], captions), out=tmp_path / "run", is_tested=False)
    captions.write_text(captions.read_text().replace("a red square", "a red thing"))
    with pytest.raises(RegardError, match=r"captions.txt are not those that '.*run' was begun with"):
        api.train(out=tmp_path / "run", resume=True)


def test_what_is_wrong_is_said_in_one_sentence(
    regard: Callable[..., Any], run: CaptionRun, lstm_run: Path, pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "no.jpg").write_text("this is no picture")
    picture = pictures[0] / "red-top-left.png"
    for words, message in (
        (
            ("caption", run.folder, tmp_path / "no.jpg"),
            "no.jpg' cannot be used: it is no picture of these formats: JPEG, PNG, GIF, BMP, WEBP, TIFF",
        ),
        (("caption", run.folder, tmp_path / "gone.jpg"), "There is no picture"),
        (("caption", run.folder, pictures[0] / "red-top-lefd.png"), f"Did you mean '{pictures[0]}/red-top-left.png'?"),
        (
            ("caption", lstm_run, picture),
            "is a run of lstm that predicts the next token of a text, and one that describes",
        ),
        (
            ("translate", run.folder, pictures[1]),
            "is a run of captioner that describes pictures, and one that translates is needed here. Use this one with: "
            "regard caption",
        ),
        (("generate", run.folder), "a run of captioner that describes pictures, and one that predicts the next token"),
        (("train", "--model", "captioner", "--data", pictures[0]), "are two names, their folder and the file"),
    ):
        done = regard(*words)
        assert done.code == 2, words
        assert message in done.err
        assert len(done.err.strip().splitlines()) == 1
    done = regard("caption", run.folder, tmp_path / "no.jpg", picture, "--skip-bad")
    assert done.code == 0
    assert "no.jpg' cannot be used" in done.err
    assert done.err.endswith("regard: left out: 1 of 2 pictures.\n")
    assert len(done.out.splitlines()) == 1


def test_a_bad_picture_loses_none_that_come_before_it(
    regard: Callable[..., Any], run: CaptionRun, pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    for i, picture in enumerate(sorted(pictures[0].iterdir())[:3]):
        (tmp_path / f"{i}.png").write_bytes(picture.read_bytes())
    (tmp_path / "1b.png").write_text("this is no picture")
    done = regard("caption", run.folder, tmp_path, "--draw", tmp_path / "looked")
    assert done.code == 2
    assert [Path(line.split("\t")[0]).name for line in done.out.splitlines()] == ["0.png", "1.png"]
    assert "1b.png' cannot be used" in done.err
    assert "WEBP, TIFF. To leave out such and go on: --skip-bad" in done.err
    drawn = [path.name for path in sorted((tmp_path / "looked").iterdir())]
    assert drawn == ["0001-0.png", "0002-1.png", "index.html"]  # the page says whose folder it is from the start
    done = regard("caption", run.folder, tmp_path, "--skip-bad")
    assert "WEBP, TIFF.\n" in done.err
    assert [Path(line.split("\t")[0]).name for line in done.out.splitlines() if "looked" not in line] == [
        "0.png", "1.png", "2.png",
    ]  # fmt: skip


def test_what_looks_at_nothing_cannot_be_drawn(
    regard: Callable[..., Any], pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    blind = api.train(recipe(*pictures, attention="none"), out=tmp_path / "run", is_tested=False)
    picture = pictures[0] / "red-top-left.png"
    assert regard("caption", blind.folder, picture).code == 0
    done = regard("caption", blind.folder, picture, "--draw", tmp_path / "looked")
    assert done.code == 2
    assert "has no attention to draw: it was trained with attention none" in done.err
    with pytest.raises(RegardError, match="has no attention to draw"):
        blind.attend(blind.square(picture), Caption("", (), 0.0, 0.0))


def test_a_word_of_several_pieces_has_one_panel_and_its_name(
    regard: Callable[..., Any], pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    given = recipe(*pictures) | {"tokenizer": {"kind": "bpe", "vocab_size": 262}}
    pieces = api.train(given, out=tmp_path / "run", is_tested=False)
    picture, said = pictures[0] / "red-top-left.png", "a red square top left"
    looked = pieces.attend(picture, said)
    assert looked.words == ("a", "red", "square", "top", "left")
    ids = pieces.tokenizer.encode(said).tolist()
    texts = [pieces.tokenizer.token_text(token) for token in ids]
    assert texts[:5] == ["a", " ", "re", "d", " "]  # a space alone is no piece of a word
    square = pieces.square(picture)
    rows = measure_attention(pieces.model, pieces.tokenizer, torch.from_numpy(square[None]).permute(0, 3, 1, 2), ids)
    starts = [i for i, text in enumerate(texts) if text.startswith(" ")]
    parts = np.split(np.arange(len(ids)), starts)
    expected = [rows[[i for i in part if texts[i] != " "]].mean(axis=0) for part in parts]
    np.testing.assert_allclose(looked.weights.reshape(5, -1), expected, rtol=0, atol=1e-12)
    done = regard("caption", pieces.folder, picture, "--draw", tmp_path / "looked", "--max-length", 12)
    page = (tmp_path / "looked" / "index.html").read_text()
    assert re.findall("<span class=word>(.*?)</span>", page) == [escape(word) for word in done.out.split()]


def test_a_picture_and_a_caption_can_be_given_by_name(run: CaptionRun, pictures: tuple[Path, Path]) -> None:
    picture, said = pictures[0] / "red-top-left.png", "a red square top left"
    looked = run.attend(str(picture), f" {said} ")
    assert looked.words == tuple(said.split())
    assert looked.weights.shape == (5, 4, 4)
    caption = Caption(said, tuple(run.tokenizer.encode(said).tolist()), 0.0, 0.0)
    np.testing.assert_array_equal(run.attend(run.square(picture), caption).weights, looked.weights)
    assert run.attend(picture, "").words == ("(nothing)",)


def test_the_example_of_the_docs_runs(
    run: CaptionRun, pictures: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "captions.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "run.attend(" in example
    picture = pictures[0] / "red-top-left.png"
    exec(example.replace("runs/mine", str(run.folder)).replace("dog.jpg", str(picture)), {})
    assert len(capsys.readouterr().out.splitlines()) == 3  # a line a word


def test_a_trace_has_a_row_for_every_token_of_the_caption(run: CaptionRun, pictures: tuple[Path, Path]) -> None:
    picture = sorted(pictures[0].iterdir())[0]
    best = next(run.predict([picture]))[0]
    trace = run.trace(picture)
    assert len(trace.tokens) == len(best.tokens) + 1
    n = len(best.tokens) + (len(best.tokens) < 50)  # one that was cut off has no end
    assert trace.nats[:n].sum() == pytest.approx(-best.log_prob, abs=1e-4)
    assert len(run.trace(picture, "a dog").nats) == len(run.trace(picture, "a dog").tokens)
    with pytest.raises(RegardError, match="Give one picture or a list of them, each a str, not 3"):
        run.caption(3)  # type: ignore[arg-type]


def test_a_caption_longer_than_the_model_writes_is_refused(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    short = api.train(
        recipe(*pictures, decoder="transformer", max_context=4, n_heads=2), out=tmp_path / "run", is_tested=False
    )
    picture = pictures[0] / "red-top-left.png"
    assert len(short.attend(picture, "a red square top").words) == 4
    with pytest.raises(RegardError, match=r"The caption has 5 tokens; at most 4 fit into the model\. Shorten it"):
        short.attend(picture, "a red square top left")


def test_folders_and_globs_name_pictures_in_order(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    assert list(list_pictures([str(pictures[0])])) == sorted(pictures[0].iterdir())
    assert len(list(list_pictures([f"{pictures[0]}/*-left.png", f"{pictures[0]}/red-top-left.png"]))) == 7
    (tmp_path / "tt").mkdir()
    (tmp_path / "t").mkdir()
    with pytest.raises(RegardError, match=r"The folder '.*/t' holds no picture\. Pictures end in \.jpg"):
        list(list_pictures([str(tmp_path / "t")]))


def test_a_frozen_encoder_starts_from_published_weights_and_carries_them(
    pictures: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[EfficientNetLite0] = []
    monkeypatch.setattr(caption_task, "find_published", lambda: None)
    monkeypatch.setattr(caption_task, "load_published", loaded.append)
    given = recipe(*pictures, encoder="efficientnet-lite0")
    given["data"]["size"] = 64
    trained = api.train(given, out=tmp_path / "run")
    assert len(loaded) == 1
    saved = trained.model.encoder.network.state_dict()
    assert all(bool((value == saved[name]).all()) for name, value in loaded[0].state_dict().items())
    api.train(out=tmp_path / "run", resume=True)
    assert len(loaded) == 1  # a run that goes on has them already
    assert isinstance(package.load(tmp_path / "run").caption(pictures[0] / "red-top-left.png"), str)


def test_a_caption_is_looked_at_on_its_picture(
    regard: Callable[..., Any], run: CaptionRun, pictures: tuple[Path, Path], tmp_path: Path
) -> None:
    picture = sorted(pictures[0].iterdir())[0]
    given = ("--picture", picture, "--target", "a blue square", "--out", tmp_path / "look")
    done = regard("look", run.folder, *given)
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "look" / "look.json").read_text())["panels"][0]
    data = found["views"]["picture"]["data"]
    assert data["words"] == ["a", "blue", "square"]
    assert unpack(data["weights"]) == pytest.approx(run.attend(picture, "a blue square").weights, abs=1 / 255)
    assert data["picture"].startswith("data:image/jpeg;base64,")
    assert (tmp_path / "look" / "picture.png").exists()
    assert "give one with --picture" in regard("look", run.folder, "--text", "a").err
