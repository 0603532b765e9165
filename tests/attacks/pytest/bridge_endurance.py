"""Many mixed solutions in a row over the bridge leave nothing behind in the judge: no process, descriptor or memory.

    python tests/attacks/pytest/bridge_endurance.py [COUNT] [WORKERS]

judges COUNT (10000) solutions in batches of 500 with WORKERS (2) workers, prints one line a batch, and exits 1 where
something grew or an attack came out without a verdict.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from endurance import grown
from suite_arena import RIGHT, SUITE, in_call, judge, make

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request

_FDS = "for fd in range(3, 100):\n    try: {what}\n    except OSError: pass\n"
KINDS = {
    "honest": RIGHT,
    "wrong": "def double(x): return 0\n",
    "parse": "def double(x",
    "resolve": "def triple(x): return x\n",
    "raises": "def double(x): return 1 // 0\n",
    "class": "class V:\n    def __init__(s, n): s.n = n\ndef double(x): return V(x)\n",
    "kills": in_call("import os\nos.kill(os.getpid(), 9)"),
    "exits": in_call("import os\nos._exit(0)"),
    "closes": in_call("import os\n" + _FDS.format(what="os.close(fd)")),
    "garbage": in_call("import os\n" + _FDS.format(what="os.write(fd, b'\\xff' * 64)")),
    "huge": in_call("import os\n" + _FDS.format(what="os.write(fd, (1 << 31).to_bytes(4, 'big'))")),
    "forges": in_call("import os\n" + _FDS.format(what="os.write(fd, b'\\0\\0\\0\\x0b[0,\"=\",4,0]')")),
    "floods": in_call("while True: print('x' * 9999)"),
    "large": "def double(x): return [x] * 300000\n",
    "eats_memory": in_call("return bytearray(1 << 40)"),
    "threads": in_call("import threading, time\nthreading.Thread(target=time.sleep, args=(9,)).start()\nreturn 2 * x"),
    "objects": "def double(x): return [object() for _ in range(999)]\n",
}
HANGS = in_call("while True: pass")
HANGS_EVERY = 250


def requests(first: int, count: int) -> list[Request]:
    codes = [
        HANGS if at % HANGS_EVERY == 0 else list(KINDS.values())[at % len(KINDS)] for at in range(first, first + count)
    ]
    return [Request(PytestProblem(SUITE), Candidate(f"{code}\n# {at}")) for at, code in enumerate(codes, first)]


if __name__ == "__main__":
    number, size = [*map(int, sys.argv[1:]), *(10000, 2)[len(sys.argv) - 1 :]]
    with make(workers=size) as verifier:
        faults = grown(verifier, requests, lambda: judge(verifier, RIGHT + "# last"), number, print)
    sys.exit("\n".join(faults))
