"""Few-shot prompts: success of one policy by the number of solved examples, paired by task."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.evaluation.arms import AFTER
from rlvr_exp.records.rollout_files import read_evaluation
from rlvr_exp.report.plots import Curve, curves
from rlvr_exp.runs.comparison import (
    Contrast,
    Values,
    arm_values,
    contrasts,
    difference_in_words,
    interval,
    level,
    undecidable,
)
from rlvr_exp.runs.jobs import Job, Run
from rlvr_exp.runs.study import Findings, Study
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG


class FewShot(options.FewShot, Study):
    def jobs(self) -> list[Job]:
        return [job for count in self.shots for job in self.arm(_arm(count), [f"data.prompt.shots={count}"])]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        arms = arm_values(runs, self.metric)
        counts = [count for count in self.shots if _arm(count) in arms]
        best = max(counts, key=lambda count: level(arms[_arm(count)]))
        against_best = contrasts(arms, _arm(best), self.metric)
        against_first = contrasts(arms, _arm(counts[0]), self.metric)
        found = {count: interval(arms[_arm(count)], self.metric) for count in counts}
        long = {count: _too_long(runs, count) for count in counts}
        rows = [
            {"shots": count, **found[count]._asdict(), **_difference(against_first.get(_arm(count))), **long[count]}
            for count in counts
        ]
        answer = [_long_in_words(long), undecidable(arms) or self._headline(counts, best, against_best, arms)]
        answer += [_sentence(counts[0], count, against_first.get(_arm(count))) for count in counts[1:]]
        drawn = Curve("with 95% intervals over seeds and tasks", [(count, found[count]) for count in counts])
        plot = curves("Few-shot", [drawn], "solved examples in the prompt", self.metric)
        return Findings([*filter(None, answer)], {"shots": rows}, {"shots": plot})

    def _headline(
        self, counts: Sequence[int], best: int, against: Mapping[str, Contrast], arms: Mapping[str, Values]
    ) -> str:
        """Which is the smallest number that is not surely worse than the best."""
        compared = [count for count in counts if _arm(count) in against]
        fewest = next((count for count in compared if count < best and not _worse(against[_arm(count)])), best)
        highest = f"{self.metric} is highest with {best} shots, {level(arms[_arm(best)]):.1%}"
        if best == counts[0]:
            return f"{highest}, the fewest that were measured."
        if fewest == best:
            lost = [count for count in counts if count < best and count not in compared]
            unknown = f", of those measured on its tasks and seeds (not {', '.join(map(str, lost))})" if lost else ""
            return f"{highest}; every smaller number is worse beyond chance{unknown}."
        smallest = 100 * against[_arm(fewest)].value.smallest
        seen = f"a loss of {smallest:.1f} points would have been found in 80 of 100 such studies"
        return f"{highest}; {fewest} are the fewest that no loss against it was found for ({seen})."


def _arm(count: int) -> str:
    return f"shots_{count}"


def _worse(one: Contrast) -> bool:
    return one.sure and one.value.value < 0


def _too_long(runs: Sequence[Run], count: int) -> dict[str, int]:
    """Tasks of an arm, and those of them whose prompt the policy does not take."""
    tasks, long = set[str](), set[str]()
    for run in runs:
        if run.completed and run.job.arm == _arm(count):
            for one in read_evaluation(run.directory, AFTER):
                tasks.add(one.completion.task.id)
                if one.verdict.bucket == PROMPT_TOO_LONG:
                    long.add(one.completion.task.id)
    return {"tasks": len(tasks), "prompt_too_long": len(long)}


def _long_in_words(long: Mapping[int, Mapping[str, int]]) -> str:
    parts = [
        f"{one['prompt_too_long']} of {one['tasks']} with {count} shots"
        for count, one in long.items()
        if one["prompt_too_long"]
    ]
    if not parts:
        return ""
    remedy = "which count as failures; model.max_prompt_tokens says what is taken"
    return f"Prompts are too long for the policy: {', '.join(parts)}, {remedy}."


def _difference(one: Contrast | None) -> dict[str, Any]:
    if one is None:
        return {}
    value = one.value
    return {"difference": value.value, "difference_low": value.low, "difference_high": value.high, "p_holm": one.p}


def _sentence(first: int, count: int, one: Contrast | None) -> str:
    if one is None:
        return f"{count} shots: not measured on the tasks and seeds of {first} shots."
    return difference_in_words(f"{count} shots against {first}", one)
