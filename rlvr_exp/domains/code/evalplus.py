"""`benchmark=evalplus`: verdicts of the configured verifier against those of EvalPlus, on the same program texts.

The programs are the tasks' reference solutions, mutants of them, and completions from files. The domain reads the program
from a completion once, and both sides judge this text. EvalPlus runs as its own command, on its own data file reduced to
the tasks that are compared. A program passes EvalPlus if it passes the base inputs and the further inputs.

EvalPlus executes programs without a sandbox: compare completions of models that you would run on this machine.
"""

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.statistics import wilson
from rlvr_exp.domains.code.options import EvalPlus
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import evaluation_path
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.mutants import chosen
from rlvr_exp.tasks.rows import read_rows
from rlvr_exp.verifiers.base import Request, Verdict

KINDS = ("reference", "mutant", "completion")
DATASETS = {"HumanEval": ("humaneval", "HUMANEVAL_OVERRIDE_PATH"), "Mbpp": ("mbpp", "MBPP_OVERRIDE_PATH")}
"""By the first part of a task's id: EvalPlus's name of the set, and the variable that names its data file."""
ORACLES = ("are_equivalent", "sum_div", "surface_Area", "digit_distance_nums")
"""Functions of MBPP+ for which EvalPlus accepts further answers, from its `_special_oracle.py`."""
UNCOUNTED = "find_zero"
"""A function of HumanEval+ that EvalPlus 0.3.1 lets no program pass: its oracle leaves the inputs uncounted."""
LIMITS = ("timeout", "memory", "output_limit")
SHOWN = 20


@dataclass(frozen=True)
class ProgramText:
    """One program text of a task."""

    task: str
    kind: str
    candidate: Candidate

    @property
    def code(self) -> str:
        """The text for EvalPlus: an answer without a program is an empty one."""
        return self.candidate.text or ""


@dataclass(frozen=True)
class Status:
    """EvalPlus's result for a program: `pass`, `fail` or `timeout`, on its base and on its further inputs."""

    base: str
    plus: str
    failing: tuple[str, ...]
    """Inputs that failed, as text. EvalPlus stops at the first."""

    @property
    def passed(self) -> bool:
        return self.base == self.plus == "pass"


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, Any]]:
    """The table of agreement, and its counts.

    Raises:
        InputError: the data or a file of completions cannot be compared, or EvalPlus does not run.
        GuardStop: the agreement is below `benchmark.require`.
    """
    options, domain = config.benchmark, build(config.data)
    assert isinstance(options, EvalPlus)
    rows = {row.text("task_id"): dict(row.values) for row in read_rows(Path(options.path))}
    tasks = {task.id: task for found in domain.splits().values() for task in found}
    compared = {name: task for name, task in tasks.items() if name in rows}
    if not compared or len({name.partition("/")[0] for name in compared} & DATASETS.keys()) != 1:
        allowed = "data=code with HumanEval+ or MBPP+, and benchmark.path with EvalPlus's file of the same set"
        raise InputError(InputProblem("benchmark.path", "has no task of data.path", options.path, allowed))
    programs = [*_own(compared, domain, options.mutants), *_completions(options, domain, compared)]
    judged = list(dict.fromkeys((one.task, one.candidate) for one in programs))
    context.progress(kind="note", text=f"{len(programs)} programs of {len(compared)} tasks, {len(judged)} different")
    context.progress(kind="phase", name="verdicts", done=0, total=2)
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        verdicts = verifier.verify([Request(compared[name].problem, candidate) for name, candidate in judged])
    ours = dict(zip(judged, verdicts, strict=True))
    context.progress(kind="phase", name="EvalPlus", done=1, total=2)
    texts = list(dict.fromkeys((one.task, one.code) for one in programs))
    theirs = statuses(options, rows, texts, context.directory, config.sandbox.workers)
    found = [(one, ours[one.task, one.candidate], theirs[one.task, one.code]) for one in programs]
    differences = [
        {
            "task": one.task,
            "kind": one.kind,
            "reason": _reason(verdict, status, compared[one.task], rows[one.task]),
            "outcome": verdict.outcome,
            "bucket": verdict.bucket or "",
            "log": verdict.log,
            "base": status.base,
            "plus": status.plus,
            "failing": [text[:200] for text in status.failing],
            "code": one.code,
        }
        for one, verdict, status in found
        if verdict.outcome != "no_verdict" and (verdict.outcome == "passed") != status.passed
    ]
    lines = "".join(json.dumps(one) + "\n" for one in differences)
    write_text(context.directory / "differences.jsonl", lines)
    text, counts = _report(found, differences, options.version(), len(rows) - len(compared))
    if counts["agreement"] < options.require:
        raise GuardStop(f"{text}\nagreement {counts['agreement']:.4f} is below benchmark.require={options.require:g}")
    return text, counts


def _own(tasks: Mapping[str, Task], domain: Domain, mutants: int) -> Iterator[ProgramText]:
    """Reference solutions and their mutants."""
    for name, task in tasks.items():
        if task.gold is not None:
            reference = domain.parse(task.gold, task)
            yield ProgramText(name, "reference", reference)
            for one in chosen(reference.text or "", mutants, name):
                yield ProgramText(name, "mutant", Candidate(one.code))


def _completions(options: EvalPlus, domain: Domain, tasks: Mapping[str, Task]) -> Iterator[ProgramText]:
    """The programs of all completions, except those of tasks that the verifier's form leaves out."""
    left_out = domain.left_out()
    for name in options.completions:
        path = evaluation_path(Path(name), "after") if Path(name).is_dir() else Path(name)
        for row in read_rows(path):
            task = row.text("task")
            if task in tasks:
                yield ProgramText(task, "completion", domain.parse(row.text("completion"), tasks[task]))
            elif task not in left_out:
                what, allowed = "no such task in data.path and benchmark.path", f"{', '.join([*tasks][:3])}, ..."
                raise InputError(InputProblem(f"{row.where}, task", what, task, allowed))


def statuses(
    options: EvalPlus,
    rows: Mapping[str, Mapping[str, Any]],
    texts: Sequence[tuple[str, str]],
    folder: Path,
    workers: int,
) -> dict[tuple[str, str], Status]:
    """EvalPlus's result for each (task, program). Raises InputError if EvalPlus does not run.

    EvalPlus requires a program of every task of its data file, so the file holds the tasks of the programs alone.
    """
    dataset, variable = DATASETS[texts[0][0].partition("/")[0]]
    folder = (folder / "evalplus").resolve()
    data, samples = folder / "tasks.jsonl", folder / "samples.jsonl"
    named = dict.fromkeys(name for name, _ in texts)
    write_text(data, "".join(json.dumps(rows[name]) + "\n" for name in named))
    write_text(samples, "".join(json.dumps({"task_id": name, "solution": code}) + "\n" for name, code in texts))
    results = folder / "samples_eval_results.json"
    results.unlink(missing_ok=True)
    command = [options.interpreter, "-m", "evalplus.evaluate", "--dataset", dataset, "--samples", samples.name]
    command += ["--parallel", str(workers or os.cpu_count() or 1), "--min_time_limit", str(options.input_s)]
    # Expected values are computed for this data file, and nothing is fetched. The samples are named without their folder:
    # EvalPlus replaces every ".jsonl" in the path to name its results.
    environment = {variable: str(data), "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, errors="replace", check=False
    )
    write_text(folder / "log.txt", done.stdout + done.stderr)
    if done.returncode or not results.is_file():
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        what = f"evalplus ended with exit code {done.returncode}"
        raise InputError(InputProblem("benchmark.python", what, last, remedy=f"see {folder / 'log.txt'}"))
    found = {}
    for name, each in json.loads(results.read_text(encoding="utf-8"))["eval"].items():
        for one in each:
            failing = [*(one["base_fail_tests"] or []), *(one["plus_fail_tests"] or [])]
            shown = tuple(repr(given)[1:-1] for given in failing)
            found[name, one["solution"]] = Status(one["base_status"], one["plus_status"], shown)
    return found


def _reason(verdict: Verdict, status: Status, task: Task, row: Mapping[str, Any]) -> str:
    """The class of a difference, from the reports of both sides."""
    if verdict.bucket in LIMITS:
        return "limit of the verifier"
    if "timeout" in (status.base, status.plus):
        return "time limit of EvalPlus"
    if row["entry_point"] == UNCOUNTED and verdict.outcome == "passed":
        return "EvalPlus passes no program of this task"
    if row["entry_point"] in ORACLES:
        return "further answers that EvalPlus accepts"
    inputs, problem = "", task.problem
    if isinstance(problem, PythonProblem):
        inputs = "\n".join(repr(case.args)[1:-1] for case in problem.cases if isinstance(case, Case))
    elif isinstance(problem, PytestProblem):
        inputs = problem.tests
    if status.failing and all(_plain(text) not in _plain(inputs) for text in status.failing):
        return "input that the tests of the data lack"
    return "comparison of values" if verdict.bucket in ("wrong_answer", None) else f"execution: {verdict.bucket}"


def _plain(text: str) -> str:
    """Without the difference between tuples and lists, which EvalPlus's results lack."""
    return re.sub(r",(?=\]|$)", "", text.translate(str.maketrans("()", "[]")), flags=re.MULTILINE)


def _report(
    found: Sequence[tuple[ProgramText, Verdict, Status]],
    differences: Sequence[dict[str, Any]],
    version: str,
    absent: int,
) -> tuple[str, dict[str, Any]]:
    lines = ["| programs | number | pass both | pass ours alone | pass EvalPlus alone | agreement (95% interval) |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    unknown = sum(verdict.outcome == "no_verdict" for _, verdict, _ in found)
    counts: dict[str, Any] = {"evalplus": version, "no_verdict": unknown}
    for kind in (*KINDS, "all"):
        cell = Counter(
            (verdict.outcome == "passed", status.passed)
            for one, verdict, status in found
            if verdict.outcome != "no_verdict" and kind in (one.kind, "all")
        )
        if cell:
            share = wilson(cell[True, True] + cell[False, False], cell.total())
            shown = f"{share.value:.2%} [{share.low:.2%}, {share.high:.2%}]"
            cells = [kind, cell.total(), cell[True, True], cell[True, False], cell[False, True], shown]
            lines.append(f"| {' | '.join(map(str, cells))} |")
            counts[kind] = cell.total()
            counts[f"{kind}/ours_alone"], counts[f"{kind}/evalplus_alone"] = cell[True, False], cell[False, True]
            counts["agreement"] = share.value
    lines.append(
        f"\nevalplus {version}; {unknown} programs without a verdict; {absent} tasks of benchmark.path are not compared"
    )
    for reason, number in Counter(one["reason"] for one in differences).most_common():
        lines.append(f"{number} differ: {reason}")
    for one in differences[:SHOWN]:
        ours, said = f"{one['outcome']} {one['bucket']}".strip(), one["log"] or " ".join(one["failing"])
        theirs = f"EvalPlus {one['base']}/{one['plus']}"
        lines.append(f"{one['task']} {one['kind']}: {ours}, {theirs}: {one['reason']}: {said[:200]}")
    return "\n".join(lines), counts
