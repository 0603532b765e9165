"""The words that each family of Dafny is started with, and who reads its answer."""

from collections.abc import Callable

from rlvr_exp.verifiers.dafny import logs, logs4
from rlvr_exp.verifiers.dafny.logs import Report
from rlvr_exp.verifiers.dafny.tool import Tool

PROBE_RLIMIT = 1_000_000
"""The prover's resource count for one probed body."""
PROBE_CPU_S = 20.0
"""CPU seconds of a run of probes: nonlinear arithmetic takes long within its count."""


def words(tool: Tool, rlimit: int) -> list[str]:
    """All but the file's name, which follows."""
    if tool.family == "2.3":
        return ["/compile:0", "/nologo", "/vcsCores:1", "/trace"] + ([f"/rlimit:{rlimit}"] if rlimit else [])
    limit = [f"--resource-limit={rlimit}"] if rlimit else []
    return ["verify", "--cores=1", "--log-format=text", *limit]


def front(tool: Tool) -> list[str]:
    """Words that make a plain command line stop before the proofs, in place of `words`; exit code 0: it resolves."""
    return ["/nologo", "/compile:0", "/dafnyVerify:0"] if tool.family == "2.3" else ["resolve"]


def careful(tool: Tool) -> list[str]:
    """Words that make the tool itself treat what is assumed as what is to be proved; for a given program that
    assumes nothing."""
    return ["/noCheating:1"] if tool.family == "2.3" else []


def probing(tool: Tool, rlimit: int) -> list[str]:
    """Words for a run that only looks for bodies that prove false: no other procedures, the first fault of each body,
    and a smaller resource count, since a prover that looks for a proof of false in vain may look for long."""
    least = min(rlimit or PROBE_RLIMIT, PROBE_RLIMIT)
    if tool.family == "2.3":
        return ["/errorLimit:1", "/proc:Impl$$*", f"/rlimit:{least}"]
    return [f"--resource-limit={least}"]


def reader(tool: Tool) -> Callable[[str, int], Report]:
    """From (output, exit code) to a report."""
    return logs.read if tool.family == "2.3" else logs4.read
