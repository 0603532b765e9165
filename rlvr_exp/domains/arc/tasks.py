"""The ARC domain: grid puzzles answered by a Python function. Joins loading, splitting, wording and parsing.

Splits of the embedded corpus are those of its files. Real data keep the splits of their layout: `evaluation` is
`test`, and `dev` (and `test`, without an evaluation set) is drawn from the rest. Two further splits keep tasks out of
training and judging: `hidden` has no test outputs, and the tasks of `overlap` share a pair with a test task.
"""

import gc
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.core.files import write_json_lines
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.arc import options
from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.load import SPLITS, load, record_of
from rlvr_exp.domains.arc.options import Prompt as Wording
from rlvr_exp.domains.arc.puzzle import ENTRY_POINT, ArcPuzzle, ArcRecord, grid_of, score, to_lists
from rlvr_exp.domains.arc.puzzle import STYLES as GRID_STYLES
from rlvr_exp.domains.arc.variants import (
    answer,
    credit,
    grid_style,
    grids_of,
    input_shape,
    noisy,
    other_colours,
    relabelled,
    reordered,
    shown_task,
)
from rlvr_exp.evaluation.task_similarity import shares
from rlvr_exp.records.context import RunContext
from rlvr_exp.solutions.record import Solution
from rlvr_exp.tasks.base import (
    Candidate,
    ExportsSolutions,
    HoldsBackCases,
    RelabelsTasks,
    RowReader,
    ShownTask,
    Task,
)
from rlvr_exp.tasks.completion import block_closes, extract
from rlvr_exp.tasks.rows import OTHER_NAMES
from rlvr_exp.tasks.shots import chosen_shots
from rlvr_exp.tasks.sources import embedded_content, embedded_sizes
from rlvr_exp.tasks.splits import Item, split, tied

Named = TypeVar("Named", ArcRecord, Task)
EMBEDDED = Path(__file__).parents[2] / "assets" / "arc"


@dataclass
class Arc(RelabelsTasks, HoldsBackCases, ExportsSolutions, options.Arc):
    """ARC tasks, from `path` or embedded if it is empty. Without a `limit` they are in the order of the files."""

    name = "arc"
    problem_format = "python_io"
    makes_folds = True

    def __post_init__(self) -> None:
        self._source = Path(self.path) if self.path else EMBEDDED
        self.stop_text = "" if self.prompt.style == "bare" else "`"

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return self._tasks

    def task_prompt(self, task: Task) -> str:
        return wording.write(self._shown(task), self._look(task), self._shots(task))

    def _shown(self, task: Task) -> ArcPuzzle:
        """The puzzle of the prompt, with the noise of `randomise.noise`."""
        noise = self.randomise.noise
        return noisy(task.inputs, noise, self.seed, task.id) if noise else task.inputs

    def _look(self, task: Task) -> Wording:
        """The wording of the task, with a grid style of `randomise.grids`."""
        styles = self.randomise.grids
        return replace(self.prompt, grid=grid_style(styles, task.id, self.seed)) if styles else self.prompt

    def sizes(self) -> Mapping[str, int]:
        return embedded_sizes(EMBEDDED, self.limit) if self._as_shipped else super().sizes()

    @property
    def _as_shipped(self) -> bool:
        """Whether the splits are those of the embedded files."""
        return self._source == EMBEDDED and self.as_read and not self.randomise.colours

    def contents(self, task: Task) -> Sequence[Hashable]:
        """Its pairs: each of them is a part of the task."""
        return pairs(task)

    @property
    def splits_apart(self) -> bool:
        return self._as_shipped

    def given_family(self, task: Task) -> str:
        """Empty if the file names no family. Such a task is counted by its file or folder, mostly the name of a split."""
        record = self._record_of.get(task.id)
        return task.family if record is None or record.names_family else ""

    def examples(self) -> Sequence[Task]:
        return [*map(to_task, self._solved)]

    def fragments(self, task: Task) -> Sequence[Hashable]:
        """Its grids."""
        return grids_of(task)

    def variant(self, task: Task, rng: Random) -> Task:
        return reordered(task, rng) if self.reorder else task

    def input_features(self, tasks: Sequence[Task]) -> Mapping[Hashable, float]:
        """Frequencies of colours in cells, and of sizes of grids, with half of the weight each."""
        grids = [grid for task in tasks for pair in task.inputs.train for grid in pair]
        grids += [grid for task in tasks for grid in task.inputs.test]
        colours = shares(Counter(("colour", cell) for grid in grids for row in grid for cell in row))
        sizes = shares(Counter(("size", len(grid), len(grid[0])) for grid in grids))
        return {feature: share / 2 for of in (colours, sizes) for feature, share in of.items()}

    def export(self, folder: Path, solutions: Iterable[Solution]) -> Mapping[str, int]:
        """Write correct programs as a data set for imitation: a folder for `data.path`.

        `train.jsonl` has a row for each program of a train task. The other splits are those of the data, so that runs on
        both measure the same. No solution of a held-out task is written.

        Returns:
            rows, tasks with a program, and solutions left out: those that did not pass or are of no train task.
        """
        splits = self.splits()
        tasks = {task.id: task for task in splits.get("train", ())}
        numbers = Counter[str]()
        rows, left_out = [], 0
        for one in solutions:
            if not one.correct or one.task not in tasks:
                left_out += 1
                continue
            numbers[one.task] += 1
            rows.append(row_of(tasks[one.task], f"{one.task}#{numbers[one.task]}", one.program))
        held_out = [name for name in SPLITS if name in splits and name != "train"]
        own = {name: [row_of(task, task.id, task.gold) for task in splits[name]] for name in held_out}
        for name, of_split in {**own, "train": rows}.items():
            write_json_lines(folder / f"{name}.jsonl", of_split)
        return {"rows": len(rows), "tasks": len(numbers), "left_out": left_out}

    def kin(self, task: Task) -> Hashable:
        """Its family, and the shape of its inputs if they share one: a program may contain it as numbers."""
        return task.family, input_shape(task)

    def relabelled(self, task: Task, outputs: Sequence[Any]) -> Task | str:
        return relabelled(task, outputs)

    def shown_task(self, task: Task) -> ShownTask:
        """The train pairs and the inputs of the tests, hidden or not."""
        return shown_task(task.inputs)

    def credit(self, output: Any, expected: Any) -> float:
        return credit(output, expected)

    def answer(self, output: Any) -> Hashable | None:
        return answer(output)

    def held_back(self, task: Task) -> tuple[Hashable, ...] | None:
        """The test outputs."""
        if task.inputs.hidden:
            return None
        return tuple(grid_of(case.expected) for case in task.problem.cases[len(task.inputs.train) :])

    def retry_prompt(self, task: Task, previous: str, feedback: str) -> str:
        if self.prompt.style != "bare":
            return super().retry_prompt(task, previous, feedback)
        return wording.retry(self._shown(task), self._look(task), self._shots(task), previous, feedback)

    def teacher_prompt(self, task: Task, solution: str, attempt: str, feedback: str) -> str:
        """The bare style has room for one answer: the solution, or else the attempt with its feedback."""
        if self.prompt.style != "bare":
            return super().teacher_prompt(task, solution, attempt, feedback)
        return self.retry_prompt(task, solution or attempt, "" if solution else feedback)

    def hides(self, task: Task, case: int | None) -> bool:
        """The output of a test."""
        return case is None or case >= len(task.inputs.train)

    def parse(self, completion: str, task: Task) -> Candidate:
        return extract(completion, ENTRY_POINT)

    def gold_completion(self, task: Task) -> str | None:
        """Without line ends after the program, as in the embedded corpus."""
        return None if task.gold is None else wording.answer_of(task.gold.rstrip("\n"), self.prompt)

    def is_complete(self, text: str) -> bool:
        """True at the fence that closes a block with the function. A bare program ends with its end token."""
        return bool(self.stop_text) and block_closes(text, lambda block: extract(block, ENTRY_POINT).text is not None)

    def fingerprint(self, split: str) -> str:
        content = embedded_content(EMBEDDED, split) if self._as_shipped else None
        if content is None:
            return super().fingerprint(split)
        return content_hash([content, self.limit, self.seed if self.limit else 0])

    @cached_property
    def _records(self) -> dict[str, list[ArcRecord]]:
        if self._source == EMBEDDED:
            return self.of_families(_embedded_records(EMBEDDED))
        with _no_collection():
            return self.of_families(place(load(self._source), (self.test_fraction, self.dev_fraction), self.seed))

    @cached_property
    def _tasks(self) -> dict[str, tuple[Task, ...]]:
        if self._source == EMBEDDED:
            found = self.of_families(_embedded_tasks(EMBEDDED))
            return self._coloured({name: self._limited(name, tasks) for name, tasks in found.items()})
        chosen = {name: self._limited(name, records) for name, records in self._records.items()}
        with _no_collection():
            return self._coloured({name: list(map(to_task, records)) for name, records in chosen.items()})

    def _coloured(self, splits: Mapping[str, Sequence[Task]]) -> dict[str, tuple[Task, ...]]:
        """Place tasks in folds, then change colours: a fold has the same tasks in any colours."""
        placed = self.in_folds(splits)
        if not self.randomise.colours:
            return placed
        return {name: tuple(other_colours(task, self.seed) for task in tasks) for name, tasks in placed.items()}

    def _limited(self, split_name: str, found: Sequence[Named]) -> Sequence[Named]:
        if not self.limit:
            return found
        return sorted(found, key=lambda item: uniform(self.seed, "limit", split_name, item.id))[: self.limit]

    def _shots(self, task: Task) -> list[tuple[ArcPuzzle, str]]:
        if not self.prompt.shots:
            return []
        shots = chosen_shots(self._solved, task, self.prompt.shots, self.seed, self._same)
        return [(shot.puzzle(), shot.gold or "") for shot in shots]

    def _same(self, record: ArcRecord, task: Task) -> bool:
        """Whether it is the task in any colours, or has a pair in common with it."""
        record_of_it = self._record_of.get(task.id) if self.randomise.colours else None
        own = pairs(to_task(record_of_it) if record_of_it else task)
        return record.id == task.id or not {*pairs(to_task(record))}.isdisjoint(own)

    @cached_property
    def _record_of(self) -> dict[str, ArcRecord]:
        return {record.id: record for records in self._records.values() for record in records}

    @cached_property
    def _solved(self) -> list[ArcRecord]:
        """Train tasks with their program, or those of the embedded corpus if the data have none."""
        train = self._records.get("train", [])
        if self.folds:
            kept = {task.id for task in self._tasks["train"]}
            train = [record for record in train if record.id in kept]
        own = [record for record in train if record.gold is not None]
        if own or self._source == EMBEDDED:
            return own
        return [record for record in Arc(seed=self.seed)._solved if record.family not in self.unseen_families]


def pairs(task: Task) -> list[Hashable]:
    """All input and output grids of a task, the test outputs included."""
    tests = task.problem.cases[len(task.inputs.train) :]
    return [*task.inputs.train, *((grid_of(case.args[0]), grid_of(case.expected)) for case in tests)]


@cache
def _embedded_records(corpus: Path) -> dict[str, list[ArcRecord]]:
    """Loaded once a process: its splits are those of its files, so no option changes them."""
    with _no_collection():
        return place(load(corpus), (0.0, 0.0), 0)


@cache
def _embedded_tasks(corpus: Path) -> dict[str, tuple[Task, ...]]:
    with _no_collection():
        return {name: tuple(map(to_task, records)) for name, records in _embedded_records(corpus).items()}


@contextmanager
def _no_collection() -> Iterator[None]:
    """Loading creates a million objects without reference cycles: searching for cycles triples its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def to_task(record: ArcRecord) -> Task:
    puzzle = record.puzzle()
    own = (record.id, record.family, score(puzzle), puzzle, record.problem(), record.gold)
    return Task(*own, source=record.source)


def place(records: Sequence[ArcRecord], fractions: tuple[float, float], seed: int) -> dict[str, list[ArcRecord]]:
    """Every record under its split. The fractions for test and dev are drawn from the records that no layout has placed."""
    placed: dict[str, list[ArcRecord]] = {name: [] for name in (*SPLITS, "hidden", "overlap")}
    rest: list[ArcRecord] = []
    for record in records:
        name = "hidden" if record.hidden else OTHER_NAMES.get(record.split, record.split)
        placed.get(name, rest).append(record)
    contents = {record.origin: [content_hash(pair) for pair in record.pairs] for record in rest}
    judged = {content_hash(pair) for record in placed["test"] for pair in record.pairs} if rest else set()
    placed["overlap"] = [record for record in rest if judged.intersection(contents[record.origin])]
    free = [record for record in rest if judged.isdisjoint(contents[record.origin])]
    groups = tied({record.origin: contents[record.origin] for record in free})
    # Tenths of difficulty: fixed borders, so that adding tasks moves no other task to another stratum.
    bands = {record.origin: int(10 * score(record.puzzle())) for record in free}
    items = [Item(one.origin, groups[one.origin], one.family, bands[one.origin]) for one in free]
    wanted = [0.0 if placed[name] else fraction for name, fraction in zip(("test", "dev"), fractions, strict=True)]
    parts = split(items, wanted, seed)
    for record in free:
        placed[("test", "dev", "train")[parts[record.origin]]].append(record)
    return {name: found for name, found in placed.items() if found}


def _row_task(fields: Mapping[str, Any], name: str) -> Task:
    return to_task(record_of(dict(fields), "the puzzle", name, str(fields.get("family", "arc")), ""))


def row_of(task: Task, name: str, program: str | None) -> dict[str, Any]:
    """A task as a row of ARC data."""
    train = [{"input": to_lists(given), "output": to_lists(wanted)} for given, wanted in task.inputs.train]
    tests = [{"input": case.args[0], "output": case.expected} for case in task.problem.cases[len(train) :]]
    row = {"id": name, "family": task.family, "train": train, "test": tests}
    return row if program is None else {**row, "program": program}


ROWS = RowReader(("train", "test"), Arc, _row_task)
"""Puzzles in rows of `infer.input`."""


def of_tiny() -> tuple[Arc, str]:
    """The tasks that the embedded model `tiny` imitates, and how its tokenizer splits text."""
    return Arc(), "grid"


def check(config: Config, context: RunContext) -> tuple[str, dict[str, int]]:
    """Load every task of ARC data, word it in every prompt and grid style, read each prompt back, and count.

    Raises:
        InputError: the data are faulty.
        GuardStop: a prompt does not give its puzzle back.
    """
    path = config.prepare.path
    splits = Arc(path).splits()
    tasks = [task for members in splits.values() for task in members]
    puzzles = [task.inputs for task in tasks]
    lost = [task.id for task in tasks if not _reads_back(task.inputs)]
    train, test = (sum(len(getattr(puzzle, side)) for puzzle in puzzles) for side in ("train", "test"))
    grids = [grid for one in puzzles for grid in (*chain.from_iterable(one.train), *one.test)]
    hardest = sorted(task.difficulty for task in tasks)
    counts = {name: len(members) for name, members in splits.items()}
    lines = [
        f"path: {Path(path or 'embedded')}",
        f"tasks: {len(tasks)} in {len({task.family for task in tasks})} families",
        "splits: " + " ".join(f"{name}={count}" for name, count in counts.items()),
        f"pairs: {train} train, {test} test",
        f"largest grid: {max(map(len, grids))} rows, {max(len(grid[0]) for grid in grids)} columns",
        f"difficulty: {hardest[0]:.2f} to {hardest[-1]:.2f}, median {hardest[len(hardest) // 2]:.2f}",
        f"prompts that do not read back: {len(lost)}" + "".join(f"\n    {name}" for name in lost[:20]),
    ]
    text = "\n".join(lines)
    if lost:
        raise GuardStop(text)
    return text, {f"tasks/{name}": count for name, count in counts.items()}


def _reads_back(puzzle: ArcPuzzle) -> bool:
    """Whether every wording of a puzzle gives its grids back."""
    for look in (Wording(style=style, grid=grid) for style in wording.STYLES for grid in GRID_STYLES):
        try:
            found = wording.read(wording.write(puzzle, look), look)
        except InputError:
            return False
        if (found.train, found.test) != (puzzle.train, puzzle.test):
            return False
    return True
