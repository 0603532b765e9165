"""Completions for a person to read, each with its verdict: tasks gained, tasks lost, and some at random; and the verifier's most
frequent logs of completions that did not pass.

The selection depends on the run's seed alone, so a rewritten report shows the same completions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import Completion
from rlvr_exp.records.rollout_files import EvalSample, RolloutRow
from rlvr_exp.report.answers import beside_answer
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import RunData
from rlvr_exp.report.step_counts import as_rollouts

EACH = 3
MOST_TEXT, MOST_LOG = 4000, 600
"""Characters of a prompt or completion, and of a verdict's log; omitted characters are counted on the page."""

Side = tuple[Completion, str, Mapping[str, Any] | None]
"""A completion, its mode or its reward, and what the environment says of it."""


def held_out_samples(run: RunData) -> str:
    """The same tasks before and after; '' without an evaluation."""
    answers = {when: _first_of_each_task(rows) for when, rows in run.answers.items()}
    if not any(answers.values()):
        return ""
    tasks = list(dict.fromkeys(task for rows in answers.values() for task in rows))
    tasks.sort(key=lambda task: derive(_seed(run), "report", task))
    sides = {task: {when: rows[task] for when, rows in answers.items() if task in rows} for task in tasks}
    met = {task: [side.verdict.outcome for side in sides[task].values()] for task in tasks}
    best = sorted((task for task in tasks if met[task][-1] == "passed"), key=lambda task: met[task][0] == "passed")
    worst = [task for task in tasks if met[task][-1] in ("failed", "rejected")]
    worst.sort(key=lambda task: met[task][0] != "passed")
    chosen: list[tuple[str, str]] = []
    for title, some in (("best", best), ("worst", worst), ("random", tasks)):
        taken = {task for _, task in chosen}
        chosen += [(title, task) for task in some if task not in taken][:EACH]
    note = "best: passes, if possible only since training; worst: fails, if possible only since; random: any other."
    return f'<p class="note">{note}</p>' + "".join(_held_out(run, title, sides[task]) for title, task in chosen)


def training_samples(run: RunData) -> str:
    """Completions of the last step: highest and lowest reward, and some at random; '' without rollouts."""
    rows = sorted(run.last_rollouts, key=lambda row: derive(_seed(run), "report", row.group, row.completion.sample))
    paid = sorted((row for row in rows if row.reward is not None), key=lambda row: row.reward or 0.0)
    chosen: list[tuple[str, RolloutRow]] = []
    for title, some in (("best", paid[::-1]), ("worst", paid), ("random", rows)):
        taken = [row for _, row in chosen]
        chosen += [(title, row) for row in some if row not in taken][:EACH]
    return "".join(
        _card(run, title, row.prompt, {f"step {row.step}": (row.completion, _paid(row), None)}) for title, row in chosen
    )


def _held_out(run: RunData, title: str, sides: Mapping[str, EvalSample]) -> str:
    prompt = next(iter(sides.values())).prompt
    return _card(run, title, prompt, {when: (one.completion, one.mode, one.about) for when, one in sides.items()})


def _first_of_each_task(rows: Iterable[EvalSample]) -> dict[str, EvalSample]:
    """The greedy answer of each task where there is one, else its first sample."""
    first: dict[str, EvalSample] = {}
    for row in rows:
        known = first.setdefault(row.completion.task.id, row)
        if row.mode == "greedy" != known.mode:
            first[row.completion.task.id] = row
    return first


def _seed(run: RunData) -> int:
    return int(run.config.get("seed") or 0)


def _paid(row: RolloutRow) -> str:
    terms = ", ".join(f"{words(name)} {value:.3g}" for name, value in row.terms.items())
    return "no reward" if row.reward is None else f"reward {row.reward:.3g} ({terms})"


def _card(run: RunData, title: str, prompt: str, sides: Mapping[str, Side]) -> str:
    task, text = next(iter(sides.values()))[0].task, _text(prompt, MOST_TEXT)
    picture = _picture(prompt, run.config.get("data") or {})
    shown = f"{picture}<details><summary>prompt</summary>{text}</details>" if picture else f"<h4>prompt</h4>{text}"
    answers = "".join(_answer(when, *side) for when, side in sides.items())
    return (
        f'<article class="sample"><h3><span class="tag {title}">{title}</span> {escape(words(task.family))}'
        f' <small>{escape(task.id)}</small></h3>{shown}<div class="answers">{answers}</div></article>'
    )


def _picture(prompt: str, data: Mapping[str, Any]) -> str:
    """The prompt as its domain draws it; empty if it draws none."""
    target = str(data.get("_target_", ""))
    drawing = next((one.picture for one in domains().values() if one.picture and one.owns(target)), "")
    return str(load(drawing)(prompt, data)) if drawing else ""


def _answer(when: str, completion: Completion, how: str, about: Mapping[str, Any] | None) -> str:
    outcome, log = completion.verdict.outcome, completion.verdict.log
    verdict = outcome if outcome != "failed" else f"failed: {words(completion.verdict.reason)}"
    shown = f'<div class="log">{_text(log, MOST_LOG)}</div>' if log else ""
    return (
        f'<div><h4>{escape(when)} <span class="verdict {escape(outcome)}">{escape(words(verdict))}</span>'
        f" <small>{escape(how)}, {completion.tokens} tokens</small></h4>"
        f"{_text(completion.text, MOST_TEXT)}{shown}{beside_answer(about or {})}</div>"
    )


def _text(text: str, most: int) -> str:
    if not text.strip():
        return '<p class="none">(empty)</p>'
    left = f'<p class="none">&hellip; {len(text) - most:,} more characters</p>' if len(text) > most else ""
    return f"<pre>{escape(text[:most])}</pre>{left}"


def sections(run: RunData) -> Sequence[tuple[str, str]]:
    """(title, HTML) of both kinds."""
    return (
        ("Answers on held-out tasks", held_out_samples(run)),
        ("Answers of the last training step", training_samples(run)),
    )


MOST_KINDS, MOST_CHARACTERS = 12, 1500


def log_table(run: RunData) -> str:
    """The most frequent logs of training completions, else of held-out answers; '' where all are empty."""
    own = [row for row in run.rollouts if not row.waited]
    rows = own or [row for answers in run.answers.values() for row in as_rollouts(0, answers)]
    unpassed = [row for row in rows if not row.completion.correct]
    found = repeated_logs(unpassed, MOST_KINDS)
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
