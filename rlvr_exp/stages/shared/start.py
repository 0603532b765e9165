"""All that would refuse a run before its first step. The dry plan and the run execute this one list in the parent process,
so that a plan refuses what the run would refuse.

Never imports torch. What cannot be known here, because it takes the weights, an endpoint or a sandbox, is found by the run.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.inference_inputs import input_problems
from rlvr_exp.launch.preflight import missing_problems, preflight_problems
from rlvr_exp.launch.resume import directory_of
from rlvr_exp.stages.shared.stage_checks import stage_problems

UNNAMED = Path("outputs/DATE/TIME_chain")
"""Stands for the directory of a chain until it has one."""


def start_problems(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Every problem that prevents the start. `fetchable`: what a command can fetch is no problem yet, as in a plan."""
    yield from preflight_problems(config, fetchable)
    yield from stage_problems(config)
    yield from input_problems(config)
    if config.stage == "chain" and not config.chain.problems():
        yield from _of_links(config, fetchable)
    if config.stage == "study" and not config.study.problems():
        yield from _of_jobs(config, fetchable)


def _of_links(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Problems of a chain's commands, except for what an earlier link has yet to write."""
    from rlvr_exp.runs.chain import links_of

    root = directory_of(config) or UNNAMED
    for job in links_of(config.chain, root):
        checked = compose_lenient(list(job.words))
        for problem in checked.problems or start_problems(checked.config, fetchable):
            if f"{root}/" not in f"{problem.what} {problem.got}":
                yield replace(problem, where=f"chain.links.{job.name}: {problem.where}")


def _of_jobs(config: Config, fetchable: bool) -> Iterator[InputProblem]:
    """Problems of a study's runs. Runs of an arm differ by their seeds alone, so the first of each arm is checked; embedded data
    need no look, which takes long if they are cut into folds."""
    from rlvr_exp.runs.study import check

    study = build(config.study)
    try:
        check(study.extremes(), study.rate)
        jobs = [*{job.arm: job for job in reversed(study.jobs())}.values()]
        found = [*zip(jobs, check(jobs, study.rate), strict=True)]
    except InputError as fault:
        yield from fault.problems
        return
    for job, checked in found:
        if not job.open:
            of_job = checked.config
            whole = not reads(of_job, "data") or of_job.data.path
            problems = start_problems(of_job, fetchable) if whole else missing_problems(of_job, fetchable)
            yield from (replace(one, where=f"study, arm {job.arm}: {one.where}") for one in problems)
