"""Completions for a person to read, each with its verdict: tasks gained, tasks lost, and some at random.

The selection depends on the run's seed alone, so a rewritten report shows the same completions.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.core.seeds import derive
from rlvr_exp.records.rollout_files import VerifiedCompletion
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import RunData
from rlvr_exp.report.grids import puzzle_picture

EACH = 3
MOST_TEXT, MOST_LOG = 4000, 600
"""Characters of a prompt or completion, and of a verdict's log; omitted characters are counted on the page."""

Answer = Mapping[str, Any]


def held_out_samples(run: RunData) -> str:
    """The same tasks before and after; '' without an evaluation."""
    answers = {when: _first_of_each_task(rows) for when, rows in run.answers.items()}
    if not any(answers.values()):
        return ""
    tasks = list(dict.fromkeys(task for rows in answers.values() for task in rows))
    tasks.sort(key=lambda task: derive(_seed(run), "report", task))
    sides = {task: {when: rows[task] for when, rows in answers.items() if task in rows} for task in tasks}
    met = {task: [side["outcome"] for side in sides[task].values()] for task in tasks}
    best = sorted((task for task in tasks if met[task][-1] == "passed"), key=lambda task: met[task][0] == "passed")
    worst = [task for task in tasks if met[task][-1] in ("failed", "rejected")]
    worst.sort(key=lambda task: met[task][0] != "passed")
    chosen: list[tuple[str, str]] = []
    for title, some in (("best", best), ("worst", worst), ("random", tasks)):
        taken = {task for _, task in chosen}
        chosen += [(title, task) for task in some if task not in taken][:EACH]
    note = "best: passes, if possible only since training; worst: fails, if possible only since; random: any other."
    return f'<p class="note">{note}</p>' + "".join(_card(run, title, task, sides[task]) for title, task in chosen)


def training_samples(run: RunData) -> str:
    """Completions of the last step: highest and lowest reward, and some at random; '' without rollouts."""
    rows = sorted(run.last_rollouts, key=lambda row: derive(_seed(run), "report", row.group, row.sample))
    paid = sorted((row for row in rows if row.reward is not None), key=lambda row: row.reward or 0.0)
    chosen: list[tuple[str, VerifiedCompletion]] = []
    for title, some in (("best", paid[::-1]), ("worst", paid), ("random", rows)):
        taken = [row for _, row in chosen]
        chosen += [(title, row) for row in some if row not in taken][:EACH]
    return "".join(_card(run, title, row.task, {f"step {row.step}": _as_answer(row)}) for title, row in chosen)


def _first_of_each_task(rows: Iterable[Answer]) -> dict[str, Answer]:
    """The greedy answer of each task where there is one, else its first sample."""
    first: dict[str, Answer] = {}
    for row in rows:
        if row["task"] not in first or (row["mode"] == "greedy" and first[row["task"]]["mode"] != "greedy"):
            first[row["task"]] = row
    return first


def _seed(run: RunData) -> int:
    return int(run.config.get("seed") or 0)


def _as_answer(row: VerifiedCompletion) -> Answer:
    terms = ", ".join(f"{words(name)} {value:.3g}" for name, value in row.terms.items())
    reward = "no reward" if row.reward is None else f"reward {row.reward:.3g} ({terms})"
    return {
        "task": row.task, "family": row.family, "prompt": row.prompt, "completion": row.completion,
        "outcome": row.outcome, "bucket": row.bucket, "tokens": row.tokens, "log": row.log, "mode": reward,
    }  # fmt: skip


def _card(run: RunData, title: str, task: str, sides: Mapping[str, Answer]) -> str:
    any_side = next(iter(sides.values()))
    prompt = _text(any_side["prompt"], MOST_TEXT)
    picture = puzzle_picture(any_side["prompt"], run.config.get("data") or {})
    shown = f"{picture}<details><summary>prompt</summary>{prompt}</details>" if picture else f"<h4>prompt</h4>{prompt}"
    answers = "".join(_answer(when, answer) for when, answer in sides.items())
    return (
        f'<article class="sample"><h3><span class="tag {title}">{title}</span> {escape(words(any_side["family"]))}'
        f' <small>{escape(task)}</small></h3>{shown}<div class="answers">{answers}</div></article>'
    )


def _answer(when: str, answer: Answer) -> str:
    outcome = answer["outcome"]
    verdict = outcome if outcome != "failed" else f"failed: {words(answer['bucket'] or '')}"
    log = f'<div class="log">{_text(answer["log"], MOST_LOG)}</div>' if answer["log"] else ""
    return (
        f'<div><h4>{escape(when)} <span class="verdict {escape(outcome)}">{escape(words(verdict))}</span>'
        f" <small>{escape(str(answer['mode']))}, {answer['tokens']} tokens</small></h4>"
        f"{_text(answer['completion'], MOST_TEXT)}{log}</div>"
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
