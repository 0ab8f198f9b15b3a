"""Where pictures and their captions come from, and how a picture becomes a square of pixels."""

from __future__ import annotations

from dataclasses import dataclass

from regard.data.config import check_parts
from regard.errors import RegardError
from regard.settings import Settings, setting

FITS = ("crop", "squeeze")
MAX_SIZE = 1024


@dataclass(frozen=True, kw_only=True)
class CaptionConfig(Settings):
    """A folder of pictures, a file of captions, and which pictures are for training, validation and test."""

    pictures: str = setting(doc="the folder of the pictures (JPEG, PNG, and what else Pillow reads)")
    captions: str = setting(
        doc="the captions: lines 'name.jpg#0<TAB>caption' or 'name.jpg<TAB>caption', or JSON lines with the fields "
        "picture and caption (text, or a list of texts)"
    )
    train: str | None = setting(None, "a file with the names of the training pictures, one a line; null: by p_*")
    valid: str | None = setting(
        None, "names of the validation pictures, as train; null: cut from the training pictures"
    )
    test: str | None = setting(None, "names of the test pictures, as train; null: cut from the training pictures")
    p_valid: float = setting(0.05, "part of the pictures for validation where valid is null", low=0, high=0.9)
    p_test: float = setting(0.05, "part of the pictures for test where test is null", low=0, high=0.9)
    size: int = setting(160, "side of the square that a model sees, in pixels", low=8, high=MAX_SIZE)
    fit: str = setting(
        "crop", "crop: the middle square of the picture; squeeze: all of it, its sides made equal", choices=FITS
    )
    n_margin: int = setting(
        0, "pictures are kept so many pixels larger, and a square of `size` is cut out anywhere in training", low=0
    )
    flips: bool = setting(
        False, "training pictures are mirrored half of the time, unless their caption says left or right"
    )
    skips_bad: bool = setting(False, "leave out pictures and captions that cannot be used, and count them")
    split_seed: int = setting(0, "another seed gives another split by pictures", low=0, high=2**63 - 1)

    def check(self) -> None:
        for name in ("pictures", "captions", "train", "valid", "test"):
            if getattr(self, name) == "":
                raise RegardError(f"{name} is empty. Give {type(self).help_of(name).doc}.")
        if self.side > MAX_SIZE:
            raise RegardError(
                f"size {self.size} and n_margin {self.n_margin} make pictures of {self.side} pixels; {MAX_SIZE} is the "
                "most. Make one of them smaller."
            )
        check_parts(self.part_valid, self.part_test)

    @property
    def side(self) -> int:
        """The side of a picture as it is kept."""
        return self.size + self.n_margin

    @property
    def part_valid(self) -> float:
        """The part of the training pictures that is cut off for validation."""
        return self.p_valid if self.valid is None else 0.0

    @property
    def part_test(self) -> float:
        return self.p_test if self.test is None else 0.0
