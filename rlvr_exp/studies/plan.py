"""What a study would run and what that costs, for `run.dry=true`. Starts nothing."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.config.advice import advice
from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import trains
from rlvr_exp.launch.resume import directory_of
from rlvr_exp.records.context import read_summary
from rlvr_exp.studies.places import Place, check, places


def study_plan(config: Config) -> str:
    """Its runs, a line each, and the sum of those that are not there yet.

    Raises:
        InputError: with every problem of any of them.
    """
    study, root = build(config.study), directory_of(config)
    jobs = study.jobs()
    ends = check(study.extremes(), study.rate)
    found = places(jobs, check(jobs, study.rate), root or Path("outputs") / "DATE" / "TIME_study", study.reuse)
    left = [place for place in found if not place.reused]
    wide = max(len(place.job.name) for place in found)
    lines = [f"  {place.job.name:<{wide}}  {_line(place)}" for place in found]
    head = f"study (nothing is run): {len(found)} runs, {len(found) - len(left)} there already"
    told = dict.fromkeys(
        f"advice: {line}" for one in [*ends, *(place.checked for place in found)] for line in advice(one.config)
    )
    last = (_sum(left, config.executor.jobs), *_seconds(found, left, config.executor.jobs))
    return "\n".join([head, *lines, *told, *last])


def _line(place: Place) -> str:
    if place.reused:
        return f"there already: {place.directory}"
    drawn = ", with values that are known once it starts" if place.job.open else ""
    return f"{_counted([place])}: {shlex.join(['python', '-m', 'rlvr_exp', *place.job.words])}{drawn}"


def _sum(left: Sequence[Place], at_once: int) -> str:
    return f"to run, {at_once} at a time: {_counted(left)}; measurements before training that are equal are taken once"


def _counted(some: Sequence[Place]) -> str:
    configs = [place.checked.config for place in some]
    training = [config for config in configs if trains(config.stage)]
    steps, trained = sum(config.algorithm.max_steps for config in training), sum(map(_trained, training))
    measured = sum(map(_measured, configs))
    return f"{steps:,} steps on {trained:,} completions, {measured:,} measured"


def _trained(config: Config) -> int:
    """Completions, or gold answers, of all steps."""
    algorithm: Any = config.algorithm
    if isinstance(algorithm, ReinforcementLearning):
        updates = getattr(algorithm, "iterations", 1) * getattr(algorithm, "minibatches", 1)
        return -(-algorithm.max_steps // updates) * algorithm.prompts_per_step * algorithm.group_size
    return algorithm.max_steps * algorithm.batch_size


def _measured(config: Config) -> int:
    """Completions, before training and after it, of a split that is large enough."""
    evaluation, times = config.evaluation, 2 if trains(config.stage) else config.stage == "evaluate"
    if not times:
        return 0
    return times * evaluation.tasks * (evaluation.samples + evaluation.greedy)


def _seconds(found: Sequence[Place], left: Sequence[Place], at_once: int) -> list[str]:
    """About how long the rest takes, by what is there already."""
    known = [float((read_summary(place.directory) or {})["seconds"]) for place in found if place.reused]
    if not known or not left:
        return [] if known else ["seconds: not known yet; run.trial=true with the words of a run measures its own"]
    return [f"about {fmean(known) * len(left) / min(at_once, len(left)):,.0f} s, by the runs that are there"]
