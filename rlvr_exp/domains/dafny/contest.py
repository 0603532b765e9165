"""The contest of Dafny in `benchmark=verifiers`: the verifier's servers against processes of the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlvr_exp.config.benchmark import Verifiers
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tool import Process, RunLimits, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

PROCESSES, COMMAND = "a process per proof", "one `dafny verify`"
_LIMITS: dict[str, Any] = dict(rlimit=20_000_000, cpu_s=60.0, wall_s=120.0, memory_mb=2048)


def verifier(sandbox: Sandbox) -> DafnyVerifier:
    return DafnyVerifier(sandbox, **_LIMITS)


@contextmanager
def baselines(sandbox: Sandbox) -> Iterator[dict[str, Callable[[str], str]]]:
    """The same verdicts by a process for each proof, and the plain command line, which proves a program once."""
    with DafnyVerifier(sandbox, warm=False, **_LIMITS) as cold:

        def judge(program: str) -> str:
            verdict = cold.submit(request(program)).result()
            return verdict.bucket or verdict.outcome

        yield {PROCESSES: judge, COMMAND: DafnyProcess()}


def lines(options: Verifiers, count: int) -> list[tuple[str, str, list[str], float]]:
    """The lines of the contest. Raises InputError if the folder has no programs."""
    found = [
        ("dafny, provable or not", PROCESSES, _proofs(options, count), 3.0),
        ("dafny, parse or resolve", COMMAND, unreadable(0, count), 10.0),
    ]
    # The command line proves a program once, so it may accept more of the user's programs.
    return found if options.programs else [*found, ("dafny, provable or not", COMMAND, candidates(1, count), 1.0)]


def _proofs(options: Verifiers, count: int) -> list[str]:
    if not options.programs:
        return candidates(0, count)
    paths = sorted(Path(options.programs).glob("*.dfy"), key=lambda path: uniform("benchmark", path.name))
    if not paths:
        remedy = "name a folder of *.dfy files, or leave it out for the embedded ones"
        raise InputError(InputProblem("benchmark.programs", "no programs are there", options.programs, remedy=remedy))
    return [path.read_text(encoding="utf-8-sig") for path in paths[: options.programs_limit or None]]


def candidates(turn: int, count: int) -> list[str]:
    """Dafny programs with a loop. Every second program cannot be proved."""
    return [_proof(f"{turn}_{index}", "i <= n" if index % 2 == 0 else "i <= n + 1") for index in range(count)]


def unreadable(turn: int, count: int) -> list[str]:
    """Dafny programs that do not parse and programs that do not resolve, in turn."""
    broken = [("invariant 0 <=", "invariant 0 <= <="), ("s := s + i", "s := s + missing")]
    return [_proof(f"{turn}_{index}", "i <= n").replace(*broken[index % 2]) for index in range(count)]


def _proof(name: str, bound: str) -> str:
    return f"""method Sum_{name}(n: nat) returns (s: nat)
  ensures 2 * s == n * (n + 1)
{{
  s := 0;
  var i := 0;
  while i < n
    invariant 0 <= i && {bound}
    invariant 2 * s == i * (i + 1)
  {{
    i := i + 1;
    s := s + i;
  }}
}}
"""


def request(program: str) -> Request:
    return Request(DafnyProblem(program), Candidate(program))


class DafnyProcess:
    """One `dafny verify` a program: "passed", the bucket of its output, or "timeout"."""

    def __init__(self) -> None:
        found = find()
        self._process = Process(found, found.words("verify", _LIMITS["rlimit"]))
        self._limits = RunLimits(_LIMITS["cpu_s"], _LIMITS["wall_s"], _LIMITS["memory_mb"])

    def __call__(self, program: str) -> str:
        run = self._process.run(program, self._limits, lambda: True)
        buckets = {"done": "out_of_resource" if run.exhausted else "verify", "cpu": "timeout", "wall": "timeout"}
        return "passed" if run.verified else buckets.get(run.end, run.end)
