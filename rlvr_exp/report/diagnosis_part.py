"""The diagnosis as HTML: the first cause in full, the others in turn, each with its evidence and three completions."""

from collections.abc import Iterable
from html import escape

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Finding, Weight
from rlvr_exp.report.curves import words
from rlvr_exp.report.diagnosis import NOTHING, Diagnosis

MOST_TEXT = 600
WEIGHTS = {Weight.BLOCKS: "blocks learning", Weight.HOLDS_BACK: "holds it back", Weight.NOTE: "note"}
OF_PROMPTS = ("leak", "duplicates", "prompts_too_long")
"""Causes whose evidence is the prompt."""
OUTCOMES = {"rose": "The policy learned.", "fell": "The policy got worse.", "level": "No change shows.", "unknown": ""}


def diagnosis_section(found: Diagnosis, trains: bool) -> str:
    """'' for a run that does not train and has nothing wrong."""
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
