"""A trained model of pictures in the hands of a user: caption, evaluate, see where each word looked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config import RunConfig
from regard.data.pictures import SUFFIXES, fit_square, read_picture
from regard.data.prepared_captions import CaptionSet, PreparedCaptions, encode_captions
from regard.data.rows import encode_line
from regard.decode.caption import MAX_LENGTH, Caption, captions_of, looked_at
from regard.decode.config import BeamConfig
from regard.errors import RegardError, nearest
from regard.folder import RunFacts, open_folder, prepared_captions_again
from regard.lens.picture_attention import PictureAttention, write_page, write_panels
from regard.lens.picture_sheet import write_sheet
from regard.models.captioner import Captioner
from regard.models.captioner_config import CaptionerConfig
from regard.models.table import build_picture_model
from regard.run import PRECISIONS, weights_of
from regard.score.target_loss import TargetLoss
from regard.score.translation import BleuScore
from regard.text.tokenizer import Tokenizer
from regard.text.word_pieces import words_of_ids
from regard.training.caption_task import N_PICTURES, caption_bleu, summed_caption_nats
from regard.training.device import pick_device
from regard.training.weights import load_weights

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
        names = ("nats", "n_tokens", "n_bytes", "n_pictures", "n_captions", "nats_per_token", "perplexity")
        found = {name: getattr(self, name) for name in (*names, "bits_per_byte")}
        return found | {"skipped": dict(self.skipped), "bleu": self.bleu.to_dict()}


class CaptionRun:
    """What `regard.load` returns for a model that describes pictures."""

    def __init__(
        self, folder: Path, config: RunConfig, facts: RunFacts, tokenizer: Tokenizer, model: Captioner
    ) -> None:
        self.folder, self.config, self.facts, self.tokenizer, self.model = folder, config, facts, tokenizer, model

    def __repr__(self) -> str:
        return f"<CaptionRun {self.folder}: {self.config.model_name}, {self.facts.n_parameters:,} parameters>"

    def caption(self, pictures: str | Path | Sequence[str | Path], **beam: Any) -> Any:
        """The caption of a picture, or a list of them for a list of pictures.

        `beam`: beam, length_penalty, alpha, max_length, ... as in BeamConfig. With n_best > 1 each picture has a list
        of Captions instead of one string.
        """
        config = BeamConfig.from_dict({"max_length": MAX_LENGTH} | beam)
        given = [pictures] if isinstance(pictures, str | Path) else list(pictures)
        found = [best for _, _, best in self.described([Path(picture) for picture in given], config)]
        results: list[Any] = found if config.n_best != 1 else [best[0].text for best in found]
        return results[0] if isinstance(pictures, str | Path) else results

    def captions(self, squares: Sequence[Square], config: BeamConfig | None = None) -> list[list[Caption]]:
        """The best captions of each picture, best first, in one batch."""
        seen = torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2)  # (B, 3, size, size)
        return captions_of(self.model, self.tokenizer, seen, config or BeamConfig(max_length=MAX_LENGTH))

    def described(
        self, files: Sequence[Path], config: BeamConfig, skipped: Callable[[str], None] | None = None
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        """Every picture with what the model sees of it and its captions, in order.

        One that cannot be read is an error, once all before it are given; or, where there is `skipped`, it is left out,
        and `skipped` is told why.
        """
        for first in range(0, len(files), N_PICTURES):
            shown: list[tuple[Path, Square]] = []
            for path in files[first : first + N_PICTURES]:
                try:
                    shown.append((path, self.square(path)))
                except RegardError as error:
                    if skipped is None:
                        yield from self._with_captions(shown, config)  # those before it are not lost
                        others = " To leave out such and go on: --skip-bad." if len(files) > 1 else ""
                        raise RegardError(f"{error}{others}") from None
                    skipped(str(error))
            yield from self._with_captions(shown, config)

    def _with_captions(
        self, shown: Sequence[tuple[Path, Square]], config: BeamConfig
    ) -> Iterator[tuple[Path, Square, list[Caption]]]:
        found = self.captions([square for _, square in shown], config) if shown else []
        yield from ((path, square, best) for (path, square), best in zip(shown, found, strict=True))

    def square(self, path: Path) -> Square:
        """A picture in a file, cut as those were that the model learned from."""
        data = self.config.captions
        try:
            image = read_picture(path.read_bytes())
        except OSError as error:
            raise RegardError(f"The picture '{path}' cannot be read: {error.strerror}.") from None
        except RegardError as error:
            raise RegardError(f"The picture '{path}' cannot be used: {error}. Give JPEG, PNG or the like.") from None
        first = data.n_margin // 2
        whole = fit_square(image, data.side, data.fit)
        return whole[first : first + data.size, first : first + data.size].copy()  # Pillow's own cannot be written

    def looked(
        self, picture: str | Path | Square, caption: str | Caption, name: str = "", references: Sequence[str] = ()
    ) -> PictureAttention:
        """Where in a picture the model looks when it writes each word of a caption, its own or any other.

        Its `weights` are (words, rows, columns): of a word in several pieces, the mean over its pieces.
        """
        self.check_attention()
        square = self.square(Path(picture)) if isinstance(picture, str | Path) else picture
        tokens = self._read(caption) if isinstance(caption, str) else caption.tokens
        seen = torch.from_numpy(square[None]).permute(0, 3, 1, 2)
        weights = looked_at(self.model, self.tokenizer, seen, tokens)  # (tokens, places)
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

    def drawing(self, folder: Path) -> Drawing:
        """Writes into `folder` where each word of captions looked."""
        return Drawing(self, folder)

    def evaluate(
        self,
        data: Sequence[str] | None = None,
        *,
        split: str = "test",
        beam: BeamConfig | None = None,
        skips_bad: bool = False,
    ) -> CaptionEvaluation:
        """Loss and BLEU on a split of the pictures the run was trained on, or on others: [folder, captions].

        What of others cannot be used is an error, or, where `skips_bad`, left out and counted.
        """
        prepared, pictures = self.pictures_of(data, split, skips_bad)
        found = evaluate_captions(self.model, prepared, pictures, beam or BeamConfig(max_length=MAX_LENGTH))
        return found if data is None else replace(found, skipped=prepared.data.skipped)

    def pictures_of(
        self, data: Sequence[str] | None, split: str = "test", skips_bad: bool = False
    ) -> tuple[PreparedCaptions, CaptionSet]:
        if split not in ("train", "valid", "test"):
            raise RegardError(f"split must be train, valid or test, not '{split}'.")
        if data is None:
            prepared = prepared_captions_again(self.folder, self.config)
            pictures: CaptionSet = getattr(prepared.data, split)
        else:
            if isinstance(data, str) or len(data) != 2:
                raise RegardError(f"Other pictures are two names, a folder and a file of captions, not {data!r}.")
            own = self.config.captions
            skips = skips_bad or own.skips_bad
            other = own.replace(pictures=data[0], captions=data[1], train=None, valid=None, test=None, skips_bad=skips)
            prepared = encode_captions(self.tokenizer, other)
            pictures = prepared.data.train
        if not len(pictures):
            raise RegardError(
                f"There are no pictures to evaluate on: the {split} split is empty. Name a folder and its captions "
                "with --data FOLDER --data CAPTIONS."
            )
        return prepared, pictures

    def test_result(self) -> dict[str, Any] | None:
        """The test scores that were written when training ended."""
        path = self.folder / "test.json"
        found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return found

    def example(self) -> str:
        """A picture of the kind that the model knows."""
        data = prepared_captions_again(self.folder, self.config).data
        return str(Path(self.config.captions.pictures) / (data.test or data.valid or data.train).names[0])


class Drawing:
    """One PNG a picture as it comes, and at the end a page for all of them and a sheet for the first ten."""

    def __init__(self, run: CaptionRun, folder: Path) -> None:
        self.run, self.folder, self.examples = run, folder, list[PictureAttention]()
        if folder.exists() and not folder.is_dir():
            raise RegardError(f"'{folder}' is a file; give --draw a folder.")
        run.check_attention()

    def add(self, path: Path, square: Square, caption: Caption) -> Path:
        shown = self.run.looked(square, caption, path.name)
        self.examples.append(shown)
        # The number keeps pictures of one name in two folders apart.
        return write_panels(shown, self.folder / f"{len(self.examples):04d}-{path.stem}.png")

    def finish(self) -> Path:
        if self.examples:
            write_sheet(self.examples, self.folder / "sheet.png")
        return write_page(self.examples, self.folder / "index.html")


def evaluate_captions(
    model: Captioner, prepared: PreparedCaptions, pictures: CaptionSet, beam: BeamConfig, features: Any = None
) -> CaptionEvaluation:
    """Loss and BLEU on some pictures; `features` are of all pictures, where they were computed before."""
    nats, n_tokens = summed_caption_nats(model, prepared, pictures, features)
    return CaptionEvaluation(
        nats=nats,
        n_tokens=n_tokens,
        n_bytes=pictures.n_bytes,
        n_pictures=len(pictures),
        n_captions=pictures.n_captions,
        bleu=caption_bleu(model, prepared, pictures, beam, features),
    )


def picture_files(given: Sequence[str]) -> Iterator[Path]:
    """The pictures that files, folders and globs name, in order."""
    for name in given:
        path = Path(name).expanduser()
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES)
        elif path.exists():
            found = [path]
        else:
            found = sorted(p for p in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if p.is_file())
        if not found:
            raise RegardError(f"{_not_found(path, name)} Pictures end in {', '.join(SUFFIXES)}.")
        yield from found


def _not_found(path: Path, name: str) -> str:
    if path.is_dir():
        return f"The folder '{name}' holds no picture."
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    return f"There is no picture '{name}'.{nearest(path.name, siblings)}"


def load_caption_run(folder: str | Path, device: str = "auto", precision: str = "float32") -> CaptionRun:
    """Open the folder of a run that describes pictures. Nothing in it is executed."""
    if precision not in PRECISIONS:
        raise RegardError(f"precision must be one of {', '.join(PRECISIONS)}, not '{precision}'.")
    folder = Path(folder)
    config, facts, tokenizer = open_folder(folder)
    if not config.reads_pictures:
        what = "reads pairs" if config.reads_pairs else "reads text"
        raise RegardError(
            f"'{folder}' {what} ({config.model_name}) and sees no pictures. Give a run of a captioner, such as "
            "recipes/flickr8k.yaml trains."
        )
    tensors = weights_of(folder)
    model = build_picture_model(config.model_name, config.model, tokenizer.vocab_size, config.captions.size)
    load_weights(model, tensors, folder / "model.safetensors")
    model.to(pick_device(device), PRECISIONS[precision]).eval()
    return CaptionRun(folder, config, facts, tokenizer, model)
