"""Captions on one page that loads nothing: each picture as every word of its caption saw it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.errors import RegardError
from regard.lens.picture_attention import PictureAttention, Weights
from regard.report.caption_panels import cover, encode_image, write_panels
from regard.report.caption_sheet import write_sheet
from regard.report.page_folder import CAPTIONS, MADE, begin_page, finish_page
from regard.report.shell import fold, report_page, section, text_of

PAGE_SIDE = 224  # pixels: what covers a picture in the page is at least so wide, or the line would be coarse


class CaptionDrawing:
    """One PNG a picture as it comes, and at the end a page for all of them and a sheet for the first ten."""

    def __init__(self, folder: Path, force: bool = False) -> None:
        """`force` writes into a folder that holds files of others."""
        self.folder, self.examples, self.files = folder, list[PictureAttention](), list[str]()
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"'{folder}' is a file; give --draw a folder.")
        begin_page(folder, CAPTIONS, force=force)

    def add(self, shown: PictureAttention) -> Path:
        """Draw the panels of one picture."""
        self.examples.append(shown)
        # The number keeps pictures of one name in two folders apart.
        file = self.folder / f"{len(self.examples):04d}-{Path(shown.name).stem}.png"
        self.files.append(file.name)
        return write_panels(shown, file)

    def finish(self) -> Path:
        """Draw the sheet and the page of all pictures."""
        if self.examples:
            self.files.append(write_sheet(self.examples, self.folder / "sheet.png").name)
        return finish_page(self.folder, attention_page(self.examples), CAPTIONS, self.files)


def attention_page(examples: Sequence[PictureAttention], title: str = "Where each word looked") -> str:
    """One page for all examples. It loads nothing from anywhere; without scripts the panels are still there."""
    if not examples:
        raise RegardError("There is no caption to show. Give at least one.")
    return report_page(
        title=title,
        kicker="Regard · captions",
        headline=title,
        lede=LEDE,
        sections=[section(" ".join(shown.words), "", _example(shown, i), f"e{i}") for i, shown in enumerate(examples)],
        made=f"{MADE}.",
        own_css=text_of("captions.css"),
        own_js=text_of("captions.js"),
    )


LEDE = (
    "Each panel is the picture as one word of the caption saw it: bright where the model looked when it wrote that "
    "word, with a line around what had at least half as much attention as the brightest place. The number is the share "
    "of that place. Point at a panel, or move to it by keyboard, to see it large."
)


def _example(shown: PictureAttention, index: int) -> str:
    height, width = shown.picture.shape[:2]
    shades = [_cover_uri(w, (height, width)) for w in shown.weights]
    panels = "".join(
        f'<button type="button" class="panel"><span class="picture photo"><img src="{shade}" alt=""></span>'
        f"<span class=word>{escape(word)}</span> <small>{share:.0%}</small></button>"
        for word, share, shade in zip(shown.words, shown.strongest, shades, strict=True)
    )
    references = "".join(f"<li>{escape(text)}</li>" for text in shown.references)
    people = fold("What people said", f"<ul>{references}</ul>") if references else ""
    name = f'<p class="name">{escape(shown.name)}</p>' if shown.name else ""
    return (
        f"<style>#e{index} .picture {{ background-image: url({_data_uri(shown.picture)}); "
        f"aspect-ratio: {width} / {height}; }}</style>"
        f'<div class="look"><div class="large">{name}<div class="picture photo"><img alt="" hidden></div>'
        f'<p class="said" aria-live="polite"></p></div>'
        f'<div><p class="even">Even attention would give every place {shown.even:.1%}.</p>'
        f'<div class="panels">{panels}</div>{people}</div></div>'
    )


def _cover_uri(weights: Weights, size: tuple[int, int]) -> str:
    """What lies over a picture of `size`, or over one as large as its line needs, as a data URI."""
    larger = max(1.0, PAGE_SIDE / size[1])
    image = Image.fromarray(cover(weights, (round(size[0] * larger), round(size[1] * larger))))
    return f"data:image/png;base64,{base64.b64encode(encode_image(image, 'PNG')).decode()}"


def _data_uri(picture: NDArray[np.uint8]) -> str:
    data = encode_image(Image.fromarray(picture), "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
