"""torch.compile, in a process of its own: the tests' shape checks cannot be compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_training import lasting_metrics

SCRIPT = Path(__file__).parents[1] / "tiny_training.py"


def trained(folder: Path, models: tuple[str, ...], backend: str) -> None:
    """Train each model, plain and compiled, all in one process: to start one takes longer than most trainings."""
    jobs = [
        {"folder": str(folder / model / name), "model": model, "backend": used,
         "sections": {"runtime": {"is_compiled": used is not None}}}
        for model in models for name, used in (("plain", None), ("compiled", backend))
    ]  # fmt: skip
    subprocess.run([sys.executable, SCRIPT, json.dumps(jobs)], check=True, capture_output=True, timeout=300)


NEW_WORDS = """
import torch
from regard.models.word_input import WordInput
from regard.models.word_input_config import WordsConfig
from regard.text.config import TokenizerConfig
from regard.text.learning import train_tokenizer

tokenizer = train_tokenizer(TokenizerConfig(kind="word", vocab_size=None), ["the cat sat"])
config = WordsConfig(d_word=3, filters=(2,), d_character=4, max_characters=8, n_learned=2, n_fixed=0, n_bytes=9)
made = WordInput(config)
made.spelled.copy_(torch.tensor(list(b"<unk>\\nthe")))
words = made.hear_of(tokenizer)
made._meet()
made._read_characters = lambda tokens, characters: characters[tokens].float()  # torch.unique cannot be compiled whole
plain = made(tokens := torch.from_numpy(words.encode("the cat"))[None].long())
assert torch.equal(torch.compile(made, fullgraph=True, backend="eager")(tokens), plain)
"""


@pytest.mark.slow
def test_new_words_do_not_cut_a_compiled_model_in_two() -> None:
    done = subprocess.run([sys.executable, "-c", NEW_WORDS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "backend"),
    [
        pytest.param(("transformer",), "inductor", marks=pytest.mark.heavy),
        pytest.param(("lstm",), "inductor", marks=pytest.mark.heavy),
        # Making code takes up to a minute; of these it is tested that they can be traced, and that the trace is right.
        (("rnn-attention", "pointer", "convolution", "restricted"), "eager"),
    ],
)
def test_a_compiled_model_learns_what_the_plain_one_learns(
    models: tuple[str, ...], backend: str, tmp_path: Path
) -> None:
    trained(tmp_path, models, backend)
    for model in models:
        plain, compiled = (lasting_metrics(tmp_path / model / name) for name in ("plain", "compiled"))
        assert len(plain) == len(compiled) == 9, model
        for a, b in zip(plain, compiled, strict=True):
            assert a["nats_per_token"] == pytest.approx(b["nats_per_token"], abs=1e-4), model
