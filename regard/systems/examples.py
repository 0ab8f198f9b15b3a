"""A few of the test sentences, or pictures, with what every system made of them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np

from regard.systems.material import Material
from regard.systems.result import Example

N_EXAMPLES = 10
SIDE = 176  # pixels of a picture in the page


def examples_of(material: Material, chosen: Sequence[int], outputs: Sequence[Sequence[str]]) -> tuple[Example, ...]:
    """Evenly over the test data, of those that not all systems answer alike, as long as there are some."""
    differ = [k for k in range(len(chosen)) if len({lines[k] for lines in outputs}) > 1] or list(range(len(chosen)))
    places = np.linspace(0, len(differ) - 1, min(N_EXAMPLES, len(differ))).round().astype(int)
    return tuple(_example(material, chosen, outputs, differ[place]) for place in dict.fromkeys(places.tolist()))


def _example(material: Material, chosen: Sequence[int], outputs: Sequence[Sequence[str]], k: int) -> Example:
    i = chosen[k]
    return Example(
        number=i + 1,
        source=material.sources[i],
        references=material.references[i],
        outputs=tuple(lines[k] for lines in outputs),
        picture=None if material.captions is None else _picture(material, i),
    )


def _picture(material: Material, i: int) -> str:
    """As the model sees it, small enough to be a part of the page."""
    from PIL import Image

    assert material.captions is not None
    prepared, pictures = material.captions
    image = Image.fromarray(prepared.data.centre([pictures.numbers[i]])[0])
    image.thumbnail((SIDE, SIDE))
    held = io.BytesIO()
    image.save(held, "JPEG", quality=85)
    return "data:image/jpeg;base64," + base64.b64encode(held.getvalue()).decode()
