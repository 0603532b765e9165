"""Tasks by the set that they come from, for mixtures of sets (`data.mix`)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain, Task


def sources_of(domain: Domain, tasks: Sequence[Task], mix: Mapping[str, float]) -> dict[str, str]:
    """The source of each task that a mixture takes, by the task's id.

    Raises:
        InputError: the mixture names a source that none of the tasks has.
    """
    found = {task.id: domain.source(task) for task in tasks}
    counts = Counter(found.values())
    if absent := [source for source in mix if source not in counts]:
        allowed = ", ".join(f"{source} ({count} tasks)" for source, count in counts.most_common())
        remedy = "data.mix={SOURCE: SHARE, ...} of sources that are there"
        what = "no task to train on comes from there"
        raise InputError(InputProblem("data.mix", what, ", ".join(absent), allowed, "", remedy))
    return {name: source for name, source in found.items() if source in mix}
