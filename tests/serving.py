"""A real server of +stage=serve for tests, and requests to it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from program import ENVIRONMENT


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.match(r"(http://\S+)", line):
            return found[1]
    raise AssertionError("".join(seen))


@contextmanager
def served(folder: Path, *words: str, **environment: str) -> Iterator[tuple[str, int]]:
    """The address of a server that runs +stage=serve, and the id of the process that serves."""
    command = [sys.executable, "-m", "rlvr_exp", "+stage=serve", "serve.port=0", f"run.dir={folder}", *words]
    given = {**ENVIRONMENT, "OMP_NUM_THREADS": "1", **environment}
    with subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            url = address_of(process)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield url, int(children[-1])
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
    assert code == 0


def post(url: str, content: bytes | None, **headers: str) -> tuple[int, bytes]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(url, content, given), timeout=60) as answer:
            return answer.status, answer.read()
    except HTTPError as fault:
        return fault.code, fault.read()
