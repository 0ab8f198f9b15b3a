"""The JSON API and the page as one ASGI application."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from regard import __version__
from regard.errors import RegardError
from regard.lens.look import VIEWS, check_views
from regard.lens.view import to_plain
from regard.serve import answers, questions
from regard.serve.examples import choose_example, choose_passage
from regard.serve.looking import draw_view, find_head, key_of, look_inside, trace_run
from regard.serve.packing import MEDIA_TYPE
from regard.serve.page import add_page
from regard.serve.security import RETRY_AFTER, Guard, GuardedApp
from regard.serve.served import ServedRuns, UnknownRunError
from regard.serve.service import GoneError, Service, follow
from regard.serve.verbs import VERBS, Verb
from regard.serve.worker import BusyError, Limits, TooLateError

LINES = "application/x-ndjson"

ANSWERS: dict[str, type] = {
    "score": answers.ScoreAnswer, "next": answers.NextAnswer, "translate": answers.TranslateAnswer,
    "parse": answers.ParseAnswer, "predict": answers.PredictAnswer, "fill": answers.FillAnswer,
    "embed": answers.EmbedAnswer, "nearest": answers.NearestAnswer, "caption": answers.CaptionAnswer,
}  # fmt: skip

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.ErrorAnswer, "description": "What was asked cannot be answered; the sentence says why."},
    401: {"model": answers.ErrorAnswer, "description": "The server asks for its token."},
    403: {"model": answers.ErrorAnswer, "description": "A page of another site asked."},
    404: {"model": answers.ErrorAnswer, "description": "There is no such run or address."},
    408: {"model": answers.ErrorAnswer, "description": "The request did not come within 30 seconds."},
    413: {"model": answers.ErrorAnswer, "description": "The request is too large."},
    415: {"model": answers.ErrorAnswer, "description": "The request is not JSON."},
    421: {"model": answers.ErrorAnswer, "description": "The server was asked under a name that is not its own."},
    422: {"model": answers.ErrorAnswer, "description": "A field is missing, unknown, too long or of the wrong type."},
    429: {"model": answers.ErrorAnswer, "description": "Too many requests are waiting; Retry-After says when to ask."},
    503: {
        "model": answers.ErrorAnswer,
        "description": "The request waited too long, too many are being answered, or the server is going down.",
    },
}

ARRAYS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "4 bytes (little-endian) with the length of the JSON that follows, then arrays as bytes.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}

PICTURE_TYPES = {"svg": "image/svg+xml", "png": "image/png"}
PICTURES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in PICTURE_TYPES.values()},
    }
}

NAME = Path(description="The name of a run, as /api/runs has it.", max_length=200)


def make_app(
    runs: ServedRuns, *, guard: Guard | None = None, limits: Limits | None = None
) -> tuple[GuardedApp, Service]:
    """The application that serves runs, and what it computes with, which is closed when the server ends."""
    guard, service = guard or Guard(), Service(runs, limits)
    app = FastAPI(
        title="Regard", version=__version__, description="What trained runs say of a text, and why.",
        docs_url=None, redoc_url=None, openapi_url="/api/openapi.json", redirect_slashes=False,
    )  # fmt: skip
    add_errors(app, service)
    add_routes(app, service)
    add_page(app, guard)
    _name_runs(app, runs)  # the last: a route that is added later makes fastapi write the document anew
    return GuardedApp(app, guard), service


def add_routes(app: FastAPI, service: Service) -> None:
    """The addresses of the API."""

    @app.get("/api/runs", response_model=answers.RunsAnswer, responses=_errors(401, 421), summary="Runs and views.")
    async def list_runs() -> Response:
        return _write_json(service.runs.describe())

    @app.get("/api/counts", response_model=answers.CountsAnswer, responses=_errors(401, 421), summary="What waits.")
    async def count() -> Response:
        return _write_json(service.count())

    for name, verb in VERBS.items():
        _add_verb(app, service, name, verb)

    @app.post(
        "/api/runs/{run}/generate", response_model=answers.GenerateAnswer,
        responses=ERRORS | {200: {"content": {LINES: {"schema": {"type": "string"}}}}},
        summary="Continue a text; with `stream`, one token a line as they are written.",
    )  # fmt: skip
    async def generate(request: Request, question: questions.GenerateQuestion, run: str = NAME) -> Response:
        return await _generate(service, request, service.find(run, "generate"), question)

    _add_looking(app, service)
    _add_test_data(app, service)


def _add_test_data(app: FastAPI, service: Service) -> None:
    """The addresses of what runs were tested on."""

    @app.post(
        "/api/runs/{run}/example", response_model=answers.ExampleAnswer, responses=ERRORS,
        summary="An example of what a run was tested on.",
    )  # fmt: skip
    async def example(request: Request, question: questions.ExampleQuestion, run: str = NAME) -> Response:
        found = service.find(run, "example")
        # Beside all else: the data may have to be read from many files.
        chosen = await service.compute(request, lambda: choose_example(found, question.seed), is_slow=True)
        return _write_json(chosen)

    @app.post(
        "/api/runs/{run}/passage", response_model=answers.PassageAnswer, responses=ERRORS,
        summary="A passage of the text that a run was tested on, for the guessing game.",
    )  # fmt: skip
    async def passage(request: Request, question: questions.PassageQuestion, run: str = NAME) -> Response:
        found = service.find(run, "passage")
        return _write_json(await service.compute(request, lambda: choose_passage(found, **question.model_dump())))


def _add_looking(app: FastAPI, service: Service) -> None:
    """The addresses of what a model computed, and of the views of it."""

    @app.post(
        "/api/runs/{run}/trace", responses=ERRORS | ARRAYS, response_class=Response, summary="What a model computed."
    )
    async def trace(request: Request, question: questions.TraceQuestion, run: str = NAME) -> Response:
        found = service.find(run, "trace")
        body = await service.compute(request, lambda: trace_run(found, question.model_dump()), question.size())
        return Response(body, media_type=MEDIA_TYPE)

    @app.post("/api/look", responses=ERRORS | ARRAYS, response_class=Response, summary="The views of regard look.")
    async def look(request: Request, question: questions.LookQuestion) -> Response:
        found = {name: service.find(name, "trace") for name in question.runs}
        names = check_views(question.views)
        is_slow = any(VIEWS[name].is_slow for name in names)

        def work() -> bytes:
            asked = question.model_dump()
            return look_inside(found, question.all_texts(), asked, service.heads, service.runs.colours)

        return Response(
            await service.compute(request, work, question.size(), is_slow=is_slow), media_type=MEDIA_TYPE
        )  # fmt: skip

    @app.post(
        "/api/runs/{run}/head", responses=ERRORS | ARRAYS, response_class=Response,
        summary="The attention weights of one head that a look did not send.",
    )  # fmt: skip
    async def head(request: Request, question: questions.HeadQuestion, run: str = NAME) -> Response:
        found, asked = service.find(run, "trace"), question.model_dump()
        body = service.heads.find(key_of(run, asked), question.stack, question.layer, question.head)
        if body is None:
            work = lambda: find_head(run, found, asked, service.heads)  # noqa: E731
            body = await service.compute(request, work, question.size())
        return Response(body, media_type=MEDIA_TYPE)

    @app.post(
        "/api/draw", responses=ERRORS | PICTURES, response_class=Response,
        summary="One view of one run as a picture file for print.",
    )  # fmt: skip
    async def draw(request: Request, question: questions.DrawQuestion) -> Response:
        name, kind = question.runs[0], question.kind
        found, asked = service.find(name, "trace"), question.model_dump()
        check_views(question.views)

        def work() -> bytes:
            return draw_view(name, found, question.all_texts(), asked, service.runs.colours[name])

        body = await service.compute(request, work, question.size(), is_slow=True)
        return Response(body, media_type=PICTURE_TYPES[kind])


def _name_runs(app: FastAPI, runs: ServedRuns) -> None:
    """Let the OpenAPI document say which runs each address knows, and which views there are: nobody need guess."""

    def list_runs(verb: str) -> list[str]:
        return [name for name, known in runs.verbs.items() if verb in known] or list(runs.runs)

    document = app.openapi()
    for path, methods in document["paths"].items():
        verb = path.rpartition("/")[2]
        for how in methods.values():
            for parameter in how.get("parameters", ()):
                if parameter["name"] == "run":
                    parameter["schema"]["enum"] = list_runs("trace" if verb == "head" else verb)
    for question in ("LookQuestion", "DrawQuestion"):
        fields = document["components"]["schemas"][question]["properties"]
        fields["runs"]["items"]["enum"] = list_runs("trace")
        for views in fields["views"].get("anyOf", [fields["views"]]):
            if views["type"] == "array":
                views["items"]["enum"] = list(VIEWS)


def _add_verb(app: FastAPI, service: Service, name: str, verb: Verb) -> None:
    async def answer(question: Any, run: str = NAME) -> Response:
        return _write_json(await service.ask(run, name, question))

    answer.__annotations__["question"] = verb.question
    app.post(
        f"/api/runs/{{run}}/{name}", response_model=ANSWERS[name], responses=ERRORS, summary=verb.summary, name=name
    )(answer)


async def _generate(service: Service, request: Request, run: Any, question: questions.GenerateQuestion) -> Response:
    options = question.model_dump(exclude={"text", "stream"})
    steps = follow(request, service.worker, lambda: run.stream_tokens(question.text, **options))
    first = [_describe_token(step) async for step in _take(steps, 1)]  # what is wrong is told before any text is sent
    if question.stream:

        async def lines() -> AsyncIterator[bytes]:
            try:
                for step in first:
                    yield _dump(step) + b"\n"
                async for step in steps:
                    yield _dump(_describe_token(step)) + b"\n"
            except GoneError:
                return  # nobody reads what would come
            except (RegardError, TooLateError) as error:
                yield _dump({"error": name_fields(service.runs.hide_folders(str(error)))}) + b"\n"
            finally:
                await steps.aclose()  # type: ignore[attr-defined]

        return StreamingResponse(lines(), media_type=LINES)
    written = first + [_describe_token(step) async for step in steps]
    return _write_json({"text": question.text + "".join(step["text"] for step in written), "tokens": written})


async def _take(steps: AsyncIterator[Any], n: int) -> AsyncIterator[Any]:
    for _ in range(n):
        try:
            yield await anext(steps)
        except StopAsyncIteration:
            return


def _describe_token(written: Any) -> dict[str, Any]:
    others = [{"text": text, "probability": chance} for text, chance in written.alternatives]
    return {
        "text": written.text, "token": written.token, "probability": written.probability, "alternatives": others,
    }  # fmt: skip


def add_errors(app: FastAPI, service: Service) -> None:
    """Every error is a sentence in JSON with a status that is documented; none shows where it came from in the code."""

    def tell(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
        body = _dump({"error": name_fields(service.runs.hide_folders(text))})
        return Response(body, status, headers, media_type="application/json")

    def handle(kind: type[Exception]) -> Callable[[Callable[[Any], Response]], None]:
        def add(answer: Callable[[Any], Response]) -> None:
            async def handler(request: Request, error: Exception) -> Response:
                return answer(error)

            app.add_exception_handler(kind, handler)

        return add

    handle(UnknownRunError)(lambda error: tell(404, str(error)))
    handle(RegardError)(lambda error: tell(400, str(error)))
    handle(BusyError)(lambda error: tell(429, f"{error} Ask again in a second.", {"Retry-After": RETRY_AFTER}))
    handle(TooLateError)(lambda error: tell(503, f"{error} Ask again in a second.", {"Retry-After": RETRY_AFTER}))
    handle(GoneError)(lambda error: Response(status_code=499))
    handle(RequestValidationError)(lambda error: tell(422 if not _is_broken(error) else 400, _explain(error)))
    handle(HTTPException)(lambda error: tell(error.status_code, _explain_status(error), error.headers))

    # After this answer the error is raised again, so that the server's terminal has all of it.
    handle(Exception)(lambda error: tell(500, "Something went wrong inside the server; its terminal says what."))


FIELDS = {"text": "text", "word": "word", "target": "target", "layer": "layer", "head": "head", "picture": "picture",
          "view": "views", "to": "tag", "beam": "beam", "n-best": "n_best"}  # fmt: skip
"""What the API calls some options of the command line."""


def name_fields(text: str) -> str:
    """An error's text with the API's fields in place of the command line's options.

    >>> name_fields("--layer 9: the model has 2 layers. Leave out --view to see what there is.")
    'layer 9: the model has 2 layers. Leave out views to see what there is.'
    """
    return re.sub(rf"--({'|'.join(FIELDS)})(?![\w-])", lambda found: FIELDS[found[1]], text)


def _is_broken(error: RequestValidationError) -> bool:
    return any(found["type"] == "json_invalid" for found in error.errors())


def _explain(error: RequestValidationError) -> str:
    """What is wrong with a request's fields, without what was given: it may be long."""
    said = []
    for found in error.errors()[:3]:
        if found["type"] == "json_invalid":
            return f"The request is not JSON: {found['ctx']['error']}."
        name = ".".join(str(part) for part in found["loc"][1:])[:80] or "the request"
        said.append(f"{name}: {found['msg'].removeprefix('Value error, ')[:200]}")
    return "; ".join(said) + "."


def _explain_status(error: HTTPException) -> str:
    known = {
        404: "There is no such address; /api/openapi.json lists all.",
        405: "This address is not asked that way; /api/openapi.json says how.",
        400: "The request could not be read as JSON.",
    }
    return known.get(error.status_code, str(error.detail))


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: ERRORS[status] for status in statuses}


def _write_json(value: Any) -> Response:
    return Response(_dump(value), media_type="application/json")


def _dump(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    except ValueError:  # a number that JSON has no word for becomes null
        return json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
