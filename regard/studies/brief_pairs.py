"""Small models that read pairs, trained by the ordinary training, on sentences of the built-in grammar or on files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.builtin.grammar import Grammar
from regard.data.builtin.grammar.meaning import LANGUAGES
from regard.pair_run import PairRun, load_pair_run
from regard.studies.brief import Told

if TYPE_CHECKING:
    from regard.text.learning import Progress


def write_grammar(folder: Path, n_of: Mapping[str, int], seed: int, tell: Progress) -> None:
    """Sentences of the built-in grammar as aligned files, `train.en` and so on: so many of each split."""
    for split, n in n_of.items():
        with ExitStack() as stack:
            files = {
                language: stack.enter_context(open(folder / f"{split}.{language}", "w", encoding="utf-8"))
                for language in LANGUAGES
            }
            for done, sentence in enumerate(Grammar(seed).sentences(split, n)):
                tell(f"{split} sentences", done, n)
                for language, file in files.items():
                    file.write(sentence.text(language) + "\n")


def brief_pair_run(
    folder: Path, config: Mapping[str, Mapping[str, Any]], *, n_steps: int, seed: int, what: str, tell: Progress
) -> PairRun:
    """A run of `n_steps` updates in `folder`; `config` has its data, model and whatever else is not by default.

    It is judged once, at the end, so that all models of a study have had the same number of updates.
    """
    from regard import api

    given = {
        **config,
        "seed": seed,
        "train": {"max_steps": n_steps, "eval_every": n_steps},
        "checkpoint": {"has_tensorboard": False, "every_seconds": None, **config.get("checkpoint", {})},
    }
    api.train(given, out=folder, is_tested=False, reporter=Told(what, n_steps, tell))
    return load_pair_run(folder, config.get("runtime", {}).get("device", "auto"))
