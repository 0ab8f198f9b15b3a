"""A trained captioner in the hands of a user, and how good its captions are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.caption_config import CaptionConfig
from regard.data.pictures import MAX_FILE, fit_square, read_picture
from regard.data.prepared_captions import CaptionSet, PreparedCaptions, encode_captions
from regard.data.rows import encode_line
from regard.data.split import describe_skipped
from regard.decode.caption import MAX_LENGTH, Caption, measure_attention, write_captions
from regard.decode.config import BeamConfig
from regard.errors import RegardError
from regard.layers.taps import Taps
from regard.lens.picture_attention import PictureAttention
from regard.lens.prediction import Prediction
from regard.lens.trace import Trace
from regard.lens.written import Side, Written, predict_written, trace_written
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.source import Source
from regard.score.measured import Figure, Measured
from regard.score.target_loss import TargetLoss
from regard.score.translation import BleuScore
from regard.tasks.base_run import Run, count_done, list_items
from regard.tasks.caption_objective import N_PICTURES, Features, caption_bleu, sum_caption_nats
from regard.tasks.task import OpenRun, Task, check_split, reopen_data
from regard.text.learning import Progress
from regard.text.word_pieces import words_of_ids
from regard.untrusted.small_files import read_bytes

Square = NDArray[np.uint8]
"""A picture as the model sees it, (size, size, 3)."""


@dataclass(frozen=True, kw_only=True)
class CaptionEvaluation(TargetLoss):
    """How well captions are predicted, and how good the model's own are against all that people said."""

    n_pictures: int
    n_captions: int
    bleu: BleuScore
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Pictures and captions that could not be used and were left out, by kind."""

    def to_dict(self) -> dict[str, Any]:
        found = self.plain("n_pictures", "n_captions")
        return found | {"skipped": dict(self.skipped), "bleu": self.bleu.to_dict()}

    def measure(self) -> Measured:
        orders = [Figure(f"BLEU-{n}", score) for n, score in enumerate(self.bleu.up_to, start=1)]
        return Measured(
            figures=(*self.figures(), *orders),
            headline=orders[-1].name,
            is_higher_better=True,
            counts={"pictures": self.n_pictures, "captions": self.n_captions, "tokens": self.n_tokens},
            signature=f"sacreBLEU {self.bleu.signature}",
            notes=(*self.notes, *((f"{describe_skipped(self.skipped, '')}.",) if self.skipped else ())),
        )


class CaptionRun(Run):
    """A trained captioner: caption, evaluate, see where each word looked."""

    model: Captioner
    verbs = ("caption", "attend", "evaluate", "trace", "prediction")
    old_names: ClassVar[Mapping[str, str]] = {"looked": "attend", "described": "describe"}

    def __init__(self, task: Task, opened: OpenRun, model: Captioner) -> None:
        super().__init__(task, opened, model)
        self.tokenizer = opened.tokenizers[0]

    def caption(self, pictures: str | Path | Sequence[str | Path], **beam: Any) -> Any:
        """The caption of a picture, or a list of them for a list of pictures.

        `beam`: beam, length_penalty, alpha, max_length, ... as in BeamConfig. With n_best > 1 each picture has a list
        of Captions instead of one string.
        """
        found = list(self.predict(list_items(pictures, "picture", (str, Path)), **beam))
        results: list[Any] = [best[0].text for best in found] if beam.get("n_best", 1) == 1 else found
        return results[0] if isinstance(pictures, str | Path) else results

    def predict(self, items: Iterable[str | Path], **beam: Any) -> Iterator[list[Caption]]:
        """The best captions of each picture, as many as n_best says."""
        config = BeamConfig.from_dict({"max_length": MAX_LENGTH} | beam)
        return (best for _, _, best in self.describe([Path(item) for item in items], config))

    def captions(self, squares: Sequence[Square], config: BeamConfig | None = None) -> list[list[Caption]]:
        """The best captions of each picture, best first, in one batch."""
        seen = torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2)  # (B, 3, size, size)
        return write_captions(self.model, self.tokenizer, seen, config or BeamConfig(max_length=MAX_LENGTH))

    def describe(
        self, files: Sequence[Path], config: BeamConfig, tell_skipped: Callable[[str], None] | None = None
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        """Every picture with what the model sees of it and its captions, in order.

        One that cannot be read is an error, once all before it are given; or, where there is `tell_skipped`, it is
        left out, and `tell_skipped` is called with the reason.
        """
        for first in range(0, len(files), N_PICTURES):
            shown: list[tuple[Path, Square]] = []
            for path in files[first : first + N_PICTURES]:
                try:
                    shown.append((path, self.square(path)))
                except RegardError as error:
                    if tell_skipped is None:
                        yield from self._add_captions(shown, config)  # those before it are not lost
                        way_out = " To leave out such and go on: --skip-bad (in Python: `describe` with tell_skipped)."
                        raise RegardError(f"{error}{way_out if len(files) > 1 else ''}") from None
                    tell_skipped(str(error))
            yield from self._add_captions(shown, config)

    def _add_captions(
        self, shown: Sequence[tuple[Path, Square]], config: BeamConfig
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        found = self.captions([square for _, square in shown], config) if shown else []
        yield from ((path, square, best) for (path, square), best in zip(shown, found, strict=True))

    def square(self, path: Path) -> Square:
        """A picture in a file, cut as those were that the model learned from."""
        data = self.config.section("data", CaptionConfig)
        try:
            image = read_picture(read_bytes(path, MAX_FILE))
        except OSError as error:
            raise RegardError(f"The picture '{path}' cannot be read: {error.strerror}.") from None
        except RegardError as error:
            raise RegardError(f"The picture '{path}' cannot be used: {error}.") from None
        first = data.n_margin // 2
        whole = fit_square(image, data.side, data.fit)
        return whole[first : first + data.size, first : first + data.size].copy()  # Pillow's own cannot be written

    def attend(
        self, picture: str | Path | Square, caption: str | Caption, name: str = "", references: Sequence[str] = ()
    ) -> PictureAttention:
        """Where in a picture the model looks when it writes each word of a caption, its own or any other.

        Its `weights` are (words, rows, columns): of a word in several pieces, the mean over its pieces.
        """
        self.check_attention()
        square = self.square(Path(picture)) if isinstance(picture, str | Path) else picture
        tokens = self._read(caption) if isinstance(caption, str) else caption.tokens
        seen = torch.from_numpy(square[None]).permute(0, 3, 1, 2)
        weights = measure_attention(self.model, self.tokenizer, seen, tokens)  # (tokens, places)
        words, numbers = words_of_ids(self.tokenizer, tokens)
        if words:
            rows = ([i for i, n in enumerate(numbers) if n == number] for number in range(len(words)))
            weights = np.stack([weights[row].mean(axis=0) for row in rows])  # (words, places)
        else:  # it still looked somewhere before it ended
            words, weights = ["(nothing)"], weights[:1]
        return PictureAttention.over(self.model.grid, square, words, weights, name, references)

    def _read(self, caption: str) -> tuple[int, ...]:
        """The tokens of a caption, as in training."""
        text, limit = " ".join(caption.split()), self.model.max_context
        tokens: tuple[int, ...] = tuple(encode_line(self.tokenizer, text).tolist()) if text else ()
        if limit is not None and len(tokens) > limit:
            raise RegardError(f"The caption has {len(tokens)} tokens; at most {limit} fit into the model. Shorten it.")
        return tokens

    def check_attention(self) -> None:
        """Refuse to draw what is not there."""
        assert isinstance(self.config.model, CaptionerConfig)
        if self.config.model.attention == "none":
            raise RegardError(
                f"'{self.folder}' has no attention to draw: it was trained with attention none. Train one with "
                "model.attention mlp, say."
            )

    @torch.inference_mode()
    def trace(self, picture: str | Path, caption: str | Caption | None = None) -> Trace:
        """What the model computed when it was made to write a caption, its own or another, by token of the caption."""
        square = self.square(Path(picture))
        caption = self.captions([square])[0][0] if caption is None else caption
        written, side = self._read_written(caption), self._read_side(square)
        limit, device, record = self.model.max_context, self.model.embedding.device, Taps()
        ends = (*written.ids, self.tokenizer.eos)  # the end does not count where there is no room for it
        inputs, targets = (torch.tensor([ids[:limit]], device=device) for ids in (written.read, ends))
        target = self.model.eval().target
        h, _ = target.hidden(inputs, side.encode(side.inputs, record), None, record)
        target.log_probs_of_all(h, record)
        nats = target.nats_each(h, targets)[0].double().cpu().numpy()
        return trace_written(written, nats, record, side)

    def prediction(
        self,
        picture: str | Path,
        written: str | Caption | None = None,
        *,
        at: int | None = None,
        target: int | str | None = None,
    ) -> Prediction:
        """The token that comes after `written` in the caption of a picture, as a prediction to be explained.

        With `at`, the token at that row of `trace(picture, written)`; without `written`, the text is the model's own
        caption, or where `at` is not given either, nothing yet. `target` is the token whose probability is explained,
        by its text or id; None: the most probable one.
        """
        square = self.square(Path(picture))
        if written is None:
            written = "" if at is None else self.captions([square])[0][0]
        return predict_written(
            self.model.eval().target, self._read_side(square), self._read_written(written), at, target
        )

    def _read_written(self, caption: str | Caption) -> Written:
        tokens = self._read(caption) if isinstance(caption, str) else caption.tokens
        text = " ".join(caption.split()) if isinstance(caption, str) else caption.text
        spans = self.tokenizer.encode_with_offsets(text)[1] if text else []
        shown = tuple(spans) if len(spans) == len(tokens) else (None,) * len(tokens)
        return Written(self.tokenizer, tuple(tokens), shown, text)

    def _read_side(self, square: Square) -> Side:
        """A picture as places of a grid; one that is left out looks like the mean of all."""
        rows, columns = self.model.grid
        seen = torch.from_numpy(square[None]).permute(0, 3, 1, 2).to(self.model.embedding.device)
        n = rows * columns

        def encode(inputs: Sequence[int | None], taps: Taps | None) -> Source:
            source = self.model.encode(seen, taps)
            is_out = torch.tensor([place is None for place in inputs], device=seen.device)
            if not bool(is_out.any()):
                return source
            mean = source.states.mean(dim=1, keepdim=True)
            return source._replace(states=source.states.where(~is_out[:, None], mean))

        return Side(
            text="",
            tokens=tuple(f"row {i // columns + 1}, column {i % columns + 1}" for i in range(n)),
            spans=(None,) * n,
            inputs=tuple(range(n)),
            stand_ins=(None,) * n,
            tap="encoder.states",
            encode=encode,
        )

    def evaluate(
        self,
        data: Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | int | None = None,
        skips_bad: bool = False,
        progress: Progress | None = None,
    ) -> CaptionEvaluation:
        """Loss and BLEU on a split of the pictures the run was trained on, or on others: [folder, captions].

        Of other pictures, one that cannot be used is an error, or, with `skips_bad`, left out and counted. `progress`
        is told how many pictures have a caption.
        """
        prepared, pictures = self.pictures_of(data, split, skips_bad)
        config = BeamConfig(beam=beam, max_length=MAX_LENGTH) if isinstance(beam, int) else beam
        found = evaluate_captions(self.model, prepared, pictures, config, progress=progress)
        return found if data is None else replace(found, skipped=prepared.data.skipped)

    def pictures_of(
        self, data: Sequence[str] | None, split: str = "test", skips_bad: bool = False
    ) -> tuple[PreparedCaptions, CaptionSet]:
        """Other pictures, or a split of the run's own, with their captions."""
        check_split(split)
        if data is None:
            prepared = reopen_data(self.task, self.opened)
            pictures: CaptionSet = getattr(prepared.data, split)
        else:
            if isinstance(data, str) or len(data) != 2:
                raise RegardError(f"Other pictures are two names, a folder and a file of captions, not {data!r}.")
            own = self.config.section("data", CaptionConfig)
            skips = skips_bad or own.skips_bad
            other = own.replace(pictures=data[0], captions=data[1], train=None, valid=None, test=None, skips_bad=skips)
            prepared = encode_captions(self.tokenizer, other)
            pictures = prepared.data.train
        if not len(pictures):
            raise RegardError(
                f"There are no pictures to evaluate on: the {split} split is empty. Name a folder and its captions "
                "with --data FOLDER --data CAPTIONS (in Python: data=[FOLDER, CAPTIONS])."
            )
        return prepared, pictures


def evaluate_captions(
    model: Captioner,
    prepared: PreparedCaptions,
    pictures: CaptionSet,
    beam: BeamConfig | None = None,
    features: Features | None = None,
    progress: Progress | None = None,
) -> CaptionEvaluation:
    """Loss and BLEU on some pictures; `features` are of all pictures, where they were computed before."""
    nats, n_tokens = sum_caption_nats(model, prepared, pictures, features)
    config = beam or BeamConfig(max_length=MAX_LENGTH)
    return CaptionEvaluation(
        nats=nats,
        n_tokens=n_tokens,
        n_bytes=pictures.n_bytes,
        n_pictures=len(pictures),
        n_captions=pictures.n_captions,
        bleu=caption_bleu(
            model, prepared, pictures, config, features, count_done(progress, "writing captions", len(pictures))
        ),
    )
