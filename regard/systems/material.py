"""What systems are tested on, and what each makes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from regard.caption_run import CaptionRun, load_caption_run
from regard.data.pairs import Pairs
from regard.data.prepared_captions import CaptionSet, PreparedCaptions
from regard.data.tree_lines import to_brackets
from regard.data.tree_pairs import FORMS, rebuild_tree
from regard.decode.caption import MAX_LENGTH, captions_of
from regard.decode.config import MAX_RATIO, BeamConfig
from regard.decode.lines import batches_by_tokens
from regard.errors import RegardError
from regard.folder import prepared_captions_again, prepared_pairs_again
from regard.pair_run import PairRun, load_pair_run
from regard.systems.finished import FinishedRun
from regard.text.learning import Progress
from regard.training.caption_task import N_PICTURES
from regard.training.pair_task import readable_pairs

Numbers = Sequence[int]
"""Which of the test sentences, or pictures."""


@dataclass(frozen=True)
class Material:
    """The test data as one run reads them, and those of them that it has room for."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    fits: NDArray[np.bool_]
    watched: str | None
    """A hash of the validation data; None: they were not read."""
    pairs: Pairs | None = None
    captions: tuple[PreparedCaptions, CaptionSet] | None = None
    has_tags: bool = True
    """Of trees: whether words have parts of speech."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """What could not be used and was left out, by kind."""


def material_of(run: FinishedRun, data: Sequence[str] | None, split: str, skips_bad: bool = False) -> Material:
    """A split of what the run was trained on, or other data in the form that it takes."""
    if run.task == "captions":
        return _captions(load_caption_run(run.folder, "cpu"), data, split, skips_bad)
    return _pairs(load_pair_run(run.folder, "cpu"), data, split, skips_bad)


def _pairs(run: PairRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> Material:
    other = None if data is None else run.other_pairs(data, split, skips_bad)
    pairs = run.pairs_of(None, split) if other is None else other.train
    numbers = range(len(pairs))
    sources, targets = [pairs.source_text(i) for i in numbers], [pairs.target_text(i) for i in numbers]
    words = run.config.pairs.tree_words
    if run.is_parser:
        targets = [to_brackets(rebuild_tree(pairs, i, words)) for i in numbers]
    watched = None
    if data is None:
        valid = prepared_pairs_again(run.folder, run.config).valid
        watched = digest(valid.target_text(i) for i in range(len(valid)))
    return Material(
        sources=tuple(sources),
        references=tuple((target,) for target in targets),
        fits=np.isin(pairs.rows, readable_pairs(run.model, pairs).rows),
        watched=watched,
        pairs=pairs,
        has_tags=not run.is_parser or FORMS[words].has_tags,
        skipped={} if other is None else other.counts.skipped,
    )


def _captions(run: CaptionRun, data: Sequence[str] | None, split: str, skips_bad: bool) -> Material:
    prepared, pictures = run.pictures_of(data, split, skips_bad)
    watched = None
    if data is None:
        valid = prepared_captions_again(run.folder, run.config).data.valid
        watched = digest(text for texts in valid.captions for text in texts)
    return Material(
        sources=pictures.names,
        references=pictures.captions,
        fits=np.ones(len(pictures), dtype=bool),
        watched=watched,
        captions=(prepared, pictures),
        skipped={} if data is None else prepared.data.skipped,
    )


def check_same(runs: Sequence[FinishedRun], materials: Sequence[Material]) -> None:
    """Refuse runs that are not tested on the same targets."""
    first = materials[0].references
    for run, material in zip(runs[1:], materials[1:], strict=True):
        if material.references == first:
            continue
        if len(material.references) != len(first):
            what = f"'{runs[0].folder}' has {len(first):,} test targets and '{run.folder}' {len(material.references):,}"
        else:
            at = next(i for i, (a, b) in enumerate(zip(first, material.references, strict=True)) if a != b)
            a, b = (_shown(references[at][0]) for references in (first, material.references))
            what = f"test target {at + 1} is {a} for '{runs[0].folder}' and {b} for '{run.folder}'"
        raise RegardError(
            f"These runs are not tested on the same data: {what}. Name test data that all can take with --data, such "
            "as --data test.en --data test.de."
        )


def _shown(text: str) -> str:
    return f"'{text if len(text) <= 60 else text[:59] + '…'}'"


def outputs_of(
    run: FinishedRun, material: Material, chosen: Numbers, beam: int, device: str, max_tokens: int, tell: Progress
) -> list[str]:
    """The best translation, tree or caption of each that was chosen, in their order; always one line each."""
    what = f"{run.name}: {'captions' if run.task == 'captions' else 'sentences'}"
    if material.captions is not None:
        captioner = load_caption_run(run.folder, device)
        batches: Iterable[list[int]] = [list(chosen[i : i + N_PICTURES]) for i in range(0, len(chosen), N_PICTURES)]
        decode = _captioning(captioner, *material.captions, BeamConfig(beam=beam, max_length=MAX_LENGTH))
    else:
        pairs, loaded = material.pairs, load_pair_run(run.folder, device)
        assert pairs is not None, "what is not a picture is a pair"
        batches = batches_by_tokens(list(chosen), pairs.source_lengths.tolist(), max_tokens)
        decode = (_parsing if loaded.is_parser else _translating)(loaded, pairs, beam)
    found: dict[int, str] = {}
    tell(what, 0, len(chosen))
    for batch in batches:
        found |= zip(batch, (" ".join(text.split("\n")) for text in decode(batch)), strict=True)
        tell(what, len(found), len(chosen))
    return [found[i] for i in chosen]


Decode = Callable[[Numbers], list[str]]


def _translating(run: PairRun, pairs: Pairs, beam: int) -> Decode:
    translator = run.translator(BeamConfig(beam=beam, max_ratio=MAX_RATIO))

    def decode(batch: Numbers) -> list[str]:
        sentences = [translator.read(pairs.source_text(i), pairs.tag(i)) for i in batch]
        return [best[0].text for best in translator.all(sentences)]

    return decode


def _parsing(run: PairRun, pairs: Pairs, beam: int) -> Decode:
    parser = run.parser(BeamConfig(beam=beam))

    def decode(batch: Numbers) -> list[str]:
        parses = parser.all([pairs.source_text(i) for i in batch], [pairs.tag(i) for i in batch])
        return ["" if parse.tree is None else to_brackets(parse.tree) for parse in parses]

    return decode


def _captioning(run: CaptionRun, prepared: PreparedCaptions, pictures: CaptionSet, beam: BeamConfig) -> Decode:
    def decode(batch: Numbers) -> list[str]:
        seen = torch.from_numpy(prepared.data.squares([pictures.numbers[i] for i in batch]))
        return [best[0].text for best in captions_of(run.model, run.tokenizer, seen, beam)]

    return decode


def digest(parts: Iterable[str]) -> str:
    """One hash of many texts.

    >>> digest(["a", "b"]) == digest(["ab", ""])
    False
    """
    found = hashlib.sha256()
    for part in parts:
        found.update(json.dumps(part).encode() + b"\n")
    return found.hexdigest()


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
