"""Weak tasks are left out by default, and suites that broadcast, or assert nothing, are corrected."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from code_samples import MBPP, MBPP_PLUS

from rlvr_exp.config.compose import compose
from rlvr_exp.domains.code.sets import corrected
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.tasks.cases import fixed_answer
from rlvr_exp.tasks.edit_sets import _test_file
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.universal import fixed_answers


def problem(*cases: tuple[Any, Any], strict: bool = False) -> PythonProblem:
    return PythonProblem("f", tuple(Case(args, expected) for args, expected in cases), strict=strict)


@pytest.mark.parametrize(
    ("cases", "by_pytest", "by_python_io"),
    [
        ([((1,), True), ((2,), True)], "True", "True"),
        ([((1,), True), ((2,), 1)], "True", ""),
        ([((1,), True), ((2,), False)], "", ""),
        ([(((1, 2),), ())], "()", "[]"),
        ([(([1, 2],), (1, 2)), (([],), ())], "", "its first argument"),
        ([((3, 1), 3), ((4, 9), 4)], "its first argument", "its first argument"),
        ([((3, 1), 1), ((4, 9), 9)], "its last argument", "its last argument"),
        ([((1, 2), (1, 2)), ((3, 4), (3, 4))], "its arguments", "its arguments"),
        ([((3,), 6), ((0,), 0)], "", ""),
        ([(("a",), ""), (("b",), [])], "", ""),
    ],
)
def test_a_fixed_answer_is_found_by_the_judges_own_equality(cases, by_pytest: str, by_python_io: str) -> None:
    assert fixed_answer(problem(*cases), "pytest") == by_pytest
    assert fixed_answer(problem(*cases), "python_io") == by_python_io


def test_strict_cases_tell_lists_from_tuples() -> None:
    assert fixed_answer(problem((((1,),), ()), strict=True), "python_io") == "()"
    assert fixed_answer(problem((([1],), (1,)), strict=True), "python_io") == ""


@pytest.mark.parametrize(("judge", "answer"), [("pytest", "False"), ("python_io", "0")])
def test_weak_tasks_are_left_out_with_the_answer_unless_asked_for(tmp_path: Path, judge: str, answer: str) -> None:
    weak = MBPP | {"task_id": 701, "test_list": ["assert double(0) == 0", "assert double(-0) == 0"]}
    (tmp_path / "mbpp.jsonl").write_text("\n".join(map(json.dumps, (MBPP, weak))))
    domain = Code(str(tmp_path), judge=judge)
    assert [task.id for task in domain.splits()["train"]] == ["Mbpp/700"]
    assert domain.left_out() == {"Mbpp/701": f"its cases accept a fixed answer: {answer}"}
    kept = Code(str(tmp_path), judge=judge, weak=True)
    assert len(kept.splits()["train"]) == 2 and not kept.left_out()
    assert compose(["+stage=validate", "data=code", f"data.path={tmp_path}", "data.weak=true"]).config.data.weak


def passes(tests: str, solution: str) -> bool:
    """A test file of one test, run unchanged."""
    module = ModuleType("solution")
    exec(solution, module.__dict__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "solution", module)
        names: dict[str, Any] = {}
        exec(tests, names)
        try:
            names["test_program"]()
        except (AssertionError, ValueError, TypeError):
            return False
    return True


CLOSE = """import numpy as np

def assertion(out, exp, atol):
    if atol == 0 and isinstance(exp, float):
        atol = 1e-6
    if out != exp and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert out == exp, f"out: {out}, exp: {exp}"


inputs = [[0.1], [3.0]]
results = [0.2, 6.0]
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(double(*inp), exp, 0)
"""
SILENT = """import numpy as np

def assertion(out, exp, atol):
    if isinstance(out, bool):
        exact_match = out == exp
    else:
        exact_match = exp == (out is not None)


inputs = [[1], [2]]
results = [True, False]
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(double(*inp), exp, 0)
"""


@pytest.mark.parametrize(
    ("test", "right"),
    [(CLOSE, "def double(x): return x + x + 1e-9"), (SILENT, "def double(x): return None if x == 2 else [x]")],
    ids=["close", "silent"],
)
def test_suites_of_mbpp_plus_refuse_every_plain_fixed_answer(tmp_path: Path, test: str, right: str) -> None:
    pytest.importorskip("numpy")
    row = MBPP_PLUS | {"test": test, "test_list": ["assert double(1)"], "code": right}
    (tmp_path / "MbppPlus-OriginFmt.jsonl").write_text(json.dumps(row))
    (task,) = Code(str(tmp_path)).splits()["test"]
    assert passes(task.problem.tests, right)
    weak = [name for name, text in fixed_answers(task.problem, "plain") if name != "exits" and _passes(task, text)]
    assert weak == []


def _passes(task: Any, text: str) -> bool:
    try:
        return passes(task.problem.tests, text)
    except (ImportError, NotImplementedError):
        return False


def test_what_needs_no_mending_stays_as_it_is() -> None:
    usual = "def assertion(out, exp, atol):\n    exact_match = exp == (out is not None)\n    assert exact_match\n"
    assert corrected(usual) == usual and corrected("assert f(1) == 2") == "assert f(1) == 2"


def test_an_approximate_answer_of_quixbugs_is_a_number() -> None:
    numpy = pytest.importorskip("numpy")
    text = "import pytest\nfrom load_testdata import x\n\ndef test_sqrt(given, wanted):\n"
    text = _test_file(text + "    assert sqrt(*given) == pytest.approx(wanted, abs=given[-1])\n", "sqrt", [])
    for answer, good in ((2.0, True), (2.05, True), (3.0, False), (numpy.array([]), False), ([], False)):
        names: dict[str, Any] = {"sqrt": lambda *_, answer=answer: answer}
        exec(text, names)
        try:
            names["test_sqrt"]([4, 0.1], 2.0)
            passed = True
        except (AssertionError, TypeError):
            passed = False
        assert passed is good
