"""The verifier of pytest suites: outcomes, counts, skips, files, limits, caching, what a reference decides."""

# ruff: noqa: E501  programs in one line each

import base64
import json
from threading import Thread
from types import SimpleNamespace

import pytest

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.jobs import JobResult
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.futures import completed_future
from rlvr_exp.verifiers.suite import verifier as judging
from rlvr_exp.verifiers.suite.shape import shape_of
from rlvr_exp.verifiers.suite.verifier import PytestSuite

RIGHT = "def double(x): return 2 * x"
SUITE = """
import pytest
from solution import double

@pytest.mark.parametrize("x", [1, 2])
def test_many(x): assert double(x) == 2 * x

def test_big(): assert double(10) == 20
"""
TEST = "from solution import f\n{marks}def test_f(): assert f() == 1\n"


def make(workers: int = 1, **options: object) -> PytestSuite:
    sandbox = {"cpu_s": 1.0, "wall_s": 20.0, "memory_mb": 512, "output_kb": 64, "level": "auto", "require": ""}
    return PytestSuite(
        SimpleNamespace(workers=workers, **sandbox), **{"cpu_s": 0.0, "wall_s": 0.0, "memory_mb": 0} | options
    )


@pytest.fixture(scope="module")
def verifier():
    with make() as verifier:
        yield verifier


def judge(
    verifier: PytestSuite, code: str | None, suite: str = SUITE, limits: Limits = Limits(), **files: str
) -> Verdict:
    named = tuple((name.replace("__", "."), text) for name, text in files.items())
    return verifier.verify([Request(PytestProblem(suite, named, limits), Candidate(code))])[0]


@pytest.mark.parametrize(
    ("code", "bucket", "passed", "total", "said"),
    [
        (RIGHT, None, 3, 3, ""),
        ("def double(x): return 20", "wrong_answer", 1, 3, "test_many[1]: assert 20 == (2 * 1)"),
        ("def double(x): return 2 * x if x < 5 else 1 / 0", "runtime_error", 2, 3, "ZeroDivisionError"),
        ("def double(x) return", "parse", 0, 2, "SyntaxError"),
        ("def triple(x): pass", "resolve", 0, 2, "cannot import name 'double'"),
        ("import nowhere", "runtime_error", 0, 2, "ModuleNotFoundError"),
        ("raise SystemExit", "runtime_error", 0, 2, "SystemExit"),
        ("while True: pass", "timeout", 0, 2, "CPU limit"),
        ("x = bytearray(1 << 40)", "memory", 0, 2, "MemoryError"),
        ("while True: print('x' * 999)", "output_limit", 0, 2, "more than it may"),
        ("def double(x): raise AssertionError('mine')", "wrong_answer", 0, 3, "mine"),
    ],
)
def test_buckets_and_counts(verifier, code, bucket, passed, total, said):
    verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.bucket) == ("failed" if bucket else "passed", bucket), verdict
    assert (verdict.passed, verdict.total) == (passed, total)
    assert said in verdict.log and len(verdict.log) <= 1000
    assert verdict.score == passed / total


def test_no_program_in_the_answer_is_a_parse_failure(verifier):
    verdict = judge(verifier, None)
    assert (verdict.bucket, verdict.total) == ("parse", 2)


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("", "no test ran"),
        ("x = 1", "no test ran"),
        ("def check_nothing(): pass", "no test ran"),
        ("import pytest\n@pytest.mark.skip\ndef test_f(): pass", "no test ran"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("import pytest\npytest.exit('done', 0)", "Exit"),
        ("import pytest\npytest.skip('x', allow_module_level=True)\ndef test_f(): pass", "Skipped"),
        ("def test_f(): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def test_f(): pass\ndef test_g(): pass\ndel test_g", "not collected"),
        ("import pytest\ndef test_f(): pytest.skip('x')", "skipped"),
        ("import pytest\ndef test_f(): pytest.xfail('x')", "xfailed"),
        ("def test_f(nothing): pass", "nothing"),
        ("import pytest\n@pytest.fixture\ndef t():\n    yield\n    1 / 0\ndef test_f(t): pass", "ZeroDivisionError"),
        ("def teardown_module(): 1 / 0\ndef test_f(): pass", "ZeroDivisionError"),
        ("async def test_f(): {}['x']", "KeyError"),
        ("import pytest\n@pytest.mark.parametrize('x', [])\ndef test_f(x): pass", "skipped"),
        (
            "import unittest\nclass T(unittest.TestCase):\n    def test_f(self):\n        with self.subTest(): 1 / 0",
            "ZeroDivision",
        ),
    ],
)
def test_a_suite_that_does_not_run_to_a_pass_is_no_pass(verifier, suite, said):
    verdict = judge(verifier, "def f(): return 1", suite)
    assert (verdict.outcome, verdict.rule) == ("failed", None), verdict
    assert said in verdict.log


@pytest.mark.parametrize(
    ("marks", "counted"),
    [
        ("@pytest.mark.skip\n", False),
        ("@pytest.mark.skipif(sys.version_info < (99,), reason='x')\n", False),
        ("@pytest.mark.skipif('sys.platform != \"win32\"', reason='x')\n", False),
        ("@pytest.mark.xfail\n", False),
        ("@unittest.skip('x')\n", False),
        ("@pytest.mark.skipif(f() != 1, reason='x')\n", True),
        ("@pytest.mark.skipif(not hasattr(solution, 'g'), reason='x')\n", True),
        ("@unittest.skipUnless(f() == 1, 'x')\n", True),
        ("@pytest.mark.xfail(f() != 1, reason='x')\n", True),
    ],
)
def test_only_skips_that_ask_no_solution_are_left_out_of_the_count(verifier, marks, counted):
    head = "import pytest, sys, unittest, solution\nfrom solution import f\ndef test_other(): pass\n"
    verdict = judge(verifier, "def f(): return 2", head + TEST.format(marks=marks))
    assert verdict.outcome == ("failed" if counted else "passed"), verdict
    assert verdict.total == (2 if counted else 1)


def test_files_beside_the_suite(verifier):
    suite = "from helper import two\nfrom solution import read\ndef test_f(one): assert read('a/data.txt') == one + two"
    files = {"helper__py": "two = 2", "conftest__py": "import pytest\n@pytest.fixture\ndef one(): return 1"}
    problem = PytestProblem(suite, (("a/data.txt", "3"), *((k.replace("__", "."), v) for k, v in files.items())))
    code = "def read(path):\n    with open(path) as file: return int(file.read())"
    assert verifier.verify([Request(problem, Candidate(code))])[0].outcome == "passed"


@pytest.mark.parametrize("name", ["../x.py", "a//b", "/etc/x", "solution.py", "."])
def test_a_file_that_cannot_be_named_so_gives_no_verdict(verifier, name):
    problem = PytestProblem(SUITE, ((name, ""),))
    assert verifier.verify([Request(problem, Candidate(RIGHT))])[0].outcome == "no_verdict"


@pytest.mark.parametrize("problem", [PytestProblem("def test_f(:"), PythonProblem("f", ())])
def test_a_problem_that_cannot_be_judged_gives_no_verdict(verifier, problem):
    assert verifier.verify([Request(problem, Candidate(RIGHT))])[0].outcome == "no_verdict"


def test_a_problems_own_limits_win(verifier):
    slow = "import time\nt = time.process_time()\nwhile time.process_time() < t + 0.6: pass\n" + RIGHT
    assert judge(verifier, slow, limits=Limits(cpu_s=5.0)).outcome == "passed"
    assert judge(verifier, slow, limits=Limits(cpu_s=0.3)).bucket == "timeout"


def test_equal_requests_are_judged_once(verifier):
    code = RIGHT + "  # asked twice"
    assert [judge(verifier, code).cached for _ in range(2)] == [False, True]


def test_verdicts_are_the_same_with_one_worker_and_three():
    codes = [
        RIGHT,
        "def double(x): return 4",
        "raise OSError",
        "import os\nos._exit(0)",
        "def double(x): return 0",
    ]

    def seen(workers: int, order: list[str]) -> dict[str, tuple[object, ...]]:
        with make(workers) as verifier:
            found = verifier.verify([Request(PytestProblem(SUITE), Candidate(code)) for code in order])
        return {code: (v.outcome, v.bucket, v.rule, v.passed, v.total) for code, v in zip(order, found, strict=True)}

    assert seen(1, codes) == seen(3, codes[::-1])


def test_solutions_leave_nothing_behind(verifier):
    leaving = "import sys, math\nopen('left.txt', 'w').write('x')\nsys.left = 1\n" + RIGHT
    looking = "import sys, os\nassert not os.path.exists('left.txt') and not hasattr(sys, 'left')\n" + RIGHT
    assert [judge(verifier, code).outcome for code in (leaving, looking)] == ["passed", "passed"]


# Two processes


def test_answers_never_enter_the_solutions_process(verifier):
    code = "import gc\ndef double(x): return [o for o in gc.get_objects() if isinstance(o, dict) and 'EXPECTED' in o]"
    suite = "from solution import double\nEXPECTED = {1: 'S3CRET'}\ndef test_f(): assert double(1) == []"
    assert judge(verifier, code, suite).outcome == "passed"
    assert judge(verifier, code, suite.replace("== []", "!= []")).outcome == "failed"


@pytest.mark.parametrize(
    "code", ["import os\ndef double(x): os._exit(0)", "import os\ndef double(x): os.kill(os.getpid(), 9)"]
)
def test_a_solution_that_ends_its_process_fails(verifier, code):
    verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.passed) == ("failed", 0)


@pytest.mark.parametrize(
    ("suite", "files"),
    [
        ("import os\nos._exit(0)\ndef test_f(): pass", {}),
        ("import os\ndef test_f(): os._exit(3)", {}),
        ("def test_f(): pass", {"a": "", "a/b": ""}),
    ],
)
def test_the_suites_own_fault_is_no_verdict(verifier, suite, files):
    problem = PytestProblem(suite, tuple(files.items()))
    verdict = verifier.verify([Request(problem, Candidate("def f(): return 1"))])[0]
    assert verdict.outcome == "no_verdict" and "own fault" in verdict.log


def test_an_object_where_the_reference_gives_plain_data_is_a_wrong_answer(verifier):
    suite = "from solution import f\ndef test_f(): assert f(1)"
    right, lying = "def f(x): return [x]", "class Y: pass\ndef f(x): return [Y()]"

    def judged(code: str, reference: str) -> Verdict:
        return verifier.verify([Request(PytestProblem(suite, reference=reference), Candidate(code))])[0]

    assert judged(lying, "").outcome == "passed"
    verdict = judged(lying, right)
    assert (verdict.outcome, verdict.bucket) == ("failed", "wrong_answer") and "plain data" in verdict.log
    assert judged("def f(x): return [x, x]", right).outcome == "passed"


def test_the_reference_says_what_is_a_class(verifier):
    suite = "from solution import tokens\ndef test_f(): assert tokens('a b') == ['a', 'b']"
    code = "class T:\n    def __init__(s, t): s.t = t\n    def __eq__(s, o): return s.t == o\n"
    code += "def tokens(text): return [T(part) for part in text.split()]"
    assert judge(verifier, code, suite).outcome == "failed"
    verdict = verifier.verify([Request(PytestProblem(suite, reference=code), Candidate(code + "\n#"))])[0]
    assert (verdict.outcome, verdict.assertions, verdict.own_assertions) == ("passed", 1, 1)


def test_a_suite_that_its_reference_does_not_pass_judges_nobody(verifier):
    problem = PytestProblem("from solution import f\ndef test_f(): assert f() == 1", reference="def f(): return 2")
    verdict = verifier.verify([Request(problem, Candidate("def f(): return 1"))])[0]
    assert verdict.outcome == "no_verdict" and "reference does not pass" in verdict.log
    assert verifier.verify([Request(problem, Candidate("def f(): return 2"))])[0].outcome == "failed"


def test_a_shared_process_is_marked(verifier):
    code = "import sys\ndef double(x): return 2 * x"
    with make(process="shared") as shared:
        assert judge(shared, code).outcome == "passed"
        assert judge(shared, "def double(x): return 4").outcome == "failed"
        assert shared.isolation()["guarded"] is False
    assert "guarded" not in verifier.isolation()


def test_verdicts_are_known_by_the_pytest_and_the_packages_that_made_them(verifier):
    told = verifier.tool()
    assert told["pytest"] == pytest.__version__
    assert told.keys() == {"python", "pytest", "packages"}


def test_a_reference_without_its_last_line_end_is_still_the_reference() -> None:
    """A suite that it fails is then its own verdict, not one that is missing."""
    problem = PytestProblem(
        "from solution import f\n\n\ndef test_f():\n    assert f() == 2\n", reference="def f():\n    return 1\n"
    )
    with make() as verifier:
        texts = ("def f():\n    return 1\n", "def f():\n    return 1", "def f():\n    return 2")
        found = [verifier.submit(Request(problem, Candidate(text))).result(timeout=60).outcome for text in texts]
    assert found == ["failed", "failed", "no_verdict"]


@pytest.mark.parametrize(
    "record",
    [
        "5",
        "[]",
        '["test", "a"]',
        '["test", [1], "passed", ""]',
        '["collected", 3]',
        '["decided", "x", 1]',
        "{",
        '["profile", 5]',
    ],
)
def test_a_record_that_no_harness_writes_is_a_failure_and_no_crash(record: str) -> None:
    text = record.encode()
    verdict = judging.judge(
        shape_of((("test_x.py", "def test_a(): pass"),), ()),
        judging.read(JobResult("exit", 0, len(text).to_bytes(4, "big") + text)),
    )
    assert verdict.outcome == "failed" and "records of its judge" in verdict.log


@pytest.mark.parametrize(
    ("mark", "counts"),
    [
        ("skip", False),
        ("skip(reason='x')", False),
        ("skipif(True, reason='x')", False),
        ("skipif(condition=True, reason='x')", False),
        ("skipif('sys.platform', reason='x')", False),
        ("xfail", False),
        ("skipif(False, reason='x')", True),
        ("skipif(condition=False, reason='x')", True),
        ("skipif('not sys.platform', reason='x')", True),
        ("xfail(condition=False, reason='x')", True),
        ("usefixtures('tmp_path')", True),
    ],
)
def test_a_parameter_counts_if_its_own_mark_does_not_take_it_out(verifier, mark, counts):
    """A solution is right for the first parameter alone."""
    suite = f"import pytest, sys\nfrom solution import f\n@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.{mark})])\ndef test_f(x): assert f(x) == x"
    verdict = judge(verifier, "def f(x): return 1", suite)
    assert verdict.outcome == ("failed" if counts else "passed"), verdict
    assert judge(verifier, "def f(x): return 2 * x - 2", suite).outcome == "failed"


@pytest.mark.parametrize("condition", ["not ready()", "'not solution.READY'", "UNREADY", "not solution.READY"])
def test_a_solution_takes_out_no_parameter(verifier, condition):
    suite = f"import pytest, solution\ndef ready(): return solution.READY\nUNREADY = not solution.READY\nlater = pytest.mark.skipif({condition}, reason='x')\n@pytest.mark.parametrize('x', [1, pytest.param(2, marks=later)])\ndef test_f(x): assert solution.f(x) == x"
    assert judge(verifier, "READY = False\ndef f(x): return 1", suite).outcome == "failed"
    assert judge(verifier, "READY = True\ndef f(x): return x", suite).outcome == "passed"


def framed(*records: list) -> bytes:
    texts = [json.dumps(record).encode() for record in records]
    return b"".join(len(text).to_bytes(4, "big") + text for text in texts)


def test_the_first_run_compiles_a_suite_for_the_next(monkeypatch):
    with make() as verifier:
        jobs, submit = [], verifier._pool.submit
        monkeypatch.setattr(
            verifier._pool, "submit", lambda job: jobs.append(wire.decode_native(job.payload)) or submit(job)
        )
        first, second = (judge(verifier, f"def double(x): return 20  # {turn}") for turn in range(2))
        judge(verifier, RIGHT, SUITE.replace("20", "20 + 0"))
    assert [bool(job["compiled"]) for job in jobs] == [False, True, False]
    assert (first.log, first.passed, first.total) == (second.log, second.passed, second.total)
    assert "(line 6)" in second.log


def test_only_the_first_record_holds_a_compiled_suite():
    compiled = ["compiled", base64.b64encode(b"code").decode()]
    assert judging.read(JobResult("exit", 0, framed(compiled, ["done"]))).compiled == b"code"
    assert judging.read(JobResult("exit", 0, framed(["test", "a", "passed", ""], compiled))).compiled == b""


def test_hypothesis_draws_the_same_examples_in_each_run(verifier):
    suite = "from hypothesis import given, strategies as st\nfrom solution import f\nseen = []\n@given(st.integers())\ndef test_f(x):\n    seen.append(x)\n    assert f(x) == x\ndef test_seen(): assert seen == []"
    logs = [judge(verifier, f"def f(x): return x  # {turn}", suite).log for turn in range(2)]
    assert "assert [" in logs[0] and logs[0] == logs[1]


def test_a_run_that_has_ended_before_anybody_waits_for_it_blocks_nobody(monkeypatch):
    with make() as verifier:
        submit = verifier._pool.submit
        monkeypatch.setattr(verifier._pool, "submit", lambda job: completed_future(submit(job).result(timeout=60)))
        found: list[Verdict] = []
        request = Request(PytestProblem(SUITE, reference=RIGHT), Candidate(RIGHT + "\n#"))
        thread = Thread(target=lambda: found.extend(verifier.verify([request])), daemon=True)
        thread.start()
        thread.join(timeout=60)
        assert [one.outcome for one in found] == ["passed"]
