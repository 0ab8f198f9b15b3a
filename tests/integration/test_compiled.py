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
