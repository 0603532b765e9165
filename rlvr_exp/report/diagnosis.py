"""The diagnosis: causes of a run that does not learn, ranked, with their evidence and remedies, or what to look at next.

A diagnosis is a pure function of the evidence. A cause needs a measured effect on learning: a run whose held-out success rose
significantly has causes only if they cost a good part of it, and causes that follow from a change of success need enough
held-out tasks. Causes that block learning come before causes that hold it back. Then causes from the start come before later
ones, because updates of a broken pipeline cause the later ones. Among those from the start the larger effect comes first, then
the earlier place in the pipeline, from the sampling of an answer to the weights. Later, the updates come first, then the
causes by time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rlvr_exp.core.measures import counted
from rlvr_exp.report.cause import BY_ITSELF, Cause, Finding, Weight
from rlvr_exp.report.causes import CAUSES
from rlvr_exp.report.causes.proposals import checked_answers, more_steps, usual_values
from rlvr_exp.report.evidence import Evidence
from rlvr_exp.report.remedies import Remedy, remedies
from rlvr_exp.report.rendering import part

NOTHING = "No problem was found"


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...]
    """Causes, the first cause first."""
    notes: tuple[Finding, ...]
    """Findings that are no cause."""
    outcome: str
    """rose, fell, level or unknown: verified success, held out if it was measured, else in training."""
    outcome_text: str
    """The outcome in words."""
    ended: str = ""
    """One line about the end of a run that a guard or a fault stopped."""
    power: str = ""
    """The smallest change that the held-out tasks could have shown, if they showed none."""
    next_steps: tuple[Remedy, ...] = ()
    """What to look at next if no change was shown and no cause was found."""

    @property
    def headline(self) -> str:
        """The first cause in one line, else the end of the run, or that no problem was found."""
        if self.findings or self.ended:
            return self.findings[0].title if self.findings else self.ended
        return NOTHING if self.outcome in ("rose", "unknown") else f"{NOTHING}, and no gain was shown"


def diagnose(seen: Evidence) -> Diagnosis:
    found = [(cause, finding) for cause in CAUSES if (finding := cause.find(seen)) is not None]
    causes = tuple(_ranked([(cause, finding) for cause, finding in found if finding.weight]))
    notes = tuple(finding for cause, finding in found if not finding.weight)
    next_steps = () if causes or not seen.trains else remedies(seen.config, _to_look_at(seen))
    return Diagnosis(causes, notes, *seen.outcome, _ended(seen), _power(seen), () if seen.rose else next_steps)


SHOWN = 0.05
"""The change of success that a run should be able to show."""


def _power(seen: Evidence) -> str:
    """What the held-out comparison could have shown. Empty if success changed, or was not measured twice."""
    power = seen.power
    if power is None or seen.outcome[0] in ("rose", "fell"):
        return ""
    needed = power.tasks_for(SHOWN)
    more = f" About {needed:,} tasks would show {100 * SHOWN:.0f} points." if needed > power.tasks else ""
    sampled = f"{counted(power.tasks, 'held-out task')} with {counted(int(power.samples), 'sample')} each"
    if power.blind:
        return f"Nothing can be said about learning: {sampled} are too few.{more}"
    least = f"{100 * power.detectable:.1f} points or more (95% confidence, 80% power)"
    return f"With {sampled}, this run could have shown a change of {least}.{more}"


def _to_look_at(seen: Evidence) -> dict[str, Any]:
    """Options to change if nothing is known to be wrong: enough held-out tasks, unusual values, checks, more steps."""
    return {**_more_held_out(seen), **usual_values(seen), **checked_answers(seen), **more_steps(seen)}


def _more_held_out(seen: Evidence) -> dict[str, int]:
    """As many held-out tasks as show a change of SHOWN, or all that the split has, with more samples."""
    power = seen.power
    if power is None or (needed := power.tasks_for(SHOWN)) <= power.tasks:
        return {}
    split = (seen.manifest.get("data") or {}).get(str(seen.option("evaluation.split"))) or {}
    most = int(split.get("tasks") or needed)
    more = {"evaluation.samples": math.ceil(power.samples * needed / most)} if needed > most else {}
    return {"evaluation.tasks": min(needed, most), **more}


def _ranked(found: Sequence[tuple[Cause, Finding]]) -> Iterator[Finding]:
    """The findings in order, each cause once, without causes that another cause explains."""
    explained = {
        effect.cause
        for cause, finding in found for _, effect in found
        if effect.cause in cause.explains and effect.cause != cause.name and finding.onset <= max(1, effect.onset)
    }  # fmt: skip
    if any(finding.onset <= 1 or cause.later < BY_ITSELF for cause, finding in found if not cause.alone):
        explained |= {cause.name for cause, _ in found if cause.alone}
    for cause, finding in sorted(found, key=_place):
        if cause.name not in explained:
            explained.add(cause.name)
            yield finding


def _place(pair: tuple[Cause, Finding]) -> tuple[float, ...]:
    cause, finding = pair
    upstream = CAUSES.index(cause)
    if finding.onset <= 1:
        return (-finding.weight, 0, -round(finding.effect, 1), upstream)
    return (-finding.weight, 1, cause.later, finding.onset, upstream)


def _ended(seen: Evidence) -> str:
    if seen.summary.get("status") not in ("stopped", "failed") or not seen.reason:
        return ""
    return f"The run {seen.summary['status']}: {seen.reason.splitlines()[0][:200]}"


OUTCOMES = {
    "rose": "The policy learned.",
    "fell": "The policy became worse.",
    "level": "No significant change.",
    "unknown": "",
}
WEIGHTS = {Weight.BLOCKS: "blocks learning", Weight.HOLDS_BACK: "slows learning", Weight.NOTE: "note"}
OF_PROMPTS = ("leak", "duplicates", "prompts_too_long")
"""Causes whose evidence is the prompt."""


def diagnosis_section(found: Diagnosis, trains: bool) -> Markup:
    """The first cause in full, then the others, each with three completions. Empty for a healthy run that does not train."""
    if not trains and not found.findings:
        return Markup()
    causes = [(finding, number, WEIGHTS[finding.weight]) for number, finding in enumerate(found.findings, 1)]
    notes = [(finding, 0, WEIGHTS[finding.weight]) for finding in found.notes]
    outcome = f"{OUTCOMES[found.outcome]} {found.outcome_text}. {found.power}" if trains else ""
    nothing = "" if causes else "ended" if found.ended else NOTHING
    kind = "well" if found.outcome == "rose" else "neutral"
    return part(
        "diagnosis", outcome=outcome, causes=[*causes, *notes], nothing=nothing, kind=kind, next_steps=found.next_steps,
        of_prompts=OF_PROMPTS,
    )  # fmt: skip
