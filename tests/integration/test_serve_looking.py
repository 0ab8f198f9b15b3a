"""`regard serve` as programs see it: traces, views, examples and pictures."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tiny_served import RECIPES, train_all

import regard

pytest.importorskip("fastapi", reason="needs the extra serve")
from starlette.testclient import TestClient

from regard.lens.view import Packed, View
from regard.serve.app import make_app
from regard.serve.heads import KeptHeads
from regard.serve.security import GuardedApp
from regard.serve.served import ServedRuns
from regard.serve.service import Service

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def made() -> Iterator[tuple[GuardedApp, Service]]:
    app, service = make_app(ServedRuns.open(list(train_all().values())))
    yield app, service
    service.close()


@pytest.fixture(scope="module")
def client(made: tuple[GuardedApp, Service]) -> TestClient:
    return TestClient(made[0], base_url="http://127.0.0.1", raise_server_exceptions=False)


def ask(client: TestClient, run: str, verb: str, **body: Any) -> Any:
    answer = client.post(f"/api/runs/{run}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def unpack(body: bytes) -> tuple[Any, bytes]:
    n = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + n]), body[4 + n :]


def look(client: TestClient, **asked: Any) -> Any:
    answer = client.post("/api/look", json=asked)
    assert answer.status_code == 200, answer.text
    return unpack(answer.content)[0]["panels"]


def give_example(client: TestClient, run: str, seed: int = 0) -> dict[str, Any]:
    """An example as /api/look takes it."""
    found = ask(client, run, "example", seed=seed)
    if found["second"] is not None:
        return {"text": f"{found['text']}\t{found['second']}"}
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "vectors"])
def test_every_view_that_is_offered_shows_something_of_an_example(client: TestClient, name: str) -> None:
    listed = client.get("/api/runs").json()
    views = next(run["views"] for run in listed["runs"] if run["name"] == name)
    quick = [view for view in views if view not in listed["slow_views"]] or ["influence"]
    panel = look(client, runs=[name], views=quick, **give_example(client, name))[0]
    assert list(panel["views"]) == quick
    assert panel["missing"] == {}


def test_a_run_has_one_name_and_one_colour_wherever_it_is_shown(client: TestClient) -> None:
    listed = {run["name"]: run["colour"] for run in client.get("/api/runs").json()["runs"]}
    for name in ("lstm", "tagger", "classifier"):  # all of them are LSTMs
        views = ["surprise"] if name == "lstm" else ["influence"]
        panel = look(client, runs=[name], views=views, **give_example(client, name))[0]
        assert (panel["name"], panel["colour"]) == (name, listed[name])


def test_examples_differ_and_can_be_asked_about(client: TestClient) -> None:
    assert len({ask(client, "lstm", "example", seed=seed)["text"] for seed in range(6)}) > 1
    assert "[MASK]" in ask(client, "bert", "example")["text"]
    assert ask(client, "bert", "fill", text=ask(client, "bert", "example")["text"])["places"]
    assert ask(client, "vectors", "nearest", text=ask(client, "vectors", "example")["text"])["words"]
    pair = ask(client, "answerer", "example")
    assert "answer" in ask(client, "answerer", "predict", text=pair["text"], second=pair["second"])


def test_a_picture_is_captioned_and_looked_at(client: TestClient) -> None:
    picture = ask(client, "captioner", "example")["picture"]
    assert base64.b64decode(picture).startswith(b"\xff\xd8")  # a JPEG
    best = ask(client, "captioner", "caption", picture=picture, n_best=2)["captions"]
    assert len(best) == 2
    panel = look(client, runs=["captioner"], picture=picture, target="a red square", views=["picture"])[0]
    assert panel["views"]["picture"]["data"]["words"] == ["a", "red", "square"]
    traced, _ = unpack(client.post("/api/runs/captioner/trace", json={"picture": picture}).content)
    assert any(name.endswith("cross_attention") for name in traced["shapes"])


@pytest.mark.parametrize(
    ("picture", "said"),
    [("no base64!", "The picture is not base64"), ("bm8gcGljdHVyZQ==", "The picture cannot be used: it is no picture")],
)
def test_what_is_no_picture_is_told_without_where_it_lay(client: TestClient, picture: str, said: str) -> None:
    for path, body in (
        ("runs/captioner/caption", {}), ("runs/captioner/trace", {}), ("look", {"runs": ["captioner"]}),
    ):  # fmt: skip
        answer = client.post(f"/api/{path}", json={"picture": picture, **body})
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(said)
        assert "regard-picture" not in answer.text


def test_a_picture_for_a_run_that_reads_texts_is_refused(client: TestClient) -> None:
    answer = client.post("/api/runs/lstm/trace", json={"text": TEXT, "picture": "AAAA"})
    assert answer.status_code == 400
    assert "looks at no picture" in answer.json()["error"]


def test_a_view_is_drawn_as_a_file(client: TestClient) -> None:
    asked = {"runs": ["transformer"], "text": TEXT, "views": ["attention"]}
    for kind, begin in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        answer = client.post("/api/draw", json=asked | {"kind": kind})
        assert answer.headers["content-type"].startswith("image/")
        assert answer.content.startswith(begin)
    assert client.post("/api/draw", json=asked | {"views": ["steps"]}).status_code == 400
    assert client.post("/api/draw", json=asked | {"views": ["surprise", "attention"]}).status_code == 422


def test_a_trace_comes_as_bytes(client: TestClient) -> None:
    names, _ = unpack(client.post("/api/runs/transformer/trace", json={"text": TEXT}).content)
    assert names["arrays"] == {}
    asked = {"text": TEXT, "taps": ["layers.0.attention"], "kind": "float32"}
    value, rest = unpack(client.post("/api/runs/transformer/trace", json=asked).content)
    packed = value["arrays"]["layers.0.attention"]
    weights = np.frombuffer(rest[packed["at"] : packed["at"] + packed["n"]], "<f4").reshape(packed["shape"])
    assert weights.shape == tuple(names["shapes"]["layers.0.attention"])
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)


def test_views_of_two_runs_come_together(client: TestClient) -> None:
    answer = client.post(
        "/api/look", json={"runs": ["lstm", "transformer"], "text": TEXT, "views": ["surprise", "attention"]}
    )
    value, _ = unpack(answer.content)
    first, second = value["panels"]
    assert list(first["views"]) == ["surprise"]
    assert "attention" in first["missing"]
    assert list(second["views"]) == ["surprise", "attention"]


def test_every_head_can_be_had_though_few_are_sent(made: tuple[GuardedApp, Service], client: TestClient) -> None:
    text = TEXT  # short enough for the tiny model
    value, _ = unpack(
        client.post("/api/look", json={"runs": ["transformer"], "text": text, "views": ["attention"]}).content
    )
    assert value["panels"][0]["views"]["attention"]["data"]["stacks"][0]["rest"] == {}
    weights = regard.load(train_all()["transformer"], "cpu").trace(text).taps["layers.1.attention"][1]
    for is_kept in (True, False):  # kept since the look, and computed anew
        if not is_kept:
            made[1].heads._drop(("transformer", text, None, None, None))
        header, rest = unpack(
            client.post("/api/runs/transformer/head", json={"text": text, "layer": 2, "head": 2}).content
        )
        found = np.frombuffer(rest[: header["n"]], np.uint8).reshape(header["shape"]) / 255 * header["high"]
        np.testing.assert_allclose(found, weights, rtol=0, atol=1 / 510 + 1e-6)
    for asked in ({"layer": 3, "head": 1}, {"layer": 1, "head": 3}, {"layer": 1, "head": 1, "stack": 2}):
        assert client.post("/api/runs/transformer/head", json={"text": text, **asked}).status_code == 400


def test_kept_heads_are_bounded() -> None:
    heads = KeptHeads(max_bytes=200)
    stack = {"full": {"0,0": Packed(np.eye(8))}, "rest": {"0,1": Packed(np.eye(8))}}
    view = View(name="attention", title="", note="", data={"stacks": [stack]})
    for text in "abc":
        assert heads.keep(text, view).data["stacks"][0]["rest"] == {}
    assert heads.n_bytes == 128
    assert heads.find("a", 1, 1, 2) is None
    assert heads.find("c", 1, 1, 2) is not None


def test_a_word_is_compared_in_several_texts(client: TestClient) -> None:
    texts = ["the cat sat on the mat", "a dog left the cat"]
    asked = {"runs": ["transformer"], "texts": texts, "word": "cat", "views": ["vectors"]}
    value, _ = unpack(client.post("/api/look", json=asked).content)
    assert [one["text"] for one in value["panels"][0]["views"]["vectors"]["data"]["occurrences"]] == texts
    answer = client.post("/api/look", json=asked | {"texts": []})
    assert answer.status_code == 400
    assert "There is no text to look at" in answer.json()["error"]


def test_a_slow_view_does_not_hold_up_others(made: tuple[GuardedApp, Service], client: TestClient) -> None:
    started, let_go = threading.Event(), threading.Event()

    def be_slow(_: Any) -> list[int]:
        started.set()
        let_go.wait()
        return [1]

    future = made[1].slow_worker.ask("slow", None, be_slow)
    started.wait()
    assert ask(client, "lstm", "score", text=TEXT)["bits"] > 0
    assert not future.done()
    let_go.set()
    assert future.result() == 1


def test_views_that_compute_a_text_again_for_each_word_want_a_short_one(client: TestClient) -> None:
    answer = client.post("/api/look", json={"runs": ["lstm"], "text": "the " * 200, "views": ["influence"]})
    assert answer.status_code == 400
    assert "at most 400 characters here, not 800" in answer.json()["error"]


def test_what_weights_were_kept_is_told_before_they_are_asked_for(client: TestClient) -> None:
    found = client.get("/api/runs").json()
    views = {run["name"]: run["views"] for run in found["runs"]}
    assert "over-time" not in views["lstm"]
    assert views["ngram"] == ["next", "surprise"]
    assert set(views["classifier"]) == {"influence", "cells", "vectors"}
    assert "layers" in set(views["lstm"]) - set(views["ngram"])
    assert set(found["slow_views"]) == {"layers", "influence", "faithfulness", "cells", "vectors", "over-time"}
    answer = client.post("/api/look", json={"runs": ["lstm"], "text": TEXT, "views": ["over-time"]})
    assert answer.status_code == 400
    assert "kept no weights on its way" in answer.json()["error"]
