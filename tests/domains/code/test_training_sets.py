"""KodCode, BigCodeBench, LiveCodeBench, APPS and TACO: rows in the schema of each release, judged."""

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
from code_samples import DOUBLE, HEADER, write

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.stages.shared.data_and_verifier import build_verifier
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.tasks.formats.base import program_prompt
from rlvr_exp.verifiers.base import Request, Verifier

KODCODE = {
    "version": "v1.0",
    "style": "instruct",
    "subset": "Prefill",
    "question_id": "Prefill_900_I",
    "question": "How do I double a number?",
    "solution": DOUBLE,
    "test": "from solution import double\n\ndef test_positive():\n    assert double(3) == 6\n\ndef test_zero():\n"
    "    assert double(0) == 0\n",
    "test_info": [
        {
            "docstring": "Twice x.",
            "function_declaration": "def double(x: int) -> int:",
            "function_name": "double",
            "parameter_list": "(x: int)",
        }
    ],
    "gpt_difficulty": "easy",
}
BIGCODEBENCH = {
    "task_id": "BigCodeBench/900",
    "complete_prompt": "import math\n\n" + HEADER.replace("double", "task_func"),
    "instruct_prompt": "Twice x. Start with:\n```\ndef task_func(x: int) -> int:\n```",
    "canonical_solution": "    return 2 * x\n",
    "code_prompt": "import math\ndef task_func(x: int) -> int:\n",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_case_1(self):\n"
    "        self.assertEqual(task_func(3), 6)\n    def test_case_2(self):\n        self.assertEqual(task_func(-1), -2)\n",
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['math']",
}
SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
APPS_PROGRAM = {
    "problem_id": 900,
    "question": "Print the sum of two numbers.",
    "solutions": json.dumps(["print sum(map(int, raw_input().split()))", SUM]),
    "input_output": json.dumps({"inputs": ["1 2\n", "5 7\n"], "outputs": ["3\n", "12\n"]}),
    "difficulty": "introductory",
    "url": "https://example.org/900",
    "starter_code": "",
}
APPS_FUNCTION = APPS_PROGRAM | {
    "problem_id": 901,
    "question": "Double a number.",
    "solutions": json.dumps([DOUBLE]),
    "input_output": json.dumps({"fn_name": "double", "inputs": [[1], [4]], "outputs": [[2], [8]]}),
    "starter_code": "def double(x):\n\t",
}
UNTESTED = APPS_PROGRAM | {"problem_id": 902, "input_output": ""}
TACO = {
    "question": "Double a number.",
    "solutions": json.dumps(["class Solution:\n    def double(self, x):\n        return 2 * x\n"]),
    "starter_code": "#User function Template for python3\n\nclass Solution:\n    def double(self, x):\n        # code here",
    "input_output": json.dumps({"fn_name": "double", "inputs": [[1], [4]], "outputs": [2, 8]}),
    "difficulty": "EASY",
    "raw_tags": "[]",
    "name": None,
    "source": "geeksforgeeks",
    "tags": "[]",
    "skill_types": "[]",
    "url": "https://example.org/double",
    "Expected Auxiliary Space": None,
    "time_limit": None,
}


def packed(tests: list[dict]) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def livecodebench(number: int, kind: str, shown: list[list[str]], hidden: list[list[str]], **more: str) -> dict:
    public, private = (
        [{"input": given, "output": wanted, "testtype": kind} for given, wanted in part] for part in (shown, hidden)
    )
    return {
        "question_title": "Sum",
        "question_content": "Sum of two numbers.",
        "platform": "atcoder",
        "question_id": f"abc{number}_a",
        "contest_id": f"abc{number}",
        "contest_date": "2024-10-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(public),
        "private_test_cases": packed(private),
        "metadata": "{}",
    } | more


OF_LEETCODE = {
    "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:\n        ",
    "metadata": json.dumps({"func_name": "add"}),
}
LIVECODEBENCH = [
    livecodebench(900, "stdin", [["1 2\n", "3\n"]], [["4 5\n", "9\n"]]),
    livecodebench(901, "functional", [["1\n2", "3"]], [["4\n5", "9"]], **OF_LEETCODE),
]
ADD = "class Solution:\n    def add(self, a, b):\n        return a + b\n"


@pytest.fixture(scope="module")
def verifiers() -> Iterator[dict[str, Verifier]]:
    words = "+stage=validate data=code data.path=x sandbox.workers=1 cache.enabled=false"
    built = {
        judge: build_verifier(compose([*words.split(), f"verifier={judge}"]).config)
        for judge in ("pytest", "python_io")
    }
    yield built
    for one in built.values():
        one.close()


def tasks_of(path: Path, judge: str) -> dict[str, Task]:
    domain = Code(str(path), judge=judge, draw_splits=False)
    return {task.id: task for tasks in domain.splits().values() for task in tasks}


def outcomes(verifier: Verifier, task: Task, *programs: str) -> list[str]:
    return [
        verdict.outcome for verdict in verifier.verify([Request(task.problem, Candidate(text)) for text in programs])
    ]


@pytest.mark.heavy
def test_kodcode_in_parts(verifiers: dict[str, Verifier], tmp_path: Path) -> None:
    for part in range(2):
        rows = [KODCODE | {"question_id": f"Prefill_{part}_I", "question": f"Double a number, {part}."}]
        datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / f"train-0000{part}-of-00002.parquet"))
    tasks = tasks_of(tmp_path, "pytest")
    assert [*tasks] == ["Prefill_0_I", "Prefill_1_I"]
    task = tasks["Prefill_0_I"]
    assert "def double(x: int) -> int:" in program_prompt(task.inputs) and task.family == "kodcode/Prefill"
    assert outcomes(verifiers["pytest"], task, DOUBLE, DOUBLE.replace("2", "3")) == ["passed", "failed"]


@pytest.mark.heavy
def test_bigcodebench(verifiers: dict[str, Verifier], tmp_path: Path) -> None:
    (task,) = tasks_of(write(tmp_path / "v.jsonl", [BIGCODEBENCH]), "pytest").values()
    wrong = BIGCODEBENCH["complete_prompt"] + "    return x\n"
    assert outcomes(verifiers["pytest"], task, task.gold or "", wrong) == ["passed", "failed"]


@pytest.mark.heavy
def test_apps_has_programs_and_functions(verifiers: dict[str, Verifier], tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", [APPS_PROGRAM, APPS_FUNCTION, UNTESTED])
    tasks = tasks_of(path, "python_io")
    assert [*tasks] == ["apps/900", "apps/901"] and tasks["apps/900"].gold == SUM, "the first solution is Python 2"
    for task, right in zip(tasks.values(), (SUM, DOUBLE), strict=True):
        assert outcomes(verifiers["python_io"], task, right, "print(1)\n") == ["passed", "failed"]
    assert Code(str(path), judge="python_io").left_out() == {"apps/902": "the set has no tests for it"}


@pytest.mark.heavy
def test_taco_has_methods(verifiers: dict[str, Verifier], tmp_path: Path) -> None:
    (task,) = tasks_of(write(tmp_path / "train.jsonl", [TACO]), "python_io").values()
    assert task.family == "taco/easy" and task.problem.entry_point == "Solution.double"
    wrong = (task.gold or "").replace("2 *", "3 *")
    assert outcomes(verifiers["python_io"], task, task.gold or "", wrong) == ["passed", "failed"]


@pytest.mark.heavy
def test_livecodebench_judges_public_and_private_tests(verifiers: dict[str, Verifier], tmp_path: Path) -> None:
    tasks = tasks_of(write(tmp_path / "test6.jsonl", LIVECODEBENCH), "python_io")
    assert [len(task.problem.cases) for task in tasks.values()] == [2, 2]
    cheat = "print({'1 2': 3}.get(input(), 0))\n"
    program, method = tasks.values()
    assert outcomes(verifiers["python_io"], program, SUM, cheat) == ["passed", "failed"]
    assert outcomes(verifiers["python_io"], method, ADD, ADD.replace("a + b", "3")) == ["passed", "failed"]


def test_a_pickle_of_tests_runs_nothing(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (open, (str(tmp_path / "made"), "w"))

    evil = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(InputError, match="private_test_cases: not the tests of the set"):
        tasks_of(write(tmp_path / "test.jsonl", [LIVECODEBENCH[0] | {"private_test_cases": evil}]), "python_io")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("row", "key", "value"),
    [
        (APPS_FUNCTION, "input_output", '{"inputs": 3, "outputs": []}'),
        (APPS_FUNCTION, "input_output", "[1]"),
        (APPS_FUNCTION, "input_output", '{"fn_name": "double", "inputs": [1], "outputs": [2]}'),
        (APPS_FUNCTION, "solutions", "{"),
        (LIVECODEBENCH[0], "public_test_cases", '[{"input": "1"}]'),
        (LIVECODEBENCH[0], "public_test_cases", "[1]"),
        (LIVECODEBENCH[1], "public_test_cases", '[{"input": "x", "output": "1", "testtype": "functional"}]'),
        (LIVECODEBENCH[0], "private_test_cases", "no base64!"),
        (LIVECODEBENCH[0], "metadata", "[]"),
    ],
)
def test_a_damaged_row_is_named(row: dict, key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="test.jsonl, line 1"):
        tasks_of(write(tmp_path / "test.jsonl", [row | {key: value}]), "python_io")
