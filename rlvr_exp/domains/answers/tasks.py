"""Questions of arithmetic and strings whose answer needs execution: the task set of environment=tools.

A question is answered by its bare answer, and by nothing else: a program is no answer. So a policy without a tool has to work the
answer out by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.answers import options
from rlvr_exp.tasks.base import Candidate, Domain, Task
from rlvr_exp.tasks.completion import without_thoughts
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.tools import PYTHON

SIZES = {"train": 16000, "dev": 200, "test": 400}
LONGEST = 200
"""Characters of an answer."""
ENTRY_POINT = "answer"


def _product(rng: Random) -> tuple[str, str]:
    a, b = rng.randrange(100, 1000), rng.randrange(100, 1000)
    return f"{a} * {b} = ?", f"{a} * {b}"


def _remainder(rng: Random) -> tuple[str, str]:
    a, b, c = rng.randrange(11, 100), rng.randrange(11, 100), rng.randrange(100, 1000)
    return f"{a} ** {b} % {c} = ?", f"{a} ** {b} % {c}"


def _letters(rng: Random) -> str:
    return "".join(rng.choices("abcdefgh", k=rng.randrange(10, 17)))


def _sorted(rng: Random) -> tuple[str, str]:
    text = _letters(rng)
    return f"{text} sorted = ?", f"''.join(sorted('{text}'))"


def _backwards(rng: Random) -> tuple[str, str]:
    text = _letters(rng)
    return f"{text} backwards = ?", f"'{text}'[::-1]"


FAMILIES: Mapping[str, Callable[[Random], tuple[str, str]]] = {
    "product": _product,
    "remainder": _remainder,
    "sorted": _sorted,
    "backwards": _backwards,
}
"""By family: a question, and the expression whose value answers it."""


class Answers(Domain, options.Answers):
    """Raises InputError: `path` is set, as the questions are generated."""

    name = "answers"
    tools = (PYTHON,)

    def splits(self) -> Mapping[str, Sequence[Task]]:
        if self.path:
            raise InputError(
                InputProblem("data.path", "the questions are generated", self.path, "empty", "", "drop it")
            )
        return self.in_folds(self.of_families(self._all))

    @cached_property
    def _all(self) -> dict[str, list[Task]]:
        rng, seen, found = Random("answers"), set[str](), dict[str, list[Task]]()
        for split, size in SIZES.items():
            found[split] = []
            while len(found[split]) < size:
                family = list(FAMILIES)[len(found[split]) % len(FAMILIES)]
                question, expression = FAMILIES[family](rng)
                if question not in seen:
                    seen.add(question)
                    found[split].append(_task(f"{split}-{len(found[split]):05d}", family, question, expression))
        return {split: tasks[: self.limit or None] for split, tasks in found.items()}

    def task_prompt(self, task: Task) -> str:
        return f"{task.inputs[0]}\n"

    def gold_turns(self, task: Task) -> Sequence[tuple[str, str]]:
        if Random(task.id).random() >= self.called:
            return ()
        assert task.gold is not None
        return ((PYTHON.call(f"print({task.inputs[1]})"), task.gold),)

    def parse(self, completion: str, task: Task) -> Candidate:
        text = without_thoughts(completion).strip()
        if not text or len(text) > LONGEST:
            return Candidate(None, "no answer" if not text else f"an answer of more than {LONGEST} characters")
        return Candidate(f"def {ENTRY_POINT}():\n    return {text!r}")


def _task(id: str, family: str, question: str, expression: str) -> Task:
    value = str(eval(expression, {"__builtins__": {"sorted": sorted}}))  # Of our own making.
    return Task(id, family, 0.0, (question, expression), PythonProblem(ENTRY_POINT, (Case((), value),)), gold=value)
