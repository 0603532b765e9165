"""The program's engine: one step by the ast-grep command line, on a file in the candidate's own folder.

For what ast_grep_py does not do: `transform`, `rewriters`, `fix` with expansion, rules matched together. The folder has
its own project file, so that no other is searched for; rules are passed as a file, so that nothing is quoted. Limits
are the process's; the program's messages go to a file, bounded by the limit on file size. The parent imports this file, too:
standard library only.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

_USUAL_PLACES = ("/usr/local/bin", "/usr/bin", os.path.expanduser("~/.local/bin"), os.path.expanduser("~/.cargo/bin"))
_PROJECT = "sgconfig.yml"
_ENVIRONMENT = {"NO_COLOR": "1", "LC_ALL": "C.UTF-8", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
_APPLIED = re.compile(rb"Applied (\d+) changes?")
_MOST_OUTPUT = 4000
_YAML_MARKS = "\x7f\x85\u2028\u2029\ufeff\ufffe\uffff"
"""Not printable, or a line's end, in YAML; JSON writes them unescaped."""


class RuleFault(Exception):
    """`kind`: one of the harness's kinds of fault."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def find_program() -> str | None:
    """The ast-grep program: first next to this interpreter, where the package of the same installation is. The same in
    the parent and in a worker, which has no PATH."""
    places = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"), *_USUAL_PLACES)
    found = next(filter(None, (shutil.which("ast-grep", path=place) for place in places)), None)
    return os.path.realpath(found) if found else None


def apply(text: str, language: str, ending: str, rules: list[dict[str, Any]], program: str) -> tuple[str, int]:
    """(edited text, matches replaced). Raises RuleFault."""
    source = Path(f"source.{ending}")
    usual = {"language": language, "message": "", "severity": "hint"}
    documents = [{"id": f"rule-{at}", **usual, **parts} for at, parts in enumerate(rules, 1)]
    try:
        Path(_PROJECT).write_text("ruleDirs: []\n", encoding="utf-8")
        Path("rule.yml").write_text(_yaml(documents), encoding="utf-8")
        source.write_bytes(text.encode())
    except OSError as fault:
        raise _machine(fault) from fault
    status, output = _run([program, "scan", "--rule", "rule.yml", "--update-all", "--threads", "1", source.name])
    if status != 0:
        raise _fault(status, output)
    applied = _APPLIED.search(output)
    return source.read_bytes().decode(), int(applied.group(1)) if applied else 0


def _yaml(documents: list[dict[str, Any]]) -> str:
    """JSON is YAML once YAML's further line ends inside strings are escaped."""
    lines = (json.dumps(document, ensure_ascii=False) for document in documents)
    text = "\n---\n".join(lines)
    return "".join(f"\\u{ord(mark):04x}" if mark in _YAML_MARKS else mark for mark in text)


def _run(command: list[str]) -> tuple[int, bytes]:
    try:
        with open("said", "w+b") as output:
            # Its standard input is the candidate's own, which is empty.
            done = subprocess.run(command, stdout=output, stderr=output, env=_ENVIRONMENT, check=False)
            output.seek(0)
            return done.returncode, output.read(_MOST_OUTPUT)
    except OSError as fault:
        raise _machine(fault) from fault


def _machine(fault: OSError) -> RuleFault:
    if fault.errno in (errno.ENOMEM, errno.EAGAIN):
        return RuleFault("memory", f"no memory for the program: {os.strerror(fault.errno)}")
    if fault.errno in (errno.EFBIG, errno.ENOSPC):
        return RuleFault("output", f"the text does not fit: {os.strerror(fault.errno)}")
    return RuleFault("engine", f"the ast-grep program does not start: {fault}")


def _fault(status: int, output: bytes) -> RuleFault:
    text = " ".join(
        re.sub(
            r"Error: Cannot parse rule \S+|Help: [^\n]*|See also: \S+|[✖╰▻]|Caused by",
            " ",
            output.decode(errors="replace"),
        ).split()
    )
    if -status == signal.SIGXFSZ:
        return RuleFault("output", "the edited text is larger than a file may be")
    if "memory allocation" in text or -status == signal.SIGKILL:
        return RuleFault("memory", text[:300] or "the program was ended for its use of memory or time")
    if status < 0 or "panicked" in text:
        return RuleFault("crash", f"ast-grep broke under the rule (status {status}): {text[:300]}")
    return RuleFault("resolve", text[:600] or f"ast-grep ended with exit code {status}")
