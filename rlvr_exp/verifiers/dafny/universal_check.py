"""Judge the fixed answers of `universal` on all tasks of a data set:

    python -m rlvr_exp.verifiers.dafny.universal_check [PATH] [--tasks N] [--proved N]

PATH is a data.path of Dafny programs or examples; the embedded corpus without it. `--tasks` takes that many tasks of
each role. Candidates that the guards refuse are not proved, since they cannot pass; of the others, `--proved` judges
that many tasks of each answer. 0: all; fewer are drawn by a fixed seed. A row an answer: passes, tasks, and the rules
and buckets that stopped it. Exit codes: 0 without a pass, 1 with one, 2 for data at fault.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from rlvr_exp.config.verifier import Cache, Sandbox
from rlvr_exp.config.verifier import DafnyVerifierOptions as Options
from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, InputError
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.dafny.domain import DafnyDomain
from rlvr_exp.tasks.dafny.role_examples import ROLES
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain, printed
from rlvr_exp.tasks.problems import DafnyProblem
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.dafny import guards
from rlvr_exp.verifiers.dafny.declarations import read_declarations
from rlvr_exp.verifiers.dafny.universal import ANSWERS
from rlvr_exp.verifiers.dafny.verifier import DafnyVerifier


@dataclass(frozen=True)
class Row:
    """The results of one answer on all tasks. `held`: how often each rule, or bucket of the tool, stopped it."""

    name: str
    tasks: int
    passed: tuple[str, ...]
    held: Counter[str]


def check(problems: Sequence[tuple[str, DafnyProblem]], verifier: DafnyVerifier, proved: int = 0) -> Iterator[Row]:
    """One row an answer.

    Args:
        problems: problems with their names.
        proved: how many of those that pass the guards are judged; 0: all.
    """
    for name, answer in ANSWERS:
        held: Counter[str] = Counter()
        left = []
        for title, problem in problems:
            text = answer(problem.program)
            rule = refused(problem, text)
            held.update([rule] if rule else [])
            left += [] if rule else [(title, Request(problem, Candidate(text)))]
        if proved and len(left) > proved:
            held["not judged"] = len(left) - proved
            left = Random(0).sample(left, proved)
        verdicts = verifier.verify([request for _, request in left])
        held.update(one.rule or one.bucket or one.outcome for one in verdicts)
        passed = tuple(title for (title, _), one in zip(left, verdicts, strict=True) if one.outcome == "passed")
        yield Row(name, len(problems), passed, held)


def refused(problem: DafnyProblem, text: str) -> str:
    """The rule by which the guards alone refuse it; empty where none does."""
    given, shown = plain(problem.program), plain(text)
    early = guards.before_parsing(given, shown)
    if early is not None:
        return early.rule
    try:
        violation, _ = guards.check(
            read_declarations(printed(given)), printed(shown), problem.protect or "specification"
        )
    except Unreadable:
        return "unreadable"
    return violation.rule if violation is not None else ""


def problems_of(path: str, most: int = 0) -> list[tuple[str, DafnyProblem]]:
    """The tasks of both roles, at most `count` of each (0: all). Raises InputError."""
    splits = DafnyDomain(path, role="both", dev_fraction=0, test_fraction=0).splits()
    tasks = [task for found in splits.values() for task in found]
    roles = [[task for task in tasks if task.inputs.role == role] for role in ROLES]
    drawn = [Random(0).sample(found, most) if 0 < most < len(found) else found for found in roles]
    return [(task.id, task.problem) for found in drawn for task in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m rlvr_exp.verifiers.dafny.universal_check", description=__doc__)
    parser.add_argument("path", nargs="?", default="", help="a data.path; empty: the embedded corpus")
    parser.add_argument("--tasks", type=int, default=0, help="tasks of each role; 0: all")
    parser.add_argument("--proved", type=int, default=0, help="tasks of each answer that Dafny judges; 0: all")
    parser.add_argument("--workers", type=int, default=0, help="provers in parallel; 0: one a core")
    chosen = parser.parse_args(arguments)
    options = Options()
    limits: dict[str, Any] = {"rlimit": options.rlimit, "cpu_s": options.cpu_s, "wall_s": 300.0, "memory_mb": options.memory_mb}
    try:
        problems = problems_of(chosen.path, chosen.tasks)
        with DafnyVerifier(Sandbox(workers=chosen.workers), Cache(), **limits) as verifier:
            rows = [_shown(row) for row in check(problems, verifier, chosen.proved)]
    except InputError as error:
        print(error)
        return BAD_INPUT
    passes = sum(len(row.passed) for row in rows)
    print(f"answers: {len(rows)}, tasks: {len(problems)}, passes: {passes} of {len(rows) * len(problems)}")
    return FAULT if passes else DONE


def _shown(row: Row) -> Row:
    held = ", ".join(f"{count} {what}" for what, count in row.held.most_common())
    print(f"{len(row.passed)} of {row.tasks}  {row.name}: {held}", flush=True)
    return row


if __name__ == "__main__":
    raise SystemExit(main())
