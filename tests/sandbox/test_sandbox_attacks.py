"""Attacks on the sandbox, one property a test. After each, the same worker judges an honest candidate."""

import os
import socket
import time
from types import SimpleNamespace

import pytest

import rlvr_exp
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.problems import Case, Limits, PythonProblem
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.python_io import PythonIO

CASES = (Case((2,), 4), Case((3,), 6))
PROBLEM = PythonProblem("double", CASES, limits=Limits(cpu_s=0.6, wall_s=6.0))
HONEST = "def double(x): return 2 * x"


@pytest.fixture(scope="module")
def verifier():
    options = SimpleNamespace(workers=1, cpu_s=1.0, wall_s=6.0, memory_mb=200, output_kb=64)
    with PythonIO(options) as verifier:
        yield verifier


@pytest.fixture(autouse=True)
def same_worker_still_honest(verifier):
    judge(verifier, HONEST)
    before = verifier._pool.pids()
    yield
    verifier._known.clear()
    assert judge(verifier, HONEST).outcome == "passed"
    assert verifier._pool.pids() == before


def judge(verifier: PythonIO, code: str, problem: PythonProblem = PROBLEM) -> Verdict:
    return verifier.verify([Request(problem, Candidate(code))])[0]


def body(*lines: str, first: str = "") -> str:
    return f"{first}\ndef double(x):\n" + "".join(f"    {line}\n" for line in lines)


def assert_no_case_passed(verdict: Verdict, bucket: str = "runtime_error") -> None:
    assert (verdict.outcome, verdict.bucket, verdict.passed) == ("failed", bucket, 0), verdict


# Killing


def test_kill_parent(verifier):
    assert_no_case_passed(judge(verifier, body("os.kill(os.getppid(), 9)", first="import os")))


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV"])
def test_signal_everything(verifier, number):
    assert_no_case_passed(judge(verifier, body(f"os.kill(-1, signal.{number})", first="import os, signal")))


def test_kill_own_group(verifier):
    assert_no_case_passed(judge(verifier, body("os.killpg(0, 9)", first="import os")))


def test_signal_through_a_file_owner(verifier):
    attack = body(
        "r, w = os.pipe()",
        "fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(r, 10, 9)",
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC)",
        "os.write(w, b'x')",
        first="import os, fcntl",
    )
    assert_no_case_passed(judge(verifier, attack))


def test_limits_of_the_parent_cannot_be_lowered(verifier):
    attack = body("resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))", first="import os, resource")
    assert_no_case_passed(judge(verifier, attack))


# Hanging


def test_hang_in_python_is_a_timeout(verifier):
    verdict = judge(verifier, body("while True: pass"))
    assert_no_case_passed(verdict, "timeout")
    assert 0.5 < verdict.seconds < 1.5


def test_hang_in_c_ignoring_signals(verifier):
    first = "import signal\nfor n in (2, 15, 14, 24, 27): signal.signal(n, signal.SIG_IGN)"
    assert_no_case_passed(judge(verifier, body("return 9 ** 9 ** 9", first=first)), "timeout")


def test_hang_in_a_regular_expression(verifier):
    assert_no_case_passed(judge(verifier, body("re.match('(a+)+$', 'a' * 60 + 'b')", first="import re")), "timeout")


def test_hang_while_loading(verifier):
    assert_no_case_passed(judge(verifier, "while True: pass"), "timeout")


def test_swallowing_every_exception(verifier):
    attack = body("while True:", "    try: 1 / 0", "    except BaseException: pass")
    assert_no_case_passed(judge(verifier, attack), "timeout")


def test_sleep_falls_to_the_wall_clock_after_one_retry(verifier):
    problem = PythonProblem("double", CASES, limits=Limits(wall_s=0.3))
    verdict = judge(verifier, body("time.sleep(60)", first="import time"), problem)
    assert_no_case_passed(verdict, "timeout")
    assert verdict.seconds < 0.2


def test_stopping_itself_falls_to_the_wall_clock(verifier):
    problem = PythonProblem("double", CASES, limits=Limits(wall_s=0.3))
    first = "import select"
    assert_no_case_passed(judge(verifier, body("select.select([], [], [])", first=first), problem), "timeout")


def test_answers_before_a_hang_still_count(verifier):
    verdict = judge(verifier, body("while x == 3: pass", "return 2 * x"))
    assert (verdict.bucket, verdict.passed, verdict.total) == ("timeout", 1, 2)


# Using up


def test_fork_bomb(verifier):
    assert_no_case_passed(judge(verifier, body("while True: os.fork()", first="import os")))


def test_thread_bomb(verifier):
    first = "import threading, time"
    attack = body("while True: threading.Thread(target=time.sleep, args=(60,)).start()", first=first)
    assert judge(verifier, attack).outcome == "failed"


def test_memory_bomb(verifier):
    assert_no_case_passed(judge(verifier, body("return bytearray(1 << 40)")), "memory")


def test_memory_creep(verifier):
    assert_no_case_passed(judge(verifier, body("keep = []", "while True: keep.append(bytes(1 << 22))")), "memory")


def test_flooding_stdout(verifier):
    assert_no_case_passed(judge(verifier, body("while True: print('x' * 10000)")), "output_limit")


def test_flooding_stderr_below_python(verifier):
    assert_no_case_passed(
        judge(verifier, body("while True: os.write(2, b'x' * 10000)", first="import os")), "output_limit"
    )


def test_flooding_the_results(verifier):
    assert_no_case_passed(
        judge(verifier, body("while True: os.write(90, b'x' * 10000)", first="import os")), "output_limit"
    )


def test_an_answer_too_large(verifier):
    assert_no_case_passed(judge(verifier, body("return 'x' * (2 << 20)")), "output_limit")


def test_an_answer_small_in_memory_and_huge_when_written(verifier):
    attack = body("a = []", "for _ in range(60): a = [a, a]", "return a")
    verdict = judge(verifier, attack)
    assert verdict.bucket in ("output_limit", "timeout", "memory") and verdict.passed == 0, verdict


def test_filling_the_disk(verifier):
    attack = body("for n in range(50): open(str(n), 'wb').write(bytes(4 << 20))")
    assert_no_case_passed(judge(verifier, attack))


def test_open_files_are_few(verifier):
    assert_no_case_passed(judge(verifier, body("keep = [open('/dev/null') for _ in range(200)]", "return 4")))


# Ending early


def test_segfault(verifier):
    assert_no_case_passed(judge(verifier, body("ctypes.string_at(0)", first="import ctypes")))


def test_c_stack_overflow(verifier):
    first = "import sys\nsys.setrecursionlimit(10 ** 9)"
    assert judge(verifier, body("return double(x)", first=first)).bucket in ("runtime_error", "memory", "timeout")


def test_recursion_overflow(verifier):
    assert_no_case_passed(judge(verifier, body("return double(x)")))


@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)", "exit()", "raise KeyboardInterrupt", "os.abort()"])
def test_ending_early_is_no_success(verifier, ending):
    assert judge(verifier, body(ending, first="import os, sys")).outcome == "failed"


def test_ending_early_while_loading(verifier):
    assert_no_case_passed(judge(verifier, "import os\nos._exit(0)"))


def test_closing_every_descriptor(verifier):
    assert_no_case_passed(judge(verifier, body("os.closerange(0, 1000)", "return 2 * x", first="import os")))


def test_parser_bomb(verifier):
    assert_no_case_passed(judge(verifier, "double = " + "-" * 100_000 + "1"), "parse")


def test_null_byte_and_lone_surrogate(verifier):
    assert_no_case_passed(judge(verifier, HONEST + "\0"), "parse")
    assert_no_case_passed(judge(verifier, HONEST + "#\ud800"), "parse")


# Forging


def forge(*records: str, first: str = "") -> str:
    head = f"import os\n{first}\ndef send(b): os.write(90, len(b).to_bytes(4, 'big') + b)"
    return body(*(f"send({record})" for record in records), "os._exit(0)", first=head)


def test_forged_values_are_only_values(verifier):
    assert_no_case_passed(
        judge(verifier, forge("b'[\"value\",0,true]'", "b'[\"value\",1,null]'", "b'[\"done\"]'")), "wrong_answer"
    )


def test_forged_success_without_values(verifier):
    assert_no_case_passed(judge(verifier, forge("b'[\"done\"]'")))


def test_forged_repetition_of_a_right_case(verifier):
    verdict = judge(verifier, forge(*["b'[\"value\",0,4]'"] * 2, "b'[\"done\"]'"))
    assert (verdict.outcome, verdict.passed) == ("failed", 1)


@pytest.mark.parametrize(
    "record",
    [
        "b''",
        "b'['",
        "b'\\xff'",
        "b'[' * 100000",
        "b'{\"d\":3}'",
        "b'[\"value\",true,4]'",
        "b'[\"value\",0,NaN]'",
        'b\'["value",0,{"t":4}]\'',
        'b\'["value",0,{"i":"0x"}]\'',
        'b\'["error",-1,[],""]\'',
        'b\'["error",-1.0,"parse",""]\'',
        "b'[\"value\",0,' + b'9' * 5000 + b']'",
    ],
)
def test_damaged_records(verifier, record):
    assert_no_case_passed(judge(verifier, forge(record)))


def test_half_a_frame(verifier):
    assert_no_case_passed(judge(verifier, body("os.write(90, b'\\0\\0')", "os._exit(0)", first="import os")))


def test_forged_dict_with_colliding_keys_does_not_slow_the_parent(verifier):
    pairs = "b','.join(b'[%d,0]' % (k * (2 ** 61 - 1)) for k in range(30000))"
    problem = PythonProblem("double", (Case((2,), dict.fromkeys(range(30000), 0)),))
    began = time.process_time()
    assert_no_case_passed(
        judge(verifier, forge(f"b'[\"value\",0,{{\"d\":[' + {pairs} + b']}}]'"), problem), "wrong_answer"
    )
    assert time.process_time() - began < 2


# Fooling the comparison


def test_equal_to_everything(verifier):
    first = "class Any:\n    def __eq__(self, other): return True\n    __hash__ = None"
    assert_no_case_passed(judge(verifier, body("return Any()", first=first)), "wrong_answer")


@pytest.mark.parametrize("base", ["int", "str", "list", "dict", "tuple", "float"])
def test_subclass_equal_to_everything(verifier, base):
    first = f"class Any({base}):\n    def __eq__(self, other): return True\n    __hash__ = None"
    assert_no_case_passed(judge(verifier, body("return Any()", first=first)), "wrong_answer")


def test_nan_equals_nothing(verifier):
    problem = PythonProblem("double", (Case((2,), float("nan")),))
    assert_no_case_passed(judge(verifier, body("return float('nan')"), problem), "wrong_answer")


def test_true_is_not_one(verifier):
    problem = PythonProblem("double", (Case((2,), 1),))
    assert_no_case_passed(judge(verifier, body("return True"), problem), "wrong_answer")


def test_endless_nesting(verifier):
    assert_no_case_passed(judge(verifier, body("a = []", "a.append(a)", "return a")), "wrong_answer")


def test_huge_integer(verifier):
    assert_no_case_passed(judge(verifier, body("return 1 << 1000000")), "wrong_answer")


def test_redefined_builtins(verifier):
    patch = "import builtins, json\nbuiltins.len = builtins.isinstance = builtins.type = lambda *a: True"
    assert_no_case_passed(judge(verifier, body("return 5", first=patch)), "wrong_answer")


def test_redefined_encoder(verifier):
    patch = "import json\njson.dumps = json.JSONEncoder.encode = lambda *a, **k: '[\"value\",0,4]'"
    assert judge(verifier, body("return 5", first=patch)).outcome == "failed"


# Reading and reaching out


def test_expected_values_are_nowhere_in_the_process(verifier):
    first = "import gc, sys"
    hunt = body(
        "frame, seen = sys._getframe(), []",
        "while frame: seen.append(repr(frame.f_locals)); frame = frame.f_back",
        "seen += [repr(o) for o in gc.get_objects() if type(o) in (dict, list, tuple)]",
        "return any('8675309' in text for text in seen)",
        first=first,
    )
    # The hunter's own constants hold the number split, so that it does not find itself.
    hunt = hunt.replace("'8675309'", "''.join(['8675', '309'])")
    problem = PythonProblem("double", (Case((2,), False), Case((1,), 8675309)))
    assert judge(verifier, hunt, problem).passed == 1


def test_environment_is_empty(verifier, monkeypatch):
    monkeypatch.setenv("RLVR_TEST_SECRET", "1")
    problem = PythonProblem("double", (Case((2,), []),))
    assert judge(verifier, body("return list(os.environ)", first="import os"), problem).outcome == "passed"


def test_folder_is_empty_and_nothing_is_left_for_the_next(verifier):
    problem = PythonProblem("double", (Case((2,), []),))
    leave = "import os\nhere = os.listdir('.')\nos.makedirs('a/b')\nopen('a/b/left', 'w').close()\nos.chmod('a', 0)"
    assert judge(verifier, body("return here", first=leave), problem).outcome == "passed"
    assert judge(verifier, body("return os.listdir('.')", first="import os"), problem).outcome == "passed"


def test_parents_descriptors_are_closed(verifier):
    first = "import os\ndef there(n):\n    try: os.fstat(n); return True\n    except OSError: return False"
    problem = PythonProblem("double", (Case((2,), [0, 1, 2, 90]),))
    assert (
        judge(verifier, body("return [n for n in range(2000) if there(n)]", first=first), problem).outcome == "passed"
    )


def test_network_is_refused(verifier):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        attack = body(f"socket.create_connection(('127.0.0.1', {port}), 1)", "return 2 * x", first="import socket")
        assert_no_case_passed(judge(verifier, attack))


def test_project_cannot_be_imported(verifier):
    assert_no_case_passed(judge(verifier, body("return 2 * x", first="import rlvr_exp.verifiers.python_io")))


def test_project_cannot_be_read(verifier):
    if "files_hidden" not in verifier.isolation()["isolated"]:
        pytest.skip("this machine allows no mount namespace")
    folder = os.path.dirname(rlvr_exp.__file__)
    assert_no_case_passed(
        judge(verifier, body(f"return os.listdir({folder!r}) and 2 * x", first="import os")), "wrong_answer"
    )
    reach = f"return open(os.path.join({folder!r}, '__init__.py')) and 2 * x"
    assert_no_case_passed(judge(verifier, body(reach, first="import os")))


def test_files_outside_are_not_written(verifier, tmp_path):
    tmp_path.chmod(0o777)
    target = os.path.join(os.getcwd(), "written_by_a_candidate")
    for path in (str(tmp_path / "x"), target, "/dev/shm/written_by_a_candidate"):
        judge(verifier, body(f"open({path!r}, 'w').close()"))
        assert not os.path.exists(path)


# Honest controls that look like attacks


@pytest.mark.parametrize(
    "code",
    [
        HONEST,
        "double = lambda x: x + x",
        "import builtins\nbuiltins.len = None\n" + HONEST,
        body("print('thinking')", "return 2 * x"),
        body("open('notes', 'w').write('x')", "return 2 * x"),
        "def sum(a): return 2 * a\ndef double(x): return sum(x)",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    v: int\n" + body("return P(2 * x).v"),
        "import asyncio\nasync def f(x): return 2 * x\n" + body("return asyncio.run(f(x))"),
        body(
            "r = []",
            "t = threading.Thread(target=lambda: r.append(2 * x))",
            "t.start(); t.join(); return r[0]",
            first="import threading",
        ),
        body("return len(bytes(50 << 20)) and 2 * x"),
        "if __name__ == '__main__':\n    1 / 0\n" + HONEST,
        "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\n" + body("return f(2000) + 2 * x"),
    ],
)
def test_honest_candidates_pass(verifier, code):
    verdict = judge(verifier, code)
    assert verdict.outcome == "passed", verdict
