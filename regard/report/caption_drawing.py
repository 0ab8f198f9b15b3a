"""Where each word of captions looked, drawn into a folder."""

from __future__ import annotations

from pathlib import Path

from regard.decode.caption import Caption
from regard.errors import RegardError
from regard.lens.picture_attention import PictureAttention, write_page, write_panels
from regard.lens.picture_sheet import write_sheet
from regard.tasks.captions import CaptionRun, Square


class CaptionDrawing:
    """One PNG a picture as it comes, and at the end a page for all of them and a sheet for the first ten."""

    def __init__(self, run: CaptionRun, folder: Path) -> None:
        self.run, self.folder, self.examples = run, folder, list[PictureAttention]()
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"'{folder}' is a file; give --draw a folder.")
        run.check_attention()

    def add(self, path: Path, square: Square, caption: Caption) -> Path:
        shown = self.run.attend(square, caption, path.name)
        self.examples.append(shown)
        # The number keeps pictures of one name in two folders apart.
        return write_panels(shown, self.folder / f"{len(self.examples):04d}-{path.stem}.png")

    def finish(self) -> Path:
        """Write the page, whose path is returned."""
        if self.examples:
            write_sheet(self.examples, self.folder / "sheet.png")
        return write_page(self.examples, self.folder / "index.html")
