"""Inputs of inference: tasks from rows, from files of rows and from a domain, each with the domain of its prompts.

A row's format follows from its keys:

    train, test             an ARC puzzle, worded by the `data` node
    language, before        an edit for ast_grep
    cases                   a Python function or program for python_io
    tests                   a Python module for pytest
    program                 a Dafny program

All faults of a file are reported together, each with line and key; no task of such a file is sampled.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hydra.utils import get_class

from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import STDIN
from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.launch.preflight import domain_of, no_shown_cases, no_vote, problem_formats, verifier_mismatch
from rlvr_exp.tasks.base import Domain, HoldsBackCases, RowReader, ShowsCases, Task
from rlvr_exp.tasks.formats.fields import Fault, Fields, RowId, identity_of, object_of
from rlvr_exp.tasks.formats.rows import FORMATS, RowDomain
from rlvr_exp.tasks.rows import lines, opened

OPTION = "infer.input"
SHOWN = 20
"""Number of faults in a message."""
LONGEST = 64 << 20
"""Bytes of a row."""
DOMAINS: Mapping[str, RowDomain] = {name: RowDomain(name) for name in FORMATS}


@dataclass(frozen=True)
class InferenceTask:
    """One task to solve."""

    id: RowId
    """The row's own id."""
    task: Task
    domain: Domain


@cache
def row_readers() -> Mapping[str, RowReader]:
    """Readers of rows that are of no format of a verifier, by the domain's name."""
    return {name: load(one.rows) for name, one in domains().items() if one.rows}


@cache
def row_keys() -> Mapping[str, tuple[str, ...]]:
    """Keys that identify the format of a row; the first match holds."""
    of_formats = {name: form.keys for name, form in FORMATS.items()}
    return {name: reader.keys for name, reader in row_readers().items()} | of_formats


def from_row(fields: Fields, domain: Domain | None = None) -> InferenceTask:
    """One row. Raises Fault for a key that is missing or holds what is not allowed.

    Args:
        domain: words the task if it is of the row's domain; else the row's domain does, with its default options.
    """
    identity, readers, keys = identity_of(fields), row_readers(), row_keys()
    form = next((form for form, own in keys.items() if all(key in fields for key in own)), None)
    if form is None:
        known = "; ".join(f"{' and '.join(own)} ({form})" for form, own in keys.items())
        raise Fault(f"of no known format: it has {', '.join(map(str, fields))}, a task has {known}")
    if form not in readers:
        return InferenceTask(identity, DOMAINS[form].task(fields), DOMAINS[form])
    reader = readers[form]
    try:
        task = reader.task(fields, str(identity))
    except InputError as fault:
        raise Fault("; ".join(f"{one.where}: {one.what}, got {one.got}" for one in fault.problems)) from fault
    return InferenceTask(identity, task, domain if isinstance(domain, reader.domain) else reader.usual)


def from_file(path: Path, domain: Domain | None, shown: str = "") -> tuple[list[InferenceTask], list[Fields]]:
    """The tasks of a file and its rows as they are. `shown`: the file's name for messages.

    Raises:
        InputError: it cannot be read, holds no task, an id twice, or rows that are none; names each with its line.
    """
    items, rows, faults = [], [], []
    for where, given in _entries(path, shown or str(path)):
        try:
            fields = given if isinstance(given, dict) else object_of(given)
            items.append(from_row(fields, domain))
            rows.append(fields)
        except Fault as fault:
            faults.append(InputProblem(where, str(fault)))
    if faults:
        more = [InputProblem(OPTION, f"{len(faults) - SHOWN} further faults")] if len(faults) > SHOWN else []
        raise InputError(*faults[:SHOWN], *more)
    if not items:
        raise InputError(InputProblem(OPTION, "holds no task", shown or str(path), "one JSON object a line"))
    _refuse_twice(items)
    return items, rows


def _entries(path: Path, shown: str) -> Iterator[tuple[str, dict[str, Any] | bytes]]:
    """Each row with its location: lines, or the entries of a .json file."""
    if not path.name.removesuffix(".gz").endswith(".json"):
        for line in lines(path, LONGEST, OPTION):
            if line.text is None:
                where = f"{shown}, line {line.number}"
                raise InputError(InputProblem(where, "longer than a row may be", allowed=f"{LONGEST} bytes"))
            yield f"{shown}, line {line.number}", line.text
        return
    with opened(path, OPTION) as file:
        content = file.read()
    try:
        value = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as fault:
        remedy = "JSON lines are read from a .jsonl file"
        raise InputError(InputProblem(shown, "not JSON", got=str(fault), remedy=remedy)) from fault
    entries = value if isinstance(value, list) else [value]
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise InputError(InputProblem(f"{shown}, entry {number}", "not an object", type(entry).__name__))
        # A file of one task, as ARC is published, is named by its file.
        named = {"id": path.name.split(".json")[0]} if isinstance(value, dict) else {}
        yield f"{shown}, entry {number}", named | entry


def input_problems(config: Config) -> Iterator[InputProblem]:
    """Problems of the rows of `infer.input` if it is an existing file. Standard input is read after the start."""
    options = config.infer
    if options is None or options.input in ("", STDIN) or not Path(options.input).is_file():
        return
    try:
        domain = domain_of(config)
        items, _ = from_file(Path(options.input), domain, options.input)
        items = select_tasks(items, options.ids, options.tasks)
        if options.vote:
            check_vote(items)
        if options.adapt != "none":
            check_shown(items)
    except InputError as fault:
        yield from fault.problems
        return
    if options.verify and config.verifier._target_ in SCHEMAS:
        verifier: Any = get_class(config.verifier._target_)
        forms = problem_formats(item.task for item in items)
        if problem := verifier_mismatch(verifier.row_format or verifier.name, forms, verifier.also_judges):
            yield problem


def answered_tasks(config: Config) -> int:
    """Number of tasks that a stage without training answers; 0 if it is unknown before the start, or if the stage trains."""
    options: Any = config.infer or config.collect or (config.evaluation if config.evaluate is not None else None)
    if options is None:
        return 0
    if path := getattr(options, "input", ""):
        count = sum(1 for _ in _entries(Path(path), path)) if Path(path).is_file() else 0
    else:
        domain = domain_of(config)
        count = 0 if domain is None else max(0, domain.sizes().get(options.split, 0) - getattr(options, "skip", 0))
    bounds = (count, options.tasks, len(getattr(options, "ids", ())))
    return min(filter(None, bounds), default=0)


def tasks_of_domain(tasks: Iterable[Task], domain: Domain) -> list[InferenceTask]:
    return [InferenceTask(task.id, task, domain) for task in tasks]


def check_vote(items: Iterable[InferenceTask]) -> None:
    """Raise InputError for the first task without held-back cases to vote on."""
    for item in items:
        voting_domain(item)


def check_shown(items: Iterable[InferenceTask]) -> None:
    """Raise InputError for the first task whose domain shows no cases to adapt to."""
    for item in items:
        if not isinstance(item.domain, ShowsCases):
            found = no_shown_cases(item.domain)
            raise InputError(replace(found, got=f"task {item.id!r}, {found.got}"))


def voting_domain(item: InferenceTask) -> HoldsBackCases:
    """The domain of a task with held-back cases. Raises InputError for another domain."""
    if isinstance(item.domain, HoldsBackCases):
        return item.domain
    found = no_vote(item.domain, "infer.vote")
    raise InputError(replace(found, got=f"task {item.id!r}, {found.got}"))


def select_tasks(items: Sequence[InferenceTask], ids: Sequence[str], count: int) -> list[InferenceTask]:
    """The first `count` tasks (0: all) with these ids (empty: all).

    Raises:
        InputError: an id that no task has.
    """
    there = {str(item.id): item for item in items}
    unknown = [name for name in ids if name not in there]
    if unknown:
        what, allowed = "no task has this id", f"{len(there)} tasks"
        raise InputError(*(InputProblem("infer.ids", what, name, allowed, suggest(name, there)) for name in unknown))
    kept = [item for item in items if not ids or str(item.id) in set(ids)]
    return kept[: count or None]


def _refuse_twice(items: Sequence[InferenceTask]) -> None:
    counts = Counter(str(item.id) for item in items)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        remedy = "an id each: draws follow from it, and a run resumes by it"
        raise InputError(InputProblem(OPTION, "ids that stand twice", ", ".join(twice[:SHOWN]), remedy=remedy))
