"""Settings of the small models that a study makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.models.table import model_config


def small(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings `wanted` that the model called `name` has; refused where they do not fit together.

    What stays null when all is written out follows from the rest, such as the width of an RNN's state.
    """
    default = model_config(name).filled().to_dict()
    chosen = {key: value for key, value in wanted.items() if default.get(key) is not None}
    model_config(name, chosen)
    return chosen
