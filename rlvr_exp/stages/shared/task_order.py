"""What a run draws, and in which order: everything equally often, or the sources of `data.mix` in their shares."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rlvr_exp.algorithms.sft import Examples
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.core.shares import normalized
from rlvr_exp.curriculum.base import Curriculum, Mixed
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.sources import by_source
from rlvr_exp.training.example_order import MixedPasses, Order, Passes


def mixed_tasks(config, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of the sources that are mixed; without a mixture all. Raises InputError where a source has none."""
    if not config.data.mix:
        return [*tasks]
    kept = {task.id for own in by_source(tasks, config.data.mix).values() for task in own}
    return [task for task in tasks if task.id in kept]


def curriculum_of(config, tasks: Sequence[Task]) -> Curriculum:
    """The configured curriculum, or one for each source of the mixture.

    Raises:
        InputError: a source has no tasks, or not those that its curriculum needs.
    """
    mix = config.data.mix
    if not mix:
        return build(config.curriculum, tasks=tasks, seed=config.seed)
    found = by_source(tasks, mix)
    parts = {source: _of_source(config, source, own) for source, own in found.items()}
    return Mixed(parts, normalized(mix), {task.id: source for source, own in found.items() for task in own})


def _of_source(config, source: str, tasks: Sequence[Task]) -> Curriculum:
    """Its seed is its own: sources of one size would otherwise be shuffled alike."""
    try:
        return build(config.curriculum, tasks=tasks, seed=derive(config.seed, "source", source))
    except InputError as fault:
        problems = (replace(one, what=f"{one.what} among those of {source!r}") for one in fault.problems)
        raise InputError(*problems) from fault


def example_order(config, examples: Examples) -> Callable[..., Order]:
    """Makes the order of an imitation's examples, of a key. Raises InputError where a source has no example."""
    mix = config.data.mix
    if not mix:
        return partial(Passes, len(examples))
    indices = examples.by(lambda task: task.source)
    if absent := [source for source in mix if source not in indices]:
        what = "no gold that can be imitated comes from there"
        allowed = ", ".join(f"{source} ({len(own)} golds)" for source, own in indices.items())
        raise InputError(InputProblem("data.mix", what, ", ".join(absent), allowed or "no golds at all"))
    return partial(MixedPasses, indices, normalized(mix))
