"""All answers of the policy to a few tasks, best first, and how its most frequent and its passing answer differ from
the gold.

From an evaluation where there is one, else from the last training step, whose answers have rewards and advantages.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rlvr_exp.core.seeds import derive
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.step_counts import as_rollouts
from rlvr_exp.report.tasks import TaskInfo

EACH, MOST_TEXTS, MOST_CHARACTERS, MOST_LINES = 2, 8, 1500, 60
"""Tasks of a kind, texts of a task, characters of a text, and lines of a difference."""


@dataclass(frozen=True)
class Text:
    """A distinct answer to a task."""

    row: RolloutRow
    count: int


def lists(run: RunData, known: Mapping[str, TaskInfo]) -> str:
    """A few tasks of each kind: solved sometimes, never, always."""
    source, rows = _source(run)
    tasks: dict[str, list[RolloutRow]] = {}
    for row in rows:
        tasks.setdefault(row.completion.task.id, []).append(row)
    chosen = _chosen(tasks, known, int(run.config.get("seed") or 0))
    cards = "".join(_card(kind, tasks[task], known.get(task)) for kind, task in chosen)
    return f'<p class="note">{escape(source)}; equal answers are counted together.</p>{cards}' if cards else ""


def _source(run: RunData) -> tuple[str, Sequence[RolloutRow]]:
    for when in reversed(WHENS):
        if run.answers.get(when):
            return f"Sampled answers to held-out tasks, {when} training", as_rollouts(0, run.answers[when])
    return "Answers of the last training step", run.last_rollouts


def _chosen(
    tasks: Mapping[str, Sequence[RolloutRow]], known: Mapping[str, TaskInfo], seed: int
) -> list[tuple[str, str]]:
    """Tasks with a gold first, in an order that depends on the seed alone."""
    ordered = sorted(tasks, key=lambda task: (task not in known, derive(seed, "n-best", task)))
    found: dict[str, list[str]] = {"sometimes solved": [], "never solved": [], "always solved": []}
    for task in ordered:
        passes = [row.completion.correct for row in tasks[task] if row.verdict.outcome != "no_verdict"]
        if passes:
            kind = "always solved" if all(passes) else "sometimes solved" if any(passes) else "never solved"
            found[kind].append(task)
    return [(kind, task) for kind, of_kind in found.items() for task in of_kind[:EACH]]


def _card(kind: str, rows: Sequence[RolloutRow], known: TaskInfo | None) -> str:
    texts = distinct(rows)
    family, task = escape(words(rows[0].completion.task.family)), escape(rows[0].completion.task.id)
    head = f'<h3><span class="tag">{kind}</span> {family} <small>{task}</small></h3>'
    items = "".join(_item(text, len(rows)) for text in texts[:MOST_TEXTS])
    left = len(texts) - MOST_TEXTS
    more = f'<p class="none">&hellip; {left:,} more texts</p>' if left > 0 else ""
    prompt = f"<details><summary>prompt</summary><pre>{escape(rows[0].prompt[:MOST_CHARACTERS])}</pre></details>"
    gold = _difference_from_gold(texts, known)
    return f'<article class="sample">{head}{prompt}<ol class="nbest">{items}</ol>{more}{gold}</article>'


def distinct(rows: Iterable[RolloutRow]) -> list[Text]:
    """The distinct answers: best reward first where there are rewards, else passing ones, then by count."""
    found: dict[str, list[RolloutRow]] = {}
    for row in rows:
        found.setdefault(row.completion.text, []).append(row)
    texts = [Text(of_text[0], len(of_text)) for of_text in found.values()]
    return sorted(texts, key=lambda text: (-(text.row.reward or 0.0), not text.row.completion.correct, -text.count))


def _item(text: Text, of: int) -> str:
    row = text.row
    paid = "" if row.reward is None else f", reward {row.reward:.3g}"
    paid += "" if row.advantage is None else f", advantage {row.advantage:+.3g}"
    verdict = words(row.verdict.reason)
    return (
        f'<li><span class="verdict {escape(row.verdict.outcome)}">{escape(verdict)}</span> '
        f"<small>{text.count} of {of}{paid}</small>"
        f"<pre>{escape(row.completion.text[:MOST_CHARACTERS]) or '(empty)'}</pre></li>"
    )


def _difference_from_gold(texts: Sequence[Text], known: TaskInfo | None) -> str:
    if known is None or known.gold is None:
        return ""
    usual = max(texts, key=lambda text: text.count)
    passing = next((text for text in texts if text.row.completion.correct), None)
    shown = [
        ("most frequent answer", usual),
        *([("an answer that passes", passing)] if passing not in (None, usual) else []),
    ]
    parts = (
        f"<details><summary>gold against the {name}</summary>{difference(known.gold, text.row.completion.text)}</details>"
        for name, text in shown
    )
    return "".join(parts)


def difference(gold: str, answer: str) -> str:
    """A unified diff as HTML: lines only in the gold, and lines only in the answer."""
    if gold.strip() == answer.strip():
        return '<p class="none">equal to the gold</p>'
    before, after = gold[:MOST_CHARACTERS].strip().splitlines(), answer[:MOST_CHARACTERS].strip().splitlines()
    lines = [*difflib.unified_diff(before, after, n=20, lineterm="")][3:]
    kinds = {"-": "minus", "+": "plus"}
    drawn = "\n".join(
        f'<span class="{kinds.get(line[:1], "same")}">{escape(line)}</span>' for line in lines[:MOST_LINES]
    )
    left = f'<p class="none">&hellip; {len(lines) - MOST_LINES:,} more lines</p>' if len(lines) > MOST_LINES else ""
    return f'<pre class="diff">{drawn}</pre>{left}'
