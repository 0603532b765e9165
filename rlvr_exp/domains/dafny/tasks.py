"""The Dafny domain: bodies to write and bodies to annotate, judged by Dafny.

A writer's body is judged with the gold's annotations grafted onto it, against the program with a hole, specification
protected: a body that passes can be proved. An annotator's is judged unchanged, against the program with the gold's
code, everything but annotations protected. The answer to a whole program is a program, which is judged unchanged. Splits are those of files named like splits (`train.jsonl`); for other data,
and if such a file is missing, `dev` and `test` are drawn, with similar examples kept on one side.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, cast

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.dafny import prompt as wording
from rlvr_exp.domains.dafny.annotations import grafted
from rlvr_exp.domains.dafny.feedback import of_body
from rlvr_exp.domains.dafny.load import survey
from rlvr_exp.domains.dafny.options import DafnyDataOptions
from rlvr_exp.domains.dafny.problem import ROLES, DafnyExample, Role, RoleExample, Strength
from rlvr_exp.domains.dafny.prompt import answer_in, body_of, closed
from rlvr_exp.domains.dafny.splits import LENGTHS, band, items_of, renamed, split_examples
from rlvr_exp.domains.dafny.tokens import tokens
from rlvr_exp.domains.dafny.usable import fault_of, golds
from rlvr_exp.tasks.base import Candidate, Domain, Golds, ProvesGolds, Task
from rlvr_exp.tasks.completion import block_closes
from rlvr_exp.tasks.rows import OTHER_NAMES
from rlvr_exp.tasks.shots import chosen_shots
from rlvr_exp.tasks.sources import embedded_sizes, source_of
from rlvr_exp.tasks.splits import FOLDED, folds_of

EMBEDDED = Path(__file__).parents[2] / "assets" / "dafny"
SPLITS = ("train", "practice", "dev", "test", "test_unseen")
HARDEST = 200
"""A task with as many tokens of the wanted body, beyond those in the prompt, counts as hardest."""


Check = Callable[[Sequence[RoleExample]], Sequence[str]]
"""For each part the reason why its gold cannot be trusted, or an empty text."""


@dataclass
class DafnyDomain(ProvesGolds, DafnyDataOptions):
    """Tasks of one role or of both, from `path` or embedded if it is empty; without a `limit` in the order of the files.
    If each example is a task of both roles, ids end in the role's name."""

    name = "dafny"
    problem_format = "dafny"
    makes_folds = True

    def __post_init__(self) -> None:
        self._source = Path(self.path) if self.path else EMBEDDED
        self.roles: tuple[Role, ...] = ROLES if self.role == "both" else (cast(Role, self.role),)
        self.prompt = wording.with_context(self.prompt)
        self.stop_text = "}" if self.prompt.style == "bare" else "`"
        self._check: Check | None = None
        self._refused: dict[RoleExample, str] = {}
        self._levels: Mapping[str, Strength] = {}
        self._unchecked = self

    @property
    def proves_golds(self) -> bool:
        return self.usable != "trust"

    def refused_golds(self, config: Any, proved: Callable[[int, int], None]) -> Golds:
        return golds(self.checked, config, proved)

    def without_golds(self, refused: Mapping[str, str], notes: Mapping[str, str]) -> "DafnyDomain":
        levels = cast(Mapping[str, Strength], notes)
        return self.checked(lambda parts: [refused.get(part.id, "") for part in parts], levels)

    def checked(self, check: Check, levels: Mapping[str, Strength] = MappingProxyType({})) -> "DafnyDomain":
        """The same tasks without those that the check refuses; with a `limit`, others of the data take their place.

        Args:
            levels: level of a part, by its id.
        """
        found = copy(self)
        found._check, found._refused, found._levels, found._unchecked = check, {}, levels, self
        for chosen in ("_tasks", "_solved"):  # Of the unchecked tasks, if they have been read.
            found.__dict__.pop(chosen, None)
        return found

    def fingerprint(self, split: str) -> str:
        """Of the data before a check, so that the same data have the same fingerprint."""
        return super().fingerprint(split) if self._check is None else self._unchecked.fingerprint(split)

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return self._tasks

    def left_out(self) -> Mapping[str, str]:
        if self._check is not None:
            self.splits()  # The choice of tasks decides which golds are refused.
        faults = self._faults | self._refused
        return {**self._data[1], **{self._id(part): why for part, why in faults.items()}}

    def task_prompt(self, task: Task) -> str:
        return wording.write(task.inputs, self.prompt, self._shots(task))

    def sizes(self) -> Mapping[str, int]:
        known = self._source == EMBEDDED and self._check is None and self.as_read
        return embedded_sizes(EMBEDDED, self.limit, len(self.roles)) if known else super().sizes()

    def contents(self, task: Task) -> Sequence[str]:
        """The program, which shows the tasks of its other methods too; and the method without its names and its context."""
        return [*_contents(task.inputs.example)]

    def examples(self) -> Sequence[Task]:
        if not self._parts.get("train") and self._source != EMBEDDED:
            return DafnyDomain(role="both", seed=self.seed).examples()
        return [*map(self.to_task, self._parts.get("train", []))]

    def retry_prompt(self, task: Task, previous: str, feedback: str) -> str:
        """The retry prompt shows the body that was judged, and counts its lines."""
        previous, feedback = self._explained(task, previous, feedback)
        if self.prompt.style != "bare":
            return super().retry_prompt(task, previous, feedback)
        return wording.retry(task.inputs, self.prompt, self._shots(task), previous, feedback)

    def teacher_prompt(self, task: Task, solution: str, attempt: str, feedback: str) -> str:
        """The bare style has room for one answer: the solution, or else the attempt with its feedback."""
        if self.prompt.style != "bare":
            return super().teacher_prompt(task, solution, *self._explained(task, attempt, feedback))
        return self.retry_prompt(task, solution or attempt, "" if solution else feedback)

    def _explained(self, task: Task, answer: str, feedback: str) -> tuple[str, str]:
        """The body of an answer, and feedback that counts its lines; both unchanged if the answer has no body."""
        one = task.inputs.example
        if (body := body_of(answer, one).text) is None:
            return answer, feedback
        explained = of_body(feedback, one, body, self._judged(body, task.inputs)) if feedback else ""
        return wording.shown(body, self.prompt), explained

    def parse(self, completion: str, task: Task) -> Candidate:
        part: RoleExample = task.inputs
        found = answer_in(completion, part.example)
        if found.text is None or part.example.whole:
            return found
        return Candidate(part.example.program(self._judged(found.text, part)))

    def _judged(self, body: str, part: RoleExample) -> str:
        """The body in the program that Dafny verifies: a writer's has the reference annotations."""
        return grafted(body, part.example) if part.role == "writer" else body

    def is_complete(self, text: str) -> bool:
        """A bare completion is its body: complete with the brace that closes it; one in words with the fence around it."""
        return closed(text) if self.prompt.style == "bare" else block_closes(text, closed, python=False)

    def similarity_pair(self, completion: str, task: Task) -> tuple[str, str]:
        """Tokens, so that comments and blanks do not count; for a completion without a body its own words."""
        found = answer_in(completion, task.inputs.example).text
        answer = completion.split() if found is None else tokens(found)
        return " ".join(answer), " ".join(tokens(task.inputs.gold))

    def strata(self, task: Task) -> Mapping[str, str]:
        return {"role": task.inputs.role, "length": band_name(task.inputs.example)}

    def to_task(self, part: RoleExample) -> Task:
        """The task of a role's example, its gold in the form that the prompt requests."""
        one, role = part.example, part.role
        shown, wanted = (len(tokens(text)) for text in (part.given, part.gold))
        return Task(
            self._id(part),
            one.family,
            min(1.0, max(0, wanted - shown) / HARDEST) if part.gold else 1.0,
            part,
            part.problem,
            wording.answer_of(part, self.prompt) if part.gold else None,
            one.mutants if role == "annotator" else (),
            self._set_of(one),
        )

    def _set_of(self, example: DafnyExample) -> str:
        file = PurePosixPath(example.source)
        own = () if file.suffix == ".dfy" else (file.name,)  # A program has a file of its own.
        return source_of(self._source, (*file.parent.parts, *own))

    def _id(self, part: RoleExample) -> str:
        """Tasks of a single role have their examples' ids, so that runs of either role measure the same programs."""
        return part.example.id if len(self.roles) == 1 else f"{part.example.id}/{part.role}"

    @cached_property
    def _data(self) -> tuple[Mapping[str, Sequence[DafnyExample]], Mapping[str, str]]:
        """The examples of each split, before roles and limits, and the programs left out."""
        found = survey(self._source, self.unit)
        placed = _placed(found.examples, {"test": self.test_fraction, "dev": self.dev_fraction}, self.seed)
        return self.of_families(placed), found.left_out

    @cached_property
    def _faults(self) -> dict[RoleExample, str]:
        """The unusable parts with the reasons; the embedded examples were checked when they were built."""
        if self._source == EMBEDDED:
            return {}
        parts = (RoleExample(role, one) for found in self._data[0].values() for one in found for role in self.roles)
        return {part: fault for part in parts if (fault := fault_of(part.example, part.role))}

    @cached_property
    def _parts(self) -> dict[str, list[RoleExample]]:
        """Every split's usable parts, examples in their order."""
        return {
            name: [part for one in found for role in self.roles if (part := RoleExample(role, one)) not in self._faults]
            for name, found in self._data[0].items()
        }

    @cached_property
    def _tasks(self) -> dict[str, tuple[Task, ...]]:
        chosen = {name: self._usable(name, parts) for name, parts in self._parts.items()}
        return self.in_folds(
            {name: list(map(self.to_task, parts)) for name, parts in chosen.items() if parts or self._check}
        )

    def fold_of(self, tasks: Sequence[Task]) -> Mapping[str, int]:
        """By examples, whatever the role, near-duplicates in one fold: both roles have the same programs held out."""
        pooled = (one for name in self.folds_of or FOLDED for one in self._data[0].get(name, ()))
        folds = folds_of(items_of(tuple(pooled)), self.folds)
        return {task.id: folds[task.inputs.example.id] for task in tasks}

    def _usable(self, split: str, parts: list[RoleExample]) -> list[RoleExample]:
        """The first parts up to `limit` that the check accepts."""
        if self.limit:
            parts = sorted(parts, key=lambda part: uniform(self.seed, "limit", split, part.example.id))
        limit = self.limit or len(parts)
        if self._check is None:
            return parts[:limit]
        found, first = list[RoleExample](), 0
        while first < len(parts) and len(found) < limit:
            asked = parts[first : first + limit - len(found)]
            first += len(asked)
            faults = dict(zip(asked, self._check(asked), strict=True))
            self._refused |= {part: fault for part, fault in faults.items() if fault}
            found += [self._with_level(part) for part, fault in faults.items() if not fault]
        return found

    def _with_level(self, part: RoleExample) -> RoleExample:
        level = self._levels.get(part.id, part.example.strength)
        return replace(part, example=replace(part.example, strength=level))

    def _shots(self, task: Task) -> list[RoleExample]:
        """Solved examples of the task's role from the shorter half of `train`, without the task's own example."""
        if not self.prompt.shots:
            return []
        return chosen_shots(self._solved[task.inputs.role], task, self.prompt.shots, self.seed, self._same)

    def _same(self, solved: RoleExample, task: Task) -> bool:
        one, own = solved.example, task.inputs.example
        return one.id == own.id or not set(_contents(one)).isdisjoint(_contents(own))

    @cached_property
    def _solved(self) -> dict[Role, list[RoleExample]]:
        """The shorter half of the train split for each role; of the embedded split if the data have none."""
        if not self._parts.get("train") and self._source != EMBEDDED:
            return DafnyDomain(role="both", seed=self.seed)._solved
        found = {}
        as_read = self._check is None and not self.folds
        train = self._parts.get("train", []) if as_read else [task.inputs for task in self._tasks["train"]]
        for role in self.roles:
            parts = sorted(
                (one for one in train if one.role == role and one.gold), key=lambda one: len(one.example.gold)
            )
            found[role] = parts[: max(self.prompt.shots + 1, len(parts) // 2)]
        return found


@lru_cache(maxsize=1 << 16)
def _contents(example: DafnyExample) -> tuple[str, str]:
    return content_hash(example.content), content_hash(renamed(example))


def band_name(example: DafnyExample) -> str:
    """The band of an example's length, in tokens of the annotated method: zeros in front, so that bands sort."""
    borders = (0, *LENGTHS)
    number = band(example)
    return f"{borders[number]:03d} to {LENGTHS[number] - 1:03d}" if number < len(LENGTHS) else f"{borders[-1]} and more"


def _placed(
    examples: Sequence[DafnyExample], fractions: Mapping[str, float], seed: int
) -> dict[str, list[DafnyExample]]:
    """Every example under its split; splits without a file of their name are drawn, by `fractions`, from `train` and from the
    files that are named after no split."""
    by_file: dict[str, list[DafnyExample]] = {}
    for example in examples:
        name = Path(example.source).name.partition(".")[0]
        name = OTHER_NAMES.get(name, name)
        by_file.setdefault(name if name in SPLITS else "train", []).append(example)
    wanted = {name: share for name, share in fractions.items() if name not in by_file and share}
    drawn = split_examples(by_file.pop("train", []), wanted, seed) if wanted else {"train": by_file.pop("train", [])}
    found = {**drawn, **by_file}
    return {name: found[name] for name in SPLITS if found.get(name)}


@dataclass(frozen=True)
class TwoStage:
    """The domain of the writer, whose tasks are those of a cascade, and that of the annotator, which words and parses
    the annotator's tasks about them."""

    writer: Domain
    annotator: Domain

    def __post_init__(self) -> None:
        if any(task.inputs.example.whole for tasks in self.writer.splits().values() for task in tasks):
            what, remedy = "a cascade writes bodies of methods", "a set of programs and data.unit=method"
            raise InputError(InputProblem("data.path", what, "tasks that are whole programs", "", "", remedy))

    def example(self, task: Task) -> DafnyExample:
        return task.inputs.example

    def body(self, completion: str, task: Task) -> Candidate:
        """The body in a writer's completion."""
        return body_of(completion, self.example(task))

    def gold_body(self, task: Task) -> str:
        """The body of the data, without its annotations."""
        return self.example(task).body

    def program(self, task: Task, body: str | None) -> str:
        """The complete program with a body; None: with the hole."""
        return self.example(task).program(body)

    def annotation(self, task: Task, body: str, problem: Any) -> Task:
        """The annotator's task for a body of the task: a task with the same id, without a gold."""
        part = RoleExample("annotator", replace(self.example(task), body=body))
        return replace(task, inputs=part, problem=problem, gold=None, negatives=())


def of_tiny() -> tuple[DafnyDomain, str]:
    """The tasks that the embedded model `tiny_dafny` imitates, and how its tokenizer splits text."""
    return DafnyDomain(role="both"), "code"
