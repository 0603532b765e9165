"""What attention, positions and embeddings are worth: arms of equal parameters and tokens against the first."""

from collections.abc import Sequence
from dataclasses import replace

from rlvr_exp.config import study as options
from rlvr_exp.studies.model_arms import MODELS, Row, model_findings
from rlvr_exp.studies.study import ArmStudy, Findings, Job, Run

TOLERANCE = 0.03
"""Sizes that differ by a smaller share count as equal."""


class ArchitectureStudy(options.ArchitectureStudy, ArmStudy):
    def jobs(self) -> list[Job]:
        return self.arm_jobs()

    def summarise(self, runs: Sequence[Run]) -> Findings:
        found = model_findings(runs, self.metric, self.equal)
        return replace(found, answer=[*_unequal_sizes(found.tables[MODELS]), *found.answer])


def _unequal_sizes(rows: Sequence[Row]) -> list[str]:
    """A sentence where arms differ in their parameters."""
    least, most = (choose(rows, key=lambda row: row["parameters"]) for choose in (min, max))
    if most["parameters"] - least["parameters"] <= TOLERANCE * most["parameters"]:
        return []
    sizes = f"{least['arm']} has {least['parameters']:,} parameters, {most['arm']} {most['parameters']:,}"
    return [
        f"Unequal sizes: {sizes}; a difference may come from that. model.scratch.intermediate of an arm evens them out."
    ]
