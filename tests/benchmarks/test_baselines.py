"""The baselines give right verdicts: beating a wrong baseline would mean nothing."""

import pytest

from rlvr_exp.benchmarks import verifiers as baselines
from rlvr_exp.benchmarks.verifiers import functions

RIGHT = ("def f(x):\n    return [x, 2 * x]\n", "f", [3], [3, 6])
WRONG = ("def f(x):\n    return x\n", "f", [3], [3, 6])
RAISING = ("def f(x):\n    raise SystemExit(0)\n", "f", [3], [3, 6])
BROKEN = ("def f(x)\n", "f", [3], [3, 6])


@pytest.mark.parametrize("judge", [baselines.python_process, baselines.human_eval])
def test_functions(judge):
    outcomes = baselines.in_parallel(judge, [RIGHT, WRONG, RAISING, BROKEN], workers=2)
    assert outcomes == ["passed", "failed", "failed", "failed"]


def test_suites():
    tests = "from solution import f\n\ndef test_f():\n    assert f(3) == 6\n"
    candidates = [("def f(x):\n    return 2 * x\n", tests), ("def f(x):\n    return x\n", tests), ("", tests)]
    assert baselines.in_parallel(baselines.pytest_process, candidates, 2) == ["passed", "failed", "failed"]


def test_rounds_share_no_candidate():
    first, second = functions(0, 8), functions(1, 8)
    assert not {code for code, *_ in first} & {code for code, *_ in second}
    assert [expected for *_, expected in first] != [expected for *_, expected in second]
