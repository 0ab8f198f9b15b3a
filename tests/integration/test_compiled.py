"""torch.compile, in a process of its own: the tests' shape checks cannot be compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_training import lasting_metrics

SCRIPT = Path(__file__).parents[1] / "tiny_training.py"


def train(folder: Path, model: str, backend: str | None) -> list[dict[str, float]]:
    sections = {"runtime": {"is_compiled": backend is not None}}
    jobs = [{"folder": str(folder), "model": model, "sections": sections, "backend": backend}]
    subprocess.run([sys.executable, SCRIPT, json.dumps(jobs)], check=True, capture_output=True, timeout=300)
    return lasting_metrics(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "backend"),
    [
        ("transformer", "inductor"),
        ("lstm", "inductor"),
        # Making code takes up to a minute; of these it is tested that they can be traced, and that the trace is right.
        ("rnn-attention", "eager"),
        ("pointer", "eager"),
        ("convolution", "eager"),
        ("restricted", "eager"),
    ],
)
def test_a_compiled_model_learns_what_the_plain_one_learns(model: str, backend: str, tmp_path: Path) -> None:
    plain, compiled = train(tmp_path / "plain", model, None), train(tmp_path / "compiled", model, backend)
    assert len(plain) == len(compiled) == 9
    for a, b in zip(plain, compiled, strict=True):
        assert a["nats_per_token"] == pytest.approx(b["nats_per_token"], abs=1e-4)
