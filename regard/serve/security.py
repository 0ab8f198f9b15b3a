"""Who may ask, and how much: what is checked of every request before anything reads it.

- **Host**: a page of another site can make a browser ask 127.0.0.1 under that site's name (DNS rebinding), so a server
  on loopback answers to loopback's names alone.
- **Origin**: a page of another site can send a POST and not read the answer; it is refused all the same.
- **Token**: a server that others can reach answers to those alone who know its token, compared in constant time.
- **Size**: a body that is too large is refused before it is read to its end.
- **Time**: a body that does not come within seconds is not waited for.
- **Number**: requests beyond so many at once are refused before they are read.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.exceptions import HTTPException

from regard.serve.questions import MAX_BODY

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = re.compile(r"[A-Za-z0-9_.~-]{1,200}")
"""What a token is made of: what stands in an address and in a cookie as it is."""
RETRY_AFTER = "1"
"""Seconds after which a client that found no room may try again."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What a server asks of requests."""

    is_loopback: bool = True
    """Whether the server can be reached from this machine alone."""
    token: str | None = None
    """What requests must know; None: nothing."""
    cookie: str = "regard_token"
    """What keeps the token in a browser; servers on other ports of one machine need other names."""
    hosts: frozenset[str] = frozenset()
    """Other names that the server answers to; on loopback beside loopback's own."""
    ancestors: str = "'self'"
    """Pages that may show this one in a frame, in the words of Content-Security-Policy."""
    max_body: int = MAX_BODY
    max_read_seconds: float = 30.0
    """How long a client may take to send a body."""
    max_requests: int = 2_000
    """Requests that are answered at the same time, whatever they ask; more are told to come again."""

    def policy(self, nonce: str = "") -> str:
        """The Content-Security-Policy of a page whose import map has this nonce.

        Styles may stand at elements, since scripts of ours set colours there; none of them holds a user's text.
        """
        scripts = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
        return (
            f"default-src 'none'; script-src {scripts}; style-src 'self'; style-src-attr 'unsafe-inline'; "
            f"img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
            f"frame-ancestors {self.ancestors}"
        )


def is_loopback(host: str) -> bool:
    """Whether an address to bind to is reached from this machine alone.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.1.5")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class GuardedApp:
    """An application behind a Guard."""

    def __init__(self, app: App, guard: Guard) -> None:
        self.app, self.guard = app, guard
        self.n_requests = 0
        """How many are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)  # the server's own beginning and end
            return
        send = self._add_headers(send)
        if self.n_requests >= self.guard.max_requests:
            said = f"{self.guard.max_requests:,} requests are being answered, as many as may. Ask again in a second."
            await _send_error(send, 503, said)
            return
        self.n_requests += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self.n_requests -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check where a request comes from and how large it is, and hand it on."""
        headers = _read_headers(scope)
        refused = self._refuse(scope, headers)
        if refused is not None:
            await _send_error(send, *refused)
            return
        if self.guard.token is not None and not self._knows_token(headers):
            await self._ask_for_token(scope, headers, send)
            return
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > self.guard.max_body:
            await _send_error(send, 413, f"A request holds at most {self.guard.max_body:,} bytes. Send less.")
            return
        await self.app(scope, self._count(receive), send)

    def _refuse(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """What is wrong with where a request comes from or goes to; None: nothing."""
        host = _host_name(headers.get("host", ""))
        if self.guard.is_loopback and host not in LOOPBACK | self.guard.hosts:
            return 421, "This server answers to localhost and 127.0.0.1 alone, and was asked under another name."
        if self.guard.hosts and host not in LOOPBACK | self.guard.hosts:
            return 421, "This server was asked under a name that it was not started with (--allow-host)."
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        origin = headers.get("origin")
        if origin is not None and urlsplit_netloc(origin) != headers.get("host", "").lower():
            return 403, "A page of another site may not ask this server."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "A page of another site may not ask this server."
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return 415, "Send JSON: Content-Type must be application/json."
        return None

    def _knows_token(self, headers: dict[str, str]) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not given:
            try:
                found = SimpleCookie(headers.get("cookie", "")).get(self.guard.cookie)
            except CookieError:
                found = None
            given = "" if found is None else found.value
        return self._is_token(given)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8"), (self.guard.token or "").encode("utf-8"))

    async def _ask_for_token(self, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Take a token out of the address into a cookie, or refuse."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token", "")
        if scope["method"] != "GET" or not self._is_token(given):
            text = "This server asks for its token: open the address that it printed, or send Authorization: Bearer."
            await _send_error(send, 401, text)
            return
        left = urlencode([(name, value) for name, value in query if name != "token"])
        # Only the path: what comes after it must not make an address of another site.
        place = "/" + scope.get("path", "/").lstrip("/\\") + (f"?{left}" if left else "")
        cookie = f"{self.guard.cookie}={self.guard.token}; HttpOnly; SameSite=Strict; Path=/"
        found = [(b"location", place.encode("ascii", "ignore")), (b"set-cookie", cookie.encode("ascii"))]
        await send({"type": "http.response.start", "status": 303, "headers": [*found, (b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def _count(self, receive: Receive) -> Receive:
        """Count what is read of a body that does not say how long it is, and how long that takes."""
        n_bytes, is_whole, end = 0, False, asyncio.get_running_loop().time() + self.guard.max_read_seconds

        async def receive_counted() -> Message:
            nonlocal n_bytes, is_whole
            if is_whole:  # what comes now says that the client went away
                return await receive()
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                said = f"The request did not come within {self.guard.max_read_seconds:g} seconds. Send it faster."
                raise HTTPException(408, said, {"Connection": "close"}) from None
            is_whole = not message.get("more_body", False)
            n_bytes += len(message.get("body", b""))
            if n_bytes > self.guard.max_body:
                raise HTTPException(413, f"A request holds at most {self.guard.max_body:,} bytes. Send less.")
            return message

        return receive_counted

    def _add_headers(self, send: Send) -> Send:
        policy = self.guard.policy().encode("ascii")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", policy))
                headers += [
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                    (b"cross-origin-resource-policy", b"same-origin"),
                ]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        return send_with_headers


def urlsplit_netloc(origin: str) -> str:
    """The host and port of an Origin; empty where it is none, such as null."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _read_headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _host_name(host: str) -> str:
    """The name in a Host header, without its port.

    >>> _host_name("localhost:8000"), _host_name("[::1]:80"), _host_name("EVIL.example")
    ('localhost', '::1', 'evil.example')
    """
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


async def _send_error(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 413:
        headers.append((b"connection", b"close"))
    if status == 503:
        headers.append((b"retry-after", RETRY_AFTER.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
