"""Checks that a verifier handles the problems of the data: reported before any work, not by a run without verdicts."""

from collections.abc import Iterable, Sequence

from rlvr_exp.core.errors import InputError
from rlvr_exp.launch.preflight import problem_formats, verifier_mismatch
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier


def check_verifier_match(verifier: Verifier, tasks: Iterable[Task]) -> None:
    """Raises InputError where a verifier of ours does not take the problems; a user's own may take any."""
    name = verifier.row_format or verifier.name
    if problem := verifier_mismatch(name, problem_formats(tasks), verifier.also_judges):
        raise InputError(problem)


def all_tasks(domain: Domain) -> Sequence[Task]:
    return [task for tasks in domain.splits().values() for task in tasks]
