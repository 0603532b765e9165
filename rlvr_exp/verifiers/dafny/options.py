"""The command-line words for each family of Dafny, and the parser of its output."""

from collections.abc import Callable

from rlvr_exp.verifiers.dafny import logs, logs4
from rlvr_exp.verifiers.dafny.logs import Report
from rlvr_exp.verifiers.dafny.tool import Tool

PROBE_RLIMIT = 1_000_000
"""The prover's resource count for one probed body."""
PROBE_CPU_S = 20.0
"""CPU seconds of the first run of probes: nonlinear arithmetic takes long within its count."""


def words(tool: Tool, rlimit: int) -> list[str]:
    """All words but the file's name, which follows."""
    if tool.family == "2.3":
        return ["/compile:0", "/nologo", "/vcsCores:1", "/trace"] + ([f"/rlimit:{rlimit}"] if rlimit else [])
    limit = [f"--resource-limit={rlimit}"] if rlimit else []
    return ["verify", "--cores=1", "--log-format=text", *limit]


def front(tool: Tool) -> list[str]:
    """Words that stop a plain command line before the proofs, in place of `words`; exit code 0: it resolves."""
    return ["/nologo", "/compile:0", "/dafnyVerify:0"] if tool.family == "2.3" else ["resolve"]


def careful(tool: Tool) -> list[str]:
    """Words by which the tool treats assumptions as proof obligations; for a given program that assumes nothing."""
    return ["/noCheating:1"] if tool.family == "2.3" else []


def probing(tool: Tool, rlimit: int) -> list[str]:
    """As `searching`, with a smaller resource count: a vain search for a proof of false may be long."""
    least = min(rlimit or PROBE_RLIMIT, PROBE_RLIMIT)
    return [*searching(tool), f"/rlimit:{least}" if tool.family == "2.3" else f"--resource-limit={least}"]


def searching(tool: Tool) -> list[str]:
    """Words for a run that only searches for bodies that prove false: no other procedures, the first fault of each
    body."""
    return ["/errorLimit:1", "/proc:Impl$$*"] if tool.family == "2.3" else []


def reader(tool: Tool) -> Callable[[str, int], Report]:
    """The parser from (output, exit code) to a report."""
    return logs.read if tool.family == "2.3" else logs4.read
