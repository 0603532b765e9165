"""The sample accounting of a step: every sample is trained on, filtered, pending for a later step, or without a
verdict.

    sampled = trained + filtered + pending + no_verdict

Each side is counted from its own source: sampled and pending samples from the groups, trained samples from the tensors
that the update receives. Where the sides disagree the run stops: samples were lost, or trained on twice.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.rollouts.groups import Group, Groups, members


@dataclass(frozen=True)
class SampleAccounting:
    """Counts of samples in one step."""

    sampled: int
    trained: int
    filtered: int
    """Verified, in a group with nothing to learn from."""
    pending: int
    """Carried over to later steps, minus those carried in from earlier steps: negative where more were carried in."""
    no_verdict: int

    @classmethod
    def of(cls, groups: Groups, trained: int, filtered: set[int]) -> "SampleAccounting":
        """
        Args:
            trained: samples that the update counts.
            filtered: ids of the groups that it leaves out.
        """
        return cls(
            sampled=members(groups.sampled),
            trained=trained,
            filtered=sum(_verified(group) for group in groups.settled if group.id in filtered),
            pending=members(groups.carried_over) - members(groups.carried_in),
            no_verdict=sum(group.n_no_verdict for group in groups.settled),
        )

    def check(self, step: int) -> None:
        """Raises GuardStop where the counts do not add up."""
        if self.sampled != self.trained + self.filtered + self.pending + self.no_verdict:
            parts = ", ".join(f"{name} {count}" for name, count in asdict(self).items())
            raise GuardStop(
                f"step {step}: the books do not add up: {parts}; sampled must be the sum of the others. Samples were lost or "
                "counted twice, so the step was not trained on. Resume from the last checkpoint, and report it with config.yaml"
            )

    def metrics(self) -> Mapping[str, int]:
        return {f"samples/{name}": count for name, count in asdict(self).items()}


def _verified(group: Group) -> int:
    return len(group.completions) - group.n_no_verdict
