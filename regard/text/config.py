"""What a tokenizer is asked to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError
from regard.settings import Settings, setting

KINDS = ("char", "byte", "word", "bpe", "wordpiece")
READ_KINDS = (*KINDS, "unigram")
"""unigram is that of published Marians, which is not learned here."""
KINDS_WITH_UNK = ("word", "wordpiece")
"""char, byte and bpe spell what they do not have in bytes."""

# Byte-level BPE starts from <eos> and the 256 bytes; merges come on top.
SMALLEST_BPE = 257


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Settings):
    """How text becomes token ids; learned on the training split only."""

    kind: str = setting("bpe", "what a token is (unigram: that of an imported Marian, not learned)", choices=READ_KINDS)
    vocab_size: int | None = setting(
        4096,
        "size of the vocabulary (bpe, wordpiece); for word and char the most frequent are kept, null: all",
        low=4,
        high=2**24,
    )
    min_count: int = setting(
        1,
        "a word or character seen less often is not in the vocabulary (word, char); a pair seen less often is not "
        "joined (wordpiece by likelihood)",
        low=1,
    )
    lowercase: bool = setting(False, "fold case (word, wordpiece)")
    joins_by: str = setting(
        "frequency",
        "which pieces wordpiece joins first: the pair seen most often, or by likelihood the one with the highest "
        "count(ab) / (count(a) count(b))",
        choices=("frequency", "likelihood"),
    )
    has_marks: bool = setting(
        False, "wordpiece: [PAD], [UNK], [CLS], [SEP] and [MASK] are in the vocabulary; masked language models set it"
    )
    punctuation: str = setting(
        "attached",
        "attached: words are what white space parts; apart: each mark is a token of its own; dropped: left out (word)",
        choices=("attached", "apart", "dropped"),
    )
    max_bytes: int | None = setting(
        100_000_000, "learn from at most so many bytes, spread over the training split (bpe, wordpiece)", low=1
    )
    path: str | None = setting(
        None,
        "a tokenizer.json, a run folder or a folder with GPT-2's or BERT's tokenizer to reuse instead of learning a "
        "new one",
    )

    def check(self) -> None:
        if self.path is not None:
            return
        if self.kind not in KINDS:
            raise RegardError(
                f"kind is {self.kind}, which Regard reads and does not learn. Set tokenizer.path to a run that has it, "
                f"or kind to one of {', '.join(KINDS)}."
            )
        if self.kind in ("bpe", "wordpiece") and self.vocab_size is None:
            raise RegardError(f"vocab_size must be a whole number for kind {self.kind}, not null: say how many merges.")
        if self.kind == "bpe" and self.vocab_size is not None and self.vocab_size < SMALLEST_BPE:
            raise RegardError(
                f"vocab_size must be at least {SMALLEST_BPE} for bpe (<eos> and the 256 bytes), not {self.vocab_size}."
            )
        if self.kind != "wordpiece" and (self.has_marks or self.joins_by != "frequency"):
            given = "has_marks" if self.has_marks else f"joins_by {self.joins_by}"
            raise RegardError(f"{given} is for wordpiece, not for {self.kind}. Leave it out, or set kind to wordpiece.")
        if self.punctuation != "attached" and self.kind != "word":
            raise RegardError(
                f"punctuation {self.punctuation} is for kind word, and {self.kind} reads every character. Leave it out."
            )
        if self.lowercase and self.kind not in ("word", "wordpiece"):
            raise RegardError(
                f"lowercase works with word and wordpiece, not with {self.kind}, which gives text back unchanged."
            )

    def key(self) -> dict[str, Any]:
        """What stands for it in the cache: the settings of version 0.1.0, and younger ones that are not as then."""
        plain = self.to_dict()
        younger = {"joins_by": "frequency", "has_marks": False, "punctuation": "attached"}
        return {name: value for name, value in plain.items() if younger.get(name, ...) != value}
