"""What each component is worth: the impact of an ablation is the full training minus the one without the component.

Positive: the component helps. Runs are paired by seed and their measurements by task, so that a component without effect
has an impact of 0.
"""

from collections.abc import Sequence

from rlvr_exp.config import study as options
from rlvr_exp.config.study import FULL
from rlvr_exp.studies.compared import Wording, compared
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run

IMPACT = Wording("impact", "full minus without the component", "helps", "harms", from_reference=True)


class Ablation(options.Ablation, ArmStudy):
    def jobs(self) -> list[Job]:
        return [*self.arm(FULL, ()), *self.arm_jobs()]

    def summarise(self, runs: Sequence[Run]) -> Findings:
        return compared(runs, FULL, self.metric, self.equal, IMPACT)
