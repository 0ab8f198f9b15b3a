"""`regard serve` as programs see it: every verb, wrong and hostile requests, many clients at once."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration.conftest import Finished
from tiny_served import train_all

import regard
from regard.errors import RegardError

pytest.importorskip("fastapi", reason="needs the extra serve")
import httpx2 as httpx
from starlette.testclient import TestClient

from regard.serve.app import Service, make_app
from regard.serve.security import GuardedApp
from regard.serve.served import ServedRuns
from regard.serve.server import RunServer, ServeOptions, bind
from regard.serve.worker import Limits

TEXT = "the cat sat on the mat"
ROOT = str(Path(regard.__file__).parents[1])


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


def test_runs_are_listed_with_what_they_can_do(client: TestClient) -> None:
    found = {run["name"]: run for run in client.get("/api/runs").json()["runs"]}
    assert list(found) == list(train_all())
    assert found["lstm"]["verbs"] == ["score", "next", "embed", "generate", "passage", "trace", "example"]
    assert "embed" not in found["ngram"]["verbs"]
    assert found["answerer"]["n_texts"] == 2
    assert found["vectors"]["verbs"] == ["nearest", "example"]
    assert str(train_all()["lstm"].parent) not in client.get("/api/runs").text


def test_score_is_what_the_run_says(client: TestClient) -> None:
    run = regard.load(train_all()["lstm"], "cpu")
    found = ask(client, "lstm", "score", text=TEXT)
    expected = run.score(TEXT)
    assert found["bits_per_byte"] == pytest.approx(expected.bits_per_byte, rel=1e-6)
    assert "".join(found["tokens"]) == TEXT
    assert len(found["token_bits"]) == len(expected.tokens)


def test_texts_that_are_scored_together_cost_what_they_cost_alone() -> None:
    texts = [TEXT, "", "a", "the old man left. " * 20]
    for name in ("lstm", "transformer", "ngram"):
        run: Any = regard.load(train_all()[name], "cpu")
        if name != "ngram":
            run.model.double()
        for text, together in zip(texts, run.scores(texts), strict=True):
            np.testing.assert_allclose(together.nats, run.score(text).nats, rtol=0, atol=1e-10)


def test_each_verb_answers_as_the_run_does(client: TestClient) -> None:
    runs = {name: regard.load(folder, "cpu") for name, folder in train_all().items()}
    following = ask(client, "lstm", "next", text="the ca", top_k=3)["tokens"]
    assert [(one["text"], pytest.approx(one["probability"], rel=1e-5)) for one in following] == runs[
        "lstm"
    ].predict_next("the ca", 3)
    best = ask(client, "translator", "translate", text="the dog sleeps .", n_best=2, beam=2)
    assert best["translations"][0]["text"] == runs["translator"].translate("the dog sleeps .", beam=2)
    assert len(best["translations"]) == 2
    assert np.sum(best["weights"], axis=1) == pytest.approx([1.0] * len(best["target_words"]), abs=1e-2)
    tree = ask(client, "parser", "parse", text="the dog sleeps .")
    assert re.findall(r"([^\s()]+)\)", tree["brackets"]) == ["the", "dog", "sleeps", "."]
    several = ask(client, "parser", "parse", text="the dog sleeps .", n_best=3)["trees"]
    assert len({one["brackets"] for one in several}) == 3
    assert [one["log_prob"] for one in several] == sorted((one["log_prob"] for one in several), reverse=True)
    assert ask(client, "parser", "parse", text=" ") == {"tree": None, "brackets": "", "log_prob": 0.0, "trees": []}
    tags = ask(client, "tagger", "predict", text="Anna lives in Berlin .")
    assert tags["tags"] == list(next(runs["tagger"].predict(["Anna lives in Berlin ."])).tags)
    assert ask(client, "classifier", "predict", text="a good film")["kind"] == "classification"
    span = ask(client, "answerer", "predict", text="who sleeps ?", second="the dog sleeps .")
    assert {"answer", "start", "end", "probability"} < set(span)
    filled = ask(client, "bert", "fill", text="the [MASK] sat", top_k=4)
    assert [len(place) for place in filled["places"]] == [4]
    assert len(ask(client, "transformer", "embed", text=TEXT)["vector"]) == 16
    assert len(ask(client, "vectors", "nearest", text="cat", top_k=3)["words"]) == 3


def test_generation_is_the_same_whole_and_streamed(client: TestClient) -> None:
    asked = {"text": "the cat", "max_tokens": 6, "seed": 3, "alternatives": 2, "temperature": 1.0}
    whole = ask(client, "lstm", "generate", **asked)
    assert whole["text"] == regard.load(train_all()["lstm"], "cpu").generate(
        "the cat", max_tokens=6, seed=3, temperature=1.0
    )
    assert [len(one["alternatives"]) for one in whole["tokens"]] == [2] * 6
    assert all(one["alternatives"][0]["probability"] >= one["probability"] - 1e-9 for one in whole["tokens"])
    streamed = client.post("/api/runs/lstm/generate", json=asked | {"stream": True})
    assert streamed.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line) for line in streamed.text.splitlines()] == whole["tokens"]


def test_greedy_text_takes_the_first_alternative(client: TestClient) -> None:
    found = ask(client, "transformer", "generate", text="the", max_tokens=4, temperature=0.0, alternatives=1)
    assert all(one["alternatives"][0]["text"] == one["token"] for one in found["tokens"])


def test_a_passage_is_of_the_test_text_and_begins_after_a_word(client: TestClient) -> None:
    found = ask(client, "lstm", "passage", seed=2, n_before=40, n=30)
    assert len(found["before"]) == 40
    assert found["text"].startswith(" ")
    assert found["before"][-1].isalnum()
    assert found == ask(client, "lstm", "passage", seed=2, n_before=40, n=30)


HOSTILE = [
    "<script>alert(1)</script> '; DROP TABLE runs; --",
    "../../../etc/passwd %s{}%n",
    "\x00\x01\u2028\ufeff\U0001f600",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_gets_an_answer_or_a_sentence(client: TestClient, text: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "generate": {"text": text, "max_tokens": 2}, "caption": {"picture": text}, "passage": {}, "example": {},
    }  # fmt: skip
    for run in client.get("/api/runs").json()["runs"]:
        for verb in run["verbs"]:
            body = bodies.get(verb, {"text": text})
            if run["n_texts"] == 2 and verb == "predict":
                body["second"] = text
            answer = client.post(f"/api/runs/{run['name']}/{verb}", json=body)
            assert answer.status_code in (200, 400), (run["name"], verb, answer.text)


BAD = [
    (b"{", 400, "not JSON"),
    (b"\xff\xff", 400, "could not be read"),
    (b"[" * 50_000, 400, ""),
    (b"[]", 422, ""),
    (b"null", 422, ""),
    (b"{}", 422, "text: Field required"),
    (b'{"text": 5}', 422, "text: Input should be a valid string"),
    (b'{"text": "a", "top_k": "5"}', 422, "top_k: Input should be a valid integer"),
    (b'{"text": "a", "top_k": 0}', 422, "greater than or equal to 1"),
    (b'{"text": "a", "top_k": 1e400}', 422, ""),
    (b'{"text": "a", "top_k": NaN}', 422, ""),
    (b'{"text": "a", "nn": 5}', 422, "nn: Extra inputs are not permitted"),
    (b'{"text": "\\ud800"}', 422, "unable to parse raw data as a unicode string"),
    (json.dumps({"text": "a" * 20_001}).encode(), 422, "at most 20000 characters"),
    (json.dumps({"text": "a" * 1_100_000}).encode(), 413, "at most 1,000,000 bytes"),
    (b'{"text": "a", "top_k": ' + b"9" * 5_000 + b"}", 400, ""),
]


@pytest.mark.parametrize(("body", "status", "said"), BAD, ids=range(len(BAD)))
def test_a_malformed_request_gets_a_sentence(client: TestClient, body: bytes, status: int, said: str) -> None:
    answer = client.post("/api/runs/lstm/next", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("name", ["nobody", "../lstm", "..%2F..%2Fetc", "%2e%2e", "/etc/passwd", "lstm%00"])
def test_only_given_runs_can_be_asked(client: TestClient, name: str) -> None:
    answer = client.post(f"/api/runs/{name}/next", json={"text": "a"})
    assert answer.status_code == 404
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    "path", ["../server.py", "..%2fserver.py", "views/../../api.py", "%2e%2e/app.py", "/etc/passwd", "app.py", ""]
)
def test_only_files_of_the_page_are_served(client: TestClient, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_what_a_run_cannot_do_is_said_without_its_folder(client: TestClient) -> None:
    answer = client.post("/api/runs/lstm/translate", json={"text": "a"})
    assert answer.status_code == 400
    assert (
        "'lstm' is a run that predicts the next token of a text, and cannot be asked to translate"
        in answer.json()["error"]
    )
    answer = client.post("/api/runs/lstm/score", json={"text": "a", "target": "b"})
    assert answer.json()["error"].startswith("'lstm' is a language model")
    answer = client.post("/api/look", json={"runs": ["lstm"], "text": "a", "views": ["attenton"]})
    assert "Did you mean 'attention'?" in answer.json()["error"]


def test_the_page_names_only_itself(client: TestClient) -> None:
    page = client.get("/")
    nonce = re.search(r'nonce="([^"]+)"', page.text)
    assert nonce is not None
    assert f"'nonce-{nonce[1]}'" in page.headers["content-security-policy"]
    assert nonce[1] not in client.get("/").text
    assert "http" not in page.text.replace("http-equiv", "")
    for place in re.findall(r'(?:src|href)="(/[^"]+)"', page.text):
        answer = client.get(place)
        assert answer.status_code == 200
        assert client.get(place, headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_the_api_documents_every_status_it_gives(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    assert {
        f"/api/runs/{{run}}/{verb}"
        for verb in ("generate", "score", "next", "translate", "parse", "predict", "embed", "fill", "trace")
    } <= set(paths)
    for path, methods in paths.items():
        for how in methods.values():
            assert {"200"} < set(how["responses"]), path
    assert {"429", "503", "408", "413", "422"} < set(paths["/api/runs/{run}/score"]["post"]["responses"])


def test_the_api_documents_which_runs_and_views_there_are(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    known = {
        path: how["parameters"][0]["schema"]["enum"]
        for path, methods in document["paths"].items()
        for how in methods.values()
        if "{run}" in path
    }
    assert known["/api/runs/{run}/fill"] == ["bert"]
    assert known["/api/runs/{run}/generate"] == ["lstm", "transformer", "ngram"]
    assert "vectors" not in known["/api/runs/{run}/head"]
    for question in ("LookQuestion", "DrawQuestion"):
        assert "attention" in json.dumps(document["components"]["schemas"][question]["properties"]["views"])


def test_too_many_requests_are_told_when_to_come_back() -> None:
    app, service = make_app(ServedRuns.open([train_all()["lstm"]]), limits=Limits(n_waiting=0, n_waiting_to_write=0))
    with TestClient(app, base_url="http://127.0.0.1") as small:
        for verb, body in (("score", {"text": "a"}), ("generate", {"text": "a"}), ("generate", {"stream": True})):
            answer = small.post(f"/api/runs/lstm/{verb}", json=body)
            assert answer.status_code == 429
            assert answer.headers["retry-after"] == "1"
            assert "Ask again" in answer.json()["error"]
    service.close()
    with TestClient(app, base_url="http://127.0.0.1") as closed:
        assert closed.post("/api/runs/lstm/score", json={"text": "a"}).status_code == 503


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer([train_all()["lstm"], train_all()["transformer"]], ServeOptions(port=0)) as found:
        yield found


def test_fifty_clients_at_once_get_what_one_gets(server: RunServer) -> None:
    run = regard.load(train_all()["lstm"], "cpu")

    async def be_client(number: int, client: httpx.AsyncClient) -> None:
        text = f"client {number} " + "sat on the mat " * (number % 4)
        score, vector, written = await asyncio.gather(
            client.post("/api/runs/lstm/score", json={"text": text}),
            client.post("/api/runs/transformer/embed", json={"text": text}),
            client.post(
                "/api/runs/lstm/generate",
                json={"text": text, "max_tokens": 3, "seed": number, "stream": True, "temperature": 1.0},
            ),
        )
        assert [answer.status_code for answer in (score, vector, written)] == [200] * 3
        assert score.json()["bits"] == pytest.approx(run.score(text).total / np.log(2), rel=1e-5)
        text_written = "".join(json.loads(line)["text"] for line in written.text.splitlines())
        assert text + text_written == run.generate(text, max_tokens=3, seed=number)

    async def be_all() -> None:
        limits = httpx.Limits(max_connections=150)
        async with httpx.AsyncClient(base_url=server.address, limits=limits, timeout=60, trust_env=False) as client:
            await asyncio.gather(*(be_client(number, client) for number in range(50)))

    before = server.service.worker.count()
    asyncio.run(be_all())
    after = server.service.worker.count()
    assert after["answered"] - before["answered"] == 150
    assert after["batches"] - before["batches"] < 100  # of 100 questions some were answered together
    assert after["waiting"] == after["writing"] == 0


def test_a_client_that_goes_away_stops_its_text(server: RunServer) -> None:
    worker = server.service.worker
    before = worker.count()["stopped"]
    with httpx.Client(base_url=server.address, timeout=60, trust_env=False) as client:
        asked = {"text": "the", "max_tokens": 2_000, "stream": True}
        with client.stream("POST", "/api/runs/lstm/generate", json=asked) as answer:
            next(answer.iter_lines())
    finished = threading.Event()
    for _ in range(400):
        if worker.count()["stopped"] > before and not worker.count()["writing"]:
            break
        finished.wait(0.025)
    assert worker.count()["stopped"] > before
    assert worker.count()["writing"] == 0


def test_who_waits_when_a_server_ends_is_told_so() -> None:
    started, let_go, answers = threading.Event(), threading.Event(), []

    def be_slow(_: Any) -> list[int]:
        started.set()
        let_go.wait()
        return [1]

    with RunServer([train_all()["ngram"]], ServeOptions(port=0)) as ending:
        ending.service.worker.ask("slow", None, be_slow)
        started.wait()
        path = f"{ending.address}api/runs/ngram/score"
        client = threading.Thread(target=lambda: answers.append(httpx.post(path, json={"text": "a"}, trust_env=False)))
        client.start()
        while not ending.service.worker.count()["waiting"]:
            started.wait(0.01)
        ending._server.should_exit = True  # what Ctrl-C does
        client.join(timeout=20)
        let_go.set()
    assert answers[0].status_code == 503
    assert "going down" in answers[0].json()["error"]


def test_a_port_that_is_taken_is_named_and_another_chosen_where_none_was_asked_for(server: RunServer) -> None:
    with pytest.raises(RegardError, match=f"Cannot listen on 127.0.0.1, port {server.port}.*Give another --port"):
        bind("127.0.0.1", server.port)
    with bind("127.0.0.1", None) as first, bind("127.0.0.1", None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


@pytest.mark.slow
def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "regard",
        "serve",
        str(train_all()["ngram"]),
        "--no-browser",
        "--port",
        "0",
        "--token",
        "abc",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
                          env=os.environ | {"PYTHONPATH": ROOT}) as process:  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        assert address.endswith("/?token=abc")
        base = address.partition("?")[0]
        assert httpx.get(f"{base}api/runs", trust_env=False).status_code == 401
        answer = httpx.get(f"{base}api/runs", headers={"authorization": "Bearer abc"}, trust_env=False)
        assert [run["name"] for run in answer.json()["runs"]] == ["ngram"]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "Traceback" not in said


def test_a_folder_that_is_no_run_is_named(regard: Callable[..., Finished], tmp_path: Path) -> None:
    done = regard("serve", tmp_path / "nothing", "--no-browser")
    assert done.code == 2
    assert "nothing" in done.err


def test_without_the_extra_the_page_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("regard.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(RegardError, match=r"not installed. Install them: pip install 'regard\[serve\]'"):
        importlib.import_module("regard.serve.server")
