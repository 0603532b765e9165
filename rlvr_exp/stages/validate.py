"""Check the tasks: every reference answer passes, and known and generated wrong programs fail. No model, no torch.

`validate.jsonl` has one row per candidate, and `validate.md` has the table of findings. Findings are reference answers
that fail, with the reason (for example another result in a second run), and tasks whose tests accept a stub, a wrong
program, a mutant or a fixed answer. Verdicts are cached, so repeating the stage is cheap. With `validate.answers`, the
stage judges the answers of a policy instead.
"""

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Validate
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.core.measures import is_count
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.episodes.types import TRUNCATED
from rlvr_exp.evaluation.data_quality import CandidateResult, report, shares
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.launch.preflight import left_out_text
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.stages.shared.data_and_verifier import (
    build_domain,
    build_verifier,
    check_verifier_match,
    checked_description,
    system_metrics,
)
from rlvr_exp.stages.shared.reference_checks import failing, told
from rlvr_exp.tasks.base import Candidate, Domain, Task, WritesTests
from rlvr_exp.tasks.formats.rows import as_program, format_of
from rlvr_exp.tasks.mutants import changed_line, chosen, stub_programs
from rlvr_exp.tasks.python_syntax import syntax_fault
from rlvr_exp.tasks.rows import lines
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard
from rlvr_exp.verifiers.universal import fixed_answers

EVERY = 20
"""Progress is reported after this many verdicts."""

NAMED = 20
"""The message that stops a run names at most this many tasks; validate.md has all of them."""

KINDS = ("gold", "wrong", "hollow", "mutant", "universal")


@dataclass(frozen=True)
class ValidationCandidate:
    """A candidate of a task. Reference answers should pass, and all others should fail."""

    task: Task
    kind: str
    variant: str
    """Distinguishes candidates of one kind: the name of a mutation, a number, or empty."""
    candidate: Candidate
    line: int = 0
    """The line in which a mutant differs from the reference answer."""
    change: str = ""
    """The changed line of a mutant, before and after."""


OPTION = "validate.answers"

LONGEST = 64 << 20
"""Maximum size of a row in bytes."""

SHOWN = 20
"""Messages name at most this many faults."""

TOO_LONG = Verdict("failed", PROMPT_TOO_LONG, log="the prompt was longer than the policy takes")


def run(config: Config, context: RunContext) -> StageResult:
    options = config.validate
    assert options is not None  # The stage has its node.
    domain = build_domain(config, context)
    splits = wanted_splits(domain, options.split)
    tasks = [task for name in splits for task in domain.splits()[name]]
    with NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as verifier:
        check_verifier_match(verifier, tasks)
        data = {name: {"tasks": len(domain.splits()[name]), "fingerprint": domain.fingerprint(name)} for name in splits}
        manifest.update(context.directory, verifier=checked_description(verifier, context), data=data)
        if options.answers:
            return validate_answers(Path(options.answers), domain, tasks, verifier, context)
        bad = _bad_references(domain, verifier, tasks)
        sound = [task for task in tasks if task.id not in bad]
        found = _with(judged(domain, verifier, sound, options, context), bad, domain, tasks)
        counted = system_metrics(verifier)
    write_text(context.directory / "validate.jsonl", "".join(json.dumps(row(*one)) + "\n" for one in found))
    findings = [
        CandidateResult(t.task.id, t.kind, t.variant, v.outcome, told(domain, t.task, v), decides_itself(v), t.change)
        for t, v in found
    ]
    text = report(findings, domain.left_out(), left_out_text(domain))
    write_text(context.directory / "validate.md", text)
    context.progress(kind="note", text=text)
    rates, counts = shares(findings)
    context.metrics = {**counts, **counted}
    _require(findings, options.require)
    return StageResult(after=rates, metrics=context.metrics)


def validation_candidates(
    domain: Domain, task: Task, mutants: int, universal: str = "none"
) -> Iterator[ValidationCandidate]:
    """Yield all candidates of a task. Mutants and stub programs are derived only from reference answers in Python. For
    an edit with tests they are derived from the text after the edit, as edited texts.

    `universal`: the fixed answers to include, an element of `verifiers.universal.KINDS`.
    """
    yield from _from_the_set(domain, task, mutants)
    for name, text in fixed_answers(task.problem, universal):
        yield ValidationCandidate(task, "universal", name, Candidate(text))


def _from_the_set(domain: Domain, task: Task, mutants: int) -> Iterator[ValidationCandidate]:
    for number, text in enumerate(task.negatives):
        yield ValidationCandidate(task, "wrong", str(number), domain.parse(text, task))
    program = as_program(task)
    if program is not None:
        yield from _altered(*program, mutants)
    if task.gold is None:
        return
    gold = domain.parse(task.gold, task)
    yield ValidationCandidate(task, "gold", "", gold)
    form = format_of(task.problem)
    if form is not None and form.is_python:
        yield from _altered(task, gold, mutants)
    elif program is None:
        yield ValidationCandidate(task, "hollow", "empty", Candidate(""))


def _altered(task: Task, gold: Candidate, mutants: int) -> Iterator[ValidationCandidate]:
    """Yield stub programs and mutants of a correct program."""
    if gold.text is None or syntax_fault(gold.text) is not None:
        return
    for stub in stub_programs(gold.text):
        yield ValidationCandidate(task, "hollow", stub.kind, Candidate(stub.code))
    for mutant in chosen(gold.text, mutants, task.id):
        change = changed_line(gold.text, mutant)
        yield ValidationCandidate(task, "mutant", mutant.kind, Candidate(mutant.code), mutant.line, change)


def wanted_splits(domain: Domain, name: str) -> list[str]:
    """Return the split of that name, or all splits. Raises InputError if it does not exist, or if no split has a
    task."""
    there = {split: len(tasks) for split, tasks in domain.splits().items()}
    wanted = [name] if name else list(there)
    if not any(there.get(split) for split in wanted):
        allowed = ", ".join(f"{split} ({count} tasks)" for split, count in there.items()) or "no split has a task"
        reasons = list(dict.fromkeys(domain.left_out().values()))[:3]
        remedy = f"another verifier or other data: tasks are left out, {'; '.join(reasons)}" if reasons else ""
        raise InputError(InputProblem("validate.split", "no tasks", name or "all", allowed, "", remedy))
    return wanted


def judged(
    domain: Domain, verifier: Verifier, tasks: Sequence[Task], options: Validate, context: RunContext
) -> list[tuple[ValidationCandidate, Verdict]]:
    """Return every candidate with its verdict, task by task in the order of the data."""
    candidates: list[ValidationCandidate] = []
    last: list[int] = []
    """Number of candidates after each task."""

    def requests() -> Iterator[Request]:
        for task in tasks:
            for candidate in validation_candidates(domain, task, options.mutants, options.universal):
                candidates.append(candidate)
                yield Request(task.problem, candidate.candidate)
            last.append(len(candidates))

    verdicts: dict[int, Verdict] = {}
    context.progress(kind="phase", name="validate", done=0, total=len(tasks))
    for index, verdict in verifier.as_ready(requests()):
        verdicts[index] = verdict
        if len(verdicts) % EVERY == 0:
            context.progress(kind="phase", name="validate", done=bisect_right(last, len(verdicts)), total=len(tasks))
    context.progress(kind="phase", name="validate", done=len(tasks), total=len(tasks))
    return [(candidate, verdicts[index]) for index, candidate in enumerate(candidates)]


def _bad_references(domain: Domain, verifier: Verifier, tasks: Sequence[Task]) -> dict[str, Verdict]:
    """Return, by task id, verdicts on reference answers that tests compare with and that fail in the first or a second run.
    The tests of such a task can judge no other program."""
    if not isinstance(domain, WritesTests):
        return {}
    return failing(domain, verifier, [(task, domain.parse(task.gold, task)) for task in tasks if task.gold is not None])


def _with(
    found: Sequence[tuple[ValidationCandidate, Verdict]],
    bad: Mapping[str, Verdict],
    domain: Domain,
    tasks: Sequence[Task],
) -> list[tuple[ValidationCandidate, Verdict]]:
    place = {task.id: number for number, task in enumerate(tasks)}
    golds = (task for task in tasks if task.id in bad)
    more = [(ValidationCandidate(one, "gold", "", domain.parse(one.gold or "", one)), bad[one.id]) for one in golds]
    return sorted([*found, *more], key=lambda pair: place[pair[0].task.id])


def row(candidate: ValidationCandidate, verdict: Verdict) -> dict[str, Any]:
    """Return a line of validate.jsonl. It includes the program if the verdict is unexpected."""
    unexpected = (verdict.outcome == "passed") != (candidate.kind == "gold")
    return {
        "task": candidate.task.id,
        "family": candidate.task.family,
        "kind": candidate.kind,
        "variant": candidate.variant,
        "line": candidate.line,
        "outcome": verdict.outcome,
        "bucket": verdict.bucket,
        "rule": verdict.rule,
        "passed": verdict.passed,
        "total": verdict.total,
        "time": round(verdict.seconds, 6),
        "assertions": verdict.assertions,
        "own_assertions": verdict.own_assertions,
        "log": verdict.log,
        "code": candidate.candidate.text if unexpected else None,
    }


def decides_itself(verdict: Verdict) -> bool:
    """Return whether the candidate's own comparison decided every assertion that held."""
    return 0 < verdict.assertions == verdict.own_assertions


def _require(findings: Sequence[CandidateResult], share: float) -> None:
    golds = [one for one in findings if one.kind == "gold"]
    refused = [one for one in golds if one.outcome != "passed"]
    if len(golds) - len(refused) < share * len(golds):
        shown = "\n".join(f"{one.task}: {one.reason}" for one in refused[:NAMED])
        more = f"\nand {len(refused) - NAMED} more" if len(refused) > NAMED else ""
        raise GuardStop(
            f"{len(refused)} of {len(golds)} reference answers do not pass, allowed share {1 - share:g}:\n{shown}{more}\n"
            "validate.md names all; fix the data or the verifier options, or lower validate.require"
        )


@dataclass(frozen=True)
class Answer:
    task: Task
    text: str
    settled: Verdict | None
    """Return the verdict on a truncated or missing answer, which needs no verifier."""


def validate_answers(
    path: Path, domain: Domain, tasks: Sequence[Task], verifier: Verifier, context: RunContext
) -> StageResult:
    """Judge every answer. Write `validate.jsonl`, with one row per answer, and `validate.md`.

    Raises:
        InputError: the file cannot be read, or a row names no task or has no text. The message names file and line.
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
    """Read the answers of +stage=infer: each row has the `id` of a task and a `text`. The text is null if the prompt
    was too long. `truncated` marks a text that was cut off."""
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
    """Return means over tasks of success and of every measure. Answers without a measure do not enter its mean."""
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
