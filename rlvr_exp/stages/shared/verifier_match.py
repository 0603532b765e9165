"""Checks that a verifier handles the problems of the data: reported before any work, not by a run without verdicts."""

from collections.abc import Iterable, Sequence

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.formats.rows import FORMATS, format_of
from rlvr_exp.verifiers.base import Verifier


def check_verifier_match(verifier: Verifier, tasks: Iterable[Task]) -> None:
    """Raises InputError where a verifier of ours does not take the problems; a user's own may take any."""
    name = verifier.row_format or verifier.name
    needed = sorted({form.name for task in tasks if (form := format_of(task.problem))})
    if name not in FORMATS or not needed or needed == [name]:
        return
    allowed = " or ".join(f"verifier={other}" for other in needed)
    raise InputError(InputProblem("verifier", "does not judge the problems of this data", name, allowed, "", allowed))


def all_tasks(domain: Domain) -> Sequence[Task]:
    return [task for tasks in domain.splits().values() for task in tasks]
