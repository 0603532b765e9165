"""Loss landscapes around a policy before and after its training: barriers between the two, and sharpness.

Seeds are paired: each has a training of its own, measured around both of its ends. Losses have a value for each seed and task,
so their intervals are over both. Eigenvalues have one value a seed.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.core.crossed import Values, crossed, differences
from rlvr_exp.core.statistics import Estimate, t_interval
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.records.context import read_benchmark
from rlvr_exp.report.plots import Curve, Drawing, curves, heat_map, intervals
from rlvr_exp.runs.study import Findings, Job, JobRun, MeasuredStudy

TRAINING, BASE, TRAINED = "training", "base", "trained"
"""The arms."""

Found = Mapping[str, Any]
"""The measurements of `benchmark=landscape`."""
LOSS = "loss of gold answers, nats a token"


class Landscape(options.Landscape, MeasuredStudy):
    def trainings(self) -> list[Job]:
        return self.arm(TRAINING, [])

    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        """Measure around both ends of a training. The base also measures the line between them."""
        line = [f"benchmark.other={checkpoint}"] if checkpoint else []
        ends = ((BASE, line), (TRAINED, self.policy(checkpoint)))
        return [job for name, words in ends for job in self.measure_arm(name, words, [training.seed])]

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        arms: dict[str, dict[Any, Found]] = {BASE: {}, TRAINED: {}}
        for run in runs:
            if run.completed and run.job.arm in arms:
                arms[run.job.arm][run.job.seed] = read_benchmark(run.directory)
        seeds = [seed for seed in arms[BASE] if seed in arms[TRAINED]]
        if not seeds:
            return Findings(["Cannot tell: no seed was measured both before and after its training."])
        pairs = {arm: [of_seed[seed] for seed in seeds] for arm, of_seed in arms.items()}
        at = pairs[BASE][0]["line"]["at"]
        line = [(x, _estimate(_losses(pairs[BASE], place))) for place, x in enumerate(at)]
        slices = {arm: _slices(of) for arm, of in pairs.items()}
        known = all(found["eigenvalues"] for of in pairs.values() for found in of)
        sharpness = (
            {arm: t_interval([one["eigenvalues"][0] for one in of]) for arm, of in pairs.items()} if known else {}
        )
        answer = [_barrier(pairs[BASE]), *([_sharper(pairs, sharpness)] if known else []), _loss(pairs)]
        tables = {
            "line": [{"at": at, **value._asdict()} for at, value in line],
            "slices": [{"arm": arm, "at": at, **value._asdict()} for arm, of in slices.items() for at, value in of],
            "eigenvalues": [row for arm, of in pairs.items() for row in _eigenvalues(arm, of)],
            "gradients": [row for arm, of in pairs.items() for row in _gradients(arm, of)],
        }
        return Findings(answer, tables, _drawn(line, slices, sharpness) | _plane(pairs[BASE]))


def _estimate(values: Values) -> Estimate:
    """The mean over seeds and tasks."""
    found = crossed(values)
    return Estimate(found.mean, found.mean - found.half, found.mean + found.half)


def _losses(of: Sequence[Found], place: int) -> list[list[float]]:
    """By seed and task, at a place of the line."""
    return [found["line"]["losses"][place] for found in of]


def _excess(of: Sequence[Found], place: int) -> list[list[float]]:
    """By seed and task: how far the loss is above the straight line between its ends."""
    t, first, here, last = of[0]["line"]["at"][place], _losses(of, 0), _losses(of, place), _losses(of, -1)
    return [
        [loss - (1 - t) * before - t * after for before, loss, after in zip(*rows, strict=True)]
        for rows in zip(first, here, last, strict=True)
    ]


def _barrier(of: Sequence[Found]) -> str:
    """The highest point of the mean over seeds above the line between the ends."""
    at = of[0]["line"]["at"]
    place = max(range(1, len(at) - 1), key=lambda place: crossed(_excess(of, place)).mean)
    height = _estimate(_excess(of, place))
    counted = f"{of[0]['tasks']} tasks, {_counted(of)}"
    where = f"at {at[place]:.0%} of the way the loss lies {_text(height)} nats a token above the straight line between its ends"
    few = of_few_seeds(len(of), "an interval")
    if height.low > 0:
        return f"There is a barrier between the base and the trained policy: {where}, {counted}{few}."
    return (
        f"No barrier between the base and the trained policy was found: where it is highest, {where}, {counted}{few}."
    )


def _sharper(pairs: Mapping[str, Sequence[Found]], sharpness: Mapping[str, Estimate]) -> str:
    before, after = ([found["eigenvalues"][0] for found in pairs[arm]] for arm in (BASE, TRAINED))
    change = t_interval([b - a for a, b in zip(before, after, strict=True)])
    ends = f"{sharpness[BASE].value:.3g} at the base and {sharpness[TRAINED].value:.3g} after training"
    text = f"The largest eigenvalue of the Hessian is {ends}"
    if len(before) < 2:
        return f"{text}; one seed cannot tell whether training changes it."
    counted = f"{_text(change)} over {_counted(before)}{of_few_seeds(len(before), 'an interval')}"
    if change.low <= 0 <= change.high:
        return f"{text}: cannot tell whether it is larger or smaller, by {counted}."
    return f"{text}: it is {'larger' if change.value > 0 else 'smaller'}, by {counted}."


def _loss(pairs: Mapping[str, Sequence[Found]]) -> str:
    before, after = ([found["losses"] for found in pairs[arm]] for arm in (BASE, TRAINED))
    change = _estimate(differences(before, after))
    how = (
        "cannot tell whether it changes"
        if change.low <= 0 <= change.high
        else "it rises"
        if change.low > 0
        else "it falls"
    )
    ends = f"from {crossed(before).mean:.3f} to {crossed(after).mean:.3f} nats a token"
    return f"The loss of gold answers goes {ends}: {how}, by {_text(change)}{of_few_seeds(len(before), 'an interval')}."


def _slices(of: Sequence[Found]) -> list[tuple[float, Estimate]]:
    """The mean over the random directions of each seed, with the interval over seeds."""
    directions = [[*found["slices"].values()] for found in of]
    at = directions[0][0]["at"]
    return [
        (x, t_interval([fmean(one["loss"][place] for one in own) for own in directions])) for place, x in enumerate(at)
    ]


def _eigenvalues(arm: str, of: Sequence[Found]) -> list[dict[str, Any]]:
    ranks = zip(*(found["eigenvalues"] for found in of), strict=True)
    return [{"arm": arm, "rank": rank, **t_interval(values)._asdict()} for rank, values in enumerate(ranks, 1)]


def _gradients(arm: str, of: Sequence[Found]) -> list[dict[str, Any]]:
    """Means over seeds for each part of the model. The noise scale requires a value of every seed."""
    rows = []
    for place in of[0]["gradients"]:
        columns = {name: [found["gradients"][place][name] for found in of] for name in of[0]["gradients"][place]}
        means = {name: None if None in values else fmean(values) for name, values in columns.items()}
        rows.append({"arm": arm, "place": place, **means})
    return rows


def _drawn(
    line: Sequence[tuple[float, Estimate]],
    slices: Mapping[str, Sequence[tuple[float, Estimate]]],
    sharpness: Mapping[str, Estimate],
) -> dict[str, Drawing]:
    way = [Curve("with 95% intervals over seeds and tasks", line)]
    around = [Curve(arm, of) for arm, of in slices.items()]
    title, which = "Largest eigenvalue of the Hessian", "with 95% intervals over seeds"
    return {
        "line": curves("From the base to the trained policy", way, "share of the way", LOSS),
        "slices": curves("Random directions, mean over seeds", around, "norms of the weights' rows", LOSS),
    } | ({"eigenvalues": intervals(title, sharpness, which)} if sharpness else {})


def _plane(of: Sequence[Found]) -> dict[str, Drawing]:
    """The plane through both policies and a random direction, as the mean over seeds."""
    planes = [found["plane"] for found in of if "plane" in found]
    if len(planes) < len(of):
        return {}
    rows = zip(*(one["loss"] for one in planes), strict=True)
    means = [[fmean(cells) for cells in zip(*row, strict=True)] for row in rows]
    way, offset = "share of the way", "norms of rows at random"
    return {"plane": heat_map(f"{LOSS}, mean over seeds", planes[0]["along"], planes[0]["at"], means, way, offset)}


def _text(value: Estimate) -> str:
    return f"{value.value:+.3g} [{value.low:+.3g}, {value.high:+.3g}]"


def _counted(of: Sequence[Any]) -> str:
    return f"{len(of)} {'seed' if len(of) == 1 else 'seeds'}"
