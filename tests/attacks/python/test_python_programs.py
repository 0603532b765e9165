"""Complete programs: every usual way to read, write and end works, case after case in one process."""

from dataclasses import replace

import pytest
from python_arena import LIMITS, PROGRAM, judge

from rlvr_exp.tasks.formats.python_io import PythonProblem, StdinCase

ROOMY = replace(LIMITS, cpu_s=4.0, wall_s=20.0)
SUMS = PythonProblem("", (StdinCase("2\n1 2\n", "3\n"), StdinCase("3\n4 5 6\n", "15\n")), limits=ROOMY)
READING = {
    "input": "input(); print(sum(map(int, input().split())))",
    "input_with_a_prompt_on_stderr": "import sys\nsys.stderr.write('n?')\n"
    "input(); print(sum(map(int, input().split())))",
    "readline": "import sys\ninput = sys.stdin.readline\ninput(); print(sum(map(int, input().split())))",
    "readlines": "import sys\nprint(sum(map(int, sys.stdin.readlines()[1].split())))",
    "read": "import sys\nprint(sum(map(int, sys.stdin.read().split()[1:])))",
    "iteration": "import sys\nprint(sum(map(int, [line for line in sys.stdin][1].split())))",
    "buffer": "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))",
    "buffer_readline": "import sys\nr = sys.stdin.buffer.readline\nr(); print(sum(map(int, r().split())))",
    "raw": "import sys\nprint(sum(map(int, sys.stdin.buffer.raw.read(999).split()[1:])))",
    "open_0": "print(sum(map(int, open(0).read().split()[1:])))",
    "open_0_iterated": "n, a = open(0)\nprint(sum(map(int, a.split())))",
    "open_0_bytes": "print(sum(map(int, open(0, 'rb').read().split()[1:])))",
    "os_read": "import os\nprint(sum(map(int, os.read(0, 9999).split()[1:])))",
    "size_by_fstat": "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split()[1:])))",
    "fileinput": "import fileinput\nprint(sum(map(int, [line for line in fileinput.input()][1].split())))",
    "until_end_of_file": "a = []\ntry:\n    while True: a += map(int, input().split())\n"
    "except EOFError: print(sum(a[1:]))",
    "numbers_by_iterator": "import sys\nit = map(int, sys.stdin.read().split())\n"
    "n = next(it); print(sum(next(it) for _ in range(n)))",
    "seek_and_read_again": "import sys\nsys.stdin.read(); sys.stdin.seek(0)\n"
    "print(sum(map(int, sys.stdin.read().split()[1:])))",
    "wrapped": "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer)\n"
    "input(); print(sum(map(int, input().split())))",
    "replaced": "import io, os, sys\nsys.stdin = io.StringIO(os.read(0, 9999).decode())\n"
    "input(); print(sum(map(int, input().split())))",
    "named_as_a_device": "print(sum(map(int, open('/dev/stdin').read().split()[1:])))",
    "detached": "import io, sys\nf = io.TextIOWrapper(sys.stdin.detach())\nprint(sum(map(int, f.read().split()[1:])))",
    "original_stream": "import sys\nprint(sum(map(int, sys.__stdin__.read().split()[1:])))",
    "closed_afterwards": "import os, sys\na = sys.stdin.read(); sys.stdin.close(); os.close(0)\n"
    "print(sum(map(int, a.split()[1:])))",
    "select_first": "import select, sys\nassert select.select([sys.stdin], [], [], 1)[0]\n"
    "print(sum(map(int, open(0).read().split()[1:])))",
}
HEAD = "import os, sys\ninput(); a = str(sum(map(int, input().split())))\n"
WRITING = {
    "print_flushed": HEAD + "print(a, flush=True)",
    "write": HEAD + "sys.stdout.write(a)",
    "writelines": HEAD + "sys.stdout.writelines([a, '\\n'])",
    "buffer": HEAD + "sys.stdout.buffer.write(a.encode())",
    "os_write": HEAD + "os.write(1, a.encode())",
    "both_in_order": HEAD + "sys.stdout.write(a[:1]); sys.stdout.flush(); os.write(1, a[1:].encode())",
    "open_1": HEAD + "with open(1, 'w') as f: f.write(a)",
    "open_1_never_closed": HEAD + "f = open(1, 'w', closefd=False); f.write(a)",
    "copy_of_the_descriptor": HEAD + "os.write(os.dup(1), a.encode())",
    "named_as_a_device": HEAD + "with open('/dev/stdout', 'w') as f: f.write(a)",
    "detached": HEAD + "import io\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8'); print(a)",
    "original_stream": HEAD + "sys.__stdout__.write(a)",
    "reconfigured": HEAD + "sys.stdout.reconfigure(encoding='utf-8', line_buffering=True); print(a)",
    "wrapped": HEAD + "import io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=True); print(a)",
    "collected_and_flushed_at_exit": HEAD + "import io, atexit\nsys.stdout = io.StringIO()\n"
    "atexit.register(lambda: os.write(1, sys.stdout.getvalue().encode()))\nprint(a)",
    "fast_class": HEAD
    + "import io\nclass Out(io.IOBase):\n    def __init__(s, f): s.fd = f.fileno(); s.b = io.BytesIO()\n"
    "    def write(s, t): s.b.write(t.encode())\n"
    "    def flush(s): os.write(s.fd, s.b.getvalue()); s.b = io.BytesIO()\n"
    "    writable = lambda s: True\nsys.stdout = Out(sys.stdout)\nprint(a)",
    "noise_on_stderr": HEAD + "print('noise', file=sys.stderr); print(a)",
    "blank_lines_at_the_end": HEAD + "print(a + '  \\n\\n  ')",
    "closed_afterwards": HEAD + "print(a); sys.stdout.close()",
    "descriptor_closed_afterwards": HEAD + "print(a, flush=True); os.close(1)",
    "to_a_file_and_back": HEAD
    + "s = os.dup(1); os.dup2(os.open('f', 66), 1); print('no', flush=True); os.dup2(s, 1); print(a)",
    "from_a_thread": HEAD + "import threading\nt = threading.Thread(target=print, args=(a,)); t.start(); t.join()",
    "from_a_thread_not_waited_for": HEAD + "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.02), print(a))).start()",
    "main_in_a_thread_with_a_large_stack": HEAD + "import threading\nsys.setrecursionlimit(10 ** 6)\n"
    "threading.stack_size(1 << 26)\ndef deep(n): return n and deep(n - 1)\n"
    "def main(): deep(10 ** 4); print(a)\nthreading.Thread(target=main).start()",
    "from_a_pool_left_open": HEAD
    + "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(2).submit(print, a)",
    "from_asyncio": HEAD + "import asyncio\nasync def main(): print(a)\nasyncio.run(main())",
    "in_a_finalizer": HEAD + "class F:\n    def __del__(s, p=print): p(a)\nF()",
}
ENDING = {
    "sys_exit": HEAD + "print(a); sys.exit()",
    "sys_exit_0": HEAD + "print(a); sys.exit(0)",
    "sys_exit_none": HEAD + "print(a); sys.exit(None)",
    "exit": HEAD + "print(a); exit()",
    "quit": HEAD + "print(a); quit(0)",
    "raise_system_exit": HEAD + "print(a)\nraise SystemExit",
    "os_exit_after_a_flush": HEAD + "print(a, flush=True); os._exit(0)",
    "exit_in_a_function": HEAD + "def main(): print(a); exit()\nmain()",
    "exit_in_a_thread": HEAD + "import threading\nprint(a); threading.Thread(target=sys.exit).start()",
    "exit_handlers_in_order": HEAD
    + "import atexit\natexit.register(print, a[1:]); atexit.register(sys.stdout.write, a[:1])",
    "daemon_left": HEAD
    + "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start(); print(a)",
    "main_block": HEAD + "if __name__ == '__main__': print(a)",
    "main_block_and_pickle": HEAD
    + "import pickle\nclass V: pass\nassert type(pickle.loads(pickle.dumps(V()))) is V\nprint(a)",
    "itself_by_import": HEAD + "import __main__\nprint(__main__.a)",
    "own_module_beside_it": HEAD
    + "open('b.py', 'w').write('c = 0')\nsys.path.insert(0, '')\nimport b; print(int(a) + b.c)\nb.c = 9",
    "global_state": "N = globals().get('N', 0) + 1\nassert N == 1\n" + HEAD + "print(a)",
    "state_in_a_module": HEAD + "import math\nassert not hasattr(math, 'seen')\nmath.seen = True\nprint(a)",
    "recursion_limit_and_random": HEAD
    + "import random\nassert sys.getrecursionlimit() < 2000\nsys.setrecursionlimit(9999)\nprint(a)",
}
ALL = {
    f"{group}-{name}": code
    for group, table in {"reading": READING, "writing": WRITING, "ending": ENDING}.items()
    for name, code in table.items()
}


@pytest.mark.parametrize("code", ALL.values(), ids=ALL)
def test_a_program_passes(verifier, code):
    verdict = judge(verifier, code, SUMS)
    assert verdict.outcome == "passed", verdict


def test_a_hundred_thousand_lines_pass(verifier):
    problem = PythonProblem("", (StdinCase("", "1\n" * 100_000),), limits=ROOMY)
    assert judge(verifier, "for _ in range(100000): print(1)", problem).outcome == "passed"


def test_large_input_and_output_pass(verifier):
    text = "x" * 79 + "\n"
    problem = PythonProblem("", tuple(StdinCase(text * n, text * n) for n in (1, 40_000)), limits=ROOMY)
    assert judge(verifier, "import sys\nsys.stdout.write(sys.stdin.read())", problem).outcome == "passed"


def test_text_of_all_kinds_passes(verifier):
    text = "\u00e9\u4e2d\U0001f600\t\x00\x7f\r\n\x85\u2028 end"
    problem = PythonProblem("", (StdinCase(text, text),), limits=ROOMY, strict=True)
    for code in (
        "import sys; sys.stdout.write(sys.stdin.read())",
        "import os; os.write(1, os.read(0, 999))",
        "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())",
    ):
        verdict = judge(verifier, code, problem)
        assert verdict.outcome == "passed", verdict


def test_a_case_does_not_see_the_output_of_the_one_before(verifier):
    keep = "keep = open(1, 'w', closefd=False); keep.write('late')\nsys.kept = keep"
    holding = f"import sys\n{keep}\nprint('x')"
    problem = PythonProblem("", tuple(StdinCase(str(n), "x") for n in range(3)), limits=ROOMY)
    assert judge(verifier, holding, problem).passed == 3


def test_cases_after_a_failed_one_still_run(verifier):
    verdict = judge(verifier, "n = int(input())\nprint(2 * n if n == 3 else 1 // 0)", PROGRAM)
    assert (verdict.bucket, verdict.passed, verdict.total) == ("runtime_error", 1, 2)
