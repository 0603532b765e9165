"""What training gains on tasks of which nothing was in training, beside what it gains on tasks like those it learned from.

That nothing was is proved twice: from the configurations, before any run, and from what the runs have recorded, before
the answer. Without the proof there is no answer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvr_exp.config import study as options
from rlvr_exp.evaluation.arms import BEFORE
from rlvr_exp.report.plots import intervals
from rlvr_exp.studies.contrast import (
    Contrast,
    arm_values,
    difference_in_words,
    gain_row,
    level,
    paired_contrasts,
    points,
    undecidable,
)
from rlvr_exp.studies.measured import MeasuredStudy
from rlvr_exp.studies.places import check
from rlvr_exp.studies.study import Findings, Job, Rounds, Run
from rlvr_exp.studies.zero_shot_proof import proof, refuse_before

TRAINED, BASE, TARGET = "trained", "base_on_target", "trained_on_target"
SEEN, UNSEEN = "seen", "unseen"


class ZeroShot(options.ZeroShot, MeasuredStudy):
    def trainings(self) -> list[Job]:
        return self.arm(TRAINED, self._held_out())

    def others(self) -> list[Job]:
        return self.measure_arm(BASE, [*self._held_out(), *self.target])

    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        return self.measure_arm(TARGET, [*self._held_out(), *self.target, *self.policy(checkpoint)], [training.seed])

    def rounds(self, root: Path, seed: int) -> Rounds:
        """Raises InputError: something of the target would be in training."""
        refuse_before(*(one.config for one in check([self.trainings()[0], self.others()[0]])))
        return super().rounds(root, seed)

    def summarise(self, runs: Sequence[Run]) -> Findings:
        of_arm = {arm: [run for run in runs if run.completed and run.job.arm == arm] for arm in (TRAINED, BASE, TARGET)}
        if lacking := [arm for arm, found in of_arm.items() if not found]:
            return Findings([f"Cannot tell: no run of {' and '.join(lacking)} completed."])
        proved = proof(of_arm[TRAINED], of_arm[BASE], of_arm[TARGET])
        after, before = arm_values(runs, self.metric), arm_values(of_arm[TRAINED], self.metric, BEFORE)
        pairs = {SEEN: (after[TRAINED], before[TRAINED]), UNSEEN: (after[TARGET], after[BASE])}
        gains = paired_contrasts(pairs, self.metric)
        ends = undecidable(dict(zip(("trained", "base"), pairs[UNSEEN], strict=True)))
        answer = [f"On unseen tasks: {ends}" if ends else self._headline(gains)]
        answer += [difference_in_words(f"on {name} tasks", one) for name, one in gains.items()]
        rows = [
            {"tasks": name, "before": level(pairs[name][1]), "after": level(pairs[name][0]), **gain_row(one)}
            for name, one in gains.items()
        ]
        title, unit = f"{self.metric}: gain by training", "points, with 95% intervals over seeds and tasks"
        drawn = intervals(title, {name: points(one) for name, one in gains.items()}, unit)
        return Findings([*answer, proved.sentence], {"gains": rows, "proof": proved.rows}, {"gains": drawn})

    def _headline(self, gains: Mapping[str, Contrast]) -> str:
        if UNSEEN not in gains or SEEN not in gains:
            return f"Cannot tell: {self.metric} was not measured before and after training on the same tasks."
        (seen, unseen) = (100 * gains[name].value.value for name in (SEEN, UNSEEN))
        said = f"{self.metric} changes by {unseen:+.1f} points on unseen families, by {seen:+.1f} on those trained on"
        sure = [name for name in (SEEN, UNSEEN) if gains[name].sure]
        beyond = " and ".join(sure) if sure else "neither"
        return f"{said}; beyond chance: {beyond}."

    def _held_out(self) -> list[str]:
        return [f"data.unseen_families=[{','.join(self.families)}]"] if self.families else []
