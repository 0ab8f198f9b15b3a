"""Results as pandas tables, where pandas is installed."""

from __future__ import annotations

from typing import Any

from regard.errors import RegardError


def import_pandas() -> Any:
    """The module pandas, which only `to_frame` needs."""
    try:
        import pandas
    except ImportError:
        raise RegardError("to_frame needs pandas, which is not installed: pip install pandas") from None
    return pandas
