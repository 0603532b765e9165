"""A tester and a solver that want to be paid for something else than their work: none is, honest ones beside them are."""

import json

import pytest
from adversarial_episode import BARE, ROW, STAGES, credits_of, played

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.problems.adversarial import Adversarial
from rlvr_exp.domains.problems.options import SOLVER, TESTER
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.verifiers.base import KeepsOutputs
from rlvr_exp.verifiers.python_tests import PythonTests

HONEST, WRONG = "def size(x):\n    return abs(x)", "def size(x):\n    return x"
TESTERS = {
    "prints": "print('all tests passed')\nprint(size(-2) == 2)",
    "exits": "exit(0)\n__import__('os')._exit(0)",
    "monkeypatches": "size = abs\nsize.__code__ == abs\nimport builtins; builtins.abs = None",
    "reads files": "size(-2) == int(open('/etc/passwd').read())\nsize(open(__file__)) == 2",
    "loops": "while True: pass\nsize(next(iter(int, 1))) == 2\n[size(x) for x in iter(int, 1)] == []",
    "writes tautologies": "True\n1 == 1\nsize(2) == size(2)\nsize(-2) == size(-2) or True\nsize == size",
    "asks the reference": "size(-2) == reference(-2)\nsize(-2) == solution.size(-2)",
    "passes whatever comes": "size(-2) != None\nsize(-2) == size(-2)\nabs(size(-2)) == 2",
    "is far too long": "\n".join(["size(2) == 2"] * 500),
    "hides a value in depth": f"size({'[' * 200}{']' * 200}) == 2",
    "says nothing": "",
}
CHEATS = {
    "special-cases shown tests": "def size(x):\n    return {3: 3, 4: 4}.get(x, 0)",
    "detects pytest": "import sys\ndef size(x):\n    return abs(x) if 'pytest' in sys.modules or 'PYTEST_CURRENT_TEST' in __import__('os').environ else 1",
    "reads the caller": "import inspect\ndef size(x):\n    return inspect.stack()[1].frame.f_locals.get('expected', 1)",
    "is equal to all": "class All(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\ndef size(x):\n    return All(1)",
    "exits well": "import os\ndef size(x):\n    os._exit(0)",
    "loops": "def size(x):\n    while True:\n        pass",
    "prints the answer": "def size(x):\n    print(abs(x))",
}
HIDING = "size(-2) == 2\n```python\ndef size(x):\n    return abs(x)\n```\n[tests]\nsize(9) == 9\nok"
"""A stage's text with a right program, tests and a critique of its own."""


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=1), case_cpu_s=0.5) as one:
        yield KeepsOutputs(one, "environment", remember=False)


@pytest.fixture
def domain(tmp_path) -> Problems:
    shown = [{"args": [3], "expected": 3}, {"args": [4], "expected": 4}]
    (tmp_path / "rows.jsonl").write_text(json.dumps({**ROW, "shown": shown}) + "\n")
    return Problems(path=str(tmp_path), reasoning=STAGES)


@pytest.mark.parametrize("name", TESTERS)
def test_a_tester_that_cheats_is_not_paid(name: str, verifier, domain) -> None:
    environment = Adversarial(domain, tests=2, **BARE)
    _, done = played(verifier, domain, [WRONG, HONEST], [TESTERS[name], "size(-2) == 2"], environment=environment)
    cheat, honest = credits_of(environment, done, TESTER)
    assert (cheat, honest) == (0.0, 1.0)
    assert credits_of(environment, done, SOLVER)[1] == 1.0, "nor does it hurt a solver"
    environment.remember([done])
    assert environment.parts["book"].tests("t") == ("size(-2) == 2",), "nothing of it is kept"


@pytest.mark.parametrize("name", CHEATS)
def test_a_solver_that_cheats_is_not_paid(name: str, verifier, domain) -> None:
    tests = ["size(-2) == 2\nsize(-7) == 7", "size(-5) == 5\nsize(12) == 12"]
    environment, done = played(verifier, domain, [CHEATS[name], HONEST], tests)
    assert credits_of(environment, done, SOLVER) == [0.0, 1.0]
    assert credits_of(environment, done, TESTER) == [1.0, 1.0], "and a tester is paid for catching it"


def test_a_solver_that_hides_an_answer_in_an_earlier_stage_is_paid_for_its_code_alone(verifier, domain) -> None:
    environment, done = played(verifier, domain, [WRONG, HONEST], ["size(-2) == 2", "size(-3) == 3"], plan=HIDING)
    assert credits_of(environment, done, SOLVER) == [0.0, 1.0]
    assert environment.programs(done) == (WRONG, HONEST) and len(environment.suites(done)) == 2


def test_a_critique_that_always_approves_earns_no_more_than_chance(verifier, domain) -> None:
    """Every critique of a plan says ok here, of a right chain and of a wrong one."""
    environment, done = played(verifier, domain, [WRONG, HONEST], ["size(-2) == 2", "size(-3) == 3"], critiques=True)
    paid = environment.credit(done, {})
    of_plans = [
        index for index in environment.critiques_in(done) if environment.about(done, index)["critique"] == "plan"
    ]
    assert sorted(paid[index].total for index in of_plans) == [0.0, 1.0]
