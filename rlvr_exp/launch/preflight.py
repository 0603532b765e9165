"""Whether a run can start on this machine: its inputs exist, its packages are installed, its directory is free."""

from collections.abc import Iterator

from rlvr_exp.config import Config, build
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.baseline_check import baseline_problems
from rlvr_exp.launch.data_check import data_problems
from rlvr_exp.launch.resume import problem_before
from rlvr_exp.launch.store_check import store_problems

CHECKED_BY_BUILDING = ("reward", "tracking")
"""Nodes whose objects are light and report problems at construction."""


def preflight_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Every problem that prevents the start. `fetchable`: artifacts that are not here yet do not count."""
    yield from (need.problem for need in missing_artifacts(config) if need.unusable or not fetchable)
    for name in CHECKED_BY_BUILDING:
        node = getattr(config, name)
        # A user's own class may import anything; it reports problems when the stage builds it.
        if reads(config, name) and node._target_ in SCHEMAS:
            yield from _problems_of(node)
    yield from data_problems(config)
    yield from baseline_problems(config)
    yield from store_problems(config)
    if problem := problem_before(config):
        yield problem


def _problems_of(node: object) -> tuple[InputProblem, ...]:
    try:
        build(node)
    except InputError as fault:
        return fault.problems
    return ()
