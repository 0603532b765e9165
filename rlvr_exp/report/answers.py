"""Answers on the page: selected completions with their verdicts, all answers to a few tasks, verifier logs, and the answers of +stage=infer.

The selection depends on the run's seed alone, so a rewritten report shows the same completions.
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import Completion
from rlvr_exp.records.rollout_files import EvalSample, RolloutRow
from rlvr_exp.report.data import WHENS, RunData, as_rollouts
from rlvr_exp.report.rendering import part, words
from rlvr_exp.report.tasks import TaskInfo

EACH = 3
"""Completions of a kind: best, worst, random."""
EACH_KIND, MOST_TEXTS, MOST_LINES = 2, 8, 60
"""Tasks of a kind, distinct answers to a task, and lines of a difference."""
MOST_TEXT = 1500
"""Characters of a text in a list of answers."""
MOST_KINDS = 12
"""Kinds of verifier logs."""
MOST_ANSWERS, MOST_OPEN = 200, 3
"""Answers of +stage=infer, and answers that are shown open."""
MOST_TESTS, MOST_PROGRAMS = 40, 16
"""Tests, and programs with a column of their own."""


def held_out_samples(run: RunData) -> Markup:
    """The same tasks before and after training. Empty without an evaluation."""
    answers = {when: _first_of_each_task(rows) for when, rows in run.answers.items()}
    tasks = list(dict.fromkeys(task for rows in answers.values() for task in rows))
    tasks.sort(key=lambda task: derive(run.seed, "report", task))
    sides = {task: {when: rows[task] for when, rows in answers.items() if task in rows} for task in tasks}
    met = {task: [side.verdict.outcome for side in sides[task].values()] for task in tasks}
    best = sorted((task for task in tasks if met[task][-1] == "passed"), key=lambda task: met[task][0] == "passed")
    worst = [task for task in tasks if met[task][-1] in ("failed", "rejected")]
    worst.sort(key=lambda task: met[task][0] != "passed")
    texts = {task: [*sides[task].values()][-1].completion.text for task in tasks}
    chosen: list[tuple[str, str]] = []
    for title, some in (("best", best), ("worst", worst), ("random", tasks)):
        taken = {task for _, task in chosen}
        chosen += [
            (title, task) for task in _with_different(texts.__getitem__, (one for one in some if one not in taken))
        ]
    cards: list[Markup] = []
    for title, task in chosen:
        shown = [(when, one.completion, one.mode, one.about or {}) for when, one in sides[task].items()]
        cards.append(_card(run, title, next(iter(sides[task].values())).prompt, shown, open=not cards))
    return part("held_out_samples", cards=cards) if cards else Markup()


def training_samples(run: RunData) -> Markup:
    """Completions of the last step: highest reward, lowest reward, and random ones. Empty without rollouts."""
    rows = sorted(run.last_rollouts, key=lambda row: derive(run.seed, "report", row.group, row.completion.sample))
    paid = sorted((row for row in rows if row.reward is not None), key=lambda row: row.reward or 0.0)
    chosen: list[tuple[str, RolloutRow]] = []
    for title, some in (("best", paid[::-1]), ("worst", paid), ("random", rows)):
        taken = {row.completion.text for _, row in chosen}
        free = (row for row in some if row.completion.text not in taken)
        chosen += [(title, row) for row in _with_different(lambda row: row.completion.text, free)]
    cards = []
    for title, row in chosen:
        terms = ", ".join(f"{words(name)} {value:.3g}" for name, value in row.terms.items())
        reward = "no reward" if row.reward is None else f"reward {row.reward:.3g} ({terms})"
        cards.append(_card(run, title, row.prompt, [(f"step {row.step}", row.completion, reward, {})], open=False))
    return Markup().join(cards)


def _with_different(text: Callable[[Any], str], some: Iterable[Any]) -> list[Any]:
    """The first EACH with different texts."""
    found: dict[str, Any] = {}
    for one in some:
        if len(found) < EACH:
            found.setdefault(text(one).strip(), one)
    return [*found.values()]


def _first_of_each_task(rows: Iterable[EvalSample]) -> dict[str, EvalSample]:
    """The greedy answer of each task if there is one, else its first sample."""
    first: dict[str, EvalSample] = {}
    for row in rows:
        known = first.setdefault(row.completion.task.id, row)
        if row.mode == "greedy" != known.mode:
            first[row.completion.task.id] = row
    return first


def _card(
    run: RunData, title: str, prompt: str, sides: Sequence[tuple[str, Completion, str, Mapping[str, Any]]], open: bool
) -> Markup:
    """
    Args:
        sides: column, completion, its mode or reward, and the facts that the environment recorded.
        open: shown in full; else a click opens it.
    """
    data = run.config.get("data") or {}
    target = str(data.get("_target_", ""))
    drawing = next((one.picture for one in domains().values() if one.picture and one.owns(target)), "")
    picture = Markup(load(drawing)(prompt, data)) if drawing else ""
    shown = [(when, completion, how, beside_answer(about)) for when, completion, how, about in sides]
    return part("sample", title=title, task=sides[0][1].task, picture=picture, prompt=prompt, sides=shown, open=open)


def log_table(run: RunData) -> Markup:
    """The most frequent verifier logs of training completions, or of held-out answers if there are none."""
    own = [row for row in run.rollouts if not row.waited]
    rows = own or [row for answers in run.answers.values() for row in as_rollouts(0, answers)]
    failed = [row for row in rows if not row.completion.correct]
    logs = repeated_logs(failed, MOST_KINDS)
    steps = len({row.step for row in rows})
    return part("logs", logs=logs, count=len(failed), steps=steps, most=MOST_TEXT) if logs else Markup()


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
    """The line without the parts that differ between tasks: numbers, quoted words and lists."""
    while (shorter := re.sub(r"\[[^\[\]]*\]", "...", line)) != line:
        line = shorter
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'...'", line))


@dataclass(frozen=True)
class AnswerText:
    """A distinct answer to a task."""

    row: RolloutRow
    count: int


def answer_lists(run: RunData, known: Mapping[str, TaskInfo]) -> Markup:
    """All answers to a few tasks that are sometimes, never or always solved, best first, with differences from the reference.

    The answers are those of an evaluation, or those of the last training step with rewards and advantages.
    """
    rows, source = run.last_rollouts, "Answers of the last training step"
    if measured := next((when for when in reversed(WHENS) if run.answers.get(when)), None):
        rows, source = as_rollouts(0, run.answers[measured]), f"Sampled answers to held-out tasks, {measured} training"
    tasks: dict[str, list[RolloutRow]] = {}
    for row in rows:
        tasks.setdefault(row.completion.task.id, []).append(row)
    found: dict[str, list[str]] = {"sometimes solved": [], "never solved": [], "always solved": []}
    for task in sorted(tasks, key=lambda task: (task not in known, derive(run.seed, "n-best", task))):
        passes = [row.completion.correct for row in tasks[task] if row.verdict.outcome != "no_verdict"]
        if passes:
            kind = "always solved" if all(passes) else "sometimes solved" if any(passes) else "never solved"
            found[kind].append(task)
    cards = [
        _list(kind, tasks[task], known.get(task)) for kind, of_kind in found.items() for task in of_kind[:EACH_KIND]
    ]
    return part("answer_lists", source=source, cards=cards) if cards else Markup()


def _list(kind: str, rows: Sequence[RolloutRow], known: TaskInfo | None) -> Markup:
    texts = distinct(rows)
    differences = []
    if known is not None and known.gold is not None:
        usual = max(texts, key=lambda text: text.count)
        passing = next((text for text in texts if text.row.completion.correct), None)
        shown = [("the most frequent answer", usual)]
        shown += [("a passing answer", passing)] if passing not in (None, usual) else []
        differences = [(name, difference(known.gold, text.row.completion.text)) for name, text in shown]
    return part(
        "answer_list",
        kind=kind, task=rows[0].completion.task, prompt=rows[0].prompt, texts=texts[:MOST_TEXTS], of=len(rows),
        left=max(0, len(texts) - MOST_TEXTS), differences=differences, most=MOST_TEXT,
    )  # fmt: skip


def distinct(rows: Iterable[RolloutRow]) -> list[AnswerText]:
    """The distinct answers, ordered by reward, then passing ones, then by count."""
    found: dict[str, list[RolloutRow]] = {}
    for row in rows:
        found.setdefault(row.completion.text, []).append(row)
    texts = [AnswerText(of_text[0], len(of_text)) for of_text in found.values()]
    return sorted(texts, key=lambda text: (-(text.row.reward or 0.0), not text.row.completion.correct, -text.count))


def difference(reference: str, answer: str) -> Markup:
    """A unified diff from the reference answer to an answer."""
    before, after = (text[:MOST_TEXT].strip().splitlines() for text in (reference, answer))
    equal = reference.strip() == answer.strip()
    lines = [*difflib.unified_diff(before, after, n=20, lineterm="")][3:]
    return part("difference", equal=equal, lines=lines[:MOST_LINES], left=max(0, len(lines) - MOST_LINES))


def answers_section(run: RunData) -> Markup:
    """The answers of +stage=infer: a line for each task that opens to the program and the verifier's log.

    An answer in stages of reasoning shows its outputs with the tester's critiques, and its tests against all programs. Empty for
    another stage, or without the file of answers.
    """
    named = Path(str(run.manifest.get("output", "")))
    places = (named, run.directory / named.name)  # The run may have been moved, or written by another folder.
    path = next((place for place in places if place.is_file()), None)
    if run.config.get("stage") != "infer" or path is None:
        return Markup()
    with open(path, encoding="utf-8") as lines:
        # The last line of a run in progress may be torn.
        rows = [json.loads(line) for line in islice((line for line in lines if line.endswith("\n")), MOST_ANSWERS)]
    source = (run.manifest.get("input") or {}).get("source", "")
    answers = [(row, worked_out(row) if row.get("stages") else "", _facts(row), _votes(row)) for row in rows]
    return part("answers", answers=answers, most=MOST_ANSWERS, open=MOST_OPEN, source=source, path=path)


def _facts(row: Mapping[str, Any]) -> str:
    cases = f"{row['passed']:,} of {row['total']:,}" if row["total"] else ""
    tries = f"attempt {row['attempt']} of {row['attempts']}" if row["attempts"] > 1 else ""
    return ", ".join(filter(None, (cases, tries, f"{row['tokens']:,} tokens")))


def _votes(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each answer of the vote."""
    return [
        (
            *(f"{n:,}" for n in (number, place, one["votes"])),
            f"{one['shown_right']:.0%}",
            json.dumps(one["output"])[:4000],
        )
        for number, answers in enumerate((row.get("voted") or {}).get("answers", ()), 1)
        for place, one in enumerate(answers, 1)
    ]


def worked_out(row: Mapping[str, Any]) -> Markup:
    """The chosen chain of a row of +stage=infer, then the tests with a column for each sample's program."""
    tests, written = row.get("tests") or [], row.get("written") or []
    sets = {one["set"] for one in tests}
    without = [text for place, text in enumerate(written) if place not in sets]
    samples = row["samples"][:MOST_PROGRAMS]
    chain = part("chain", stages=row["stages"], critiques=row.get("critiques") or {})
    if tests or len(samples) > 1:
        left = max(0, len(tests) - MOST_TESTS)
        chain += part("tests", samples=samples, chosen=row["sample"], tests=tests[:MOST_TESTS], left=left)
    return chain + part("sets_without_tests", texts=without)


def beside_answer(about: Mapping[str, Any]) -> Markup:
    """The earlier stages of an evaluated episode, folded, and the tester's tests with their results."""
    stages = dict(list((about.get("stages") or {}).items())[:-1])
    rates = (("valid", "validity"), ("passed by this answer", "pass_rate"))
    facts = [f"{name} {about[key]:.0%}" for name, key in rates if about.get(key) is not None]
    return part("beside_answer", stages=stages, tests=about.get("tests"), facts=", ".join(facts))
