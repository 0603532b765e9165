"""The results of a validation: the share of reference answers that passed and of wrong programs that failed, over
tasks.

Candidates without a verdict enter no share and are counted separately.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.core.measures import counted
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.tasks.cases import WEAK
from rlvr_exp.verifiers.base import Outcome

SHARES = {
    "gold": "gold_passed",
    "wrong": "wrong_refused",
    "hollow": "hollow_refused",
    "mutant": "mutants_killed",
    "universal": "universal_refused",
}
"""Name of the share of each kind of candidate."""
KINDS = {
    "gold": "the reference answer. It must pass; every other candidate must fail.",
    "wrong": "a wrong program that the data contain.",
    "hollow": "the reference answer with its work removed, such as a function that returns nothing.",
    "mutant": "the reference answer with one change. If it passes, a test is missing or the change has no effect.",
    "universal": "an answer that ignores the task, such as an object that equals everything. If it passes, the tests are weak.",
}
"""Explanation of each kind of candidate."""


@dataclass(frozen=True)
class CandidateResult:
    """A candidate of a task and its verdict."""

    task: str
    kind: str
    variant: str
    outcome: Outcome
    reason: str
    decides_itself: bool = False
    """Whether the candidate's own comparison decided every assertion that held."""
    change: str = ""
    """The changed line of a mutant, before and after."""

    @property
    def as_hoped(self) -> bool:
        return (self.outcome == "passed") == (self.kind == "gold")


def shares(findings: Sequence[CandidateResult]) -> tuple[dict[str, Rate], dict[str, int]]:
    """Return the share of each kind, a mean over tasks with its interval, and its counts."""
    rates, counts = {}, {}
    for kind, name in SHARES.items():
        settled = [one for one in findings if one.kind == kind and one.outcome != "no_verdict"]
        counts[name] = sum(one.as_hoped for one in settled)
        counts[f"{name}_of"] = len(settled)
        if settled:
            rates[name] = _rate(settled)
    counts["no_verdict"] = sum(one.outcome == "no_verdict" for one in findings)
    return rates, counts


def _rate(findings: Sequence[CandidateResult]) -> Rate:
    by_task: dict[str, list[bool]] = defaultdict(list)
    for one in findings:
        by_task[one.task].append(one.as_hoped)
    values = [sum(hoped) / len(hoped) for hoped in by_task.values()]
    return Rate(*mean_interval(values), n=len(values), samples=max(map(len, by_task.values())))


def report(findings: Sequence[CandidateResult], left_out: Mapping[str, str], warning: str = "") -> str:
    """Return the table, an explanation of its kinds, and every candidate with an unexpected verdict, in Markdown.

    Args:
        left_out: tasks that are in no split, by id, with the reason.
        warning: one line about these tasks, with the remedy.
    """
    rates, counts = shares(findings)
    lines = ["| | as hoped | of | mean over tasks, 95% interval |", "| --- | --- | --- | --- |"]
    for kind, name in SHARES.items():
        lines.append(_line(name.replace("_", " "), counts[name], counts[f"{name}_of"], rates.get(name)))
        lines += _by_variant(kind, findings)
    there = {one.kind for one in findings}
    lines += ["", *(f"- {kind}: {about}" for kind, about in KINDS.items() if kind in there)]
    if counts["no_verdict"]:
        lines += ["", f"Without a verdict: {counts['no_verdict']}"]
    for kind, title in (
        ("gold", "Reference answers that do not pass"),
        ("wrong", "Wrong programs that pass"),
        ("hollow", "Hollow programs that pass"),
        ("universal", "Weak tasks, and the fixed answers that pass"),
        ("mutant", "Weak tasks, and the mutants that pass"),
    ):
        lines += _listed(title, [one for one in findings if one.kind == kind and not one.as_hoped])
    own = [one.task for one in findings if one.kind == "gold" and one.decides_itself]
    if own:
        lines += [
            "",
            "Tasks whose tests ask nothing but the solution's own comparing:",
            "",
            *(f"- {task}" for task in own),
        ]
    weak = {task: reason for task, reason in left_out.items() if reason.startswith(WEAK)}
    if weak:
        lines += ["", "Weak tasks, left out:", ""]
        lines += [f"- {task}: {reason.partition(': ')[2]}" for task, reason in weak.items()]
    if warning:
        lines += ["", f"warning: {warning}"]
    return "\n".join(lines) + "\n"


def _line(name: str, hoped: int, of: int, rate: Rate | None) -> str:
    shown = f"{rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}], {counted(rate.n)}" if rate else "none tried"
    return f"| {name} | {hoped} | {of} | {shown} |"


def _by_variant(kind: str, findings: Sequence[CandidateResult]) -> list[str]:
    groups: dict[str, list[CandidateResult]] = defaultdict(list)
    for one in findings:
        if one.kind == kind and kind in ("hollow", "mutant", "universal") and one.outcome != "no_verdict":
            groups[one.variant].append(one)
    return [
        _line(f"- {variant.replace('_', ' ')}", sum(one.as_hoped for one in found), len(found), _rate(found))
        for variant, found in sorted(groups.items())
    ]


def _listed(title: str, findings: Sequence[CandidateResult]) -> list[str]:
    if not findings:
        return []
    by_task: dict[str, list[str]] = defaultdict(list)
    for one in findings:
        by_task[one.task].append(one.reason if one.kind == "gold" else one.change or one.variant.replace("_", " "))
    return ["", f"{title}:", "", *(f"- {task}: {', '.join(reasons)}" for task, reasons in by_task.items())]
