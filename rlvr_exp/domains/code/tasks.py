"""The code domain: programs to write, to repair and to edit, from public sets in their own formats.

A task's problem takes the form that the chosen verifier judges: a test file, or cases. Tasks that a set does not have
in that form are left out and listed, and so are tasks that a fixed answer passes. There is no embedded corpus: `path`
is required.

The splits of a set or a row are kept, and missing splits are drawn by content. A set of one split, or of none, is drawn
from in full; otherwise a missing `test` or `dev` is drawn from `train`. Records with a content in common stay together.
MBPP+ has the tasks of MBPP and takes its splits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.code import options
from rlvr_exp.tasks.base import Candidate, EditWithTests, HasEditTests, Task
from rlvr_exp.tasks.cases import WEAK, content_of, fixed_answer, statements, taken, written
from rlvr_exp.tasks.code_records import DRAWN, EITHER, JUDGES, OWN_ROWS, STYLES, CodeRecord, in_style, of_problems
from rlvr_exp.tasks.code_sets import evaluation_only, load, sets_at
from rlvr_exp.tasks.completion import block_closes, defines, fenced, whole_program
from rlvr_exp.tasks.content import program_key, text_key
from rlvr_exp.tasks.formats.base import CodeInputs, program_prompt
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.rows import SPLITS, first_row
from rlvr_exp.tasks.shots import Alike, after_examples, chosen_shots, solved_tasks
from rlvr_exp.tasks.splits import Item, split, tied

BANDS = (3, 6, 12, 24)
"""Borders between bands of difficulty, in statements of the solution."""


def place(
    records: Sequence[CodeRecord], fractions: Mapping[str, float] | None, seed: int
) -> dict[str, list[CodeRecord]]:
    """Every record under its split, in the given order.

    Args:
        fractions: the share of each split if it is missing; None: draw no split.
    """
    names = {record.split for record in records}
    if fractions is not None and records and all(record.drawn for record in records):
        parts = {record.id: record.drawn for record in records}
    elif fractions is not None:
        pool = [record for record in records if len(names) == 1 or record.split in (DRAWN, "train")]
        missing = {name: share for name, share in fractions.items() if len(names) == 1 or name not in names}
        parts = _draw(pool, missing, seed)
    else:
        parts = {record.id: "test" for record in records if record.split == DRAWN}
    placed: dict[str, list[CodeRecord]] = {}
    for record in records:
        placed.setdefault(parts.get(record.id, record.split), []).append(record)
    return {name: placed[name] for name in SPLITS if name in placed}


def contents(inputs: CodeInputs | str, gold: str | None, problem: PytestProblem | PythonProblem | None) -> list[str]:
    """The keys of a task's content: its prompt, its solution, its tests."""
    prompt = inputs if isinstance(inputs, str) else program_prompt(inputs)
    tests = problem.tests if isinstance(problem, PytestProblem) else ""
    if isinstance(problem, PythonProblem):
        cases = [
            (case.args, case.expected) if isinstance(case, Case) else (case.stdin, case.expected_stdout)
            for case in problem.cases
        ]
        tests = written([problem.entry_point, *sorted(cases, key=written)])  # The order of cases does not count.
    return [text_key(prompt), *([program_key(gold)] if gold else []), *([text_key(tests)] if tests else [])]


def _draw(records: Sequence[CodeRecord], fractions: Mapping[str, float], seed: int) -> dict[str, str]:
    if not fractions:
        return {}
    own = {record.id: contents(record.inputs, record.gold, record.tests or record.cases) for record in records}
    groups = tied(own)
    keys = {name: content_hash(found) for name, found in own.items()}
    bands = {one.id: sum(statements(one.gold or "") >= border for border in BANDS) for one in records}
    items = [Item(keys[one.id], groups[one.id], one.family, bands[one.id]) for one in records]
    parts = split(items, list(fractions.values()), seed)
    names = [*fractions, "train"]
    return {record.id: names[parts[keys[record.id]]] for record in records}


HARDEST = 60
"""Statements of a solution at which a task counts as hardest."""


@dataclass
class Code(HasEditTests, options.Code):
    """Tasks of one set; without a `limit` in the order of the files."""

    name = "code"
    stop_text = "`"
    makes_folds = True

    def __post_init__(self) -> None:
        self._form = form_of(self.judge)
        self._entry_points: dict[str, str] = {}

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return self._tasks

    def splits_note(self) -> str:
        names = {record.split for record in self._records}
        if not self.as_read or names != {"test"} or "train" not in self.splits():
            return super().splits_note()
        return f"splits are drawn from the set's {len(self._records)} tasks; data.draw_splits=false: all are test"

    def left_out(self) -> Mapping[str, str]:
        reasons = {record.id: self._why_not(record) for record in self._records}
        return {name: reason for name, reason in reasons.items() if reason}

    def left_out_remedy(self) -> str:
        formless = [record for record in self._records if self._formless(record)]
        other = [record for record in formless if record.tests or record.cases]
        if not other or self._form == EITHER:
            return ""
        all_in_files = self._form != "pytest" and all(record.tests for record in self._records)
        those = "them" if len(other) == len(formless) else f"{len(other)} of them"
        return f"verifier={'pytest' if all_in_files else EITHER} runs {those}"

    def no_training(self) -> str:
        return evaluation_only(Path(self.path), self.set)

    def contents(self, task: Task) -> Sequence[str]:
        return contents(task.inputs, task.gold, task.problem)

    def task_prompt(self, task: Task) -> str:
        shots = chosen_shots(self._solved, task, self.prompt.shots, self.seed, self._alike) if self.prompt.shots else []
        return after_examples(_worded(task), ((_worded(one), fenced(one.gold or "", "python")) for one in shots), True)

    def parse(self, completion: str, task: Task) -> Candidate:
        return whole_program(completion, self.entry_point(task))

    def gold_completion(self, task: Task) -> str | None:
        return None if task.gold is None else fenced(task.gold, "python")

    def is_complete(self, text: str) -> bool:
        """True at the fence that closes a block with a wanted name. Another block may be a helper before the answer."""
        return block_closes(text, lambda block: defines(block, self._names))

    @cached_property
    def _names(self) -> frozenset[str]:
        """The wanted names of all tasks; the empty name if the data do not name it."""
        return frozenset(self._entry_point(record).partition(".")[0] for record in self._records)

    def entry_point(self, task: Task) -> str:
        """The wanted function of a task: from the set, or from its tests and its reference solution; else empty."""
        if task.id not in self._entry_points:
            self._entry_points[task.id] = self._entry_point(self._record_of[task.id])
        return self._entry_points[task.id]

    @staticmethod
    def _entry_point(record: CodeRecord) -> str:
        given = record.entry_point or (record.cases.entry_point if record.cases else "")
        return given or (taken(record.tests.tests, record.gold or "") if record.tests else "")

    def fingerprint(self, split: str) -> str:
        tasks = self.splits()[split]
        return content_hash(
            [[task.id, task.inputs, task.gold, task.negatives, content_of(task.problem)] for task in tasks]
        )

    def strata(self, task: Task) -> Mapping[str, str]:
        """The style of the instruction, if the data have two."""
        return {"instruction": self._record_of[task.id].style} if self.instruction == "both" else {}

    def edit_with_tests(self, task: Task, program: str) -> EditWithTests | None:
        """As CanItEdit's runner joins them: one line end between program and tests, in place of the program's last."""
        record, after = self._record_of[task.id], program.removesuffix("\n")
        if not record.script or not isinstance(record.inputs, CodeInputs):
            return None
        return EditWithTests(record.inputs.before, after, f"{after}\n{record.script}")

    @cached_property
    def _solved(self) -> list[Task]:
        return solved_tasks(self._tasks.get("train", ()))

    @cached_property
    def _alike(self) -> Alike:
        return Alike(self.contents)

    @cached_property
    def _records(self) -> list[CodeRecord]:
        found = load(Path(self.path), self.set)
        if self.instruction != STYLES[0] and all(record.lazy is None for record in found):
            what = "these tasks have their instruction in one style"
            raise InputError(InputProblem("data.instruction", what, self.instruction, STYLES[0], "", "drop it"))
        return [styled for record in found for styled in in_style(record, self.instruction)]

    @cached_property
    def _record_of(self) -> Mapping[str, CodeRecord]:
        """By id."""
        return {record.id: record for record in self._records}

    @cached_property
    def _tasks(self) -> dict[str, tuple[Task, ...]]:
        if all(map(self._formless, self._records)):
            (other,) = (f"verifier={form}" for form in JUDGES if form != self._form)
            what, allowed = "judges no task of these data", f"{other}: {self._formless(self._records[0])}"
            raise InputError(InputProblem("verifier", what, self._form, allowed, "", other))
        drawn = self.draw_splits and not self.no_training()
        fractions = {"test": self.test_fraction, "dev": self.dev_fraction} if drawn else None
        placed = self.of_families(place(self._records, fractions, self.seed))
        tasks = {}
        for name, found in placed.items():
            kept = [record for record in found if not self._why_not(record)]
            if self.limit:
                kept = sorted(kept, key=lambda one: uniform(self.seed, "limit", name, one.id))[: self.limit]
            if kept:
                tasks[name] = list(map(self._task, kept))
        return self.in_folds(tasks)

    def _why_not(self, record: CodeRecord) -> str:
        """The reason for which a record is left out; empty if it is a task."""
        if (why := self._formless(record)) or record.cases is None:
            return why
        answer = "" if self.weak else fixed_answer(record.cases, self._form)
        return f"{WEAK}: {answer}" if answer else ""

    def _formless(self, record: CodeRecord) -> str:
        """The reason for which a record has no problem in the verifier's form."""
        if self._form == "pytest" or (self._form == EITHER and record.cases is None):
            return record.why_no_tests if record.tests is None else ""
        return record.why_no_cases if record.cases is None else ""

    def _task(self, record: CodeRecord) -> Task:
        problem: Any = record.cases
        if record.tests is not None and (self._form == "pytest" or problem is None):
            problem = replace(record.tests, reference=record.gold or "")
        difficulty = min(1.0, statements(record.gold or "") / HARDEST)
        source = record.source or record.family.partition("/")[0]
        return Task(record.id, record.family, difficulty, record.inputs, problem, record.gold, record.negatives, source)


def programs_at(path: Path, judge: str, **options: Any) -> Code | None:
    """The set at a path, with its splits; None if the path has rows of `data=problems` or no readable set.

    Args:
        judge: the option of this name, like `options`.
    """
    found = sets_at(path)
    own = found.get(OWN_ROWS.name, ())
    if not found or (set(found) == {OWN_ROWS.name} and any(of_problems(first_row(file).values) for file in own)):
        return None
    return Code(path=str(path), judge=judge, **options)


def _worded(task: Task) -> str:
    return task.inputs if isinstance(task.inputs, str) else program_prompt(task.inputs)


def form_of(judge: str) -> str:
    """The form of problems that a verifier takes, from its name or its class's path; test files for a user's own."""
    return next((form for form in (*JUDGES, EITHER) if form in judge.lower()), JUDGES[0])
