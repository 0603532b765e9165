"""A base's own errors: the programs of an evaluation that ran and were wrong, as further wrong programs of its problems.

They measure tests beside mutants, and like those only of held-out splits: nothing is trained on them.
"""

import json
import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import replacing
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import EvalSample, evaluation_path, read_evaluation
from rlvr_exp.tasks.completion import whole_program
from rlvr_exp.tasks.content import program_key
from rlvr_exp.tasks.problems.source import ERRORS

OF_A_PROBLEM = 3
"""Most programs of a problem: those that were written most often."""


def make(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Write them, a problem a line. Raises InputError where a run has no evaluation, or none of them was wrong."""
    path = Path(config.prepare.output or context.directory / ERRORS.name)
    rows = [row for run in config.prepare.runs for row in errors_of(_evaluated(Path(run)))]
    if not rows:
        raise InputError(InputProblem("prepare.runs", "no answer ran and was wrong", ", ".join(config.prepare.runs)))
    with replacing(path) as temporary, lzma.open(temporary, "wt", encoding="ascii", preset=9) as out:
        out.writelines(json.dumps(row) + "\n" for row in sorted(rows, key=lambda row: row["id"]))
    return f"written: {path}", {"problems": len(rows), "programs": sum(len(row["wrong"]) for row in rows)}


def errors_of(samples: Iterable[EvalSample]) -> list[dict[str, Any]]:
    """By problem its programs that returned something wrong, each once but for names, the most frequent first."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in samples:
        program = whole_program(one.completion.text).text
        if program and one.verdict.bucket == "wrong_answer":
            of_problem = found.setdefault(one.completion.task.id, {})
            of_problem.setdefault(program_key(program), []).append(program.strip("\n"))
    return [{"id": name, "wrong": _most(programs)} for name, programs in found.items()]


def _most(programs: Mapping[str, list[str]]) -> list[str]:
    """`programs`: as they were written, by what they are but for names."""
    often = sorted(programs.values(), key=len, reverse=True)
    return [texts[0] for texts in often[:OF_A_PROBLEM]]


def _evaluated(run: Path) -> list[EvalSample]:
    if not evaluation_path(run, "after").is_file():
        remedy = "a run of +stage=evaluate data=problems environment=reasoning"
        raise InputError(InputProblem("prepare.runs", "no evaluation is there", str(run), "", "", remedy))
    return read_evaluation(run, "after")
