"""Cases of a Python candidate: fresh state for each, entry points, limits of one case, and the log."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_io import PythonIO

THREE = PythonProblem("f", tuple(Case((n,), n) for n in range(3)), limits=Limits(cpu_s=2.0))
ECHO = PythonProblem("", tuple(StdinCase(f"{n}\n", f"{n}\n") for n in range(3)), limits=Limits(cpu_s=2.0))


def make(**own: float) -> PythonIO:
    options = {"cpu_s": 1.0, "wall_s": 6.0, "memory_mb": 100, "output_kb": 16, "level": "auto", "require": ""}
    return PythonIO(SimpleNamespace(workers=1, **options), **own)


@pytest.fixture(scope="module")
def verifier():
    with make() as verifier:
        yield verifier


def judge(verifier, code: str, problem: PythonProblem = THREE):
    return verifier.verify([Request(problem, Candidate(code))])[0]


STATE = {
    "module": "N = globals().get('N', 0) + 1\ndef f(x): return x if N == 1 else None",
    "function": "def f(x, seen=[]):\n    seen.append(x)\n    return x if len(seen) == 1 else None",
    "class": "class C: n = 0\ndef f(x):\n    C.n += 1\n    return x if C.n == 1 else None",
    "cache": "import functools\n@functools.cache\ndef g(): return []\ndef f(x):\n    g().append(x)\n    return g()[0]",
    "builtins": "import builtins\nold = hasattr(builtins, 'mine')\nbuiltins.mine = 1\nprint = None\n"
    "def f(x): return None if old else x",
    "standard_module": "import math\nold = math.floor is None\nmath.floor = None\ndef f(x): return None if old else x",
    "new_attribute": "import os\nold = hasattr(os, 'mine')\nos.mine = 1\ndef f(x): return None if old else x",
    "module_table": "import sys\nold = 'mine' in sys.modules\nsys.modules['mine'] = sys\nsys.modules.pop('json', 0)\n"
    "def f(x): return None if old else x",
    "environment": "import os\nold = os.environ.get('N')\nos.environ['N'] = '1'\ndef f(x): return None if old else x",
    "path": "import sys\nold = '/mine' in sys.path\nsys.path.append('/mine')\ndef f(x): return None if old else x",
    "random": "import random\n"
    "def f(x): open('n', 'a').write(str(random.random())); return x if random.random() == FIRST else None\n"
    "random.seed(0)\nrandom.random()\nFIRST = random.random()\nrandom.seed(0)",
    "unseeded_random": "import random\nA = random.random()\nrandom.seed(0)\n"
    "def f(x): return x if random.random() == A else None",
    "decimal_context": "import decimal\nold = decimal.getcontext().prec\ndecimal.getcontext().prec = 3\n"
    "def f(x): return x if old == 28 else None",
    "recursion_limit": "import sys\nold = sys.getrecursionlimit()\nsys.setrecursionlimit(9999)\n"
    "def f(x): return x if old < 2000 else None",
    "digits_limit": "import sys\nold = sys.get_int_max_str_digits()\nsys.set_int_max_str_digits(0)\n"
    "def f(x): return x if old == 4300 else None",
    "warnings": "import warnings\nold = len(warnings.filters)\nwarnings.simplefilter('error')\nN = 0\n"
    "def f(x): return x if old == len(warnings.filters) - 1 else None",
    "standard_output": "import sys\nold = sys.stdout is None\nsys.stdout = None\ndef f(x): return None if old else x",
    "current_directory": "import os\nold = os.path.basename(os.getcwd())\nos.makedirs('d'); os.chdir('d')\n"
    "def f(x): return x if old != 'd' else None",
    "files": "import os\nold = os.listdir('.')\nopen('n', 'w').close(); os.makedirs('a/b'); os.chmod('a', 0)\n"
    "def f(x): return None if old else x",
    "signal_handler": "import signal\nold = signal.getsignal(14)\nsignal.signal(14, print); signal.alarm(60)\n"
    "def f(x): return x if old == 0 and signal.alarm(0) > 50 else None",
    "umask": "import os\nold = os.umask(0)\ndef f(x): return x if old == 0o077 else None",
    "tracer": "import sys\nold = sys.gettrace()\nsys.settrace(lambda *a: None)\n"
    "def f(x): return x if old is None else None",
    "garbage_collector": "import gc\nold = gc.isenabled()\ngc.disable()\ndef f(x): return x if old else None",
    "arguments_of_the_program": "import sys\nold = len(sys.argv)\nsys.argv.append('a')\n"
    "def f(x): return x if old == 1 else None",
}


@pytest.mark.parametrize("code", STATE.values(), ids=STATE)
def test_state_is_fresh_for_each_case_of_a_function(verifier, code):
    assert judge(verifier, code).outcome == "passed"


@pytest.mark.parametrize("code", STATE.values(), ids=STATE)
def test_state_is_fresh_for_each_case_of_a_program(verifier, code):
    shown = "\nimport sys\nsys.__stdout__.write(str(f(int(sys.stdin.readline()))))"
    assert judge(verifier, code + shown, ECHO).outcome == "passed"


@pytest.mark.parametrize(
    ("entry_point", "code", "bucket"),
    [
        ("Solution.f", "class Solution:\n    def f(self, x): return x", None),
        ("Solution.f", "class Solution:\n    f = staticmethod(lambda x: x)", None),
        ("Solution.f", "class Solution:\n    @classmethod\n    def f(cls, x): return x", None),
        (
            "Solution.f",
            "class Solution:\n    def __init__(self): self.n = 0\n    def f(self, x): return x + self.n",
            None,
        ),
        ("Outer.Inner.f", "class Outer:\n    class Inner:\n        def f(self, x): return x", None),
        ("tools.f", "import types\ntools = types.SimpleNamespace(f=lambda x: x)", None),
        ("Solution.f", "def f(x): return x", "resolve"),
        ("Solution.f", "class Solution:\n    def g(self, x): return x", "resolve"),
        ("Solution.f", "class Solution:\n    f = 3", "resolve"),
        (
            "Solution.f",
            "class Solution:\n    def __init__(self, n): pass\n    def f(self, x): return x",
            "runtime_error",
        ),
        ("C", "class C:\n    def __new__(cls, x): return x", None),
        ("f", "class F:\n    def __call__(self, x): return x\nf = F()", None),
        ("f", "import functools\nf = functools.partial(lambda a, x: x, 0)", None),
    ],
)
def test_entry_points(verifier, entry_point, code, bucket):
    assert judge(verifier, code, replace(THREE, entry_point=entry_point)).bucket == bucket


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (replace(THREE, entry_point=""), "every case must be one of programs"),
        (replace(ECHO, entry_point="f"), "every case must be one of calls"),
        (replace(THREE, entry_point="f()"), "neither NAME nor CLASS.METHOD"),
        (replace(THREE, entry_point="f\n"), "neither NAME nor CLASS.METHOD"),
        (replace(THREE, atol=float("nan")), "atol must be finite"),
        (replace(THREE, atol=-1.0), "atol must be finite"),
        (replace(THREE, rtol=float("inf")), "rtol must be finite"),
        (PythonProblem("f", (Case((), {1: object()}),)), "not plain data"),
        (object(), "got a object"),
    ],
)
def test_a_problem_that_is_none_has_no_verdict_and_a_reason(verifier, problem, said):
    verdict = judge(verifier, "def f(x): return x", problem)
    assert verdict.outcome == "no_verdict" and said in verdict.log


def test_a_case_past_its_own_limit_fails_and_the_others_run():
    slow = "def f(x):\n    while x == 1: pass\n    return x"
    swallowing = "def f(x):\n    while x == 1:\n        try: x * x\n        except ValueError: pass\n    return x"
    with make(case_cpu_s=0.1) as verifier:
        for code in (slow, swallowing):
            verdict = judge(verifier, code)
            assert (verdict.bucket, verdict.passed, verdict.total) == ("timeout", 2, 3)
            assert verdict.log == "case 1: stopped at its own CPU limit of 0.1 s"
        verdict = judge(verifier, "n = int(input())\nwhile n == 1: pass\nprint(n)", ECHO)
        assert (verdict.bucket, verdict.passed) == ("timeout", 2)


def test_without_a_limit_of_its_own_a_case_may_use_all(verifier):
    busy = "import time\ndef f(x):\n    while x == 1 and time.process_time() < 0.5: pass\n    return x"
    assert judge(verifier, busy).outcome == "passed"


LONG = "a" * 500
LOGS = [
    ("f", "def f(): return 4", 5, "case 0: f() gave 4, expected 5"),
    ("f", "def f(): return '5'", 5, "case 0: f() gave '5', expected 5"),
    ("f", "def f(): return True", 1, "gave True, expected 1"),
    ("f", f"def f(): return {LONG + 'b' + LONG!r}", LONG + "c" + LONG, "from character 501: gave '..."),
    ("f", "def f(): return list(range(1000)) + [7]", [*range(1000), 8], "differs at [1000]: gave 7, expected 8"),
    ("f", "def f(): return list(range(999))", list(range(1000)), "999 items, expected 1000"),
    (
        "f",
        "def f(): return [[0] * 99] * 50 + [[1, 2]]",
        [[0] * 99] * 50 + [[1, 3]],
        "differs at [50][1]: gave 2, expected 3",
    ),
    (
        "f",
        "def f(): return {n: [n] for n in range(99)}",
        {n: [n + (n == 7)] for n in range(99)},
        "at [7][0]: gave 7, expected 8",
    ),
    ("f", "def f(): return 10 ** 5000", 1, "gave <an int of 16610 bits>"),
    ("f", "def f(): return 1 / 0", 1, "case 0: ZeroDivisionError: division by zero (line 1: def f(): return 1 / 0)"),
    ("f", "def f():\n    return g()\ndef g():\n    return {}['k']", 1, "KeyError: 'k' (line 4: return {}['k'])"),
    ("f", "import json\ndef f():\n    return json.loads('{')", 1, "(line 3: return json.loads('{'))"),
    ("f", "def f(: pass", 1, "SyntaxError: invalid syntax (candidate.py, line 1) (line 1: def f(: pass)"),
    ("f", "def f(): return map(int, [])", [], "returned a map, which is not plain data: return a list of its items"),
    ("f", "def f(): return 1.0", 2, "gave 1.0, expected 2"),
]


@pytest.mark.parametrize(("entry_point", "code", "expected", "said"), LOGS)
def test_the_log_shows_where_a_function_goes_wrong(verifier, entry_point, code, expected, said):
    log = judge(verifier, code, PythonProblem(entry_point, (Case((), expected),))).log
    assert said in log and len(log) < 500 and log.count("\n") < 5


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        ("print('a\\nb\\nc')", "a\nx\nc\n", "line 2 of its output differs:\n- x\n+ b"),
        ("print('a')", "a\nb\n", "line 2 of its output differs:\n- b\n+ <no line>"),
        ("print('a\\nb')", "a\n", "line 2 of its output differs:\n- <no line>\n+ b"),
        ("print('x' * 9999)", "x" * 9998, "line 1 of its output differs:"),
        ("", "a", "- a\n+ "),
        ("import sys; sys.exit(4)", "", "exit code 4"),
        ("import sys; sys.exit('told')", "", "exit code 1"),
        ("1 / 0", "", "ZeroDivisionError: division by zero (line 1: 1 / 0)"),
        ("input()", "", "EOFError"),
    ],
)
def test_the_log_shows_where_a_program_goes_wrong(verifier, code, expected, said):
    log = judge(verifier, code, PythonProblem("", (StdinCase("", expected),))).log
    assert said in log and log.startswith("case 0") and len(log) < 500


def test_a_flood_counts_no_case_whenever_it_was_stopped(verifier):
    verdict = judge(
        verifier, "import os\ndef f(x):\n    if x == 2:\n        while True: os.write(1, bytes(9999))\n    return x"
    )
    assert (verdict.bucket, verdict.passed) == ("output_limit", 0)


def test_answers_beyond_the_usual_size_have_room(verifier):
    many = list(range(400_000))
    problem = PythonProblem("f", (Case((many,), many), Case((many,), many)), limits=Limits(cpu_s=5.0, memory_mb=400))
    assert judge(verifier, "def f(x): return x", problem).outcome == "passed"


def test_the_interpreter_is_part_of_what_is_remembered(verifier):
    assert verifier.tool()["python"].startswith("3.")
