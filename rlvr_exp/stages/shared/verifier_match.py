"""Checks that a verifier handles the problems of the data: reported before any work, not by a run without verdicts."""

from collections.abc import Iterable, Mapping, Sequence

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.problems import AstGrepProblem, DafnyProblem, PytestProblem, PythonProblem
from rlvr_exp.verifiers.base import Verifier

JUDGED_BY: Mapping[type, str] = {
    PythonProblem: "python_io",
    PytestProblem: "pytest",
    DafnyProblem: "dafny",
    AstGrepProblem: "ast_grep",
}
"""The verifier of each kind of problem, by its name or by the format of rows that it takes."""


def check_verifier_match(verifier: Verifier, tasks: Iterable[Task]) -> None:
    """Raises InputError where a verifier of ours does not take the problems; a user's own may take any."""
    name = verifier.row_format or verifier.name
    found = {type(task.problem) for task in tasks}
    needed = sorted({JUDGED_BY[kind] for kind in found if kind in JUDGED_BY})
    if name not in JUDGED_BY.values() or not needed or needed == [name]:
        return
    allowed = " or ".join(f"verifier={other}" for other in needed)
    raise InputError(InputProblem("verifier", "does not judge the problems of this data", name, allowed, "", allowed))


def all_tasks(domain: Domain) -> Sequence[Task]:
    return [task for tasks in domain.splits().values() for task in tasks]
