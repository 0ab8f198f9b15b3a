"""Several processes at a time: what one that dies early does to the others, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from regard.run.jobs import Job, run_jobs


def test_a_process_that_dies_before_it_reads_is_told_and_leaves_the_others_alone(tmp_path: Path) -> None:
    text, notes = "x" * 2**20, list[str]()  # more than a pipe holds
    jobs = [
        Job("first", "regard.no_such_module", "", text, 0),
        Job("second", "json.tool", str(tmp_path / "no.json"), "", 0),
    ]
    run_jobs(jobs, 1, tmp_path / "logs", notes.append)
    assert [note.split(" after")[0].split(": ")[1] for note in notes] == ["first, failed", "second, failed"]
    assert "No module named regard.no_such_module" in notes[0]
