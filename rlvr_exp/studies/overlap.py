"""Tasks of one group that another group was trained on: what is gained on them is no transfer."""

from collections.abc import Iterator, Sequence

from rlvr_exp.config.load import load
from rlvr_exp.studies.lineage import Training, trained_by
from rlvr_exp.studies.study import Run


def overlaps(trained: Sequence[Run]) -> Iterator[str]:
    """A sentence for each pair of groups, one of which has held-out tasks that share content with what the other was trained
    on. A run keeps its own apart by itself.

    Raises:
        InputError: data have changed since a run.
    """
    learned, held_out = {}, {}
    for run in {run.job.arm: run for run in trained}.values():
        config = load(run.directory / "config.yaml")
        own = next(trained_by(config, run.job.name, run.directory))
        if isinstance(own, Training):
            tasks = own.domain.splits().get(config.evaluation.split, ())
            learned[run.job.arm] = {key for task in own.tasks for key in own.domain.contents(task)}
            held_out[run.job.arm] = [own.domain.contents(task) for task in tasks]
    for group, tasks_of_it in held_out.items():
        for other, keys in learned.items():
            shared = sum(not keys.isdisjoint(contents) for contents in tasks_of_it)
            if group != other and shared:
                yield (
                    f"{shared} of the {len(tasks_of_it)} held-out tasks of {group} share content with tasks that {other} was"
                    f" trained on: as far as it is of these, what {other} gains on {group} is no transfer."
                )
