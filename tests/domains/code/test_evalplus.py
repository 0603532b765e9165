"""Verdicts against those of EvalPlus: which programs are compared, how a difference is classed, and the comparison itself."""

import json
import os
import sys
from pathlib import Path

import pytest
from code_samples import MBPP_PLUS, write
from functions import measured

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.code import evalplus
from rlvr_exp.domains.code.evalplus import Status
from rlvr_exp.domains.code.options import EvalPlus
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Verdict

PYTHON = os.environ.get("EVALPLUS_PYTHON", sys.executable)
"""EvalPlus may be in an environment of its own."""
ROW = {
    "task_id": "Mbpp/14",
    "prompt": '"""\nDouble.\nassert double(3) == 6\n"""\n',
    "entry_point": "double",
    "canonical_solution": "\ndef double(x):\n  return 2 * x\n",
    "base_input": [[3], [0]],
    "plus_input": [[[1, 2]]],
    "contract": "",
    "assertion": "",
    "atol": 0,
}
TRIPLE = "def double(x):\n    return 3 * x\n"


def words(folder: Path, *completions: tuple[str, str]) -> list[str]:
    """Of a benchmark on one task of MBPP+; completions are (task, text)."""
    write(folder / "mbpp_plus.jsonl", [MBPP_PLUS])
    write(folder / "MbppPlus.jsonl", [ROW, ROW | {"task_id": "Mbpp/15"}])
    write(folder / "answers.jsonl", [{"task": task, "completion": text} for task, text in completions])
    data = [f"data.path={folder / 'mbpp_plus.jsonl'}", "data=code", "verifier=python_io", "sandbox.workers=1"]
    benchmark = {"path": folder / "MbppPlus.jsonl", "completions": f"[{folder / 'answers.jsonl'}]", "python": PYTHON}
    return [*data, *(f"benchmark.{key}={value}" for key, value in benchmark.items())]


def problem(text: str) -> PythonProblem | PytestProblem:
    return PytestProblem(f"inputs = [{text}]\n") if text else PythonProblem("f", (Case(((1, 2), "a"), 3),))


@pytest.mark.parametrize(
    ("verdict", "status", "tests", "entry", "reason"),
    [
        (Verdict("failed", "timeout"), Status("pass", "pass", ()), "", "f", "limit of the verifier"),
        (Verdict("passed"), Status("fail", "fail", ()), "", "find_zero", "EvalPlus passes no program of this task"),
        (Verdict("passed"), Status("pass", "timeout", ("1",)), "", "f", "time limit of EvalPlus"),
        (Verdict("failed", "wrong_answer"), Status("pass", "pass", ()), "", "sum_div", "further answers that EvalPlus accepts"),
        (Verdict("passed"), Status("pass", "fail", ("[1, 3], 'a'",)), "", "f", "input that the tests of the data lack"),
        (Verdict("passed"), Status("pass", "fail", ("[1, 2], 'a'",)), "", "f", "comparison of values"),
        (Verdict("passed"), Status("fail", "pass", ("[[1, 2]]",)), "[((1, 2),)]", "f", "comparison of values"),
        (Verdict("passed"), Status("fail", "pass", ("[[1, 3]]",)), "[((1, 2),)]", "f", "input that the tests of the data lack"),
        (Verdict("failed", "runtime_error"), Status("pass", "pass", ()), "", "f", "execution: runtime_error"),
    ],
)  # fmt: skip
def test_a_difference_has_a_reason(verdict: Verdict, status: Status, tests: str, entry: str, reason: str) -> None:
    task = Task("Mbpp/1", "mbpp_plus", 0.1, "", problem(tests))
    assert evalplus._reason(verdict, status, task, {"entry_point": entry}) == reason


def test_a_missing_package_or_file_is_found_before_the_start(tmp_path: Path) -> None:
    given = [*words(tmp_path), "benchmark.python=/no/python", f"benchmark.completions=[{tmp_path / 'none.jsonl'}]"]
    found = missing_artifacts(compose(["+stage=benchmark", "benchmark=evalplus", *given]).config)
    assert [one.problem.where for one in found] == ["benchmark.completions[0]", "benchmark.python"]
    assert found[1].command == "pip install 'rlvr_exp[evalplus]'" and "/no/python" in str(found[1].problem)


def test_completions_of_other_tasks_and_data_without_a_common_task_are_refused(tmp_path: Path) -> None:
    given = words(tmp_path, ("Mbpp/15", TRIPLE))
    with pytest.raises(InputError, match="answers.jsonl, line 1, task: no such task"):
        measured(tmp_path, "evalplus", *given)
    write(tmp_path / "MbppPlus.jsonl", [ROW | {"task_id": "Mbpp/15"}])
    with pytest.raises(InputError, match="benchmark.path: has no task of data.path"):
        measured(tmp_path, "evalplus", *given)


def test_an_interpreter_without_evalplus_ends_the_run_with_what_it_said(tmp_path: Path) -> None:
    options = EvalPlus(python=sys.executable, path="x")
    if options.version():
        pytest.skip("this interpreter has evalplus")
    with pytest.raises(InputError, match="exit code 1\n.*evalplus"):
        evalplus.statuses(options, {"Mbpp/14": ROW}, [("Mbpp/14", TRIPLE)], tmp_path, 1)


@pytest.mark.slow
@pytest.mark.skipif(not EvalPlus(python=PYTHON).version(), reason="evalplus is not installed")
def test_both_sides_judge_one_text_and_a_difference_is_listed(tmp_path: Path) -> None:
    tmp_path = tmp_path / "set.jsonl"  # EvalPlus would write its results elsewhere if it were given such a path.
    tmp_path.mkdir()
    answers = [("Mbpp/14", f"So:\n```python\n{text}```\nDone.") for text in (TRIPLE, TRIPLE.replace("3", "2"))]
    counts = measured(tmp_path, "evalplus", *words(tmp_path, *answers, ("Mbpp/14", "None.")))[1]
    assert (counts["reference"], counts["completion"], counts["agreement"], counts["no_verdict"]) == (1, 3, 1.0, 0)
    assert counts["mutant"] >= 2 and counts["completion/ours_alone"] == 0 and counts["evalplus"] == "0.3.1"
    tuples = "def double(x):\n    return 2 * x if isinstance(x, int) else tuple(2 * x)\n"
    with pytest.raises(GuardStop, match="1 differ: comparison of values"):
        measured(tmp_path, "evalplus", *words(tmp_path, ("Mbpp/14", tuples)))
    (row,) = map(json.loads, (tmp_path / "differences.jsonl").read_text().splitlines())
    assert (row["task"], row["outcome"], row["plus"]) == ("Mbpp/14", "passed", "fail")
