"""Every benchmark runs: a script that only a person starts once a month breaks without anybody noticing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHARED = ("ours", "rivals", "sentences", "side_by_side", "timing", "transfer_jobs")
NEEDS = {"bert": "transformers", "generate": "transformers", "gpu": "transformers", "train_step": "transformers",
         "serve": "uvicorn", "translate_cpu": "ctranslate2", "translate_gpu": "transformers"}  # fmt: skip
NAMES = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in SHARED)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_has_a_tiny_form_that_runs(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    out = tmp_path / ("figure.png" if name == "bleu_by_flops" else "figures.json")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), "--tiny", "--out", str(out)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "REGARD_CACHE": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    assert out.stat().st_size > 0
