"""Suites as input: what their text promises, how a completion becomes a suite, and whether it can judge."""

# ruff: noqa: E501  programs in one line each

from types import SimpleNamespace

import pytest

from rlvr_exp.verifiers.suite.sanitise import (
    sanitise_tests,
    shadowed_names,
    stubbed,
    validate_many,
    validate_tests_against_solution,
)
from rlvr_exp.verifiers.suite.shape import shape_of
from rlvr_exp.verifiers.suite.verifier import PytestSuite

REFERENCE = "def double(x):\n    return 2 * x\n"
TEST = "from solution import double\n\ndef test_it():\n    assert double(2) == 4\n"


def promised(text: str) -> list[str]:
    return [test.name.partition("::")[2] for test in shape_of((("test_solution.py", text),), ()).tests if test.counted]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def test_a(): pass\nasync def test_b(): pass\ndef helper(): pass", ["test_a", "test_b"]),
        (
            "class TestA:\n    def test_a(self): pass\n    class TestB:\n        def test_b(self): pass",
            ["TestA::test_a", "TestA::TestB::test_b"],
        ),
        ("class A(unittest.TestCase):\n    def test_a(self): pass\n    def setUp(self): pass", ["A::test_a"]),
        ("class TestA:\n    def __init__(self): pass\n    def test_a(self): pass", []),
        ("@pytest.fixture\ndef test_data(): pass", []),
        ("if True:\n    def test_a(): pass", []),
        ("pytestmark = pytest.mark.skip\ndef test_a(): pass", []),
    ],
)
def test_what_a_text_promises(text, names):
    assert promised(text) == names


def test_imports_and_patches_are_read():
    shape = shape_of(
        (("test_a.py", "import numpy.linalg, solution, own\ndef test_a(monkeypatch): import json"),), ("own",)
    )
    assert (shape.imports, shape.patches) == (("numpy.linalg", "json"), True)


def test_a_text_that_is_no_python_has_a_fault():
    assert "SyntaxError" in shape_of((("test_a.py", "def ("),), ()).fault


@pytest.mark.parametrize(
    "answer",
    [
        TEST,
        f"```python\n{TEST}```",
        f"Here you are:\n\n```py\n{TEST}```\nGood luck!",
        f"Sure! Below are the tests.\n{TEST}\nThat's all, folks!",
        f"```python\n{TEST}",
        TEST.replace("from solution import double\n", ""),
        TEST + "\nif __name__ == '__main__':\n    pytest.main()\n",
        TEST + "\nimport sys\nsys.exit(0)\n",
        TEST.replace("from solution import double\n", REFERENCE),
        "~~~\n" + TEST + "~~~",
        TEST.replace("\n", "\r\n"),
        f"```python\n{REFERENCE}```\n\n```python\n{TEST}```",
    ],
)
def test_a_models_answer_becomes_a_suite(answer):
    made = sanitise_tests(answer, ["double"])
    assert not made.fault
    assert promised(made.text) == ["test_it"]
    assert "from solution import double" in made.text and "2 * x" not in made.text
    assert "__main__" not in made.text and "sys.exit" not in made.text and "```" not in made.text


def test_missing_imports_are_added_after_future_and_docstring():
    made = sanitise_tests(
        '"""Doc."""\nfrom __future__ import annotations\ndef test_a():\n    with pytest.raises(E): double(1)'
    )
    assert made.text.splitlines()[2] == "import pytest"


def test_sanitising_twice_changes_nothing():
    once = sanitise_tests(f"```\n{TEST}```", ["double"]).text
    again = sanitise_tests(once, ["double"])
    assert (again.text, again.changes) == (once, ())


def test_a_shadowed_name_is_seen():
    assert shadowed_names("double = lambda x: 4\n" + TEST, ["double", "triple"]) == ("double",)


@pytest.fixture(scope="module")
def verifier():
    sandbox = {
        "workers": 1,
        "cpu_s": 2.0,
        "wall_s": 20.0,
        "memory_mb": 512,
        "output_kb": 64,
        "level": "auto",
        "require": "",
    }
    with PytestSuite(SimpleNamespace(**sandbox), cpu_s=0.0, wall_s=0.0, memory_mb=0) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("tests", "sound", "empty"),
    [
        (TEST, True, False),
        (TEST.replace("4", "5"), False, False),
        ("def test_a(): assert True", True, True),
        (
            "from solution import double\ndef test_a():\n    try: assert double(2) == 4\n    except Exception: pass",
            True,
            True,
        ),
        ("from solution import double\ndef test_a(): double(2)", True, True),
        ("x = 1", False, True),
        ("import sys\nsys.exit(0)", False, True),
        ("import os\nos._exit(0)\ndef test_a(): pass", False, True),
        ("import solution\nsolution.double = lambda x: 4\ndef test_a(): assert solution.double(2) == 4", True, True),
        ("def test_a(:", False, True),
    ],
)
def test_whether_a_suite_can_judge(verifier, tests, sound, empty):
    found = validate_tests_against_solution(tests, REFERENCE, verifier)
    assert (found.sound, found.empty) == (sound, empty), found
    assert found.usable == (sound and not empty)


def test_many_suites_in_order(verifier):
    found = validate_many([(TEST, REFERENCE, {}), ("x = 1", REFERENCE, {})], verifier)
    assert [one.usable for one in found] == [True, False]


def test_a_hollowed_reference_keeps_its_names():
    code = stubbed(
        "class A:\n    def __init__(self): self.x = 1\n    def f(self): return 1\ndef g(): return 2", "return None"
    )
    scope: dict = {}
    exec(code, scope)
    assert (scope["A"]().x, scope["A"]().f(), scope["g"]()) == (1, None, None)
