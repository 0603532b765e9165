"""Why a run does not learn: causes with their evidence, the first cause first, or that nothing wrong was found.

Pure functions of the evidence. The order is that of causes and effects. Causes that block learning come before those
that hold it back. Then causes from the start come before later ones, which result from the updates, and the updates of
a broken pipeline are no better than it. From the start: by the place in the pipeline, from the sampling of an answer to
the weights. Later: the updates themselves, then by time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlvr_exp.report.diagnosis_cost import costs
from rlvr_exp.report.diagnosis_general import generalising
from rlvr_exp.report.diagnosis_judging import judging
from rlvr_exp.report.diagnosis_prompts import prompting
from rlvr_exp.report.diagnosis_reward import rewarding
from rlvr_exp.report.diagnosis_sampling import sampling
from rlvr_exp.report.diagnosis_update import updating
from rlvr_exp.report.evidence import Evidence, trend
from rlvr_exp.report.finding import Finding

PIPELINE = (
    "leak", "duplicates", "prompts_too_long", "golds", "stop", "random_policy", "sampling", "empty", "repeats",
    "contradiction", "one_answer", "entropy_collapse", "truncation", "parse", "no_verdict", "rejected", "alike",
    "none_pass", "reward_not_finite", "constant_reward", "reward_blind", "reward_inverted", "reward_noise",
    "reward_hacking", "dead_failed", "dead_solved", "advantages", "learning_rate", "untrained", "no_gradient",
    "clipped", "clip_range", "unmoved", "ratio", "kl_holds", "entropy_bonus", "weight_decay", "exploding", "kl",
    "overfit",
)  # fmt: skip
"""Causes that exist from the start, upstream first."""
DURING = (
    "no_verdict", "reward_not_finite", "entropy_bonus", "weight_decay", "exploding", "kl", "ratio", "one_answer",
    "reward_hacking",
)  # fmt: skip
"""Causes that can start during a run and cause all others."""
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
    parts = (prompting, sampling, judging, rewarding, updating, generalising)
    found = [finding for part in parts for finding in part(seen)]
    outcome, outcome_text = _outcome(seen)
    return Diagnosis(tuple(_ranked(found)), tuple(costs(seen)), outcome, outcome_text, _ended(seen))


def _ranked(found: Sequence[Finding]) -> Iterator[Finding]:
    """Ordered, each cause once: the first of those with the same name."""
    seen: set[str] = set()
    for finding in sorted(found, key=_place):
        if finding.cause not in seen:
            seen.add(finding.cause)
            yield finding


def _place(finding: Finding) -> tuple[int, ...]:
    later, upstream = finding.onset > 1, PIPELINE.index(finding.cause)
    if not later:
        return (-finding.weight, later, upstream)
    driving = DURING.index(finding.cause) if finding.cause in DURING else len(DURING)
    return (-finding.weight, later, driving, finding.onset, upstream)


def _ended(seen: Evidence) -> str:
    if seen.summary.get("status") not in ("stopped", "failed") or not seen.reason:
        return ""
    return f"The run {seen.summary['status']}: {seen.reason.splitlines()[0][:200]}"


def _outcome(seen: Evidence) -> tuple[str, str]:
    for metric in ("pass_at_1", "pass_at_1_greedy"):
        if metric in seen.change:
            change = seen.change[metric]
            low, high = change["low"], change["high"]
            words = (
                f"Held-out success changed by {100 * change['value']:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]"
            )
            return ("rose" if low > 0 else "fell" if high < 0 else "level"), words
    moved = trend(seen.step_counts, lambda one: one.group_success)
    if moved is None:
        return "unknown", "Success was not measured twice"
    words = f"Success in training went from {moved.first:.1%} to {moved.last:.1%}"
    return ("rose" if moved.rose else "fell" if moved.fell else "level"), words
