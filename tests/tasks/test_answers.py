"""Shapes of answers, as instruct models write them, in every domain that reads such answers."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from dafny_samples import MAX

from rlvr_exp.config.edits import EditPrompt
from rlvr_exp.tasks.arc.parse_program import extract
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.completion import OPENING, whole_program
from rlvr_exp.tasks.dafny.parse_body import body_of
from rlvr_exp.tasks.edits.prompt import answer_in
from rlvr_exp.tasks.formats.dafny import DafnyProblem
from rlvr_exp.tasks.formats.domain import RowDomain
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.problems.calls import line_of, read_tests
from rlvr_exp.verifiers.suite.sanitise import sanitise_tests

PROGRAM, DRAFT = "def solve(x):\n    return 2 * x\n", "def solve(x):\n    return not x\n"
BODY, BODY_DRAFT = "{\n  m := if a > b then a else b;\n}\n", "{\n  m := a;\n}\n"
ACTION, ACTION_DRAFT = '{"pattern": "f()", "rewrite": "g()"}\n', '{"pattern": "f()", "rewrite": "h()"}\n'
SUITE, SUITE_DRAFT = (
    f"from solution import solve\n\n\ndef test_{name}():\n    assert solve(1) == 2\n" for name in "ab"
)
TESTS, TESTS_DRAFT = "solve(1) == 2\nsolve(2) == 4\n", "solve(1) == 3\n"


def program(text: str) -> str | None:
    return whole_program(text, "solve").text


def row_program(text: str) -> str | None:
    return RowDomain("python_io").parse(text, Task("a", "", 0.0, "", PythonProblem("solve", (Case((1,), 2),)))).text


def dafny_row(text: str) -> str | None:
    return RowDomain("dafny").parse(text, Task("a", "", 0.0, "", DafnyProblem(""))).text


def edited(text: str) -> str | None:
    return answer_in(text, "text", EditPrompt("instruct"), "f()\n", "python").text


def action(text: str) -> str | None:
    return answer_in(text, "action", EditPrompt("instruct"), "f()\n").text


def tagged(text: str) -> str | None:
    return answer_in(text, "action", EditPrompt("instruct", "tags"), "f()\n").text


def suite(text: str) -> str | None:
    return sanitise_tests(text).text or None


def written_tests(text: str) -> str | None:
    found = read_tests(text, "solve")
    return "\n".join(line_of("solve", case) for case in found.cases) if found.cases and not found.faulty else None


@dataclass(frozen=True)
class Answers:
    """How a domain reads an answer, a right answer, and a wrong one."""

    read: Callable[[str], str | None]
    right: str
    wrong: str


PYTHON = {"code": Answers(program, PROGRAM, DRAFT), "rows": Answers(row_program, PROGRAM, DRAFT)}
PYTHON["arc"] = Answers(lambda text: extract(text, "solve").text, PROGRAM, DRAFT)
WITH_BLOCKS = {
    **PYTHON,
    "dafny body": Answers(lambda text: body_of(text, MAX).text, BODY, BODY_DRAFT),
    "dafny rows": Answers(dafny_row, f"method M() {BODY}", f"method M() {BODY_DRAFT}"),
    "edited text": Answers(edited, PROGRAM, DRAFT),
    "edit action": Answers(action, ACTION, ACTION_DRAFT),
    "suite": Answers(suite, SUITE, SUITE_DRAFT),
    "tests": Answers(written_tests, TESTS, TESTS_DRAFT),
}
ALL = {
    **WITH_BLOCKS,
    "edit tags": Answers(tagged, f"<action>\n{ACTION}</action>\n", f"<action>\n{ACTION_DRAFT}</action>\n"),
}

# R: the right answer, D: a draft. Each ends with a line end.
UNFENCED = {
    "alone": "R",
    "blank lines around": "\n\nR\n\n",
    "R1": "<think>\nWe could write D.\n</think>\n\nR",
    "R1 with a fenced draft": "<think>\nFirst\n```python\nD```\nNo.\n</think>\nR",
    "R1 in one line": "<think>It is twice x.</think>\nR",
    "R1 without a line end": "<think>\nTwice x.\n</think>R",
    "Qwen3 without thoughts": "<think>\n\n</think>\n\nR",
    "thoughts of the template": "Twice x.\n\nD\n</think>\n\nR",
    "thoughts of the template, fenced draft": "Twice x.\n```python\nD```\nHm.\n</think>\n\nR",
    "thoughts of the template, open draft": "Twice x.\n```python\nD\n</think>\n\nR",
    "thoughts of the template in one line": "Twice x.</think>\nR",
    "thoughts with the opening of the reader": f"{OPENING}Twice x. D</think>\nR",
    "two thoughts": "<think>\nD</think>\n<think>\nD</think>\nR",
    "thoughts in thoughts": "<think>\nD<think>\nD</think>\nD</think>\nR",
    "thoughts about the tag": '<think>\nI close with "</think>" later.\nD\n</think>\nR',
    "thoughts after the answer": "R\n<think>\nIs D better?\n</think>\n",
    "open thoughts after the answer": "R\n<think>\nIs D better?\n",
    "indented tags": " <think>\nD </think>\nR",
    "byte-order mark": "\ufeffR",
}
FENCED = {
    "python": "```python\nR```",
    "Python": "```Python\nR```\n",
    "py": "```py\nR```\n",
    "python3": "```python3\nR```\n",
    "no language": "```\nR```\n",
    "another language": "```c++\nR```\n",
    "title": '```python title="solution.py"\nR```\n',
    "braces": "```{.python}\nR```\n",
    "tildes": "~~~\nR~~~\n",
    "tildes with a language": "~~~python\nR~~~\n",
    "four backticks": "````python\nR````\n",
    "longer closing fence": "```python\nR`````\n",
    "blanks after fences": "```python  \nR```  \n",
    "never closed": "```python\nR",
    "never closed, no language": "Here it is:\n```\nR",
    "blank lines inside": "```python\n\nR\n```\n",
    "Llama": "Here is the answer:\n\n```python\nR```\n\nThis answer doubles `x`, as it should.",
    "SmolLM2": "Here's the answer you asked for:\n\n```\nR```\n\nYou can use it like this.",
    "Phi": "### Answer\n\n```python\nR```\n\n**Explanation**: it is twice.",
    "a sentence before the fence": "The answer is: ```python\nR```\nDone.",
    "in a list": "1. The answer:\n\n   ```python\nI```\n\n2. Done.",
    "on the line of a list": "1. ```python\nI   ```\n",
    "in Markdown": "```markdown\n# Answer\n\n```python\nR```\n```\n",
    "in longer Markdown": "````markdown\n# Answer\n\n```python\nR```\n````\n",
    "a command before": "```bash\npip install solution\n```\n\n```python\nR```\n",
    "a command after": "```python\nR```\nRun it:\n```bash\nrun solution now please\n```\n",
    "an output after": "```python\nR```\nOutput:\n```text\n4 and so on\n```\n",
    "a text never closed before": "```text\nnever closed\n```python\nR```\n",
    "R1": "<think>\nHm, D?\n</think>\n\n```python\nR```",
    "R1 with a fenced draft": "<think>\nHm:\n```python\nD```\n</think>\n\n**Answer**\n\n```python\nR```\nDone.",
    "R1 with a draft never closed": "<think>\nHm:\n```python\nD</think>\n\n```python\nR```",
    "thoughts that end before the fence": "<think>Hm.</think>```python\nR```",
    "thoughts of the template": "Hm:\n```python\nD```\n</think>\n\n```python\nR```",
    "thoughts of the template, draft never closed": "Hm:\n```python\nD\n</think>\n```python\nR```",
    "thoughts after a sentence": "Sure! <think>\n```\nD```\n</think>\n```python\nR```",
    "thoughts after the block": "```python\nR```\n<think>\nOr\n```python\nD```\n</think>\n",
    "open thoughts after the block": "```python\nR```\n<think>\nOr\n```python\nD```\n",
    "Windows": "Here:\r\n```python\r\nR```\r\n",
}
NO_ANSWER = {
    "R1 gives up": "<think>\n```python\nD```\n</think>\n",
    "thoughts never closed": "<think>\n```python\nD```\n",
    "thoughts never closed, unfenced": "<think>\nD",
    "thoughts of the template give up": "```python\nD```\n</think>\n",
    "thoughts of the template never closed": f"{OPENING}Hm.\n```python\nD```\n",
    "thoughts after thoughts": "<think>\nD</think>\n<think>\nD</think>",
    "nothing": "",
    "blanks": " \n\t\n",
}
PYTHON_SHAPES = {
    "closing fence alone": "R```\n",
    "closing fence and words": "R```\n\nThis function doubles its argument.",
    "closing fence with words": "R``` This function doubles its argument.",
    "closing fence, fenced example": "R```\n\nExample:\n```python\nprint(solve(3))\n```\n",
    "closing fence, output": "R```\n\nOutput:\n```\n4\n```\n",
    "closing tildes": "R~~~\n",
    "words around": "Sure, here it is:\n\nR\nHope this helps!",
    "words around after thoughts": "<think>\nD</think>\nSure:\n\nR\nHope this helps!",
    "CodeLlama": "[PYTHON]\nR[/PYTHON]\n",
    "the language alone": "python\nR",
    "an example after": "```python\nR```\nUse it:\n```python\nprint(solve(2))\n```\n",
    "an output after": "```python\nR```\nIt prints:\n```\n4\n```\n",
    "fence at the end of the code": "```python\ndef solve(x):\n    return 2 * x```\nDone.",
    "words in the block": "```python\nR\nThis doubles its argument.\n```\n",
    "unfenced after a fenced example": "```\n4 8\n```\nR",
}


def filled(shape: str, answers: Answers) -> str:
    """The text of a shape, with the line ends of the shape."""
    parts = {"R": answers.right, "D": answers.wrong, "I": textwrap.indent(answers.right, "   ")}
    text = "".join(parts[one] if alone else one for one, alone in marked(shape))
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in shape else text


def marked(shape: str) -> list[tuple[str, bool]]:
    """Each character, and whether it stands for a text: a capital that no letter is beside."""
    padded = f" {shape} "
    return [
        (
            one,
            one in "RDI"
            and not padded[place].isalpha()
            and not (padded[place + 2].isalnum() or padded[place + 2] == "'"),
        )
        for place, one in enumerate(shape)
    ]


DRAFTED, DRAFTED_SHAPE = "a draft before", "```python\nD```\nThat is wrong. Better:\n```python\nR```\n"
"""Of tests all blocks count."""
CASES = [
    *((shape, name) for shape in UNFENCED.items() for name in ALL),
    *((shape, name) for shape in FENCED.items() for name in WITH_BLOCKS),
    *(((DRAFTED, DRAFTED_SHAPE), name) for name in WITH_BLOCKS if name not in ("suite", "tests")),
    *((shape, name) for shape in PYTHON_SHAPES.items() for name in PYTHON),
]


def test_the_table_has_eighty_shapes() -> None:
    assert len({*UNFENCED.values(), *FENCED.values(), *NO_ANSWER.values(), *PYTHON_SHAPES.values()}) >= 80


@pytest.mark.parametrize(("shape", "name"), CASES, ids=[f"{name}: {shape[0]}" for shape, name in CASES])
def test_the_right_answer_is_read(shape: tuple[str, str], name: str) -> None:
    answers = ALL[name]
    wanted = ACTION if name == "edit tags" else answers.right
    assert (answers.read(filled(shape[1], answers)) or "").strip() == wanted.strip()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", NO_ANSWER.values(), ids=NO_ANSWER)
def test_thoughts_alone_are_no_answer(shape: str, name: str) -> None:
    assert not (ALL[name].read(filled(shape, ALL[name])) or "").strip()
