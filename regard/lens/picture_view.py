"""Where in its picture a captioner looked for each word."""

from __future__ import annotations

import base64
import io

from PIL import Image

from regard.lens.picture_attention import PictureAttention
from regard.lens.subject import Subject
from regard.lens.view import LookOptions, Packed, View
from regard.models.captioner import Captioner


def view_picture(subject: Subject, options: LookOptions) -> View | None:
    """The picture, and each word's weights over its places; None for what looks at no picture, or looks nowhere."""
    if not isinstance(subject.run.model, Captioner) or not subject.trace.named("cross_attention"):
        return None
    shown: PictureAttention = subject.run.attend(subject.picture, subject.target)
    best = max(range(len(shown.words)), key=lambda i: shown.strongest[i])
    return View(
        name="picture",
        title="Where each word looked",
        note="The picture is bright where the model looked when it wrote the chosen word. Even attention would give "
        f"every place {shown.even:.1%}.",
        summary=f"“{' '.join(shown.words)}”: “{shown.words[best]}” looked most sharply, with "
        f"{shown.strongest[best]:.0%} on one place.",
        data={
            "picture": _encode(shown), "words": list(shown.words), "weights": Packed(shown.weights),
            "size": list(shown.picture.shape[:2]), "first": best,
        },
        table=(
            ("word", "largest share on one place"),
            [(word, f"{share:.1%}") for word, share in zip(shown.words, shown.strongest, strict=True)],
        ),
    )  # fmt: skip


def _encode(shown: PictureAttention) -> str:
    file = io.BytesIO()
    Image.fromarray(shown.picture).save(file, "JPEG", quality=90)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
