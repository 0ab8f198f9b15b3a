"""The local page and its JSON API. It needs the extra `serve`: fastapi and uvicorn."""

from regard.errors import RegardError

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError:
    raise RegardError(
        "The page is served by fastapi and uvicorn, which are not installed. Install them: pip install 'regard[serve]'"
    ) from None
