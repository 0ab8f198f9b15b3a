"""Which tokens of a text are masked, and how."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import RegardError
from regard.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Settings):
    """What a masked language model is asked about (Devlin et al. 2019, section 3.1), drawn anew in every epoch."""

    p_masked: float = setting(0.15, "part of the tokens that is to be predicted", low=0.0, high=0.9)
    p_mark: float = setting(0.8, "part of these that is read as [MASK]", low=0.0, high=1.0)
    p_wrong: float = setting(
        0.1, "part of these that is read as another token; the rest stays as it is", low=0.0, high=1.0
    )
    takes_words: bool = setting(False, "choose whole words, all pieces of one, rather than pieces")

    def check(self) -> None:
        if self.p_masked == 0:
            raise RegardError("p_masked must be more than 0: nothing would be predicted.")
        if self.p_mark + self.p_wrong > 1:
            raise RegardError(
                f"p_mark {self.p_mark:g} and p_wrong {self.p_wrong:g} are parts of what is predicted, and more than "
                "all of it together. Lower one."
            )
