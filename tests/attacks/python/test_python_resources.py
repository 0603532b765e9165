"""Attacks on CPU, clock, memory, processes, descriptors, disk, output, the parser and the C stack."""

import pytest
from python_arena import HONEST, PROGRAM, SLEEPY, double, judge, limited
from thinning import thinned

pytestmark = pytest.mark.usefixtures("honest_after")

ENDLESS = {
    "python_loop": double("while True: pass"),
    "while_loading": "while True: pass",
    "every_exception_swallowed": double("while True:\n    try: 1 / 0\n    except BaseException: pass"),
    "power_in_c": double("return 9 ** 9 ** 9"),
    "digits_in_c": double("sys.set_int_max_str_digits(0); return int('9' * 10 ** 7)", "import sys"),
    "regular_expression": double("re.match('(a+)+$', 'a' * 60 + 'b')", "import re"),
    "endless_sum_in_c": double("return sum(itertools.repeat(0))", "import itertools"),
    "list_built_and_sorted_in_c": double("while True: sorted(range(10 ** 6), key=lambda n: -n)"),
    "endless_membership_in_c": double("return -1 in itertools.count()", "import itertools"),
    "signals_ignored": double(
        "return 9 ** 9 ** 9", "import signal\nfor n in (2, 15, 14, 24, 27): signal.signal(n, signal.SIG_IGN)"
    ),
    "signals_blocked": double(
        "while True: pass", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"
    ),
    "many_threads": double(
        "for _ in range(8): threading.Thread(target=spin).start()\nspin()",
        "import threading\ndef spin():\n    while True: pass",
    ),
    "thread_behind_a_right_answer_never_ends_the_load": double(
        "threading.Thread(target=spin).start()\nwhile True: pass",
        "import threading\ndef spin():\n    while True: pass",
    ),
    "limits_raised": double(
        "while True: pass",
        "import resource\ntry: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\nexcept (OSError, ValueError): pass",
    ),
    "finalizer_that_revives": double(
        "a = A(); del a\nwhile True: pass", "class A:\n    def __del__(self):\n        while True: pass"
    ),
}
SLEEPING = {
    "sleep": double("time.sleep(60)", "import time"),
    "select": double("select.select([], [], [])", "import select"),
    "lock": double("lock = threading.Lock(); lock.acquire(); lock.acquire()", "import threading"),
    "own_pipe": double("r, w = os.pipe(); os.read(r, 1)", "import os"),
    "pause": double("signal.pause()", "import signal"),
    "event_loop": double("asyncio.new_event_loop().run_forever()", "import asyncio"),
}
MEMORY = {
    "one_array": double("return bytearray(1 << 40)"),
    "creep": double("keep = []\nwhile True: keep.append(bytes(1 << 22))"),
    "one_text": double("return len('x' * (1 << 38))"),
    "list_of_lists": double("return [[0]] * (1 << 40)"),
    "doubling": double("a = [0]\nwhile True: a += a"),
    "mapped": double("keep = [mmap.mmap(-1, 1 << 28) for _ in range(100)]", "import mmap"),
    "while_loading": "keep = bytearray(1 << 40)",
    "format_width": double("return len('%' + '1000000000000d') and format(1, '1000000000000d')"),
    "tree_of_a_bomb": double("return ast.parse('+' * 10 ** 6 + '1' + ', [' * 10 ** 6)", "import ast"),
    "decompressed": double("d = zlib.compress(bytes(10 ** 7)); return zlib.decompress(d) * 999", "import zlib"),
}
PROCESSES = {
    "fork_bomb": double("while True: os.fork()", "import os"),
    "fork_once": double("return 2 * x if os.fork() else None", "import os"),
    "posix_spawn": double("os.posix_spawn('/bin/true', ['true'], {}); return 2 * x", "import os"),
    "subprocess": double("subprocess.run(['true']); return 2 * x", "import subprocess"),
    "system": double("return 2 * x if os.system('true') == 0 else None", "import os"),
    "multiprocessing": double(
        "with multiprocessing.get_context('fork').Pool(1) as p: return p.map(abs, [2 * x])[0]", "import multiprocessing"
    ),
    "clone_by_number": double(
        "pid = ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\n"
        "return 2 * x if pid > 0 else None",
        "import ctypes, os",
    ),
    "thread_bomb": double(
        "while True: threading.Thread(target=time.sleep, args=(60,)).start()", "import threading, time"
    ),
}
DESCRIPTORS = {
    "files": double("keep = [open('/dev/null') for _ in range(400)]; return 2 * x"),
    "pipes": double("keep = [os.pipe() for _ in range(400)]; return 2 * x", "import os"),
    "copies": double("keep = [os.dup(1) for _ in range(400)]; return 2 * x", "import os"),
    "memory_files": double("keep = [os.memfd_create('x') for _ in range(400)]; return 2 * x", "import os"),
}
DISK = {
    "many_files": double("for n in range(50): open(str(n), 'wb').write(bytes(4 << 20))\nreturn 2 * x"),
    "one_file": double("open('f', 'wb').write(bytes(100 << 20)); return 2 * x"),
    "names": double("for n in range(100000): open(str(n), 'w').close()\nreturn 2 * x"),
    "hole": double("f = open('f', 'wb'); f.truncate(1 << 40); f.flush(); return 2 * x"),
    "allocated": double("f = open('f', 'wb'); os.posix_fallocate(f.fileno(), 0, 1 << 34); return 2 * x", "import os"),
    "in_memory": double(
        "for n in range(50):\n    f = os.memfd_create('x')\n    while os.write(f, bytes(1 << 22)): pass\nreturn 2 * x",
        "import os",
    ),
}
OUTPUT = {
    "stdout": double("while True: print('x' * 10000)"),
    "stderr_below_python": double("while True: os.write(2, b'x' * 10000)", "import os"),
    "results": double("while True: os.write(90, b'x' * 10000)", "import os"),
    "a_large_answer": double("return 'x' * (2 << 20)"),
    "a_large_number": double("return 1 << (1 << 24)"),
    "many_small_values": double("return [0] * (1 << 21)"),
    "a_flood_from_threads": double(
        "threads = [threading.Thread(target=flood) for _ in range(4)]\nfor t in threads: t.start()\nt.join()",
        "import os, threading\ndef flood():\n    while True: os.write(1, bytes(9999))",
    ),
}
PARSER = {
    "minus_signs": "double = " + "-" * 100_000 + "1",
    "brackets": "double = " + "(" * 100_000 + "1" + ")" * 100_000,
    "attributes": "double = a" + ".a" * 200_000,
    "additions": "double = 1" + "+1" * 200_000,
    "lambdas": "double = " + "lambda: " * 50_000 + "1",
    "nested_blocks": "".join(" " * n + "if 1:\n" for n in range(150)) + " " * 150 + "double = 1",
    "f_strings": "double = " + "f'{" * 200 + "1" + "}'" * 200,
    "null_byte": HONEST + "\0",
    "lone_surrogate": HONEST + "#\ud800",
    "huge_literal": "double = " + "9" * 1_000_000,
    "folded_constants": "double = " + " ** ".join("9" * 9),
    "at_run_time": double("return eval('(' * 10 ** 5)"),
}
C_STACK = {
    "recursion_without_limit": double("return double(x)", "import sys\nsys.setrecursionlimit(10 ** 9)"),
    "recursion_with_the_usual_limit": double("return double(x)"),
    "repr_of_nested_lists": double(
        "a = []\nfor _ in range(10 ** 6): a = [a]\nreturn repr(a)", "import sys\nsys.setrecursionlimit(10 ** 9)"
    ),
    "comparison": double(
        "a, b = [], []\nfor _ in range(10 ** 6): a, b = [a], [b]\nreturn a == b",
        "import sys\nsys.setrecursionlimit(10 ** 9)",
    ),
    "pickle": double(
        "a = []\nfor _ in range(10 ** 6): a = [a]\nreturn pickle.dumps(a)",
        "import sys, pickle\nsys.setrecursionlimit(10 ** 9)",
    ),
    "chain_of_iterators": double(
        "i = iter([1])\nfor _ in range(10 ** 6): i = itertools.chain(i)\nreturn next(i)", "import itertools"
    ),
    "null_pointer": double("ctypes.string_at(0)", "import ctypes"),
    "wild_write": double("ctypes.memset(id(None) & ~4095, 255, 1 << 30)", "import ctypes"),
    "getattr_of_itself": double(
        "return A().x",
        "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    __getattr__ = lambda s, n: getattr(s, n)",
    ),
}
GROUPS = {"processes": PROCESSES, "descriptors": DESCRIPTORS, "disk": DISK}
REFUSED = [pytest.param(code, id=f"{group}-{name}") for group, table in GROUPS.items() for name, code in table.items()]
PROGRAMS = {
    "endless_output": "while True: print('x' * 10000)",
    "endless_output_below_python": "import os\nwhile True: os.write(1, bytes(10000))",
    "reading_past_the_end": "import sys\nwhile True: sys.stdin.read()",
    "reading_line_after_line": "while True:\n    try: input()\n    except EOFError: pass",
    "thread_that_never_ends": "import threading\nt = threading.Event()\nthreading.Thread(target=t.wait).start()",
    "exit_handler_that_never_ends": "import atexit\n@atexit.register\ndef last():\n    while True: pass",
    "memory": "x = bytearray(1 << 40)",
    "forks": "import os\nos.fork()\nprint(2 * int(input()))",
}


def fails_as(verdict, *buckets: str) -> None:
    assert verdict.outcome == "failed" and verdict.bucket in buckets and verdict.passed == 0, verdict


@pytest.mark.property(19)
@pytest.mark.parametrize("code", thinned(ENDLESS.values()), ids=thinned(ENDLESS))
def test_cpu_ends_at_its_limit(verifier, code):
    verdict = judge(verifier, code, limited(cpu_s=0.3))
    fails_as(verdict, "timeout", "memory")
    assert verdict.seconds < 1.5


@pytest.mark.property(19)
@pytest.mark.parametrize("code", thinned(SLEEPING.values()), ids=thinned(SLEEPING))
def test_sleep_falls_to_the_wall_clock(verifier, code):
    verdict = judge(verifier, code, limited(wall_s=SLEEPY.wall_s))
    fails_as(verdict, "timeout")
    assert verdict.seconds < 0.4


@pytest.mark.property(20)
@pytest.mark.parametrize("code", thinned(MEMORY.values()), ids=thinned(MEMORY))
def test_memory_ends_at_its_limit(verifier, code):
    fails_as(judge(verifier, code), "memory", "runtime_error")


@pytest.mark.parametrize("code", thinned(REFUSED))
def test_it_is_refused(verifier, code):
    fails_as(judge(verifier, code), "runtime_error", "wrong_answer", "memory", "timeout", "output_limit")


@pytest.mark.parametrize("code", thinned(OUTPUT.values()), ids=thinned(OUTPUT))
def test_output_ends_at_its_limit(verifier, code):
    fails_as(judge(verifier, code, limited(cpu_s=2.0)), "output_limit", "memory")


@pytest.mark.parametrize("code", thinned(PARSER.values()), ids=thinned(PARSER))
def test_the_parser_survives(verifier, code):
    fails_as(judge(verifier, code), "parse", "runtime_error", "memory", "timeout", "resolve")


@pytest.mark.parametrize("code", thinned(C_STACK.values()), ids=thinned(C_STACK))
def test_the_c_stack_is_the_candidates_own(verifier, code):
    fails_as(judge(verifier, code), "runtime_error", "memory", "timeout", "wrong_answer")


@pytest.mark.parametrize("code", thinned(PROGRAMS.values()), ids=thinned(PROGRAMS))
def test_a_program_ends_at_its_limits(verifier, code):
    from dataclasses import replace

    quick = replace(PROGRAM, limits=replace(PROGRAM.limits, cpu_s=0.3, wall_s=0.5))
    assert judge(verifier, code, quick).outcome == "failed"


def test_answers_before_a_hang_count(verifier):
    verdict = judge(verifier, double("while x == 3: pass\nreturn 2 * x"))
    assert (verdict.bucket, verdict.passed, verdict.total) == ("timeout", 1, 2)
