"""The domain of coding problems that are worked out in stages of reasoning: tasks, and the prompts of a solver and a tester.

A task is a problem whose last stage is asked for; `at_stage` is the same problem at another stage, with the outputs so far. Only the
code is judged, by tests that no prompt shows.

Prompts in style `bare` are for small models trained here: the problem, the shown calls, earlier outputs under their names, and
the name of the stage that is asked for. `instruct` says the same in words.

A critique of an output that fits the problem is `ok`; else it is `wrong: ` and the words of the problem that the output misses.
Outputs that do not fit are those of another problem of the family, in this problem's names.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.hashing import checksum, content_hash
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.problems import options
from rlvr_exp.domains.problems.options import SOLVER, TESTER, ReasoningStage
from rlvr_exp.domains.problems.rows import (
    EMBEDDED,
    ERRORS,
    ProblemRow,
    Source,
    call_text,
    content,
    keys_of,
    programs_at,
    read,
)
from rlvr_exp.tasks.base import Candidate, ShownTask, ShowsCases, Task, WritesTests
from rlvr_exp.tasks.calls import CallsProblem, line_of, literal_calls, read_tests
from rlvr_exp.tasks.cases import WEAK
from rlvr_exp.tasks.completion import (
    block_closes,
    defines,
    fenced,
    fenced_blocks,
    tree,
    whole_program,
    without_thoughts,
)
from rlvr_exp.tasks.content import text_key
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.mutants import chosen
from rlvr_exp.tasks.shots import Alike, after_examples, chosen_shots
from rlvr_exp.tasks.sources import embedded_content, embedded_sizes

TESTS = "tests"
"""The stage of tests."""
FITS, MISSES = "ok", "wrong: "
LAST_CODE, LAST_TESTS = "last code", "last tests"
"""Headings of an earlier answer in a prompt that lists its faults."""
FAILED = "failed tests"
TESTS_IN_WORDS = (
    "Write tests of the function, a line each: a call with literal arguments and the value that it has to return, such as `f(2) == 4`."
    " Good tests fail where a program is wrong."
)
_FIRST_WORD = re.compile(r"(?:[^\w]|_)*(?:\d+[.)]\s+(?:[^\w]|_)*)?([^\W_]+(?:['\u2019]\w+)?)")


@dataclass(frozen=True)
class StageInputs:
    """What a prompt is worded from."""

    row: ProblemRow
    stage: str
    """The stage that is asked for."""
    chain: Mapping[str, str] = field(default_factory=dict)
    """The outputs of all earlier stages that there are, by stage; of a tester's task those that it is about."""
    critique: str = ""
    """The gold of a critique."""


@dataclass
class Problems(WritesTests, ShowsCases, options.Problems):
    """Problems, from `path` or embedded if it is empty; without a `limit` in the order of the files."""

    name = "problems"
    makes_folds = True
    no_split_remedy = "data.held_out=embedded, or =FILE, to measure on other problems"

    def __post_init__(self) -> None:
        self._source = Path(self.path) if self.path else EMBEDDED
        self.problem_format = "" if self.path else "python_io"
        self.stop_text = "" if self.prompt.style == "bare" else "`"
        self._names: set[str] = set()
        """Functions that tasks ask for."""

    @property
    def stages(self) -> Sequence[str]:
        return list(self.reasoning)

    def splits(self) -> Mapping[str, Sequence[Task]]:
        return self._tasks

    def sizes(self) -> Mapping[str, int]:
        return embedded_sizes(EMBEDDED, self.limit) if self._as_shipped else super().sizes()

    @property
    def _as_shipped(self) -> bool:
        """Whether the splits are those of the embedded files."""
        return self._source == EMBEDDED and self.as_read

    def fingerprint(self, split: str) -> str:
        embedded = embedded_content(EMBEDDED, split) if self._as_shipped else None
        if embedded is None:
            return content_hash([self.role, *(content(task.inputs.row) for task in self.splits()[split])])
        return content_hash([embedded, self.role, checksum(ERRORS), self.limit, self.seed if self.limit else 0])

    def left_out(self) -> Mapping[str, str]:
        return self._read.left_out

    def other_data(self, verifier: str) -> str:
        fractions = {"test_fraction": 0.0, "dev_fraction": 0.0}
        code = programs_at(Path(self.path), verifier, **fractions, seed=self.seed) if self.path else None
        if code and all(reason.startswith(WEAK) for reason in code.left_out().values()):
            return "data=code, which reads these rows for this verifier"
        return ""

    def no_training(self) -> str:
        return self._read.no_training if self.path else ""

    def gold_place(self, task: Task, by_tests: bool) -> str:
        row = task.inputs.row
        key = "good_tests" if self.role == TESTER else "tests" if by_tests else "solution"
        return f"{row.where}, {key}" if row.where else key

    def contents(self, task: Task) -> Sequence[str]:
        """The text, and the solution but for embedded tasks: no two of these have one text or one solution."""
        return [text_key(task.inputs.row.text)] if self._as_shipped else keys_of(task.inputs.row)

    @property
    def splits_apart(self) -> bool:
        return self._as_shipped

    def at_stage(self, task: Task, stage: str, chain: Mapping[str, str]) -> Task:
        return replace(task, inputs=replace(task.inputs, stage=stage, chain=dict(chain)))

    def is_code(self, stage: str) -> bool:
        return stage in self.reasoning and self.reasoning[stage].form == "code"

    def output(self, completion: str, task: Task) -> str:
        if self.is_code(task.inputs.stage):
            return whole_program(completion, task.inputs.row.entry_point).text or ""
        return without_thoughts(completion).strip("\n")

    @cached_property
    def tester(self) -> "Problems":
        return replace(self, role=TESTER)

    def testing(
        self, task: Task, attempt: str, programs: Sequence[str], earlier: Mapping[str, str] | None = None
    ) -> Task:
        row = task.inputs.row
        wanted = CallsProblem(row.entry_point, row.solution, tuple(programs), known=known_calls(row), **tolerances(row))
        inputs = StageInputs(row, TESTS, {self.stages[-1]: attempt, **(earlier or {})})
        return replace(task, inputs=inputs, problem=wanted, gold=good_tests(row), negatives=())

    def together(self, task: Task, texts: Sequence[str]) -> Task:
        return replace(task, problem=replace(task.problem, together=tuple(texts)))

    def holding(self, task: Task, program: str) -> Task:
        return replace(task, problem=CallsProblem(task.inputs.row.entry_point, program), negatives=())

    def hides(self, task: Task, case: int | None) -> bool:
        """Cases that the prompt does not show."""
        if case is None:
            return True
        row = task.inputs.row
        return not isinstance(row.tests, PythonProblem) or row.tests.cases[case] not in row.shown

    def names(self, task: Task) -> Sequence[str]:
        return names_of(task.inputs.row)

    def critique(self, task: Task, stage: str, output: str) -> Task:
        return self._critique(task, stage, output, "")

    def approves(self, critique: str) -> bool | None:
        return approves(critique)

    def tests_in(self, text: str, task: Task) -> Sequence[str]:
        name = task.inputs.row.entry_point
        return [line_of(name, case) for case in read_tests(text, name).cases]

    def repeated_tests(self, text: str, task: Task) -> Sequence[str]:
        return read_tests(text, task.inputs.row.entry_point).repeated

    def shown_task(self, task: Task) -> ShownTask:
        """The calls of the prompt, judged as the hidden calls are."""
        row = task.inputs.row
        return ShownTask(PythonProblem(row.entry_point, row.shown, **tolerances(row)), len(row.shown))

    def shown_tests(self, task: Task) -> Sequence[str]:
        return [call_text(task.inputs.row.entry_point, case) for case in task.inputs.row.shown]

    def failure_feedback(self, program: str, failed: Sequence[str]) -> Mapping[str, str]:
        return {LAST_CODE: program.strip("\n"), **({FAILED: "\n".join(failed)} if failed else {})}

    def tests_feedback(self, text: str, faults: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        named = {name: "\n".join(lines) for name, lines in faults.items() if lines}
        return {LAST_TESTS: without_thoughts(text).strip("\n"), **named}

    def demonstrations(self, task: Task) -> Sequence[Task]:
        """A solver's: the problem at each stage whose output is known, after the good outputs of those before it. A tester's: the
        tests, and critiques of an output that fits and of one that does not."""
        known = self._outputs(task.inputs.row)
        if self.role == SOLVER:
            return [self.at_stage(task, stage, known) for stage in self.stages if stage in known]
        return [task, *self._critiques(task, known)]

    def task_prompt(self, task: Task) -> str:
        inputs = task.inputs
        if self.role == TESTER:
            return write_tester(inputs.row, inputs.stage, self.reasoning, inputs.chain, self.prompt.style)
        return after_examples(self._worded(task), self._examples(task), self.prompt.style == "instruct")

    def _worded(self, task: Task) -> str:
        inputs = task.inputs
        seen = (*self.shown_to(inputs.stage), LAST_CODE, FAILED)
        shown = {name: inputs.chain[name] for name in seen if name in inputs.chain}
        return write(inputs.row, inputs.stage, self.reasoning[inputs.stage], shown, self.prompt.style)

    def _examples(self, task: Task) -> list[tuple[str, str]]:
        """Other problems at the task's stage, each with a good output, after good outputs of the stages that the task has one
        of."""
        if not self.prompt.shots:
            return []
        stage = task.inputs.stage
        shots = chosen_shots(self._solved.get(stage, ()), task, self.prompt.shots, self.seed, self._alike)
        known = [(shot, self._outputs(shot.inputs.row)) for shot in shots]
        solved = [
            self.at_stage(shot, stage, {name: text for name, text in outputs.items() if name in task.inputs.chain})
            for shot, outputs in known
        ]
        return [(self._worded(shot), self.gold_completion(shot) or "") for shot in solved]

    @cached_property
    def _alike(self) -> Alike:
        return Alike(lambda task: keys_of(task.inputs.row))

    @cached_property
    def _solved(self) -> Mapping[str, list[Task]]:
        """By stage, the train problems that have a good output of it, each once."""
        train = {task.id: task for task in self._tasks.get("train", ())}.values()
        known = [(task, self._outputs(task.inputs.row)) for task in train]
        return {stage: [task for task, outputs in known if stage in outputs] for stage in self.stages}

    def parse(self, completion: str, task: Task) -> Candidate:
        if self.is_code(task.inputs.stage):
            return whole_program(completion, task.inputs.row.entry_point)
        text = self.output(completion, task)
        return Candidate(text) if text.strip() else Candidate(None, "an empty output")

    def gold_completion(self, task: Task) -> str | None:
        if self.role == TESTER:
            return task.inputs.critique or good_tests(task.inputs.row)
        text = self._outputs(task.inputs.row).get(task.inputs.stage)
        if text is None or self.prompt.style == "bare" or not self.is_code(task.inputs.stage):
            return text
        return fenced(text, "python")

    def is_complete(self, text: str) -> bool:
        """In words: with the fence that closes a block with the function of some task; another block may be a helper."""
        return bool(self.stop_text) and block_closes(text, lambda block: defines(block, self._names or ("",)))

    def _critiques(self, task: Task, known: Mapping[str, str]) -> list[Task]:
        """Of the output of one stage and, where the family has another problem, of that one's at a stage; by the row's id."""
        row = task.inputs.row
        stage = _drawn(list(known), "fits", row)
        found = [self._critique(task, stage, known[stage], FITS)]
        other = sibling(row, self._families[row.split, row.family])
        if other is None:
            return found
        texts = {name: in_names_of(row, other, text) for name, text in self._outputs(other).items()}
        if unlike := [name for name in known if name in texts and texts[name] != known[name]]:
            stage = _drawn(unlike, "misses", row)
            found.append(self._critique(task, stage, texts[stage], MISSES + missed(row, other)))
        return found

    def _critique(self, task: Task, stage: str, text: str, gold: str) -> Task:
        asked = replace(task.inputs, stage=f"{stage}?", chain={stage: text}, critique=gold)
        return replace(task, inputs=asked)

    @cached_property
    def _families(self) -> Mapping[tuple[str, str], list[ProblemRow]]:
        """The rows of each family of a split."""
        found: dict[tuple[str, str], list[ProblemRow]] = {}
        for tasks in self._tasks.values():
            for task in tasks:
                row = task.inputs.row
                found.setdefault((row.split, row.family), []).append(row)
        return found

    def _outputs(self, row: ProblemRow) -> dict[str, str]:
        """The good output of each stage, as far as they are known."""
        known = {**row.stages, self.stages[-1]: row.solution.strip("\n")}
        return {stage: known[stage] for stage in self.stages if stage in known}

    @cached_property
    def _tasks(self) -> dict[str, tuple[Task, ...]]:
        placed = self.of_families(self._read.placed)
        found = self.in_folds({name: list(map(self.task, self._limited(name, rows))) for name, rows in placed.items()})

        def in_split(task: Task, name: str) -> Task:
            """With the split, which a fold may change, in its row: no task is critiqued by a row of another split."""
            row = task.inputs.row
            return (
                task if row.split == name else replace(task, inputs=replace(task.inputs, row=replace(row, split=name)))
            )

        return {name: tuple(in_split(task, name) for task in tasks) for name, tasks in found.items()}

    @cached_property
    def _read(self) -> Source:
        return read(self._source, (self.test_fraction, self.dev_fraction), self.seed, self.held_out)

    def _limited(self, name: str, rows: Sequence[ProblemRow]) -> Sequence[ProblemRow]:
        if not self.limit:
            return rows
        return sorted(rows, key=lambda row: uniform(self.seed, "limit", name, row.id))[: self.limit]

    def task(self, row: ProblemRow) -> Task:
        """A row as a task of the role. A tester is shown a wrong program of the data, else the reference or a mutant of it, by the
        row's id."""
        self._names.add(row.entry_point.partition(".")[0])
        code = self.stages[-1]
        if self.role == TESTER:
            wanted = CallsProblem(row.entry_point, row.solution, row.wrong, known=known_calls(row), **tolerances(row))
            attempt = row.wrong[0] if row.wrong else row.solution
            if not row.wrong and uniform("attempt", row.id) < 0.5 and (mutants := chosen(row.solution, 1, row.id)):
                attempt = mutants[0].code
            inputs = StageInputs(row, TESTS, {code: attempt.strip("\n")})
            return Task(row.id, row.family, row.difficulty, inputs, wanted, good_tests(row))
        inputs = StageInputs(row, code)
        return Task(row.id, row.family, row.difficulty, inputs, row.tests, row.solution, row.wrong)


def _drawn(names: Sequence[str], purpose: str, row: ProblemRow) -> str:
    return names[int(uniform(purpose, row.id) * len(names))]


def of_tiny_solver() -> tuple[Problems, str]:
    """The tasks that the embedded model `tiny_solver` imitates, and how its tokenizer splits text."""
    return build(compose(["+stage=sft", "data=problems"]).config.data), "code"


def of_tiny_tester() -> tuple[Problems, str]:
    """Likewise of `tiny_tester`."""
    return replace(of_tiny_solver()[0], role=TESTER), "code"


def write(row: ProblemRow, stage: str, options: ReasoningStage, chain: Mapping[str, str], style: str) -> str:
    """The prompt of a solver's stage. `chain`: the earlier outputs that it is shown, by stage."""
    if style == "bare":
        return _bare(row, stage, chain)
    answer = "Answer with one Python code block." if options.form == "code" else "Answer with nothing else."
    purpose = f"Next is the {stage}: {options.purpose.strip()}. " if options.purpose else ""
    return f"{_in_words(row, chain)}{purpose}{options.solver.strip()} {answer}\n"


def write_tester(
    row: ProblemRow, stage: str, stages: Mapping[str, ReasoningStage], about: Mapping[str, str], style: str
) -> str:
    """The prompt for a critique of an output, or for tests. `about`: the output, by its stage."""
    if style == "bare":
        return _bare(row, stage, about)
    asked = TESTS_IN_WORDS if stage == TESTS else " ".join(stages[name].tester.strip() for name in about)
    return f"{_in_words(row, about)}{asked} Answer with nothing else.\n"


def _bare(row: ProblemRow, stage: str, chain: Mapping[str, str]) -> str:
    earlier = [line for name, text in chain.items() for line in (f"[{name}]", text.strip("\n"))]
    calls = [call_text(row.entry_point, case) for case in row.shown]
    return "\n".join([row.text.strip("\n"), *calls, *earlier, f"[{stage}]", ""])


def _in_words(row: ProblemRow, chain: Mapping[str, str]) -> str:
    calls = "\n".join(call_text(row.entry_point, case) for case in row.shown)
    shown = f"Examples:\n\n{fenced(calls, 'python')}\n\n" if calls else ""
    earlier = "".join(f"## {name}\n\n{text.strip(chr(10))}\n\n" for name, text in chain.items())
    return f"{row.text.strip(chr(10))}\n\nThe function is `{row.entry_point}`.\n\n{shown}{earlier}"


def good_tests(row: ProblemRow) -> str | None:
    """The tests that a good tester writes, a line each; None if none are known."""
    return "\n".join(call_text(row.entry_point, case) for case in row.good_tests) or None


def tolerances(row: ProblemRow) -> dict[str, Any]:
    """Those of the hidden calls; none of a pytest file."""
    return {name: getattr(row.tests, name) for name in ("atol", "rtol") if hasattr(row.tests, name)}


def known_calls(row: ProblemRow) -> tuple[tuple[Any, ...], ...]:
    """The arguments of all calls of a problem, hidden ones too."""
    of_tests = row.tests.cases if isinstance(row.tests, PythonProblem) else ()
    cases = (case for case in (*of_tests, *row.shown, *row.good_tests) if isinstance(case, Case))
    file = row.tests.tests if isinstance(row.tests, PytestProblem) else ""
    return (*(case.args for case in cases), *literal_calls(file, row.entry_point))


def approves(text: str) -> bool | None:
    """Whether a critique says that the output fits, by its first word; None: it says neither.

    Case, punctuation and Markdown do not count, nor do thoughts before it and a fence around it.
    """
    said = without_thoughts(text)
    blocks = fenced_blocks(said)
    first = min(blocks, key=lambda block: block.start, default=None)
    if first and not any(line.strip() for line in said.split("\n")[: first.start - 1]):
        said = first.text
    word = _FIRST_WORD.match(said)
    return {"ok": True, "wrong": False}.get(word[1].lower()) if word else None


def sibling(row: ProblemRow, family: Sequence[ProblemRow]) -> ProblemRow | None:
    """Another problem of the family with other words: the first from a place that the row's id draws; None: there is none."""
    first = int(uniform("sibling", row.id) * len(family))
    turned = chain(family[first:], family[:first])
    return next((one for one in turned if one.id != row.id and missed(row, one)), None)


def missed(row: ProblemRow, other: ProblemRow) -> str:
    """The words of a problem that another of its family, in the same names, does not have, with the word after them."""
    own, its = row.text.split(), in_names_of(row, other, other.text).split()
    parts = SequenceMatcher(None, own, its, autojunk=False).get_opcodes()
    changed = [(first, last) for kind, first, last, _, _ in parts if kind != "equal"]
    return " ".join(own[changed[0][0] : changed[-1][1] + 1]).rstrip(".,") if changed else ""


def in_names_of(row: ProblemRow, other: ProblemRow, text: str) -> str:
    """A text about another problem with this one's names of the function and its arguments."""
    names: Mapping[str, str] = dict(zip(names_of(other), names_of(row), strict=False))
    if not names:
        return text
    return re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda match: names[match[1]], text)


def names_of(row: ProblemRow) -> list[str]:
    """The function and its arguments."""
    functions = [node for node in tree(row.solution).body if isinstance(node, ast.FunctionDef)]
    found = next((node for node in functions if node.name == row.entry_point), None)
    return [] if found is None else [found.name, *(one.arg for one in found.args.args)]
