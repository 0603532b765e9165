"""The curriculum of a run: the configured one, or one for each source of the data's mixture."""

from collections.abc import Sequence

from rlvr_exp.config import build
from rlvr_exp.core.shares import normalized
from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.curriculum.mixed import Mixed
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.sources import sources_of


def curriculum_of(config, domain: Domain, tasks: Sequence[Task]) -> Curriculum:
    """Raises InputError where the mixture names a source without tasks."""
    if not config.data.mix:
        return build(config.curriculum, tasks=tasks, seed=config.seed)
    sources = sources_of(domain, tasks, config.data.mix)
    parts = {
        source: build(
            config.curriculum, tasks=[task for task in tasks if sources.get(task.id) == source], seed=config.seed
        )
        for source in config.data.mix
    }
    return Mixed(parts, normalized(config.data.mix), sources)
