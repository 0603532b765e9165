"""Which algorithm learns most from an equal budget: success of each against the first, and how entropy goes meanwhile."""

from collections.abc import Sequence

from rlvr_exp.config import study as options
from rlvr_exp.studies.arm_curves import with_curves
from rlvr_exp.studies.compared import Wording, compared
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run

DIFFERENCE = Wording("difference", "minus the first algorithm", "better", "worse")
ENTROPY = "entropy"


class Algorithms(options.Algorithms, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found = compared(runs, runs[0].job.arm, self.metric, self.equal, DIFFERENCE)
        return with_curves(found, runs, ENTROPY, ENTROPY, "entropy of a token, nats")
