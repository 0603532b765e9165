"""Why a run does not learn: causes with their evidence, the first cause first, or that nothing wrong was found; and the same as
HTML.

A diagnosis is a pure function of the evidence. The order is that of causes and effects. Causes that block learning come
before those that hold it back. Then causes from the start come before later ones, which result from the updates, and the
updates of a broken pipeline are no better than it. From the start: by the place in the pipeline, from the sampling of an
answer to the weights. Later: the updates themselves, then by time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import BY_ITSELF, Cause, Finding, Weight
from rlvr_exp.report.causes import CAUSES
from rlvr_exp.report.curves import words
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


MOST_TEXT = 600
WEIGHTS = {Weight.BLOCKS: "blocks learning", Weight.HOLDS_BACK: "holds it back", Weight.NOTE: "note"}
OF_PROMPTS = ("leak", "duplicates", "prompts_too_long")
"""Causes whose evidence is the prompt."""
OUTCOMES = {"rose": "The policy learned.", "fell": "The policy got worse.", "level": "No change shows.", "unknown": ""}


def diagnosis_section(found: Diagnosis, trains: bool) -> str:
    """The first cause in full, the others in turn, each with three completions; '' for a run that does not train and has
    nothing wrong."""
    if not trains and not found.findings:
        return ""
    outcome = f"<p>{OUTCOMES[found.outcome]} {escape(found.outcome_text)}.</p>" if trains else ""
    causes = "".join(_card(finding, number) for number, finding in enumerate(found.findings, 1))
    if not causes and found.ended:
        causes = '<p class="note">Its reason stands above; nothing else was found in its metrics and samples.</p>'
    elif not causes:
        causes = f'<p class="well"><b>{NOTHING}</b> in the metrics and samples of this run.</p>'
    notes = "".join(_card(finding, 0) for finding in found.notes)
    return outcome + causes + notes


def _card(finding: Finding, number: int) -> str:
    first = " first" if number == 1 else ""
    tag = "first cause" if number == 1 else WEIGHTS[finding.weight]
    since = f"from step {finding.onset:,}" if finding.onset > 1 else "from the start" if finding.weight else ""
    head = f'<h3><span class="tag">{tag}</span> {escape(finding.title)} <small>{since}</small></h3>'
    body = f"<p>{escape(finding.why)}</p><p><b>What to do:</b> {escape(finding.remedy)}</p>"
    samples = _samples(finding.samples, number == 1, finding.cause in OF_PROMPTS)
    name = f'<p class="none">cause: <code>{escape(finding.cause)}</code></p>' if number else ""
    parts = f"{head}{body}{samples}{name}"
    return f'<article class="sample cause{first}" data-cause="{escape(finding.cause)}">{parts}</article>'


def _samples(rows: Iterable[RolloutRow], shown: bool, with_prompt: bool) -> str:
    items = "".join(_sample(row, with_prompt) for row in rows)
    return f"<details{' open' if shown else ''}><summary>samples</summary>{items}</details>" if items else ""


def _sample(row: RolloutRow, with_prompt: bool) -> str:
    verdict = words(row.verdict.reason)
    paid = "" if row.reward is None else f", reward {row.reward:.3g}"
    place = f"step {row.step}" if row.fate != "measured" else "held out"
    log = f'<div class="log"><pre>{escape(row.verdict.log[:MOST_TEXT])}</pre></div>' if row.verdict.log.strip() else ""
    prompt = f"<pre>{escape(row.prompt[:MOST_TEXT])}</pre><p class='none'>answer:</p>" if with_prompt else ""
    more = len(row.completion.text) - MOST_TEXT
    left = f'<p class="none">&hellip; {more:,} more characters</p>' if more > 0 else ""
    return (
        f'<div><h4><span class="verdict {escape(row.verdict.outcome)}">{escape(verdict)}</span> <small>{place}, task '
        f"{escape(row.completion.task.id)}, {row.completion.tokens} "
        f"tokens{paid}</small></h4>{prompt}<pre>{escape(row.completion.text[:MOST_TEXT]) or '(empty)'}</pre>"
        f"{left}{log}</div>"
    )
