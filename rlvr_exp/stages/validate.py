"""Check that tasks can be trusted: each reference answer passes, known and generated wrong programs do not. No model, no torch.

Writes `validate.jsonl`, one row per candidate, and `validate.md`, the table with the findings: reference answers that do not
pass, each with its reason (one that does something else when it runs again among them), and tasks whose tests accept a stub,
a wrong program, a mutant or a fixed answer. Repeating the stage costs
little: verdicts are cached. With `validate.answers` a policy's answers are judged in their place.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Validate
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_text
from rlvr_exp.evaluation.data_quality import CandidateResult, report, shares
from rlvr_exp.launch.preflight import left_out_text
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.stages.shared.answer_validation import validate_answers
from rlvr_exp.stages.shared.domain import build_domain
from rlvr_exp.stages.shared.gold_check import failing, told
from rlvr_exp.stages.shared.validation_candidates import ValidationCandidate, validation_candidates
from rlvr_exp.stages.shared.verifier_match import check_verifier_match
from rlvr_exp.stages.shared.verifier_setup import build_verifier, checked_description, system_metrics
from rlvr_exp.tasks.base import Domain, Task, WritesTests
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard

EVERY = 20
"""Verdicts between messages of progress."""
NAMED = 20
"""Tasks named in the message that stops a run; validate.md has all."""


def run(config: Config, context: RunContext) -> StageResult:
    domain = build_domain(config, context)
    options = config.validate
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


def wanted_splits(domain: Domain, name: str) -> list[str]:
    """The split of that name, or all splits. Raises InputError where it does not exist, or no split has a task."""
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
    """Every candidate with its verdict, task by task in the order of the data."""
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
    """By task id the verdict on a gold that is the reference of tests and fails, once or when it runs again. Its tests can judge no
    other program."""
    if not isinstance(domain, WritesTests):
        return {}
    return failing(domain, verifier, [(task, domain.parse(task.gold, task)) for task in tasks if task.gold is not None])


def _with(
    found: Sequence[tuple[ValidationCandidate, Verdict]],
    bad: Mapping[str, Verdict],
    domain: Domain,
    tasks: Sequence[Task],
) -> list[tuple[ValidationCandidate, Verdict]]:
    """All candidates, bad references among them, in the order of the tasks."""
    place = {task.id: number for number, task in enumerate(tasks)}
    golds = (task for task in tasks if task.id in bad)
    more = [(ValidationCandidate(one, "gold", "", domain.parse(one.gold or "", one)), bad[one.id]) for one in golds]
    return sorted([*found, *more], key=lambda pair: place[pair[0].task.id])


def row(candidate: ValidationCandidate, verdict: Verdict) -> dict[str, Any]:
    """A line of validate.jsonl; it contains the program where the verdict is not the expected one."""
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
    """Whether every assertion that held was decided by the candidate's own comparison."""
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
