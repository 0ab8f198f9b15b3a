"""What pre-training is worth: many tasks by many encoders, as one queue of `regard train`, and the tables of it.

    python benchmarks/transfer.py --data data --minilm models/minilm [--jobs 12] [--seconds 1080] [--pretrain 360]
                                  [--first 2] [--seeds 3] [--runs runs/transfer] [--only PATTERN,PATTERN]
                                  [--max-steps N] [--out FILE]

Pre-trains an ELMo, a small BERT and an LSTM language model on novels, `--pretrain` seconds each (or
`elmo=500,bert-small=150,novels-lstm=80`); fine-tunes these and a MiniLM on every task, and trains a BiLSTM from scratch
beside them; `--jobs` commands at a time, those first that matter most. With `--first 2` pre-trainings have the machine
to themselves, two at a time. Every job writes a line into results.jsonl when it ends. Started again, it goes on: what
has ended is skipped, an unfinished pre-training is resumed. After `--seconds` it stops what still runs, and prints the
tables of what there is. A job that fails is told and left out; its output is in logs/.

`--data` is a folder with cola, mrpc, rte, sick, ud_ewt, conll2000, conll2003, squad, sst, sst2_phrases, imdb, eltec and
wikitext2 as the recipes name them; `--only` takes part of the jobs, in the order of patterns such as 'elmo,cola-*';
`--max-steps 2` tries the whole queue.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import yaml
from timing import options
from transfer_jobs import BARS, ENCODERS, PRE_TRAINED, Job, Places, list_jobs, write_data

from regard.studies.fits import spread_of_scores

LAYERS = "CoNLL-2003 by layers of a frozen encoder, F1"
RESULTS = "results.jsonl"
GRACE = 20.0
"""Seconds that a stopped job has to save what it has."""
Value = dict[str, Any]
"""Where a score belongs (table, row, column, seed), the score and its interval over examples."""


def main() -> None:
    given = read_options()
    began = time.monotonic()
    runs: Path = given.runs
    runs.mkdir(parents=True, exist_ok=True)
    places = Places(given.data.resolve(), given.minilm.resolve(), runs.resolve())
    if given.tiny:
        jobs = tiny_jobs(places.runs)
    else:
        jobs = list_jobs(places, given.seeds, given.pretrain)
        if not (runs / "data" / "imdb-valid.tsv").exists():
            write_data(places, given.seeds)
    jobs = choose_jobs(jobs, given.only.split(","))
    queue = Queue(jobs, runs, given.jobs, began + given.seconds, common_settings(given), given.first)
    queue.work()
    text = write_tables(queue.results)
    print(text)
    seconds = time.monotonic() - began
    print(f"\n{len(queue.results)} of {len(jobs)} jobs, {seconds:.0f} s in this start, {given.jobs} at a time")
    if given.out is not None:
        given.out.write_text(json.dumps(queue.results, indent=1) + "\n", encoding="utf-8")


def read_options() -> argparse.Namespace:
    parser = options(__doc__ or "")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data sets")
    parser.add_argument("--minilm", type=Path, default=Path("models/minilm"), help="a Hugging Face folder")
    parser.add_argument("--runs", type=Path, default=Path("runs/transfer"), help="where runs and results are written")
    parser.add_argument("--jobs", type=int, default=2, help="commands at a time")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="stop after so many")
    parser.add_argument(
        "--pretrain", type=read_seconds, default=read_seconds("1200"),
        help="seconds of each pre-training, or of some: NAME=SECONDS,NAME=SECONDS",
    )  # fmt: skip
    parser.add_argument("--first", type=int, help="pre-train so many at a time, and begin nothing else before")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind")
    parser.add_argument("--only", default="*", help="take part of the jobs, in the order of these patterns of names")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--max-steps", type=int, help="updates of every training at most, to try the queue")
    return parser.parse_args()


def read_seconds(text: str) -> dict[str, float]:
    """Seconds by the recipe of an encoder.

    >>> read_seconds("60")
    {'novels-lstm': 60.0, 'elmo': 60.0, 'bert-small': 60.0}
    >>> read_seconds("elmo=90,bert-small=30,novels-lstm=20")["elmo"]
    90.0
    """
    names = tuple(PRE_TRAINED.values())
    if "=" not in text:
        return dict.fromkeys(names, float(text))
    found = {name: float(seconds) for name, _, seconds in (part.partition("=") for part in text.split(","))}
    if set(found) != set(names):
        raise argparse.ArgumentTypeError(f"give seconds to each of {', '.join(names)}, not {', '.join(found)}")
    return found


def choose_jobs(jobs: Sequence[Job], patterns: Sequence[str]) -> list[Job]:
    """Those whose names match a pattern, in the order of the patterns, and of the jobs where they match the same."""
    chosen = [job for pattern in patterns for job in jobs if fnmatch.fnmatch(job.name, pattern)]
    return list({job.name: job for job in chosen}.values())


def common_settings(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """What every training is given beside its own."""
    limit = {} if given.max_steps is None else {"max_steps": given.max_steps, "eval_every": given.max_steps}
    return {
        "train": limit,
        "checkpoint": {"has_tensorboard": False, "log_every": 50},
        "runtime": {"device": given.device, **({"n_threads": 1} if given.device == "cpu" else {})},
    }


@dataclass
class Running:
    """A job at work."""

    job: Job
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    began: float
    commands: list[list[str]]
    """What is to be done after the command that runs now."""


class Queue:
    """Runs jobs in their order, some at a time, each when what it needs has ended."""

    def __init__(
        self,
        jobs: Sequence[Job],
        runs: Path,
        n_at_once: int,
        deadline: float,
        common: dict[str, dict[str, Any]],
        n_first: int | None,
    ) -> None:
        """`n_first` pre-trainings are made at a time, before anything else; None: they are jobs like others."""
        self.runs, self.n_at_once, self.deadline, self.common = runs, n_at_once, deadline, common
        self.n_first = n_first
        for name in ("configs", "logs"):
            (runs / name).mkdir(exist_ok=True)
        self.results = read_results(runs / RESULTS)
        self.ended = {result["job"] for result in self.results}
        self.waiting = [job for job in jobs if job.name not in self.ended]
        self.running: list[Running] = []

    def work(self) -> None:
        """Until there is nothing left to do, or no time."""
        while self.waiting or self.running:
            if time.monotonic() > self.deadline - GRACE:
                self._stop()
                return
            for running in list(self.running):
                if running.process.poll() is not None:
                    self._finish(running)
            self._leave_out()
            while len(self.running) < self.n_at_once and (job := self._next()) is not None:
                self._start(job)
            time.sleep(0.2)

    def _next(self) -> Job | None:
        """The first job that waits for nothing; a pre-training, while some are left that are to be made first."""
        ready = [job for job in self.waiting if job.needs is None or job.needs in self.ended]
        n_running = sum(running.job.is_pre_training for running in self.running)
        if self.n_first is not None and (n_running or any(job.is_pre_training for job in self.waiting)):
            ready = [job for job in ready if job.is_pre_training and n_running < self.n_first]
        job = next(iter(ready), None)
        if job is not None:
            self.waiting.remove(job)
        return job

    def _leave_out(self) -> None:
        """Give up what needs a job that failed, or that is not to be done."""
        there = {job.name for job in self.waiting} | {running.job.name for running in self.running} | self.ended
        for job in [job for job in self.waiting if job.needs is not None and job.needs not in there]:
            self.waiting.remove(job)
            print(f"{job.name}: left out, since {job.needs} is not there", flush=True)

    def _start(self, job: Job) -> None:
        first, *others = self._commands(job)
        log = open(self.runs / "logs" / f"{job.name}.log", "wb")  # noqa: SIM115 - closed when the job ends
        self.running.append(Running(job, self._spawn(first, log, log), log, time.monotonic(), others))

    def _spawn(self, command: Sequence[str], out: IO[bytes], log: IO[bytes]) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}
        return subprocess.Popen([sys.executable, "-m", "regard", *command], env=environment, stdout=out, stderr=log)

    def _commands(self, job: Job) -> list[list[str]]:
        folder = self.runs / job.name
        if job.command:
            shutil.rmtree(folder, ignore_errors=True)
            return [[*job.command, "--out", str(folder)]]
        judge = [["eval", str(folder), "--json"]] if job.is_judged_by_all else []
        if job.keeps_weights and (folder / "state").is_dir():
            return [["train", "--resume", "--out", str(folder)], *judge]
        shutil.rmtree(folder, ignore_errors=True)
        path = self.runs / "configs" / f"{job.name}.yaml"
        config = {"seed": job.seed, **job.config}
        for section, settings in self.common.items():
            config[section] = {**config.get(section, {}), **settings}
        if not job.keeps_weights:
            config["checkpoint"] = {**config["checkpoint"], "every_seconds": None}
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        return [["train", str(path), "--out", str(folder), "--quiet"], *judge]

    def _finish(self, running: Running) -> None:
        """Go on with the job's next command, or take its scores."""
        job, code = running.job, running.process.returncode
        if code == 0 and running.commands:
            with open(self.runs / "logs" / f"{job.name}.json", "wb") as out:  # the child has it open, too
                running.process = self._spawn(running.commands.pop(0), out, running.log)
            return
        running.log.close()
        self.running.remove(running)
        seconds = time.monotonic() - running.began
        values = []
        try:
            if code != 0:
                raise OSError(f"exit status {code}")
            values = read_values(job, self.runs)
        except (OSError, KeyError, ValueError) as error:
            print(f"{job.name}: failed ({error}), see {self.runs / 'logs' / job.name}.log", flush=True)
        else:
            self._keep({"job": job.name, "seconds": round(seconds, 1), "values": values})
        if not job.keeps_weights:
            drop_weights(self.runs / job.name)

    def _keep(self, result: dict[str, Any]) -> None:
        self.results.append(result)
        self.ended.add(result["job"])
        with open(self.runs / RESULTS, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        told = ", ".join(f"{value['row']} {value['score']:.2f}" for value in result["values"][:3])
        print(f"{result['job']}: {told or 'done'}, {result['seconds']:.0f} s", flush=True)

    def _stop(self) -> None:
        for running in self.running:
            running.process.terminate()
        for running in self.running:
            try:
                running.process.wait(timeout=max(1.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                running.process.kill()
                running.process.wait()
            running.log.close()
            print(f"{running.job.name}: stopped, out of time", flush=True)
        print(f"{len(self.waiting)} jobs were not begun", flush=True)


def drop_weights(folder: Path) -> None:
    """Free the disk: hundreds of runs of 300 MB each are not looked at again."""
    shutil.rmtree(folder / "state", ignore_errors=True)
    (folder / "model.safetensors").unlink(missing_ok=True)


def read_results(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_values(job: Job, runs: Path) -> list[Value]:
    """The scores of a job that has ended."""
    folder = runs / job.name
    if job.command[:1] == ("study",):
        scores = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))["numbers"]["scores"]
        return [
            {"table": LAYERS, "row": s["layers"], "column": s["encoder"], "seed": n, "score": s["value"]}
            for n, s in enumerate(scores)
        ]
    if not job.rows:
        return []
    path = runs / "logs" / f"{job.name}.json" if job.is_judged_by_all else folder / "test.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    values = []
    for row, name in job.rows.items():
        score, interval = read_score(found, name)
        value = {"table": job.table, "row": row, "column": job.column, "seed": job.seed, "score": score}
        values.append(value if interval is None else {**value, "interval": interval})
    return values


def read_score(found: dict[str, Any], name: str) -> tuple[float, list[float] | None]:
    """A score by its name; `F1 of X`, the F1 of one class, is made of the table of confusions."""
    if not name.startswith("F1 of "):
        return found["scores"][name]["value"], found["scores"][name].get("interval")
    k, table = found["labels"].index(name.removeprefix("F1 of ")), found["confusions"]
    return 100 * 2 * table[k][k] / (sum(table[k]) + sum(row[k] for row in table)), None


def write_tables(results: Sequence[dict[str, Any]]) -> str:
    """Markdown: a table of means with their 95% intervals over seeds for each kind of question."""
    scores: dict[str, dict[str, dict[str, list[float]]]] = {}
    for result in results:
        for value in result["values"]:
            row = scores.setdefault(value["table"], {}).setdefault(value["row"], {})
            row.setdefault(value["column"], []).append(value["score"])
    lines = []
    for table, rows in scores.items():
        lines += ["", f"## {table}", ""]
        if table == BARS:  # each score has a command of its own
            lines += [_row(["what", "command", "score"]), _row(["---"] * 3)]
            lines += [_row([name, column, _write(row[column])]) for name, row in rows.items() for column in row]
            continue
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        columns.sort(key=lambda column: ENCODERS.index(column) if column in ENCODERS else len(ENCODERS))
        lines += [_row(["", *columns]), _row(["---"] * (1 + len(columns)))]
        for name, row in rows.items():
            lines.append(_row([name, *(_write(row[column]) if column in row else "" for column in columns)]))
    return "\n".join(lines)


def _write(scores: Sequence[float]) -> str:
    text = spread_of_scores(scores).write("{:.2f}".format)
    return f"{text}, once" if len(scores) == 1 else text


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def tiny_jobs(runs: Path) -> list[Job]:
    """A pre-training and two tasks on built-in texts: they try the queue, and say nothing about pre-training."""
    quick = {"max_steps": 2, "eval_every": 2, "n_batch": 4}
    model = {"name": "lstm", "d_model": 8, "n_layers": 1}
    words = {"kind": "word", "vocab_size": 200}
    first = {
        "data": {"train": "python-docs", "max_bytes": 100_000}, "tokenizer": words, "model": model,
        "train": {**quick, "n_context": 8},
    }  # fmt: skip
    task: dict[str, Any] = {"task": "classification", "data": {"train": "grammar:en-sentiment:60"}, "train": quick}
    job = Job("scratch-0", {**task, "tokenizer": words, "model": model}, (), None, "tiny", "from scratch")
    job = replace(job, rows={"accuracy": "accuracy, %"})
    started = {**task, "encoder_from": str(runs / "lm")}
    return [
        Job("lm", first, keeps_weights=True, is_pre_training=True),
        job,
        replace(job, name="lm-0", config=started, needs="lm", column="pre"),
    ]


if __name__ == "__main__":
    main()
