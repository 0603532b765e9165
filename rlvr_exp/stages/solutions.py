"""A store of solutions: list, filter, export, import, add the solutions of a run, merge another store, check. No model,
no torch.

The stage writes its result to `solutions.md` and its counts to the summary. An error in an input file ends the stage
with exit 2, before it changes the store. A damaged store ends the check with exit 3.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.config.solutions import Solutions
from rlvr_exp.core.domains import able
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.core.files import write_json_lines, write_text
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, RunReader
from rlvr_exp.solutions.record import Solution, checked_rows, output_hash, read_rows, to_row
from rlvr_exp.solutions.store import BATCH, Query, SolutionStore, as_text, faults, keeping_of, query_of
from rlvr_exp.tasks.base import Domain, ExportsSolutions, Task
from rlvr_exp.tasks.formats.python_io import PythonProblem, expected_of

LISTED = 20
"""Length of a list without `solutions.limit`."""

FAULTS = 20
"""The message names at most this many faults; solutions.md has all of them."""

Done = tuple[str, dict[str, float]]


def run(config: Config, context: RunContext) -> StageResult:
    text, counts = ACTIONS[_options(config).action](config, context)
    _write(context, text)
    context.progress(kind="note", text=text)
    return StageResult(metrics=counts)


def _options(config: Config) -> Solutions:
    options = config.solutions
    assert options is not None  # The stage has its node.
    return options


def list_(config: Config, context: RunContext) -> Done:
    with _opened(config) as store, store.snapshot():
        query = query_of(_options(config), LISTED)
        return as_text(store, query), {"solutions": store.count(query), "in_store": store.count()}


def export(config: Config, context: RunContext) -> Done:
    options = _options(config)
    with _opened(config) as store:
        found = store.find(query_of(options))
    if options.form == "sft":
        return _export_sft(config, context, found)
    target = Path(options.output or context.directory / "solutions.jsonl")
    count = write_json_lines(target, map(to_row, found))
    return f"{count} solutions: {target}", {"rows": count}


def _export_sft(config: Config, context: RunContext, found: list[Solution]) -> Done:
    domain = build(config.data)
    exporter = check_export(domain)
    target = Path(_options(config).output or context.directory / "sft")
    counts = exporter.export(target, found)
    text = (
        f"{counts['rows']} programs of {counts['tasks']} train tasks, {counts['left_out']} solutions left out: {target}"
    )
    return f"{text}\nimitated by +stage=sft data.path={target}", dict(counts)


def check_export(domain: Domain) -> ExportsSolutions:
    """Return the domain. Raises InputError if it cannot export solutions as rows for imitation."""
    if not isinstance(domain, ExportsSolutions):
        what = "the domain does not say how solutions become rows for imitation"
        raise InputError(InputProblem("data", what, domain.name, able("ExportsSolutions")))
    return domain


def check(config: Config, context: RunContext) -> Done:
    path = _options(config).path
    with _opened(config) as store:
        found = faults(store)
        count = 0 if found else store.count()
    if found:
        _write(context, "\n".join(found))
        more = f"\nand {len(found) - FAULTS} more" * (len(found) > FAULTS)
        raise GuardStop("\n".join([f"{path} is damaged:", *found[:FAULTS]]) + more)
    return f"{path}: {count} solutions, nothing is wrong", {"solutions": count}


def import_(config: Config, context: RunContext) -> Done:
    source = Path(_options(config).input)
    return _grow(config, context, read_rows(source), checked_rows(source))


def add(config: Config, context: RunContext) -> Done:
    found = solved(RunReader(Path(_options(config).run)), build(config.data))
    passed = [one for one in found if one is not None]  # all are read before the first is added
    return _grow(config, context, passed, len(passed))


def merge(config: Config, context: RunContext) -> Done:
    with SolutionStore(Path(_options(config).input), read_only=True, option="solutions.input") as other:
        found = other.find()
    return _grow(config, context, found, len(found))


def _grow(config: Config, context: RunContext, solutions: Iterable[Solution], total: int) -> Done:
    """Add solutions to the store, and create it if it does not exist. After an interruption the store has complete
    batches. The same command counts these as duplicates."""
    options = _options(config)
    path = Path(options.path or context.directory / "solutions.sqlite")
    with SolutionStore(path, keeping_of(options)) as store:
        counts = {"new": 0, "duplicates": 0, "evicted": 0}
        for number, added in enumerate(store.add_all(solutions), 1):
            counts = added._asdict()
            context.metrics = counts
            done = min(total, number * BATCH)
            context.progress(kind="phase", name=options.action, done=done, total=total)
        text = (
            f"{total} solutions: {counts['new']} new, {counts['duplicates']} duplicates, {counts['evicted']} left again"
        )
        with store.snapshot():
            held = as_text(store, Query(quality=store.keeping.quality, limit=LISTED))
            return f"{text}\n{held}", {**counts, "in_store": store.count()}


def _opened(config: Config) -> SolutionStore:
    return SolutionStore(Path(_options(config).path), read_only=True)


def _write(context: RunContext, text: str) -> None:
    write_text(context.directory / "solutions.md", text + "\n")


ACTIONS: dict[str, Callable[[Config, RunContext], Any]] = {
    "list": list_,
    "export": export,
    "check": check,
    "import": import_,
    "add": add,
    "merge": merge,
}


def solved(reader: RunReader, domain: Domain) -> Iterator[Solution | None]:
    """Yield the solution of every rollout, or None.

    An answer that passed returned the expected value of every case, so its outputs are known without running it. The
    outputs of other answers are unknown, so these are left out. Tasks with hidden test outputs are left out too.

    Raises:
        InputError: the data differ from the data of the run, or are not Python problems with cases.
    """
    tasks = {task.id: task for found in domain.splits().values() for task in found}
    if not all(isinstance(task.problem, PythonProblem) for task in tasks.values()):
        what = "what a program returned is known of functions judged on cases"
        raise InputError(InputProblem("data", what, domain.name, "problems of verifier=python_io"))
    outputs: dict[str, tuple[str, ...]] = {}
    for row in reader.rows():
        task = _task_of(row, tasks)
        if task.id not in outputs:
            outputs[task.id] = _outputs(task)
        program = domain.parse(row.completion.text, task).text if row.completion.correct else None
        yield _solution(row, task, program, outputs[task.id], str(reader.directory)) if program else None


def _task_of(row: RolloutRow, tasks: Mapping[str, Task]) -> Task:
    name = row.completion.task.id
    if name not in tasks:
        what, remedy = "the data lacks a task of the run", "data.path=DIR, data.limit=0"
        raise InputError(InputProblem("data", what, name, "the data of the run", "", remedy))
    return tasks[name]


def _outputs(task: Task) -> tuple[str, ...]:
    """Empty unless all outputs are known."""
    if getattr(task.inputs, "hidden", False):
        return ()
    return tuple(output_hash(expected_of(case)) for case in task.problem.cases)


def _solution(row: RolloutRow, task: Task, program: str, outputs: tuple[str, ...], run: str) -> Solution | None:
    if not outputs:
        return None
    return Solution(
        task.id,
        program,
        row.verdict,
        outputs,
        family=task.family,
        difficulty=task.difficulty,
        run=run,
        step=row.step,
    )
