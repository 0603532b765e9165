"""The verifier's most frequent logs of completions that did not pass, each with its count and one complete text."""

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import RunData
from rlvr_exp.report.step_counts import as_rollouts

MOST, MOST_CHARACTERS = 12, 1500


def log_table(run: RunData) -> str:
    """Logs of training completions, else of held-out answers; '' where all are empty."""
    own = [row for row in run.rollouts if not row.waited]
    rows = own or [row for answers in run.answers.values() for row in as_rollouts(0, answers)]
    unpassed = [row for row in rows if not row.completion.correct]
    found = repeated_logs(unpassed, MOST)
    if not found:
        return ""
    items = "".join(
        f'<li><span class="verdict {escape(row.verdict.outcome)}">{escape(words(verdict))}</span> <b>{count:,}</b> '
        f"<details><summary><code>{escape(line[:160])}</code></summary><pre>{escape(row.verdict.log[:MOST_CHARACTERS])}</pre>"
        f"<p class='none'>task {escape(row.completion.task.id)}, answer:</p>"
        f"<pre>{escape(row.completion.text[:MOST_CHARACTERS])}</pre></details></li>"
        for verdict, line, count, row in found
    )
    steps = len({row.step for row in rows})
    whence = f"{len(unpassed):,} completions that did not pass, of {steps:,} {'step' if steps == 1 else 'steps'}"
    return f'<p class="note">The commonest kinds of logs of {whence}.</p><ul class="logs">{items}</ul>'


def repeated_logs(rows: Sequence[RolloutRow], most: int) -> list[tuple[str, str, int, RolloutRow]]:
    """(verdict, shape of the log's first line, count, a row) of the most frequent logs, in descending order."""
    counts: Counter[tuple[str, str]] = Counter()
    shown: dict[tuple[str, str], RolloutRow] = {}
    for row in rows:
        line = next((line.strip() for line in row.verdict.log.splitlines() if line.strip()), "")
        if line:
            key = (row.verdict.bucket or row.verdict.outcome, _shape(line))
            counts[key] += 1
            shown.setdefault(key, row)
    return [(*key, count, shown[key]) for key, count in counts.most_common(most)]


def _shape(line: str) -> str:
    """The line without what differs from task to task: numbers, quoted words and lists."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "...", line)) != line:
        line = shorter
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'...'", line))
