"""References are run twice before anything is done with them: one that draws numbers is named with its place in the data."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.records.context import RunContext
from rlvr_exp.stages.shared.reference_checks import UNSTEADY, check_references, unsteady
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.python_tests import PythonTests

SOUND = "def f(x):\n    return {x: [x, 1.5]}\n"
DRAWN = "import os\n\n\ndef f(x):\n    os.urandom(1)\n    return float('nan') if x else os.urandom(8).hex()\n"
TOLD = {"args": [0], "expected": {"0": [0, 1.5]}}
SUITE = "from solution import f\n\n\ndef test_it():\n    assert f(1) == 2\n"


@pytest.fixture(scope="module")
def verifier() -> Iterator[PythonTests]:
    with PythonTests(Sandbox(workers=1)) as one:
        yield one


def domain(folder: Path, *rows: dict) -> Problems:
    texts = [json.dumps({"text": "Write f(x).", "split": "test", "id": str(n), **row}) for n, row in enumerate(rows)]
    (folder / "rows.jsonl").write_text("\n".join(texts))
    return Problems(path=str(folder / "rows.jsonl"), reasoning={"code": ReasoningStage(form="code")})


def runs(found: Problems, verifier: PythonTests) -> dict[str, str]:
    golds = [(task, Candidate(task.gold)) for task in found.splits()["test"]]
    return {name: verdict.log for name, verdict in unsteady(found, verifier, golds).items()}


def test_a_reference_that_returns_something_else_is_found_though_each_run_passes(tmp_path: Path, verifier) -> None:
    """Its tests bear the difference."""
    near = "import os\n\n\ndef f(x):\n    return 1 + x + int.from_bytes(os.urandom(4)) * 1e-12\n"
    row = {
        "prompt": "Write f(x).",
        "cases": [{"args": [0], "expected": 1.0}, {"args": [3], "expected": 4.0}],
        "entry_point": "f",
        "atol": 0.1,
    }
    fine = row | {"solution": "def f(x):\n    return 1.0 + x\n", "id": "fine"}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, (row | {"solution": near, "id": "near"}, fine))))
    stages = {"code": ReasoningStage(form="code")}
    found = Problems(path=str(tmp_path / "rows.jsonl"), test_fraction=1.0, dev_fraction=0.0, reasoning=stages)
    told = runs(found, verifier)
    assert set(told) == {"near"} and told["near"].startswith(f"{UNSTEADY}: 1.0")


def test_a_run_that_does_not_pass_is_told(tmp_path: Path, verifier) -> None:
    told = runs(domain(tmp_path, {"solution": DRAWN, "tests": [TOLD]}), verifier)
    assert told["0"].startswith(f"{UNSTEADY}: wrong_answer")


def test_equal_values_are_no_difference(tmp_path: Path, verifier) -> None:
    nothing = "def f(x):\n    return float('nan')\n"
    suite = {"solution": "def f(x):\n    return {2, 1, x}\n", "tests": SUITE.replace("== 2", "== {1, 2}")}
    rows = [{"solution": SOUND, "tests": [{"args": ["0"], "expected": {"0": ["0", 1.5]}}]}, suite]
    found = domain(tmp_path, *rows, {"solution": nothing, "tests": [{"args": [1], "expected": float("nan")}]})
    assert runs(found, verifier) == {}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"solution": "def f(x):\n    return 3\n", "tests": [{"args": [1], "expected": 2}]},
            r"line 1, tests: failed \(wr",
        ),
        ({"solution": "def f(x):\n    return 3\n", "tests": SUITE}, r"line 1, tests: failed \(wrong_answer"),
        ({"solution": "def f(x):\n    1 / 0\n", "tests": SUITE}, r"line 1, solution: failed \(runtime_error"),
        ({"solution": "def f(x):\n    1 / 0\n", "tests": [{"args": [1], "expected": 2}]}, "line 1, solution: failed"),
    ],
)
def test_a_reference_that_fails_stops_a_run_with_its_place(row: dict, told: str, tmp_path: Path, verifier) -> None:
    found = domain(tmp_path, row)
    context = RunContext(tmp_path, lambda event: None)
    check_references(found, verifier, found.splits()["test"], 0, context)
    with pytest.raises(GuardStop, match=rf"1 of 1 gold answers of the held-out tasks do not pass:\n0: .*{told}"):
        check_references(found, verifier, found.splits()["test"], 4, context)


def test_an_unsteady_reference_stops_a_run(tmp_path: Path, verifier) -> None:
    """Whatever the first verdict was, which may come from the cache."""
    odd = "import os\n\n\ndef f(x):\n    return os.urandom(1)[0] % 2\n"
    tests = "from solution import f\n\n\ndef test_it():\n    assert f(1) in (0, 1)\n    assert sum(f(n) for n in range(64)) != 32\n"
    rows = [{"solution": f"{odd}\n\nN = {number}\n", "tests": tests} for number in range(40)]
    found = domain(tmp_path, *rows)
    passing = [(task, Candidate(task.gold)) for task in found.splits()["test"]]
    verdicts = unsteady(found, verifier, passing)
    assert verdicts and all(one.log.startswith(UNSTEADY) for one in verdicts.values())
    task = next(task for task in found.splits()["test"] if task.id in verdicts)
    assert found.gold_place(task, False).endswith("solution")
