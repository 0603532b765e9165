"""Rates of an evaluation, overall and by stratum, each with its number of tasks and a 95% interval over tasks.

A completion without a verdict enters no rate and is counted separately. A rejected completion (a cheat) is a failure.
This module does not sample, judge or read files.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from rlvr_exp.core.measures import BITS, EXCESS_CODE, GREEDY, is_count, read_voted, scale_of
from rlvr_exp.core.measures import SUCCESS as METRICS
from rlvr_exp.core.statistics import mean_interval, pass_at_k
from rlvr_exp.episodes.types import Completion
from rlvr_exp.records.rollout_files import EvalSample, Mode
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import BUCKETS, PROMPT_TOO_LONG, Verdict

PROVED, UNPROVED = Verdict("passed"), Verdict("failed", bucket="verify")
EXCESS_PARTS = dict(zip(EXCESS_CODE, (("uncovered", "diff"), ("uncovered_added", "added")), strict=True))
"""Numerator and denominator of each metric, as counts of a completion."""


@dataclass(frozen=True)
class Rate:
    """A success rate, or another metric on the same scale: the mean over `n` tasks, with the 95% interval over tasks
    (see `mean_interval`)."""

    value: float
    low: float
    high: float
    n: int
    samples: int
    """Number of completions per task."""

    def to_dict(self) -> dict[str, float | int]:
        """Return the rate in the form of `summary.json`."""
        return asdict(self)


@dataclass(frozen=True)
class TaskCount:
    """Counts of the completions of one task. `judged` excludes completions without a verdict."""

    family: str
    passed: int
    judged: int
    no_verdict: int


def task_counts(results: Iterable[EvalSample], mode: Mode) -> dict[str, TaskCount]:
    """Return the counts of each task with samples of the mode, in order of first appearance.

    Raises:
        ValueError: a (task, sample) occurs twice and would be counted twice.
    """
    seen: dict[str, dict[int, Completion]] = defaultdict(dict)
    for result in results:
        if result.mode == mode:
            task, sample = result.completion.task.id, result.completion.sample
            if sample in seen[task]:
                raise ValueError(f"{task}: {mode} sample {sample} stands twice; number samples from 0")
            seen[task][sample] = result.completion
    return {task: _count(list(samples.values())) for task, samples in seen.items()}


def _count(samples: Sequence[Completion]) -> TaskCount:
    outcomes = Counter(sample.verdict.outcome for sample in samples)
    silent = outcomes["no_verdict"]
    return TaskCount(samples[0].task.family, outcomes["passed"], len(samples) - silent, silent)


def task_values(results: Sequence[EvalSample], metric: str) -> dict[str, float]:
    """Return the value of a metric for each task.

    - `pass_at_K` is over sampled completions, `pass_at_1_greedy` over greedy ones. `ROLE/` in front restricts it to one
      role of a cascade (see `of_role`).
    - `voted_at_N` is 1 if the vote of N samples puts the correct answer to every held-back input first.
      `voted_at_N_top_A` allows the first A answers.
    - `excess_code` and `excess_code_strict` are means over the measured completions of the task.
    - `bits_per_character` is the cost of the reference answer and its end token under the policy, per character of the
      answer.

    Tasks with fewer than K judged completions are absent, because their estimate would be biased. Tasks without a vote
    or without a measured completion are absent too.

    Raises:
        ValueError: the metric is unknown.
    """
    if (vote := read_voted(metric)) is not None:
        return _voted(results, *vote)
    if metric in EXCESS_CODE:
        return _excess(results, *EXCESS_PARTS[metric])
    if metric == BITS:
        return _bits(results)
    match = re.fullmatch(r"(?:(writer|annotator)/)?pass_at_([1-9]\d*)(_greedy)?", metric)
    if match is None or (match[3] and match[2] != "1"):
        raise ValueError(
            f"metric: got {metric!r}, allowed pass_at_K and pass_at_1_greedy, with writer/ or annotator/, voted_at_N and voted_at_N_top_A, {', '.join(EXCESS_CODE)} and {BITS}"
        )
    k = int(match[2])
    mode: Mode = "greedy" if match[3] else "sampled"
    counts = task_counts(of_role(results, match[1]) if match[1] else results, mode)
    return {task: pass_at_k(count.judged, count.passed, k) for task, count in counts.items() if count.judged >= k}


def _voted(results: Iterable[EvalSample], samples: int, answers: int) -> dict[str, float]:
    """Return 1 for tasks that the vote solved with so many answers. Only votes of so many samples count, and only if
    they allowed as many answers."""
    drawn: Counter[str] = Counter()
    votes: dict[str, Mapping[str, int]] = {}
    for one in results:
        if one.mode == "sampled" and one.about is not None and "voted" in one.about:
            drawn[one.completion.task.id] += 1
            votes[one.completion.task.id] = one.about["voted"]
    return {
        task: float(0 < found["solved_with"] <= answers)
        for task, found in votes.items()
        if drawn[task] == samples and found["answers"] >= answers
    }


def _excess(results: Iterable[EvalSample], part: str, of: str) -> dict[str, float]:
    """Completions with a denominator of 0 are absent: an edit that adds no statement has no strict share."""
    shares: dict[str, list[float]] = defaultdict(list)
    for one in results:
        counted = (one.about or {}).get("excess_code", {})
        if counted.get(of):
            shares[one.completion.task.id].append(counted[part] / counted[of])
    return {task: fmean(found) for task, found in shares.items()}


def _bits(results: Iterable[EvalSample]) -> dict[str, float]:
    golds = ((one.completion.task.id, (one.about or {}).get("gold")) for one in results)
    return {task: gold["bits"] / gold["characters"] for task, gold in golds if gold}


def of_role(results: Iterable[EvalSample], role: str) -> Iterator[EvalSample]:
    """Yield the samples that a role of a cascade is responsible for. The writer passes if any annotations prove its
    body. The annotator counts on bodies that can be proved. Rows without a verdict stay without one."""
    for one in results:
        if one.about is None:
            raise ValueError(f"{one.completion.task.id}: rates of roles are those of a cascade; evaluate one")
        proved = one.about["body_proved"]
        if role == "annotator" and proved:
            yield one
        elif role == "writer":
            silent = one.verdict.outcome == "no_verdict"
            verdict = one.verdict if silent else PROVED if proved else UNPROVED
            yield replace(one, completion=replace(one.completion, verdict=verdict))


def rates_from(results: Sequence[EvalSample], metrics: Sequence[str] = METRICS) -> dict[str, Rate]:
    """Return the rate of each metric that has enough judged completions for at least one task."""
    rates = {}
    for metric in metrics:
        values = task_values(results, metric)
        if values:
            mode = "greedy" if metric.endswith("_greedy") else "sampled"
            drawn = Counter(result.completion.task.id for result in results if result.mode == mode)
            estimate = mean_interval(list(values.values()), ceiling=scale_of(metric).high)
            rates[metric] = Rate(*estimate, n=len(values), samples=max(drawn.values()))
    return rates


def family_rates(results: Sequence[EvalSample], metrics: Sequence[str] = METRICS) -> dict[str, dict[str, Rate]]:
    """Return `rates_from` of each family, in alphabetical order."""
    families: dict[str, list[EvalSample]] = defaultdict(list)
    for result in results:
        families[result.completion.task.family].append(result)
    return {family: rates_from(families[family], metrics) for family in sorted(families)}


def verdict_counts(results: Iterable[EvalSample]) -> dict[str, int]:
    """Count completions by result: passed, failed for each reason, rejected, or no verdict. Every completion counts
    once."""
    verdicts = (result.verdict for result in results)
    counts = Counter(verdict.bucket or verdict.outcome for verdict in verdicts)
    return {name: counts[name] for name in ("passed", *BUCKETS, "rejected", "no_verdict")}


def latency(results: Sequence[EvalSample]) -> Mapping[str, float]:
    """Return the median and the 95th percentile of `Completion.seconds`. Prompts that were never sampled do not
    count."""
    drawn = (result.completion for result in results if result.verdict.bucket != PROMPT_TOO_LONG)
    seconds = [completion.seconds for completion in drawn]
    return {"p50": float(np.quantile(seconds, 0.5)), "p95": float(np.quantile(seconds, 0.95))} if seconds else {}


ENDINGS: Mapping[Mode, str] = {"sampled": "", "greedy": GREEDY}


def measure_rates(results: Sequence[EvalSample]) -> dict[str, Rate]:
    """Return the mean of each measure, with the suffix `_greedy` for greedy completions. It is a mean over tasks of the
    mean over completions that have the measure."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in results:
        for name, value in one.verdict.measures.items():
            values[name + ENDINGS[one.mode]][one.completion.task.id].append(value)
    return {name: _measure_rate(of_task, is_count(name)) for name, of_task in sorted(values.items())}


def _measure_rate(of_task: Mapping[str, Sequence[float]], counted: bool) -> Rate:
    means = [fmean(values) for values in of_task.values()]
    estimate = mean_interval(means, ceiling=max(means) if counted else 1.0)
    return Rate(*estimate, n=len(means), samples=max(map(len, of_task.values())))


def strata_rates(domain: Domain, scored: Sequence[EvalSample], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the rates by kind and name of the stratum, as plain data. Empty without strata, and for tasks with roles,
    whose own metrics have the strata."""
    by: dict[str, dict[str, list[EvalSample]]] = defaultdict(lambda: defaultdict(list))
    for one in scored:
        strata = domain.strata(one.completion.task)
        for kind, name in strata.items() if "role" not in strata else ():
            by[kind][name].append(one)
    return {kind: {name: _plain_rates(groups[name], metrics) for name in sorted(groups)} for kind, groups in by.items()}


def flat_rates(strata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rates of the strata under flat names, for summary.json: `instruction/lazy/pass_at_1`."""
    return {
        f"{kind}/{name}/{metric}": rate
        for kind, groups in strata.items()
        for name, rates in groups.items()
        for metric, rate in rates.items()
    }


def _plain_rates(results: Sequence[EvalSample], metrics: Sequence[str]) -> dict[str, Any]:
    return {metric: rate.to_dict() for metric, rate in rates_from(results, metrics).items()}
