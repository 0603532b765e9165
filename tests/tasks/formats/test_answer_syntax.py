"""The candidate parsed from a completion, and whether its syntax is valid, without running it."""

import pytest

from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.formats.candidates import fault_of
from rlvr_exp.tasks.formats.domain import RowDomain
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem

EDIT = AstGrepProblem("python", "print(a)\n", "log(a)\n")
PROOF = DafnyProblem("method M() { }")
MODULE = PytestProblem("def test_nothing(): pass")


@pytest.mark.parametrize(
    ("form", "answer", "program"),
    [
        ("dafny", "Here:\n```dafny\nmethod M() { }\n```\nDone.", "method M() { }\n"),
        ("dafny", "method M() { }", "method M() { }\n"),
        ("dafny", "```\nfirst\n```\nbetter:\n```dafny\r\nmethod M() { }\r\n```", "method M() { }\n"),
        ("ast_grep", '```json\n{"pattern": "a", "rewrite": "b"}\n```', '{"pattern": "a", "rewrite": "b"}\n'),
        ("python_io", "Sure!\n```python\ndef f(x):\n    return x\n```", "def f(x):\n    return x\n"),
        ("pytest", "def f(x):\n    return x\nThat is all.", "def f(x):\n    return x\n"),
        ("dafny", " \n", None),
        ("python_io", "I cannot.", None),
    ],
)
def test_fences_and_chatter_are_removed(form, answer, program):
    assert RowDomain(form).parse(answer, Task("row", form, 0.0, None, None)).text == program


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (EDIT, '{"pattern": "print($X)", "rewrite": "log($X)"}'),
        (PROOF, "method M() returns (x: int)\n  ensures x > 0\n{ x := 1; }"),
        (MODULE, "x = 1\n"),
        ("a user's own", "anything"),
    ],
)
def test_a_sound_program_has_no_fault(problem, text):
    assert fault_of(problem, Candidate(text)) == ""


@pytest.mark.parametrize(
    ("problem", "text", "told"),
    [
        (EDIT, '{"patern": "a"}', "pattern"),
        (EDIT, "{", "not"),
        (PROOF, "method M() { ", "{"),
        (MODULE, "x = (1\n", "line 1"),
    ],
)
def test_a_fault_is_told(problem, text, told):
    assert told in fault_of(problem, Candidate(text))


def test_an_answer_without_a_program_says_why():
    assert fault_of(MODULE, Candidate(None, "line 3: invalid syntax")) == "line 3: invalid syntax"
