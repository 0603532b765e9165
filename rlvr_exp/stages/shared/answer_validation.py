"""A policy's answers from a file, judged without the policy: what they are, and how near they come."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.measures import is_count
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.rows import lines
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Request, Verdict, Verifier

OPTION = "validate.answers"
LONGEST = 64 << 20
"""Bytes of a row."""
SHOWN = 20
"""Faults that are named."""
EVERY = 20
"""Verdicts between messages of progress."""
TOO_LONG = Verdict("failed", PROMPT_TOO_LONG, log="the prompt was longer than the policy takes")


@dataclass(frozen=True)
class Answer:
    task: Task
    text: str
    settled: Verdict | None
    """Of an answer that was cut or never given: it needs no judge."""


def validate_answers(
    path: Path, domain: Domain, tasks: Sequence[Task], verifier: Verifier, context: RunContext
) -> StageResult:
    """Judge every answer; writes `validate.jsonl`, a row an answer, and `validate.md`.

    Raises:
        InputError: the file cannot be read, or a row names no task or has no text; names file and line.
    """
    answers = read_answers(path, {task.id: task for task in tasks})
    verdicts: dict[int, Verdict] = {}
    open_ones = [one for one in answers if one.settled is None]
    requests = (Request(one.task.problem, domain.parse(one.text, one.task)) for one in open_ones)
    for index, verdict in verifier.as_ready(requests):
        verdicts[index] = verdict
        if len(verdicts) % EVERY == 0 or len(verdicts) == len(open_ones):
            context.progress(kind="phase", name="validate", done=len(verdicts), total=len(open_ones))
    judged = iter([verdicts[index] for index in range(len(open_ones))])
    found = [(one, one.settled or next(judged)) for one in answers]
    rows = "".join(json.dumps(_row(one, verdict)) + "\n" for one, verdict in found)
    write_text(context.directory / "validate.jsonl", rows)
    rates, counts = _rates(found), Counter(verdict.reason for _, verdict in found)
    text = "\n".join(_table(rates, counts))
    write_text(context.directory / "validate.md", text + "\n")
    context.progress(kind="note", text=text)
    metrics: dict[str, Any] = {f"verdict/{name}": count for name, count in counts.items()}
    metrics |= {f"measure/{name}": rate.to_dict() for name, rate in rates.items() if name != "answers_passed"}
    return StageResult(after={name: rate for name, rate in rates.items() if name == "answers_passed"}, metrics=metrics)


def read_answers(path: Path, tasks: Mapping[str, Task]) -> list[Answer]:
    """Each row's task by its `id`, and its `text`, as +stage=infer writes them; null: a prompt too long to answer. `truncated`
    says of a text that it was cut."""
    found: list[Answer] = []
    faults: list[InputProblem] = []
    for line in lines(path, LONGEST, OPTION):
        where = f"{path}, line {line.number}"
        try:
            row = json.loads(line.text or b"")
            task, text, cut = tasks.get(str(row["id"])), row["text"], row.get("truncated") is True
        except (ValueError, TypeError, KeyError, AttributeError):
            faults.append(
                InputProblem(where, "no answer", "", "an object with `id` and `text`, as +stage=infer writes it")
            )
            continue
        if task is None:
            faults.append(
                InputProblem(where, "names no task of this data", str(row["id"]), "the data that was answered")
            )
        elif text is not None and not isinstance(text, str):
            faults.append(InputProblem(where, "its `text` is none", type(text).__name__, "the completion"))
        else:
            found.append(Answer(task, text or "", TOO_LONG if text is None else TRUNCATED if cut else None))
    if not found and not faults:
        faults = [InputProblem(OPTION, "has no answer", str(path), "one JSON object a line")]
    if faults:
        raise InputError(*faults[:SHOWN])
    return found


def _row(one: Answer, verdict: Verdict) -> dict[str, Any]:
    judged = {name: getattr(verdict, name) for name in ("outcome", "bucket", "rule", "passed", "total", "log")}
    return {
        "task": one.task.id,
        "family": one.task.family,
        "text": one.text,
        **judged,
        "measures": dict(verdict.measures),
    }


def _rates(found: Sequence[tuple[Answer, Verdict]]) -> dict[str, Rate]:
    """Means over tasks of success and of every measure, over the answers that have it."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one, verdict in found:
        if verdict.outcome == "no_verdict":
            continue
        for name, value in {"answers_passed": float(verdict.outcome == "passed"), **verdict.measures}.items():
            values[name][one.task.id].append(value)
    return {name: _mean(by_task, is_count(name)) for name, by_task in values.items()}


def _mean(by_task: Mapping[str, Sequence[float]], count: bool) -> Rate:
    means = [fmean(each) for each in by_task.values()]
    ceiling = max(means) if count else 1.0
    return Rate(*mean_interval(means, ceiling=ceiling), n=len(means), samples=max(map(len, by_task.values())))


def _table(rates: Mapping[str, Rate], counts: Mapping[str, int]) -> Iterator[str]:
    yield from ("| verdict | answers |", "| --- | --- |")
    yield from (f"| {name} | {count} |" for name, count in sorted(counts.items(), key=lambda one: -one[1]))
    yield from ("", "| | mean over tasks, 95% interval | tasks |", "| --- | --- | --- |")
    for name, one in rates.items():
        shown = "{:.2f} [{:.2f}, {:.2f}]" if is_count(name) else "{:.1%} [{:.1%}, {:.1%}]"
        yield f"| {name} | {shown.format(one.value, one.low, one.high)} | {one.n} |"
