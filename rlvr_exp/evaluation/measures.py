"""What verifiers measured of candidates besides their verdicts, as rates with intervals over tasks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from rlvr_exp.core.measures import GREEDY, is_count
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records.rollout_files import EvalSample, Mode

ENDINGS: Mapping[Mode, str] = {"sampled": "", "greedy": GREEDY}


def measure_rates(results: Sequence[EvalSample]) -> dict[str, Rate]:
    """Each measure by its name, of greedy completions with `_greedy`: the mean over tasks of the mean over a task's
    completions that have it."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        for name, value in one.verdict.measures.items():
            values[name + ENDINGS[one.mode]][one.completion.task.id].append(value)
    return {name: _rate(of_task, is_count(name)) for name, of_task in sorted(values.items())}


def _rate(of_task: Mapping[str, Sequence[float]], counted: bool) -> Rate:
    means = [fmean(values) for values in of_task.values()]
    estimate = mean_interval(means, ceiling=max(means) if counted else 1.0)
    return Rate(*estimate, n=len(means), samples=max(map(len, of_task.values())))
