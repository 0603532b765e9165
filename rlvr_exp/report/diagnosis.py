"""Why a run does not learn: causes with their evidence, the first cause first, or that nothing wrong was found.

Pure functions of the evidence. The order is that of causes and effects. Causes that block learning come before those
that hold it back. Then causes from the start come before later ones, which result from the updates, and the updates of
a broken pipeline are no better than it. From the start: by the place in the pipeline, from the sampling of an answer to
the weights. Later: the updates themselves, then by time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_exp.report.cause import BY_ITSELF, Cause, Finding
from rlvr_exp.report.causes import CAUSES
from rlvr_exp.report.evidence import Evidence

NOTHING = "Nothing wrong was found"


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...]
    """Causes, the first cause first."""
    notes: tuple[Finding, ...]
    """Findings that are worth knowing and no cause."""
    outcome: str
    """rose, fell, level or unknown: verified success, held out where it was measured, else in training."""
    outcome_text: str
    """The outcome in words."""
    ended: str = ""
    """How a run ended that a guard or a fault has stopped, in a line; page and terminal show it with its status."""

    @property
    def headline(self) -> str:
        """The first cause in a line, else how the run ended, or that nothing was found."""
        return self.findings[0].title if self.findings else self.ended or NOTHING


def diagnose(seen: Evidence) -> Diagnosis:
    found = [(cause, finding) for cause in CAUSES if (finding := cause.find(seen)) is not None]
    causes = tuple(_ranked([(cause, finding) for cause, finding in found if finding.weight]))
    notes = tuple(finding for cause, finding in found if not finding.weight)
    return Diagnosis(causes, notes, *seen.outcome, _ended(seen))


def _ranked(found: Sequence[tuple[Cause, Finding]]) -> Iterator[Finding]:
    """Ordered, each cause once: the first of those with the same name; without those that another explains."""
    said = {
        effect.cause
        for cause, finding in found for _, effect in found
        if effect.cause in cause.explains and effect.cause != cause.name and finding.onset <= max(1, effect.onset)
    }  # fmt: skip
    if any(finding.onset <= 1 or cause.later < BY_ITSELF for cause, finding in found if not cause.alone):
        said |= {cause.name for cause, _ in found if cause.alone}
    for cause, finding in sorted(found, key=_place):
        if cause.name not in said:
            said.add(cause.name)
            yield finding


def _place(pair: tuple[Cause, Finding]) -> tuple[int, ...]:
    cause, finding = pair
    upstream = CAUSES.index(cause)
    if finding.onset <= 1:
        return (-finding.weight, 0, upstream)
    return (-finding.weight, 1, cause.later, finding.onset, upstream)


def _ended(seen: Evidence) -> str:
    if seen.summary.get("status") not in ("stopped", "failed") or not seen.reason:
        return ""
    return f"The run {seen.summary['status']}: {seen.reason.splitlines()[0][:200]}"
