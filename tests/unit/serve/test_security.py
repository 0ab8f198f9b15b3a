"""Who may ask a server, and how much."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from regard.serve.security import Guard, GuardedApp

JSON = {"content-type": "application/json"}


def client(guard: Guard, base: str = "http://127.0.0.1:8642") -> TestClient:
    app = FastAPI()

    @app.get("/")
    async def page() -> dict[str, str]:
        return {"said": "page"}

    @app.post("/ask")
    async def ask(request: Request) -> dict[str, Any]:
        return {"n": len(await request.body())}

    return TestClient(GuardedApp(app, guard), base_url=base, follow_redirects=False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.1:8642", "[::1]:80", "LOCALHOST:1"])
def test_a_server_on_loopback_answers_to_its_names(host: str) -> None:
    assert client(Guard()).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::2]"])
def test_a_server_on_loopback_answers_to_no_other_name(host: str) -> None:
    answer = client(Guard()).get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "localhost and 127.0.0.1 alone" in answer.json()["error"]


def test_another_name_can_be_allowed() -> None:
    guard = Guard(hosts=frozenset({"proxy.example"}))
    assert client(guard).get("/", headers={"host": "proxy.example"}).status_code == 200
    assert client(guard).get("/", headers={"host": "other.example"}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:8642.evil"])
def test_pages_of_other_sites_cannot_ask(origin: str) -> None:
    answer = client(Guard()).post("/ask", content="{}", headers=JSON | {"origin": origin})
    assert answer.status_code == 403


def test_the_page_itself_and_programs_can_ask() -> None:
    own = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}
    assert client(Guard()).post("/ask", content="{}", headers=JSON | own).json() == {"n": 2}
    assert client(Guard()).post("/ask", content="{}", headers=JSON).status_code == 200
    assert (
        client(Guard()).post("/ask", content="{}", headers=JSON | {"sec-fetch-site": "cross-site"}).status_code == 403
    )


def test_a_form_of_another_site_is_no_json() -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = client(Guard()).post("/ask", content="{}", headers={"content-type": kind})
        assert answer.status_code == 415
        assert "application/json" in answer.json()["error"]


def test_a_large_body_is_refused_whether_or_not_it_says_so() -> None:
    small = client(Guard(max_body=10))
    assert small.post("/ask", content="x" * 10, headers=JSON).json() == {"n": 10}
    assert small.post("/ask", content="x" * 11, headers=JSON).status_code == 413
    assert small.post("/ask", content=(b"xxxx" for _ in range(4)), headers=JSON).status_code == 413
    assert small.post("/ask", content="x", headers=JSON | {"content-length": "-5"}).status_code == 413


def test_beyond_loopback_a_token_is_asked_for() -> None:
    guarded = client(Guard(is_loopback=False, token="secret"), "http://machine.example")
    assert guarded.get("/").status_code == 401
    assert guarded.get("/?token=wrong").status_code == 401
    assert guarded.post("/ask?token=secret", content="{}", headers=JSON).status_code == 401
    assert guarded.get("/", headers={"authorization": "Bearer secret"}).status_code == 200
    assert guarded.get("/", headers={"authorization": "Bearer secre"}).status_code == 401
    assert guarded.get("/", headers={"authorization": "Bearer \u00fc".encode()}).status_code == 401


def test_the_token_moves_from_the_address_into_a_cookie() -> None:
    guarded = client(Guard(is_loopback=False, token="secret"), "http://machine.example")
    answer = guarded.get("/?token=secret&a=b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?a=b"
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    assert guarded.get("/", headers={"cookie": "regard_token=secret"}).status_code == 200
    assert guarded.get("/", headers={"cookie": "regard_token=other"}).status_code == 401


def test_a_token_leads_to_no_other_site() -> None:
    guarded = client(Guard(is_loopback=False, token="secret"), "http://machine.example")
    for path in ("//evil.example/", "/\\evil.example", "///evil.example"):
        place = guarded.get(f"{path}?token=secret").headers.get("location", "/")
        assert place.startswith("/")
        assert not place.startswith(("//", "/\\"))


def test_every_answer_says_what_a_browser_may_do_with_it() -> None:
    for answer in (client(Guard()).get("/"), client(Guard()).get("/", headers={"host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'self'" in policy
        assert "unsafe-eval" not in policy
        assert "script-src 'self';" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    app, sent = FastAPI(), []

    @app.post("/ask")
    async def ask(request: Request) -> dict[str, Any]:
        return {"n": len(await request.body())}

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/ask", "query_string": b"", "headers": headers}
    asyncio.run(GuardedApp(app, Guard(max_read_seconds=0.01))(scope, never, send))
    assert sent[0]["status"] == 408


def test_requests_beyond_the_limit_are_told_when_to_come_again() -> None:
    answer = client(Guard(max_requests=0)).get("/")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "Ask again in a second" in answer.json()["error"]
    few = client(Guard(max_requests=1))
    assert [few.get("/").status_code for _ in range(3)] == [200] * 3
