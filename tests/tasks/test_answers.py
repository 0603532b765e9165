"""Shapes of answers, as instruct models write them, in every domain that reads such answers."""

import json
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from code_samples import write_set
from dafny_samples import MAX
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.options import DafnyPrompt
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.prompt import body_of
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.options import EditPrompt
from rlvr_exp.domains.edits.tasks import answer_in
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.tasks import Problems, approves
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.calls import line_of, read_tests
from rlvr_exp.tasks.completion import block_closes, defines, extract, whole_program, without_thoughts
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.formats.rows import RowDomain
from rlvr_exp.tasks.python_syntax import syntax_fault
from rlvr_exp.verifiers.suite.sanitise import sanitise_tests

PROGRAM, DRAFT = "def solve(x):\n    return 2 * x\n", "def solve(x):\n    return not x\n"
BODY, BODY_DRAFT = "{\n  m := if a > b then a else b;\n}\n", "{\n  m := a;\n}\n"
ACTION, ACTION_DRAFT = '{"pattern": "f()", "rewrite": "g()"}\n', '{"pattern": "f()", "rewrite": "h()"}\n'
SUITE, SUITE_DRAFT = (
    f"from solution import solve\n\n\ndef test_{name}():\n    assert solve(1) == 2\n" for name in "ab"
)
TESTS, TESTS_DRAFT = "solve(1) == 2\nsolve(2) == 4\n", "solve(1) == 3\n"
LINE, BODY_LINE = "def solve(x): return 2 * x", "{ m := if a > b then a else b; }"
SUITE_LINE, TESTS_LINE = "def test_a(): assert 2 == 2", "solve(1) == 2"


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
    return answer_in(text, "action", EditPrompt("instruct", answer="tags"), "f()\n").text


def suite(text: str) -> str | None:
    return sanitise_tests(text).text or None


def written_tests(text: str) -> str | None:
    found = read_tests(text, "solve")
    return "\n".join(line_of("solve", case) for case in found.cases) if found.cases and not found.faulty else None


@dataclass(frozen=True)
class Answers:
    """How a domain reads an answer, a right answer, a wrong one, and the right one in one line."""

    read: Callable[[str], str | None]
    right: str
    wrong: str
    in_one_line: str


PYTHON = {"code": Answers(program, PROGRAM, DRAFT, LINE), "rows": Answers(row_program, PROGRAM, DRAFT, LINE)}
PYTHON["arc"] = Answers(lambda text: extract(text, "solve").text, PROGRAM, DRAFT, LINE)
WITH_BLOCKS = {
    **PYTHON,
    "dafny body": Answers(lambda text: body_of(text, MAX).text, BODY, BODY_DRAFT, BODY_LINE),
    "dafny rows": Answers(dafny_row, f"method M() {BODY}", f"method M() {BODY_DRAFT}", f"method M() {BODY_LINE}"),
    "edited text": Answers(edited, PROGRAM, DRAFT, LINE),
    "edit action": Answers(action, ACTION, ACTION_DRAFT, ACTION.strip()),
    "suite": Answers(suite, SUITE, SUITE_DRAFT, SUITE_LINE),
    "tests": Answers(written_tests, TESTS, TESTS_DRAFT, TESTS_LINE),
}
ALL = {
    **WITH_BLOCKS,
    "edit tags": Answers(tagged, f"<action>\n{ACTION}</action>\n", f"<action>\n{ACTION_DRAFT}</action>\n", ""),
}

# R: the right answer, D: a draft; I: R indented, Q: R in a block quote, N: in two, O: R in one line. All but O end with a line end.
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
    "thoughts with the opening of the reader": "<think>\nTwice x. D</think>\nR",
    "two thoughts": "<think>\nD</think>\n<think>\nD</think>\nR",
    "thoughts in thoughts": "<think>\nD<think>\nD</think>\nD</think>\nR",
    "thoughts about the tag": '<think>\nI close with "</think>" later.\nD\n</think>\nR',
    "thoughts after the answer": "R\n<think>\nIs D better?\n</think>\n",
    "open thoughts after the answer": "R\n<think>\nIs D better?\n",
    "indented tags": " <think>\nD </think>\nR",
    "byte-order mark": "\ufeffR",
    "R1-Zero": "<think>\nD</think>\n<answer>\nR</answer>\n",
    "R1-Zero, cut off": "<think>\nD</think>\n<answer>\nR",
    "Sky-T1": "<|begin_of_thought|>\nD\n<|end_of_thought|>\n\n<|begin_of_solution|>\nR<|end_of_solution|>",
    "Command A": "<|START_THINKING|>D<|END_THINKING|><|START_RESPONSE|>R<|END_RESPONSE|>",
    "gpt-oss": "<|channel|>analysis<|message|>D<|end|><|start|>assistant<|channel|>final<|message|>R<|return|>",
    "gpt-oss without thoughts": "<|channel|>final<|message|>R",
    "gpt-oss with a type": "<|channel|>analysis<|message|>D<|end|><|start|>assistant<|channel|>final <|constrain|>code<|message|>R",
    "gpt-oss with a commentary": "<|channel|>analysis<|message|>D<|end|>\n<|start|>assistant<|channel|>commentary to=f<|message|>D<|call|>\n<|channel|>final<|message|>R",
    "gpt-oss without a final channel": "<|channel|>analysis<|message|>D<|end|>\nR",
    "an end of a message after thoughts": "<think>\nD</think>\nR<|end|>\n",
    "thoughts of two kinds": "<thinking>\nD<reflection>\nD</reflection>\nD</thinking>\nR",
    "thoughts one after the other": "<thinking>\nD</thinking>\n<reflection>\nD</reflection>\nR",
    "thoughts closed by another tag": "<think>\nD</thinking>\nR",
    "a block quote": "Q",
    "a block quote in a block quote": "N",
    "thoughts in a block quote": "> <think>\n> Twice x.\n> </think>\n>\nQ",
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
    "R1-Zero": "<think>\nD</think>\n<answer>\n```python\nR```\n</answer>\n",
    "gpt-oss": "<|channel|>analysis<|message|>```\nD<|end|><|start|>assistant<|channel|>final<|message|>```python\nR```",
    "in a block quote": "> ```python\nQ> ```\n",
    "in a block quote after words": "Here it is:\n\n> ```python\nQ> ```\n\nThis doubles its argument.",
    "in a block quote with words": "> Here it is:\n>\n> ```python\nQ> ```\n>\n> This doubles its argument.",
    "in a block quote, never closed": "> ```python\nQ\nThis doubles its argument.",
    "in a block quote in a block quote": "> > ```python\nN> > ```\n",
    "in a block quote without blanks": ">```python\nQ>```\n",
    "in a block quote in Markdown": "```markdown\n> ```python\nQ> ```\n```\n",
    "in a block quote after thoughts": "> <think>\n> ```\n> D> </think>\n>\n> ```python\nQ> ```\n",
    "a quote before": "> Double the argument.\n\n```python\nR```\n",
}
"""A block of another language before or after the answer is a command or an output."""
IN_ONE_LINE = {
    "one line": "```python O```",
    "one line, no language": "```O```",
    "one line with blanks": "``` python O ```  \n",
    "one line after words": "Here it is: ```python O```\nIt doubles its argument.",
    "one line with a full stop": "The answer is: ```O```.",
    "one line in a list": "1. ```python O```\n2. Done.\n",
    "one line of tildes": "~~~python O~~~\n",
    "one line of four backticks": "````python O````\n",
    "one line in a block quote": "> ```python O```\n",
    "one line in Markdown": "```markdown\n```python O```\n```\n",
    "one line after thoughts": "<think>\n```python D```\n</think>\n```python O```",
    "one line after a command": "```bash pip install solution```\n\n```python O```\n",
    "one line before a command": "```python O```\n\nRun it:\n```bash\npip install solution\n```\n",
    "one line before an output": "```python O```\n\n```text 4 and so on```\n",
}
BESIDE_IN_ONE_LINE = {
    "a word in one line": "```python\nR```\nIt reads ```x``` and returns a number.",
    "a word in one line of its own": "```\nR```\nIt reads:\n```x```\n",
    "a word in one line before": "It reads ```x```:\n```python\nR```\n",
    "code from the fence on": "```python R```\n",
    "code from the fence on after words": "Here it is: ```python R```\n",
}
NO_ANSWER = {
    "R1 gives up": "<think>\n```python\nD```\n</think>\n",
    "thoughts never closed": "<think>\n```python\nD```\n",
    "thoughts never closed, unfenced": "<think>\nD",
    "thoughts of the template give up": "```python\nD```\n</think>\n",
    "thoughts of the template never closed": "<think>\nHm.\n```python\nD```\n",
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
    "the signature after": "```python\nR```\nIts signature:\n```python\ndef solve(x):\n    ...\n```\n",
    "words in the block": "```python\nR\nThis doubles its argument.\n```\n",
    "unfenced after a fenced example": "```\n4 8\n```\nR",
    "a block quote after words": "Sure:\n\nQ\nThis doubles its argument.",
    "code from the fence on, no language": "```R```\n",
    "a draft in one line": "```python def solve(x): return x```\nBetter:\n```python\nR```\n",
    "an unfenced draft before": "First:\n\nD\nThat is wrong. Better:\n\nR\nIt doubles its argument.",
    "indented": "I",
}


def filled(shape: str, answers: Answers) -> str:
    """The text of a shape, with the line ends of the shape."""
    parts = {"R": answers.right, "D": answers.wrong, "I": textwrap.indent(answers.right, "   ")}
    parts |= {one: textwrap.indent(answers.right, mark, bool) for one, mark in (("Q", "> "), ("N", "> > "))}
    parts["O"] = answers.in_one_line
    text = "".join(parts[one] if alone else one for one, alone in marked(shape))
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in shape else text


def marked(shape: str) -> list[tuple[str, bool]]:
    """Each character, and whether it stands for a text: a capital that no letter is beside."""
    padded = f" {shape} "
    return [
        (
            one,
            one in "RDIQNO"
            and not padded[place].isalpha()
            and not (padded[place + 2].isalnum() or padded[place + 2] == "'"),
        )
        for place, one in enumerate(shape)
    ]


DRAFTED = {"a draft before": "```python\nD```\nThat is wrong. Better:\n```python\nR```\n"}
"""Of tests all blocks count."""
TAGS = {
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<reflection>": "</reflection>",
    "<seed:think>": "</seed:think>",
    "<THINK>": "</THINK>",
    "[THINK]": "[/THINK]",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}


def with_tags(shapes: dict[str, str]) -> dict[str, str]:
    """Each shape, and each with thoughts with the tags of other models."""
    other = {
        f"{opening} {name}": shape.replace("<think>", opening).replace("</think>", TAGS[opening])
        for opening in TAGS
        for name, shape in shapes.items()
        if "think>" in shape and shape.count("<") == shape.count("think>")
    }
    return {**shapes, **other}


TABLE = [
    *((name, shape, tuple(ALL)) for name, shape in with_tags(UNFENCED).items()),
    *((name, shape, tuple(WITH_BLOCKS)) for name, shape in with_tags(FENCED).items()),
    *((name, shape, tuple(WITH_BLOCKS)) for name, shape in (IN_ONE_LINE | BESIDE_IN_ONE_LINE).items()),
    *((name, shape, tuple(PYTHON)) for name, shape in PYTHON_SHAPES.items()),
    *((name, shape, tuple({*WITH_BLOCKS} - {"suite", "tests"})) for name, shape in DRAFTED.items()),
]


def test_the_table_has_three_hundred_shapes() -> None:
    assert len({*(shape for _, shape, _ in TABLE), *with_tags(NO_ANSWER).values()}) >= 300


@pytest.mark.parametrize(("name", "shape", "domains"), TABLE, ids=[name for name, _, _ in TABLE])
def test_the_right_answer_is_read(name: str, shape: str, domains: tuple[str, ...]) -> None:
    read = {one: (ALL[one].read(filled(shape, ALL[one])) or "").strip() for one in domains}
    wanted = {one: ALL[one].in_one_line if name in IN_ONE_LINE else ALL[one].right for one in domains}
    assert read == {one: (ACTION if one == "edit tags" else text).strip() for one, text in wanted.items()}


@pytest.mark.parametrize("shape", with_tags(NO_ANSWER).values(), ids=with_tags(NO_ANSWER))
def test_thoughts_alone_are_no_answer(shape: str) -> None:
    read = {name: answers.read(filled(shape, answers)) for name, answers in ALL.items()}
    assert not {name: text for name, text in read.items() if (text or "").strip()}


def test_the_domains_of_programs_use_this_reader(tmp_path: Path) -> None:
    row = {"id": "a", "entry_point": "solve", "solution": PROGRAM, "split": "train"}
    code = row | {"prompt": "Double.", "tests": ["assert solve(3) == 6", "assert solve(4) == 8"]}
    problem = row | {"text": "Double.", "tests": [{"args": [3], "expected": 6}, {"args": [4], "expected": 8}]}
    domains = [Arc(limit=1)]
    for made, value in ((Code, code), (Problems, problem)):
        (tmp_path / f"{made.__name__}.jsonl").write_text(json.dumps(value) + "\n")
        domains.append(made(str(tmp_path / f"{made.__name__}.jsonl")))
    domains[-1].reasoning = {"code": ReasoningStage(form="code")}
    for domain in domains:
        task = next(task for tasks in domain.splits().values() for task in tasks)
        right, draft = (
            text.replace("solve", getattr(task.problem, "entry_point", "solve")) for text in (PROGRAM, DRAFT)
        )
        read = {
            f"<think>\n```python\n{right}```\n</think>\nI cannot solve this.": "",
            f"<think>\nA draft is\n{draft}</think>\n\n{right}": right,
            f"{right}```\n": right,
            f"```python\nimport math\n```\n```python\n{right.replace('2', 'math.e')}```": f"import math\n\n{right.replace('2', 'math.e')}",
        }
        assert {text: domain.parse(text, task).text or "" for text in read} == read


CODE_OF_ITS_OWN = {
    **{f"{tag} in strings": f'def solve(x):\n    return x.split("{tag}")[0] + "{TAGS[tag]}"\n' for tag in TAGS},
    **{f"{tag} in text": f'def solve(x):\n    return x + """\n{tag}\n{TAGS[tag]}\n"""\n' for tag in TAGS},
    "a list called like a tag": "THINK = 1\n\n\ndef solve(x):\n    return [THINK][x]\n",
    "quotes in text": 'def solve(x):\n    return x + """\n\n> words\n> words\n"""\n',
    "comparisons at the start of a line": "def solve(x):\n    return (x\n> 2)\n",
    "a fence in one line": 'def solve(x):\n    """Double:\n\n```solve(2)```\n    """\n    return 2 * x\n',
    "tags in a string": 'import re\n\n\ndef solve(x):\n    return re.sub(r"<think>.*?</think>", "", x)\n',
    "a closing tag in a string": 'def solve(x):\n    return x.split("</think>")[-1]\n',
    "tags in a docstring": 'def solve(x):\n    """Remove <think> and </think>.\n\n    <think>\n    </think>\n    """\n    return x\n',
    "tags at the start of a line": 'def solve(x):\n    return x + """\n<think>\n</think>\n"""\n',
    "fences in a docstring": 'def solve(x):\n    """Double.\n\n    ```python\n    solve(1)\n    ```\n    """\n    return 2 * x\n',
    "fences at the start of a line": 'def solve(x):\n    """\n```\nsolve(1)\n```\n    """\n    return 2 * x\n',
    "a fence in a string": 'def solve(x):\n    return f"```python\\n{x}\\n```"\n',
}


@pytest.mark.parametrize("code", CODE_OF_ITS_OWN.values(), ids=CODE_OF_ITS_OWN)
@pytest.mark.parametrize(
    "shape", ["R", "```python\nR```\n", "So:\n```\nR```\nDone.", "<think>\nHm.\n</think>\nR", "```python\nR"]
)
def test_a_program_may_hold_tags_and_fences(code: str, shape: str) -> None:
    assert program(shape.replace("R", code)) == code


@pytest.mark.parametrize(("style", "shape"), [("bare", "R"), ("instruct", "R"), ("instruct", "```markdown\nR```\n")])
def test_a_quote_in_an_edited_text_stays(style: str, shape: str) -> None:
    text = "# Title\n\n> A quote.\n> Its end.\n\nThe end.\n"
    assert answer_in(shape.replace("R", text), "text", EditPrompt(style), "a\n", "markdown").text == text
    assert answer_in("> A quote.\n", "text", EditPrompt("bare"), "a\n").text == "> A quote.\n"


NEEDED = {
    "an import": ("import math\n", "def solve(x):\n    return math.floor(x)\n", "import math\n\n"),
    "one import of two": ("import os\nimport math\n", "def solve(x):\n    return math.floor(x)\n", "import math\n\n"),
    "a helper with its import": (
        "import math\n\n\ndef half(x):\n    return math.floor(x / 2)\n\n\nprint(half(3))\n",
        "def solve(x):\n    return half(x)\n",
        "import math\ndef half(x):\n    return math.floor(x / 2)\n\n",
    ),
    "a constant": ("LIMIT = 9\n", "def solve(x):\n    return x % LIMIT\n", "LIMIT = 9\n\n"),
    "a draft and its helper": (
        "def half(x):\n    return x / 2\n\n\ndef solve(x):\n    return half(x)\n",
        "def solve(x):\n    return x // 2\n",
        "",
    ),
    "a test": ("def test_solve():\n    assert solve(1) == 2\n", "def solve(x):\n    return 2 * x\n", ""),
    "a call": ("x = solve(2)\nprint(x)\n", "def solve(x):\n    return 2 * x\n", ""),
    "an import of the future": (
        "from math import pi\n",
        "from __future__ import annotations\n\n\ndef solve(x):\n    return pi * x\n",
        None,
    ),
}


@pytest.mark.parametrize(("earlier", "main", "kept"), NEEDED.values(), ids=NEEDED)
def test_a_program_has_what_it_needs_of_earlier_blocks(earlier: str, main: str, kept: str | None) -> None:
    for name in ("solve", ""):
        found = whole_program(f"First:\n```python\n{earlier}```\nThen:\n```python\n{main}```\nDone.", name).text
        assert found is not None and syntax_fault(found) is None
        assert found == f"{kept}{main}" if kept is not None else "pi" in found.partition("def")[0]


def test_sampling_ends_with_a_block_that_the_reader_takes() -> None:
    helper, right = "```python\ndef half(x):\n    return x / 2\n```", f"```python\n{PROGRAM}```"

    def ends(text: str) -> bool:
        return block_closes(text, lambda block: defines(block, ["solve"]))

    assert ends(right) and ends(f"{helper}\n{right}") and ends(f"<think>\n{right}\n</think>\n{right}")
    assert (
        not ends(helper)
        and not ends(f"<think>\n{right}")
        and not ends(f"<think>\n{right}")
        and not ends(f"{PROGRAM}```")
    )
    assert not ends(f"````python\n{PROGRAM}```") and ends(f"````python\n{PROGRAM}````")


CRITIQUES = {
    True: [
        "ok",
        "OK",
        "Ok.",
        "ok, it fits",
        "**OK**",
        "`ok`",
        "- ok",
        "1. OK",
        "> ok",
        "OK: fits",
        "```\nok\n```",
        "# Ok",
    ],
    False: [
        "wrong: sign",
        "**wrong**: sign",
        "Wrong - sign",
        "WRONG",
        "*Wrong.* It is",
        "```text\nwrong: x\n```",
        '"wrong"',
    ],
    None: ["", "okay", "not ok", "It is ok.", "wrongly", "The plan is wrong", "<think>ok</think>", "<think>\nok"],
}


@pytest.mark.parametrize(("said", "text"), [(said, text) for said, texts in CRITIQUES.items() for text in texts])
def test_a_critique_is_read_by_its_first_word(said: bool | None, text: str) -> None:
    assert approves(text) is said and approves(f"<think>\nok or wrong?\n</think>\n\n{text}\n") is said


WRITTEN = {
    "numbered": "1. solve(1) == 2\n2) solve(2) == 4",
    "bulleted": "- solve(1) == 2\n* `solve(2) == 4`: doubles\n",
    "asserts with messages": "assert solve(1) == 2, 'one'\nassert (solve(2) == 4)",
    "comments": "# one\nsolve(1) == 2  # two\n\n# two\nsolve(2) == 4",
    "words before a list": "Here are the tests:\n\n1. `solve(1) == 2`\n2. `solve(2) == 4`",
    "a test file": "```python\nimport pytest\nfrom solution import solve\n\ndef test_solve():\n    assert solve(1) == 2\n    assert solve(2) == 4\n```",
    "a list of fences": "1. One:\n   ```python\n   solve(1) == 2\n   ```\n2. Two:\n   ```\n   solve(2) == 4\n   ```",
    "the program before": f"```python\n{PROGRAM}```\nTests:\n```python\nsolve(1) == 2\nsolve(2) == 4\n```",
    "a call on several lines": "solve(\n    1,\n) == 2\nsolve(2) == 4",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_tests_are_read_as_models_write_them(text: str) -> None:
    assert written_tests(text) in (TESTS.strip(), TESTS.strip().replace("solve(1)", "solve(1,)"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("with pytest.raises(ValueError):\n    solve(-1)", "with pytest.raises(ValueError): solve(-1)"),
        ("with raises((KeyError, IOError)): solve(-1)", "with pytest.raises((KeyError, OSError)): solve(-1)"),
        ("pytest.raises(TypeError, solve, 'a')", "with pytest.raises(TypeError): solve('a')"),
        ("assert solve(0.1) == pytest.approx(0.2)", "solve(0.1) == pytest.approx(0.2)"),
        ("solve(1) == approx([2.0], abs=0.1)", "solve(1) == pytest.approx([2.0], abs=0.1)"),
        ("with pytest.raises(ValueError, match='x'):\n    solve(-1)", "with pytest.raises(ValueError): solve(-1)"),
        ("with pytest.raises(KeyError, match=r'a(b|c'): solve({})", "with pytest.raises(KeyError): solve({})"),
        ("with raises(OSError, match=re.escape('(x)')) as e: solve(1)", "with pytest.raises(OSError): solve(1)"),
        (
            "with pytest.raises(\n    ValueError,\n    match='x',\n):\n\n    solve(-1)",
            "with pytest.raises(ValueError): solve(-1)",
        ),
        (
            "with pytest.raises(ValueError,\n    match='x'):\n    solve(-1,\n    )",
            "with pytest.raises(ValueError): solve(-1)",
        ),
        ("with pytest.raises(ValueError, match=open('x').read()):\n    solve(-1)", None),
        ("with pytest.raises(ValueError, match=re.compile('x')):\n    solve(-1)", None),
        ("with pytest.raises(ValueError, check='x'):\n    solve(-1)", None),
        ("with pytest.raises(MyError):\n    solve(-1)", None),
        ("with pytest.raises(ValueError):\n    solve(open('x'))", None),
        ("with open('x'):\n    solve(1)", None),
        ("solve(1) == pytest.approx(solve(1))", None),
        ("solve(1) == pytest.approx('a')", None),
    ],
)
def test_exceptions_and_tolerances_are_tests(text: str, line: str | None) -> None:
    found = read_tests(text, "solve")
    assert [line_of("solve", case) for case in found.cases] == ([line] if line else []) and found.lines == 1
    again = read_tests(line or "", "solve")
    assert again.cases == found.cases, "a test is read as it was written out"


WORDS = st.text("ab .,:;'\"()=\n", max_size=60).map(lambda text: "".join(f"I {line}\n" for line in text.split("\n")))
FENCES = st.sampled_from([("```python\n", "```"), ("~~~\n", "~~~~"), ("`````py\n", "`````"), ("```\n", "```")])


@given(
    before=WORDS,
    after=WORDS,
    thought=WORDS,
    fence=FENCES,
    drafted=st.booleans(),
    code=st.sampled_from([PROGRAM, *CODE_OF_ITS_OWN.values()]),
)
def test_a_program_is_read_in_any_fence_among_any_words(
    before: str, after: str, thought: str, fence: tuple[str, str], drafted: bool, code: str
) -> None:
    draft = f"{fence[0]}{DRAFT}{fence[1]}\n" if drafted else DRAFT
    text = f"<think>\n{thought}{draft}\n</think>\n{before}\n{fence[0]}{code}{fence[1]}\n{after}"
    assert program(text) == code


@given(
    st.lists(
        st.sampled_from(
            [
                "<think>",
                "</think>",
                "```",
                "~~~~",
                "```python",
                "\n",
                "\r",
                " ",
                "    ",
                "def solve(x):",
                "return 1",
                '"""',
                "'",
                "`",
                "- ",
                "1. ",
                "solve(1) == 2",
                "with pytest.raises(ValueError):",
                "import a",
                "\ufeff",
                "\x00",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_no_text_breaks_a_reader(text: str) -> None:
    for answers in ALL.values():
        answers.read(text)
    approves(text)
    found = whole_program(text)
    assert (found.text is None) == bool(found.fault) and (found.text is None or syntax_fault(found.text) is None)
    assert "<think>" not in without_thoughts(f"{text}\n</think>\nx = 1").partition("x = 1")[2]


HOSTILE = [
    "<think>",
    "</think>\n",
    "```\n",
    "```python\n",
    "```\n(\n",
    '```\n"""\n',
    "~~~\n```\n",
    "def f(x):\n",
    "\"\\'",
    "solve(1\n",
    "- 1. `",
    "> ",
    "> ```\n\n",
    "a: ```x```\n",
    "```python f(\n",
    "[THINK]",
    "<|channel|>a",
    "<think><thought>",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_time_of_a_hostile_text_grows_with_its_length(unit: str) -> None:
    def seconds(size: int) -> float:
        text, began = unit * (size // len(unit)), time.process_time()
        program(text), read_tests(text, "solve"), block_closes(text, defines)
        return time.process_time() - began

    assert seconds(16_000) < 12 * max(seconds(4_000), 0.02)


SCRIPT = "import sys\n\n\ndef main():\n    print('x')\n\n\nif __name__ == '__main__':\n    main()\n"
CALLS = "def f():\n    return 1\n\n\nf()\n'text'\n"
INNER = 'def page():\n    """Shows:\n\n```python\npage()\n```\n    """\n    return 1\n'


@pytest.mark.parametrize("program", [SCRIPT, CALLS, INNER, "x = 1", "class A:\n    pass\n\n\nA()\n"])
@pytest.mark.parametrize(
    "wrapping",
    ["{}", "```python\n{}\n```", "Here it is:\n\n```\n{}\n```\nIt works because it does.", "```py\n{}"],
)
def test_a_program_comes_back_whole(program: str, wrapping: str) -> None:
    found = whole_program(wrapping.format(program)).text
    assert found is not None and found.strip() == program.strip()


def test_the_last_block_that_defines_something_is_taken() -> None:
    first, use = "First:\n```python\ndef f():\n    return 0\n```\n", "Use it:\n```python\nf()\n```\n"
    text = f"{first}Better:\n```python\n{CALLS}```\n{use}"
    assert whole_program(text).text == CALLS


@pytest.mark.parametrize(
    "before",
    [
        "## Plan\n\n```text\n1. add\n```\n\n## Solution\n\n",
        "```bash\npip install numpy scipy\n```\n### Code\n",
        "```\nIt prints: 3 4\n```\nSolution\n\n",
        "```text\nnever closed\n",
    ],
)
def test_headings_between_blocks_are_no_program(before: str) -> None:
    assert whole_program(f"{before}```python\n{CALLS}```\n").text == CALLS


def test_the_block_with_what_is_asked_for_is_taken_before_a_later_one() -> None:
    tests = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_f(self):\n        assert f() == 1\n"
    text = f"```python\n{CALLS}```\nSome tests:\n```python\n{tests}```\n"
    assert whole_program(text, "f").text == CALLS and whole_program(text).text == tests
    assert whole_program(text, "g").text == tests, "where none defines it, the last that defines something"


def test_words_around_bare_code_are_dropped_and_calls_kept() -> None:
    assert whole_program(f"Sure, here is the code:\n{SCRIPT}\nHope this helps!").text == SCRIPT


@pytest.mark.parametrize(
    "text", ["", "  \n", "```python\ndef f(:\n```", "```python\ndef f():\n    return (1,\n", "no code at all, sorry"]
)
def test_what_is_no_program_is_a_fault(text: str) -> None:
    found = whole_program(text)
    assert found.text is None and found.fault


def test_many_fence_marks_take_no_time() -> None:
    assert whole_program("```\n(\n" * 5000 + "```python\nx = 1\n```").text == "x = 1\n"


def test_line_ends_of_any_kind_are_one() -> None:
    found = whole_program("def f():\r\n\treturn 1\r\n").text
    assert found == "def f():\n\treturn 1\n" and syntax_fault(found) is None


DOMAINS = ("arc", "dafny writer", "dafny annotator", "dafny permissive", "code")


@pytest.fixture(params=DOMAINS)
def domain(request: pytest.FixtureRequest, tmp_path: Path) -> Domain:
    name = str(request.param)
    if name == "arc":
        return Arc(prompt=Prompt(style="instruct"))
    if name == "code":
        return Code(str(write_set(tmp_path, "human_eval")))
    answer = "permissive" if "permissive" in name else "strict"
    role = name.split()[1].replace("permissive", "annotator")
    return DafnyDomain(role=role, prompt=DafnyPrompt(style="instruct", answer=answer))


def golds(domain: Domain) -> Iterator[tuple[Task, str]]:
    for task in next(iter(domain.splits().values()))[:20]:
        gold = domain.gold_completion(task)
        assert gold is not None
        yield task, gold


@pytest.mark.slow
def test_the_gold_is_a_completion_in_the_form_of_the_prompt(domain: Domain) -> None:
    for task, gold in golds(domain):
        language = "dafny" if isinstance(domain, DafnyDomain) else "python"
        assert gold.startswith(f"```{language}\n") and gold.endswith("\n```")
        assert f"```{language}" in domain.task_prompt(task) or "code block" in domain.task_prompt(task)
        assert domain.parse(gold, task).text == domain.parse(task.gold or "", task).text is not None


@pytest.mark.slow
def test_it_ends_with_the_fence_that_closes_it_and_not_before(domain: Domain) -> None:
    for _, gold in golds(domain):
        places = [end for end in range(len(gold) + 1) if domain.is_complete(gold[:end])]
        assert places == [len(gold)] and domain.stop_text and domain.stop_text in gold[-1]


@pytest.mark.slow
def test_words_before_it_and_other_blocks_end_nothing(domain: Domain) -> None:
    _, gold = next(golds(domain))
    talk = "Install it first:\n```bash\npip install x\n```\nand then\n"
    assert not any(domain.is_complete(talk[:end]) for end in range(len(talk) + 1))
    assert domain.is_complete(talk + gold) and domain.is_complete(f"{gold}\n")
    assert not domain.is_complete(f"<think>\n{gold}") and domain.is_complete(f"<think>\n{gold}\n</think>\n{gold}")


def test_fences_in_a_docstring_end_nothing() -> None:
    program = '```python\ndef f():\n    """\n    ```\n    f() == 1\n    ```\n    """\n    return 1\n```'
    assert [end for end in range(len(program) + 1) if block_closes(program[:end], defines)] == [len(program)]
    assert not block_closes("```python\ndef f(): return 1\ns = '```", defines)


def test_a_bare_answer_keeps_its_form() -> None:
    arc, dafny = Arc(), DafnyDomain()
    task, body = arc.splits()["train"][0], dafny.splits()["train"][0]
    assert arc.gold_completion(task) == task.gold and not arc.is_complete(f"```python\n{task.gold}\n```")
    assert dafny.gold_completion(body) == body.gold and dafny.is_complete(body.gold or "")
