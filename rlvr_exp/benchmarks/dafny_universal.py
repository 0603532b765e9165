"""`benchmark=dafny_universal`: the fixed answers of `rlvr_exp.verifiers.dafny.universal` on all tasks of a data set.

Candidates that the guards refuse are not proved, since they cannot pass. A row an answer: passes, tasks, and the rules and
buckets that stopped it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import RunContext
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.dafny.domain import DafnyDomain
from rlvr_exp.tasks.dafny.role_examples import ROLES
from rlvr_exp.tasks.dafny.syntax import Unreadable
from rlvr_exp.tasks.dafny.tokens import plain, printed
from rlvr_exp.tasks.formats.dafny import DafnyProblem
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
    """The tasks of both roles, at most `most` of each (0: all). Raises InputError."""
    splits = DafnyDomain(path, role="both", dev_fraction=0, test_fraction=0).splits()
    tasks = [task for found in splits.values() for task in found]
    roles = [[task for task in tasks if task.inputs.role == role] for role in ROLES]
    drawn = [Random(0).sample(found, most) if 0 < most < len(found) else found for found in roles]
    return [(task.id, task.problem) for found in drawn for task in found]


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """A row an answer. Raises InputError for faults of the data, GuardStop where an answer passes."""
    options, lines = config.benchmark, list[str]()
    problems = problems_of(options.path, options.tasks)
    passes = 0
    with build(config.verifier, sandbox=config.sandbox, cache=config.cache) as verifier:
        for done, row in enumerate(check(problems, verifier, options.proved), 1):
            held = ", ".join(f"{count} {what}" for what, count in row.held.most_common())
            lines.append(f"{len(row.passed)} of {row.tasks}  {row.name}: {held}")
            passes += len(row.passed)
            context.progress(kind="phase", name="answers", done=done, total=len(ANSWERS))
    total = len(ANSWERS) * len(problems)
    text = "\n".join([*lines, f"answers: {len(ANSWERS)}, tasks: {len(problems)}, passes: {passes} of {total}"])
    if passes:
        raise GuardStop(text)
    return text, {"answers": len(ANSWERS), "tasks": len(problems), "passes": passes}
