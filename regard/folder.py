"""The run folder: what lies in it, how one is begun, and what can be wrong with it.

    config.yaml        complete, every default written out
    run.json           format, version, tokenizer hash, data fingerprint, sizes
    tokenizer.json     Hugging Face `tokenizers` loads it
    target_tokenizer.json  of a run that reads pairs with two vocabularies; tokenizer.json is then the source's
    model.safetensors  the best weights so far
    state/             what resuming needs
    metrics.jsonl      one JSON object an evaluation or log line; TensorBoard events beside it in tensorboard/
    README.md          a model card

A folder without config.yaml is no run yet: everything before it may be half there and is made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from regard import __version__
from regard.config import RunConfig, load_config
from regard.data.cache import flock
from regard.data.prepared_captions import PreparedCaptions, prepare_captions_again
from regard.data.prepared_pairs import PreparedPairs, prepare_pairs_again
from regard.data.prepared_text import PreparedText, prepare_text_again
from regard.errors import RegardError, nearest
from regard.files import write_atomically
from regard.text.learning import Progress
from regard.text.tokenizer import TARGET_TOKENIZER, Tokenizer

FORMAT = 1
IMPORTED = "imported"
"""Stands for the data fingerprint of a run that was not trained here."""
_OURS = {
    "config.yaml", "run.json", "tokenizer.json", TARGET_TOKENIZER, "model.safetensors", "state", "metrics.jsonl",
    "README.md",
}  # fmt: skip


@dataclass(frozen=True)
class RunFacts:
    """What run.json says: enough to tell whether the files beside it belong together."""

    format: int
    regard: str
    model: str
    vocab_size: int
    tokenizer: str
    data: str
    n_parameters: int
    flops_per_token: int
    started_from: str | None = None
    """The folder its first weights, or its decoder's, came from, and the sha256 of these; None: from random numbers."""
    started_weights: str | None = None
    target_vocab_size: int | None = None
    """Of a run that reads pairs with two vocabularies: the target's, whose hash is `target_tokenizer`."""
    target_tokenizer: str | None = None
    opening: str = ""
    """Of a language model: the break in its text after which a text without a prompt begins; empty: after <eos>."""


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else trains in `folder` inside this block. The system takes the lock away however the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"The folder '{folder}' cannot be made: {error.strerror}. Choose another --out.") from None
    with open(folder / ".lock", "wb") as lock:
        try:
            flock(lock)
        except BlockingIOError:
            raise RegardError(
                f"Another process is training in '{folder}'. Wait for it, or choose another --out."
            ) from None
        yield
        (folder / ".lock").unlink(missing_ok=True)


def begin(
    folder: Path, config: RunConfig, tokenizer: Tokenizer, facts: RunFacts, target_tokenizer: Tokenizer | None = None
) -> None:
    """Write what is known before training; config.yaml last, since it is what makes the folder a run."""
    check_free(folder)  # once more: another process may have begun one since
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder / "tokenizer.json")
    if target_tokenizer is not None:
        target_tokenizer.save(folder / TARGET_TOKENIZER)
    write_facts(folder, facts)
    write_atomically(folder / "config.yaml", config.to_yaml().encode())


def write_facts(folder: Path, facts: RunFacts) -> None:
    write_atomically(folder / "run.json", (json.dumps(asdict(facts), indent=2) + "\n").encode())


def check_free(folder: Path, can_resume: bool = True) -> None:
    """Refuse a folder that holds a run or anything that is not ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RegardError(f"'{folder}' is a file; give --out a folder that does not exist yet.")
    if (folder / "config.yaml").exists():
        way_out = "Add --resume to continue it, or choose" if can_resume else "Choose"
        raise RegardError(f"'{folder}' already holds a run. {way_out} another --out.")
    strangers = sorted(p.name for p in folder.iterdir() if p.name not in _OURS and not p.name.startswith("."))
    if strangers:
        raise RegardError(f"'{folder}' is not empty (it holds {strangers[0]}); choose another --out.")


def check_resumable(folder: Path) -> None:
    """Refuse to resume what was never trained here."""
    if not (folder / "run.json").exists() or _read_facts(folder / "run.json").data != IMPORTED:
        return
    counts = _read_facts(folder / "run.json").flops_per_token == 0
    further = "" if counts else f" Train it further with: regard train --from {folder} --data my.txt --out runs/mine"
    raise RegardError(f"'{folder}' was imported, not trained here: there is nothing to resume.{further}")


def check_same(folder: Path, config: RunConfig) -> None:
    """Refuse to resume a run with another config than it was begun with; name the first difference."""
    before, now = load_config(folder / "config.yaml").to_dict(), config.to_dict()
    for section in now:
        old, new = before[section], now[section]
        if old == new:
            continue
        if not isinstance(new, dict) or not isinstance(old, dict):
            raise _differs(folder, section, old, new)
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                raise _differs(folder, f"{section}.{key}", old.get(key), new.get(key))


def _differs(folder: Path, key: str, old: object, new: object) -> RegardError:
    return RegardError(
        f"'{folder}' was begun with {key} = {old!r}, and now {key} = {new!r} is asked for. "
        "Resume it without changes, or train the new config in another --out."
    )


def open_folder(folder: Path) -> tuple[RunConfig, RunFacts, Tokenizer]:
    """Config, facts and tokenizer of a run, or a sentence that says what is missing, damaged or foreign."""
    if not folder.exists():
        parent = folder.parent
        siblings = [p.name for p in parent.iterdir()] if parent.is_dir() else []
        raise RegardError(f"There is no run folder '{folder}'.{nearest(folder.name, siblings)}")
    if not folder.is_dir():
        raise RegardError(f"'{folder}' is a file, not a run folder; give the folder that `regard train` wrote.")
    for name in ("config.yaml", "run.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise RegardError(f"'{folder}' is not a complete run folder: {name} is missing. Train it again.")
    facts = _read_facts(folder / "run.json")
    if not (folder / "config.yaml").read_bytes().rstrip().endswith(b"..."):
        raise RegardError(f"'{folder}/config.yaml' was cut short: it does not end with '...'. Restore the whole file.")
    config = load_config(folder / "config.yaml")
    tokenizer = _checked_tokenizer(folder / "tokenizer.json", facts.vocab_size, facts.tokenizer)
    return config, facts, tokenizer


def target_tokenizer_of(folder: Path, facts: RunFacts) -> Tokenizer | None:
    """The target's vocabulary of a run that has two; None where there is one for both sides."""
    if facts.target_tokenizer is None or facts.target_vocab_size is None:
        return None
    if not (folder / TARGET_TOKENIZER).is_file():
        raise RegardError(f"'{folder}' is not a complete run folder: {TARGET_TOKENIZER} is missing. Train it again.")
    return _checked_tokenizer(folder / TARGET_TOKENIZER, facts.target_vocab_size, facts.target_tokenizer)


def _checked_tokenizer(path: Path, vocab_size: int, digest: str) -> Tokenizer:
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocab_size != vocab_size or tokenizer.hash != digest:
        raise RegardError(
            f"The tokenizer in '{path.parent}' does not fit its weights: {path.name} has {tokenizer.vocab_size} tokens "
            f"(hash {tokenizer.hash[:12]}), the weights were trained with {vocab_size} "
            f"(hash {digest[:12]}). Put the original {path.name} back."
        )
    return tokenizer


def prepared_again(
    folder: Path, config: RunConfig, progress: Progress | None = None, option: str = "--data"
) -> PreparedText:
    """The text a run was begun with: from the cache, or read again, which must give the same text.

    The cache alone can bring back what came from standard input. `option` is how the user can name another text.
    """
    facts = _read_facts(folder / "run.json")
    if facts.data == IMPORTED:
        raise RegardError(f"'{folder}' was imported and has no text of its own; name one with {option}.")
    tokenizer = config.tokenizer.replace(path=str(folder))
    return prepare_text_again(facts.data, config.text, tokenizer, folder, progress)


def prepared_pairs_again(folder: Path, config: RunConfig, progress: Progress | None = None) -> PreparedPairs:
    """The pairs a run was begun with: from the cache, or read again, which must give the same pairs."""
    facts = _read_facts(folder / "run.json")
    tokenizer, target = config.tokenizer.replace(path=str(folder / "tokenizer.json")), config.target_tokenizer
    if target is not None:  # both sides may name one vocabulary, which is then kept once
        name = "tokenizer.json" if facts.target_tokenizer is None else TARGET_TOKENIZER
        target = target.replace(path=str(folder / name))
    return prepare_pairs_again(facts.data, config.pairs, tokenizer, target, folder, progress)


def prepared_captions_again(folder: Path, config: RunConfig, progress: Progress | None = None) -> PreparedCaptions:
    """The pictures a run was begun with, read again; they are looked for where the run found them."""
    tokenizer = config.tokenizer.replace(path=str(folder / "tokenizer.json"))
    facts = _read_facts(folder / "run.json")
    return prepare_captions_again(facts.data, config.captions, tokenizer, folder, progress)


def _read_facts(path: Path) -> RunFacts:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise RegardError(f"'{path}' is damaged ({error}); the run folder cannot be used.") from None
    if version != FORMAT:
        raise RegardError(
            f"'{path.parent}' has run format {version}, written by Regard {found.get('regard', '?')}; this is Regard "
            f"{__version__}, which reads format {FORMAT}. Use that version, or train the run again."
        )
    try:
        return RunFacts(**found)
    except TypeError as error:
        raise RegardError(f"'{path}' is damaged ({error}); the run folder cannot be used.") from None
