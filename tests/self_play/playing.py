"""Small tasks, programs and rows for the tests of self-play."""

from typing import Any

from rlvr_exp.domains.arc.puzzle import ArcRecord, Pair
from rlvr_exp.domains.arc.tasks import Arc, to_task
from rlvr_exp.self_play.found import Found, found
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Verdict

LIMITS = {"cpu_s": 0.5, "wall_s": 6.0, "memory_mb": 100, "output_kb": 16, "level": "auto", "require": ""}
MIRROR = "def solve(g):\n    return [row[::-1] for row in g]"
FLIP = "def solve(g):\n    return g[::-1]"


def task(name: str = "t", family: str = "mirror", first: int = 1) -> Task:
    """Three pairs that are mirrored, one held back; no two names share an input where `first` differs."""
    inputs = [((first, n), (n, 0)) for n in (2, 3, 4)]
    pairs = tuple(Pair(grid, tuple(row[::-1] for row in grid)) for grid in inputs)
    return to_task(ArcRecord(name, name, family, "train", pairs[:2], pairs[2:], MIRROR))


def failed(host: Task, program: str, outputs: list[Any], passed: int = 0, **more: Any) -> Found:
    total = len(host.problem.cases)
    verdict = Verdict("failed", "wrong_answer", passed=passed, total=total, log="case 0: gave something else")
    return found(host, program, verdict, tuple(outputs), more.pop("operator", "sampled"), program, **more)


def passed(host: Task, program: str = MIRROR) -> Found:
    outputs = tuple(case.expected for case in host.problem.cases)
    verdict = Verdict("passed", passed=len(outputs), total=len(outputs))
    return found(host, program, verdict, outputs, "sampled", program)


def flipped(host: Task) -> list[Any]:
    """What FLIP returns on the inputs of a task."""
    return [case.args[0][::-1] for case in host.problem.cases]


DOMAIN = Arc()
