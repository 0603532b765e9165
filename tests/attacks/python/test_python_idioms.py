"""Honest idioms that lean on state of the interpreter or the library: they pass in the second case like in the
first."""

from dataclasses import replace

import pytest
from python_arena import PROBLEM, PROGRAM, double, judge, limited

from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase

ROOMY = Limits(cpu_s=4.0, wall_s=20.0, memory_mb=512)
LOOP = "import asyncio\nasync def g(x): return 2 * x\n"
FUNCTIONS = {
    "event_loop_closed": double(
        "loop = asyncio.get_event_loop()\ntry: return loop.run_until_complete(g(x))\nfinally: loop.close()", LOOP
    ),
    "event_loop_left_running_in_its_slot": double(
        "a = asyncio.events._get_running_loop(); asyncio._set_running_loop(asyncio.new_event_loop())\n"
        "return 2 * x if a is None else 0",
        LOOP,
    ),
    "loggers_set_up_once": double(
        "assert not log.handlers and not logging.root.handlers and logging.root.level == 30\n"
        "log.addHandler(logging.StreamHandler()); logging.basicConfig(level=10); logging.disable(50)\nreturn 2 * x",
        "import logging\nlog = logging.getLogger('mine')\nassert not logging.root.manager.disable",
    ),
    "submodules_of_the_library": double(
        "return 2 * x if xmlrpc.client.loads else 0", "import xmlrpc.client, concurrent.futures.thread"
    ),
    "submodule_of_a_loaded_package": double("return 2 * x if json.tool.main else 0", "import json.tool"),
    "exit_handlers_of_objects": double(
        "assert not weakref.finalize._shutdown\nweakref.finalize(C(), print); return 2 * x",
        "import weakref\nclass C: pass",
    ),
    "default_decimal_context": double(
        "return 2 * x if len(str(Decimal(1) / 3)) == 7 else 0",
        "import decimal\nfrom decimal import Decimal\nassert decimal.DefaultContext.prec == 28\n"
        "decimal.DefaultContext.prec = 5\ndecimal.setcontext(decimal.DefaultContext)",
    ),
    "time_zone": double(
        "return 2 * x if before == 0 and time.timezone == -32400 else 0",
        "import os, time\nbefore = time.timezone\nos.environ['TZ'] = 'XYZ-9'\ntime.tzset()",
    ),
    "thresholds_and_hooks": double(
        "return 2 * x",
        "import gc, sys, threading\nassert gc.get_threshold()[0] == 700 and threading.excepthook is not print\n"
        "assert sys.getswitchinterval() < 1 and sys.excepthook is not print\n"
        "gc.set_threshold(1); sys.setswitchinterval(9); sys.excepthook = threading.excepthook = print\n"
        "old = threading.stack_size(1 << 20)\nassert old != 1 << 20",
    ),
    "signals_blocked": double(
        "assert not signal.pthread_sigmask(signal.SIG_BLOCK, [10]); return 2 * x", "import signal"
    ),
    "threads": double(
        "with ThreadPoolExecutor(4) as pool: return sum(pool.map(int, [x, x]))",
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    "helper_module_with_other_content": double(
        "open('h.py', 'w').write(f'n = {x}')\nsys.path.insert(0, '.')\nimport h\nreturn 2 * h.n", "import sys"
    ),
    "names_of_the_streams": double(
        "return 2 * x if (sys.stdout.name, sys.stderr.name, sys.stdout.mode) == ('<stdout>', '<stderr>', 'w') else 0",
        "import sys",
    ),
    "debug_prints": double("for n in range(30000): print('now at', n, 'x' * 30)\nreturn 2 * x"),
    "debug_prints_on_standard_error": double(
        "for n in range(9000): print('now at', n, file=sys.stderr)\nreturn 2 * x", "import sys"
    ),
}
PROGRAMS = {
    "fileinput": "import fileinput\nprint(2 * int(next(fileinput.input())))",
    "logging_between_prints": "import logging, sys\n"
    "logging.basicConfig(stream=sys.stdout, level=logging.INFO, format='%(message)s')\nn = int(input())\n"
    "logging.info(str(2 * n))",
    "event_loop_closed": LOOP + "loop = asyncio.get_event_loop()\nprint(loop.run_until_complete(g(int(input()))))\n"
    "loop.close()",
    "thread_behind_the_end": "import threading\nthreading.Thread(target=lambda: print(2 * int(input()))).start()",
    "finalizer_prints": "class A:\n    def __del__(self): print(twice(self.n))\ndef twice(n): return n + K.k\n"
    "class K: k = 0\na = A(); a.n = int(input()); K.k = a.n",
    "finalizer_of_an_object_in_a_list": "class A:\n    def __del__(self): print(twice(self.n))\n"
    "def twice(n): return 2 * n\na = A(); a.n = int(input()); b = [a]; del a",
    "path": "from pathlib import Path\nprint(2 * int(Path('/dev/stdin').read_text()))",
    "io_open": "import io\nprint(2 * int(io.open('/dev/stdin').read()))",
    "os_open": "import os\nprint(2 * int(os.read(os.open('/dev/stdin', os.O_RDONLY), 99)))",
    "codecs_open": "import codecs\nprint(2 * int(codecs.open('/dev/stdin', 'r', 'utf8').read()))",
    "builtin_open": "print(2 * int(open('/dev/stdin').readline()), file=open('/dev/stdout', 'w'))",
    "path_that_is_asked_for_first": "import os\nn = 2 if os.path.exists('/dev/stdin') else 0\n"
    "print(n * int(open('/dev/stdin').read()))",
    "own_standard_output": "import os, sys\nclass Fast:\n    def __init__(self): self.text = ''\n"
    "    def write(self, text): self.text += text\n"
    "    def flush(self): os.write(1, self.text.encode()); self.text = ''\n"
    "sys.stdout = Fast()\nprint(2 * int(input()))",
    "debug_prints_on_standard_error": "import sys\nfor n in range(9000): print('now at', n, file=sys.stderr)\n"
    "print(2 * int(input()))",
}
SCALARS = {
    "integer": ("np.int64(2 * x)", 4),
    "float": ("np.float32(2 * x)", 4.0),
    "bool": ("np.bool_(x == 2)", True),
    "complex": ("np.complex128(2 * x)", 4 + 0j),
    "text": ("np.str_('a')", "a"),
    "in_a_list": ("[np.int8(x), [np.int16(x)]]", [2, [2]]),
    "as_a_key": ("{np.int64(x): (np.uint8(1),)}", {2: (1,)}),
    "in_a_set": ("{np.int64(x), 3}", {2, 3}),
    "in_a_counter": (
        "__import__('collections').Counter(np.array([x, x, 1]).tolist() + [np.int64(7)])",
        {2: 2, 1: 1, 7: 1},
    ),
}


@pytest.mark.parametrize("code", FUNCTIONS.values(), ids=FUNCTIONS)
def test_an_honest_idiom_of_a_function_passes_in_each_case(verifier, code):
    verdict = judge(verifier, code, replace(PROBLEM, limits=ROOMY))
    assert verdict.outcome == "passed", verdict


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_an_honest_idiom_of_a_program_passes_in_each_case(verifier, code):
    verdict = judge(verifier, code, replace(PROGRAM, limits=ROOMY))
    assert verdict.outcome == "passed", verdict


def test_lines_logged_and_printed_keep_their_order_in_each_case(verifier):
    code = "import logging, sys\nlogging.basicConfig(stream=sys.stdout, level=logging.INFO, format='%(message)s')\n"
    code += "n = input()\nprint('a')\nlogging.info('b ' + n)\nprint('c')"
    problem = PythonProblem("", tuple(StdinCase(f"{n}\n", f"a\nb {n}\nc\n") for n in range(3)), limits=ROOMY)
    assert judge(verifier, code, problem).outcome == "passed"


@pytest.mark.parametrize("name", ["google.protobuf.message", "six.moves.urllib.parse"])
def test_packages_without_a_file_of_their_own_stay(verifier, name):
    pytest.importorskip(name)
    code = double(f"return 2 * x if {name} else 0", f"import {name}")
    assert judge(verifier, code, replace(PROBLEM, limits=ROOMY)).outcome == "passed"


@pytest.mark.parametrize(("answer", "expected"), SCALARS.values(), ids=SCALARS)
def test_a_numpy_scalar_is_the_number_it_holds(verifier, answer, expected):
    problem = PythonProblem("f", (Case((2,), expected), Case((2,), expected)), strict=True, limits=ROOMY)
    assert judge(verifier, f"import numpy as np\ndef f(x): return {answer}", problem).outcome == "passed"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import numpy as np\ndef double(x): return np.array([x])", "numpy array"),
        ("import numpy as np\ndef double(x): return [np.array(2 * x)]", ".tolist()"),
        ("import numpy as np\ndef double(x): return np.datetime64('2020-01-01')", "not plain data"),
        ("class N(int):\n    __eq__ = lambda s, o: True\nN.__module__ = 'numpy'\ndef double(x): return N()", "gave 0"),
    ],
)
def test_what_is_no_scalar_is_no_answer(verifier, code, said):
    verdict = judge(verifier, code, limited(cpu_s=4.0, wall_s=20.0, memory_mb=512))
    assert verdict.bucket == "wrong_answer" and said in verdict.log


def test_numpys_generator_starts_alike_in_each_case(verifier):
    code = "import numpy as np\nFIRST = np.random.rand()\ndef double(x):\n    np.random.seed(0)\n"
    code += "    return 2 * x if np.random.rand() == FIRST else 0"
    assert judge(verifier, code, replace(PROBLEM, limits=ROOMY)).outcome == "passed"
