"""Tasks and domains. A Task is data; a Domain knows how to load tasks, word their prompts, and parse completions.

Nothing here knows models, trainers or how a candidate is judged beyond naming the problem that a verifier takes.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Protocol

from rlvr_exp.config import data as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.splits import FOLDED, Item, Member, by_family, folds_of, held_out, refuse_unknown, resampled, tied
from rlvr_exp.tasks.tools import Tool

RETRY_PROMPT = """{prompt}

This answer was given before and did not pass:

{previous}

The verifier said of it:

{feedback}

Answer again, whole, without that fault.
"""
"""The retry prompt of a domain that has no words of its own for it."""


TEACHER_PROMPT = "{prompt}{solution}{feedback}\n\nCorrectly solve the original question.\n"
SOLUTION = "\n\nCorrect solution:\n\n{}\n"
FEEDBACK = "\n\nThe following is feedback from your unsuccessful earlier attempt:\n\n{}\n"
"""The words of SDPO's authors for the policy that teaches itself (rlvr_exp.algorithms.self_distillation)."""
MOST_FEEDBACK = 2000
"""Characters of feedback in a prompt."""
CASE = re.compile(r"case (\d+)\b")


class Judged(Protocol):
    """A verdict on a completion."""

    @property
    def bucket(self) -> str | None: ...

    @property
    def log(self) -> str: ...

    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class Task:
    """One task. `problem` is the verifier's data; `inputs` are the data of the prompt."""

    id: str
    family: str
    difficulty: float
    """Documented per domain; comparable within a domain, larger is harder."""
    inputs: Any
    problem: Any
    gold: str | None = None
    """A completion that the verifier accepts, if one is known; `Domain.gold_completion` gives it the form of the
    prompt."""
    negatives: tuple[str, ...] = ()
    """Completions that the data set itself lists as wrong: none may pass."""
    source: str = ""
    """The set that the task comes from, by whose name `data.mix` mixes; empty if its domain knows none."""


@dataclass(frozen=True)
class Candidate:
    """The part of a completion that a verifier judges. If `text` is None, the completion could not be parsed."""

    text: str | None
    fault: str = ""
    """Why there is no text, for the log of a `parse` verdict."""


@dataclass(frozen=True)
class ShownTask:
    """The visible part of a task. Programs run on it if the result must not depend on held-back cases."""

    problem: Any
    """The shown cases, then the held-back inputs, whose expected value is None."""
    shown: int
    """Number of shown cases."""


@dataclass(frozen=True)
class EditWithTests:
    """An edited program with its tests."""

    before: str
    """The program before the edit."""
    after: str
    """The edited program."""
    script: str
    """The edited program, followed by its tests: run as a script, it ends with exit code 0 where they pass."""


class Domain(options.Data, ABC):
    """A kind of task. Built from the `data` group; one file per domain."""

    name: str
    problem_format: str = ""
    """The row format of its problems, if all data of the domain have the same; empty: it depends on the data."""
    no_split_remedy: str = ""
    """The option that draws a held-out split from data without one, if the domain has such an option."""
    tools: Sequence[Tool] = ()
    """Tools that demonstrations may call, and that the prompt of each describes."""
    stop_text: str = ""
    """The text that ends every completion that `is_complete` accepts. If it is empty, only the end token ends a
    completion."""

    makes_folds = False
    """Whether `splits` returns the result of `in_folds`, so that `folds`, `families`, `unseen_families` and `resample`
    have an effect."""

    @abstractmethod
    def splits(self) -> Mapping[str, Sequence[Task]]:
        """Every split by name, in a reproducible order. Raises InputError naming file, key and fault for bad data."""

    def of_families(self, splits: Mapping[str, Sequence[Member]]) -> dict[str, list[Member]]:
        """The items of each split, restricted to `families` and `unseen_families`. It is called before a `limit`, so
        that the limit counts tasks of these families. Raises InputError if no task is of a named family."""
        refuse_unknown(splits, self.families, self.unseen_families)
        return by_family(splits, self.families, self.unseen_families)

    def in_folds(self, splits: Mapping[str, Sequence[Task]]) -> dict[str, tuple[Task, ...]]:
        """The splits of the `families`, with one of `folds` held out as `test` if there are folds, and the tasks that are
        trained on drawn anew where `resample` says so.

        Raises:
            InputError: a split of `folds_of` is not there, or there are too few tasks for the folds.
        """
        chosen = by_family(splits, self.families, self.unseen_families)
        return resampled(self._one_held_out(chosen), self.resample)

    def _one_held_out(self, splits: Mapping[str, Sequence[Task]]) -> Mapping[str, Sequence[Task]]:
        if not self.folds:
            return splits
        pooled = [name for name in self.folds_of or FOLDED if splits.get(name) or self.folds_of]
        if absent := [name for name in pooled if not splits.get(name)]:
            there = ", ".join(splits)
            raise InputError(InputProblem("data.folds_of", "no tasks in this split", ", ".join(absent), there))
        tasks = [task for name in pooled for task in splits[name]]
        fold_of = self.fold_of(tasks)
        return held_out(splits, pooled, [fold_of[task.id] == self.fold for task in tasks])

    def fold_of(self, tasks: Sequence[Task]) -> Mapping[str, int]:
        """The fold of each task, by id: stratified by family and difficulty, tasks with a content in common in one."""
        contents = {task.id: [content_hash(key) for key in self.contents(task)] or [task.id] for task in tasks}
        groups = tied(contents)
        items = [Item(task.id, groups[task.id], task.family, round(100 * task.difficulty)) for task in tasks]
        return folds_of(items, self.folds)

    def sizes(self) -> Mapping[str, int]:
        """Number of tasks of every split."""
        return {name: len(tasks) for name, tasks in self.splits().items()}

    def splits_note(self) -> str:
        """A remark on the splits for the user, in one line, or an empty text."""
        notes = [f"fold {self.fold} of {self.folds} is held out as split 'test'"] if self.folds else []
        if self.families:
            notes.append(f"tasks of {len(self.families)} families alone are in the splits")
        if self.unseen_families:
            notes.append(
                f"split 'test_unseen' holds the tasks of {len(self.unseen_families)} families, no other split does"
            )
        return "; ".join([*notes, *([f"training tasks are bootstrap sample {self.resample}"] if self.resample else [])])

    def left_out(self) -> Mapping[str, str]:
        """Tasks of the data that are in no split, by id, each with the reason."""
        return {}

    def left_out_remedy(self) -> str:
        """A verifier that judges tasks that are left out; empty if none does."""
        return ""

    def other_data(self, verifier: str) -> str:
        """The `data` group that reads the same rows for a verifier of this import path, if it cannot judge these
        problems; else empty."""
        return ""

    def no_training(self) -> str:
        """Why no policy may be trained on the data, such as their licence; empty if one may."""
        return ""

    def contents(self, task: Task) -> Sequence[Hashable]:
        """Keys of a task's content, whatever its id: two tasks with a key in common are the same task to who learned
        one of them. A domain without keys of its own has the words of the prompt."""
        return [content_hash(self.task_prompt(task).split())]

    @property
    def splits_apart(self) -> bool:
        """Whether no two splits have a key of `contents` in common by how they were made, so that nobody has to look."""
        return False

    def given_family(self, task: Task) -> str:
        """The family that the data give a task; empty if they give none."""
        return task.family

    def examples(self) -> Sequence[Task]:
        """The tasks that a prompt may show solved before another."""
        return self.splits().get("train", ())

    def fragments(self, task: Task) -> Sequence[Hashable]:
        """The parts of a task that no self-made task may share with a held-out one. They are finer than `contents`:
        otherwise a task that a policy makes could show it a part of a held-out task."""
        return self.contents(task)

    def variant(self, task: Task, rng: Random) -> Task:
        """The task in another form with the same gold, for imitation to see it anew on each pass; the task itself if the
        domain has no such forms or was not asked for them."""
        return task

    def input_features(self, tasks: Sequence[Task]) -> Mapping[Hashable, float]:
        """Shares of the components of the tasks' inputs. They add up to 1 and serve to compare sets of tasks. If empty,
        the words of the prompts are compared."""
        return {}

    def kin(self, task: Task) -> Hashable:
        """A key that tasks share whose golds make sense on each other's inputs."""
        return task.family

    @abstractmethod
    def task_prompt(self, task: Task) -> str:
        """The full prompt of the task, without chat markup."""

    def feedback(self, task: Task, verdict: Judged) -> str:
        """The part of a verdict that a prompt may show: its reason and the verifier's log, up to `MOST_FEEDBACK` characters. The
        log of a wrong answer has the expected value, and is left out if the prompt hides that."""
        case = CASE.match(verdict.log)
        if verdict.bucket == "wrong_answer" and self.hides(task, int(case[1]) if case else None):
            return f"{verdict.reason}: hidden {case[0]}" if case else verdict.reason
        return (f"{verdict.reason}: {verdict.log}" if verdict.log else verdict.reason)[:MOST_FEEDBACK]

    def hides(self, task: Task, case: int | None) -> bool:
        """Whether the prompt hides the expected value of a case.

        Args:
            case: its number, counted from 0. None: the verifier does not number its cases.
        """
        return True

    def teacher_prompt(self, task: Task, solution: str, attempt: str, feedback: str) -> str:
        """The prompt with which a policy teaches itself.

        Args:
            solution: another answer to the task, which passed; empty: none.
            attempt: the answer that is taught. The words of SDPO's authors do not show it.
            feedback: on the attempt; empty: none.
        """
        return TEACHER_PROMPT.format(
            prompt=self.task_prompt(task).rstrip("\n"),
            solution=SOLUTION.format(solution.strip("\n")) if solution else "",
            feedback=FEEDBACK.format(feedback.strip("\n")) if feedback else "",
        )

    def retry_prompt(self, task: Task, previous: str, feedback: str) -> str:
        """The prompt for another try after a completion that did not pass. `feedback`: the verifier's log of it."""
        parts = {"prompt": self.task_prompt(task).rstrip("\n"), "previous": previous.strip("\n")}
        return RETRY_PROMPT.format(**parts, feedback=feedback.strip("\n"))

    def similarity_pair(self, completion: str, task: Task) -> tuple[str, str] | None:
        """A completion and the gold as words with blanks between them, for measures of text similarity; None:
        similarity says nothing, as where one task has many right answers of other forms."""
        return None

    def strata(self, task: Task) -> Mapping[str, str]:
        """Strata of a task besides its family, by kind: `{"role": "writer", "length": "32 to 63"}`."""
        return {}

    def fingerprint(self, split: str) -> str:
        """A hash of the content of a split's tasks, for the manifest."""
        return content_hash([_hashed(task) for task in self.splits()[split]])

    def gold_completion(self, task: Task) -> str | None:
        """The gold as a completion in the form that the prompt requests; None if there is no gold. Imitation learns
        it."""
        return task.gold

    def gold_place(self, task: Task, by_tests: bool) -> str:
        """The place of the data (file, line, key) that keeps a gold from passing, if the domain knows it.

        Args:
            by_tests: the gold runs, but fails the tests, so that the tests may be wrong.
        """
        return ""

    def gold_turns(self, task: Task) -> Sequence[tuple[str, str]]:
        """Calls of tools before the gold, each with its result. Imitation learns the calls, and not the results."""
        return ()

    def demonstrations(self, task: Task) -> Sequence[Task]:
        """The tasks that imitation of a task sees, each with its own gold. The default is the task itself."""
        return [task]

    def is_complete(self, text: str) -> bool:
        """Whether the completion so far is complete, so that nothing after it would count; called where `stop_text` is
        new in it. A domain that decides this needs no token that ends a completion."""
        return False

    @abstractmethod
    def parse(self, completion: str, task: Task) -> Candidate:
        """The candidate inside a completion of the task (fences, chatter and repeated headers removed)."""


@dataclass(frozen=True)
class RowReader:
    """Reads rows of `infer.input` as tasks of a domain."""

    keys: tuple[str, ...]
    """Keys that identify such a row."""
    domain: type[Domain]
    task: Callable[[Mapping[str, Any], str], Task]
    """The task of a row with this id. Raises InputError."""

    @cached_property
    def usual(self) -> Domain:
        """The domain with its default options."""
        return self.domain()


class ExportsSolutions(Domain):
    """A domain whose solved tasks can be written as a data set for imitation."""

    @abstractmethod
    def export(self, folder: Path, solutions: Iterable[Any]) -> Mapping[str, int]:
        """Write the splits, with solutions (rlvr_exp.solutions.record.Solution) as reference answers of train tasks. Returns the
        numbers of `rows`, `tasks` with a solution, and solutions `left_out`."""


@dataclass(frozen=True)
class Golds:
    """Result of a domain's check of its gold solutions."""

    checked: int
    refused: Mapping[str, str]
    """The reason by the name of each gold that does not pass."""
    notes: Mapping[str, str]
    """A note of the check on a gold that passes, by its name."""


class ProvesGolds(Domain):
    """A domain that can leave out the tasks whose gold its verifier refuses."""

    @property
    @abstractmethod
    def proves_golds(self) -> bool:
        """Whether its options say so."""

    @abstractmethod
    def refused_golds(self, config: Any, proved: Callable[[int, int], None]) -> Golds:
        """Judge every gold that is needed to fill the splits. Raises Lost if the verifier breaks down.

        Args:
            proved: is called with the number of golds that are judged, and of those that are to be judged.
        """

    @abstractmethod
    def without_golds(self, refused: Mapping[str, str], notes: Mapping[str, str]) -> Domain:
        """The domain without those tasks; others of the data take their place. `notes`: as in `Golds`."""


class RelabelsTasks(Domain):
    """A domain in which the outputs of a program make a task that it solves."""

    @abstractmethod
    def relabelled(self, task: Task, outputs: Sequence[Any]) -> Task | str:
        """The task on the same inputs with these outputs and without a gold, or the reason why they make no task.

        Args:
            outputs: return values of a program on the cases of the task's problem.
        """


class ContinuesEdits(Domain):
    """A domain whose tasks can be done in steps, each on the text that the steps before it have made."""

    @abstractmethod
    def after_step(self, task: Task, text: str, answer: str) -> Task:
        """The task that is left when the answer of a step has made this text."""

    @abstractmethod
    def state(self, task: Task) -> str:
        """The text as it stands."""

    @abstractmethod
    def noted(self, task: Task, answer: str) -> Mapping[str, str]:
        """The parts of a step beside its action: what its prompt said of earlier steps, and what its answer says."""

    @abstractmethod
    def described(self, task: Task) -> Mapping[str, Any]:
        """The entry of a task in a file of trajectories, in JSON types."""

    @abstractmethod
    def gold_steps(self, task: Task) -> Sequence[str]:
        """The gold as a sequence of answers, the last of which says that nothing is left to do; empty without a
        gold."""

    @abstractmethod
    def is_last(self, completion: str, task: Task) -> bool:
        """Whether an answer says that nothing is left to do."""


class ReasonsInStages(Domain):
    """A domain whose tasks are solved in stages. Each stage sees the outputs of the earlier ones."""

    @property
    @abstractmethod
    def stages(self) -> Sequence[str]:
        """Their names, in order; the last one is the answer's."""

    @abstractmethod
    def at_stage(self, task: Task, stage: str, chain: Mapping[str, str]) -> Task:
        """The task with another stage asked for, after these outputs of earlier ones, by stage."""

    @abstractmethod
    def output(self, completion: str, task: Task) -> str:
        """A completion as later stages are shown it."""


class WritesTests(ReasonsInStages):
    """A domain for whose answers tests can be written."""

    @property
    @abstractmethod
    def tester(self) -> Domain:
        """The same tasks from a tester's side."""

    @abstractmethod
    def testing(
        self, task: Task, attempt: str, programs: Sequence[str], earlier: Mapping[str, str] | None = None
    ) -> Task:
        """The task of testing an attempt.

        Args:
            programs: those that tests are run on.
            earlier: as `tests_feedback`.
        """

    @abstractmethod
    def together(self, task: Task, texts: Sequence[str]) -> Task:
        """A task of testing whose tests are judged together with others of the same programs: all `texts`, its own among them."""

    @abstractmethod
    def holding(self, task: Task, program: str) -> Task:
        """The same task with `program` as its reference solution."""

    @abstractmethod
    def names(self, task: Task) -> Sequence[str]:
        """The names that a task gives: its function and arguments."""

    @abstractmethod
    def critique(self, task: Task, stage: str, output: str) -> Task:
        """The task of criticising the output of a stage."""

    @abstractmethod
    def approves(self, critique: str) -> bool | None:
        """Whether a critique says that the output is right; None: it says neither."""

    @abstractmethod
    def tests_in(self, text: str, task: Task) -> Sequence[str]:
        """The different tests in a text, one a line, in the order of a verdict on the text."""

    @abstractmethod
    def repeated_tests(self, text: str, task: Task) -> Sequence[str]:
        """Lines of a text that repeat a test of an earlier line."""

    @abstractmethod
    def shown_tests(self, task: Task) -> Sequence[str]:
        """Tests that the task itself shows, a line each."""

    @abstractmethod
    def failure_feedback(self, program: str, failed: Sequence[str]) -> Mapping[str, str]:
        """Feedback to a solver on its last attempt, by heading. `failed`: tests that it does not pass."""

    @abstractmethod
    def tests_feedback(self, text: str, faults: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        """Feedback to a tester on its last tests, by heading. `faults`: tests by their fault."""


class ShowsCases(Domain):
    """A domain whose prompts show cases of the task, so that a policy can adapt to them (`infer.adapt`)."""

    @abstractmethod
    def shown_task(self, task: Task) -> ShownTask:
        """The visible part of a task. It depends on the task's inputs only."""

    def credit(self, output: Any, expected: Any) -> float:
        """How much of a shown case's value a wrong output has right, in [0, 1). `output` is None if there is none."""
        return 0.0


class HoldsBackCases(ShowsCases):
    """A domain whose tasks show cases and hold back others, on whose outputs programs can vote."""

    @abstractmethod
    def answer(self, output: Any) -> Hashable | None:
        """A program's return value on a held-back input, as an answer. Outputs that the verifier treats as equal are
        equal answers. None means no answer."""

    @abstractmethod
    def held_back(self, task: Task) -> tuple[Hashable, ...] | None:
        """The right answers to the held-back inputs, in their order; None: some are hidden."""


class HasEditTests(Domain):
    """A domain of edits whose tests can follow the edited program in one script, so that the lines that they run can be
    counted."""

    answers_are_programs = True
    """Whether an answer is the edited program; else it is an action that makes it."""

    @abstractmethod
    def edit_with_tests(self, task: Task, program: str) -> EditWithTests | None:
        """An edited program with its tests; None if the task is no edit, or its tests are no script."""


_HASHED_AS = {"inputs": "puzzle", "negatives": "wrong"}
"""Names of a task's fields in its fingerprint. Manifests on disk contain them."""
_NO_CONTENT = ("source",)
"""Fields that are in no fingerprint: equal tasks have one, whatever the folder that they were read from."""


def _hashed(task: Task) -> dict[str, Any]:
    names = [field.name for field in fields(task) if field.name not in _NO_CONTENT]
    return {_HASHED_AS.get(name, name): getattr(task, name) for name in names}
