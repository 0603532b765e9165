"""Whether a run can start on this machine: its inputs exist, its packages are installed, its directory is free."""

from collections.abc import Iterator

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.load import build
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.baseline_check import baseline_problems
from rlvr_exp.launch.data_check import data_problems
from rlvr_exp.launch.resume import problem_before
from rlvr_exp.launch.store_check import store_problems

CHECKED_BY_BUILDING = ("reward", "tracking")
"""Nodes whose objects are light and report problems at construction."""


def preflight_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Every problem that prevents the start. `fetchable`: what a command can fetch is no problem yet, as in a plan."""
    yield from missing_problems(config, fetchable)
    if reads(config, "engine") and is_server(config.engine) and not config.engine.url:
        allowed, remedy = "http:// or https://, HOST, up to /v1", "engine.url=http://localhost:8000/v1"
        yield InputProblem("engine.url", "not given", "nothing", allowed, "", remedy)
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


def missing_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """What is missing on this machine."""
    return (need.problem for need in missing_artifacts(config) if not (fetchable and need.command))


def _problems_of(node: object) -> tuple[InputProblem, ...]:
    try:
        build(node)
    except InputError as fault:
        return fault.problems
    return ()
