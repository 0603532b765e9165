"""The contest of Dafny in `benchmark=verifiers`: the verifier against one plain `dafny` process a program."""

from pathlib import Path

from rlvr_exp.config.benchmark import Verifiers
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import uniform
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tool import Process, RunLimits, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

AGAINST = "one dafny process"
_RLIMIT, _PROOF_S = 20_000_000, 60.0
"""Limits of one Dafny program on both sides: in the prover's own count, and of the clock."""


def verifier(sandbox: Sandbox) -> DafnyVerifier:
    return DafnyVerifier(sandbox, rlimit=_RLIMIT, cpu_s=_PROOF_S, wall_s=_PROOF_S, memory_mb=2048)


def baseline() -> "DafnyProcess":
    return DafnyProcess(_RLIMIT, _PROOF_S)


def lines(options: Verifiers, count: int) -> list[tuple[str, list[str], float]]:
    """The lines of the contest. Raises InputError if the folder has no programs."""
    return [
        ("dafny, provable or not", _proofs(options, count), 2.5),
        ("dafny, parse or resolve", unreadable(0, count), 30),
    ]


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

    def __init__(self, rlimit: int, wall_s: float):
        found = find()
        self._process = Process(found, found.words("verify", rlimit))
        self._limits = RunLimits(wall_s, wall_s, 1 << 20)

    def __call__(self, program: str) -> str:
        run = self._process.run(program, self._limits, lambda: True)
        return (
            "passed" if run.verified else {"done": "verify", "cpu": "timeout", "wall": "timeout"}.get(run.end, run.end)
        )
