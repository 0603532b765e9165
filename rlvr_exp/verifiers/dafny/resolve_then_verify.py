"""The plain command line with the stages of the warm process: a program that does not parse or resolve is reported as
such before the guards decide whether its proofs are checked."""

from collections.abc import Callable, Sequence

from rlvr_exp.verifiers.dafny import options
from rlvr_exp.verifiers.dafny.run import Cold, Run, RunLimits
from rlvr_exp.verifiers.dafny.tool import Tool


class ResolveThenVerify:
    """A process for each program, and another for each program whose proofs are not checked."""

    def __init__(self, tool: Tool, words: Sequence[str]):
        self._full, self._front = Cold(tool, words), Cold(tool, options.front(tool))

    def run(self, text: str, extra: Sequence[str], limits: RunLimits, may_prove: Callable[[], bool]) -> Run:
        """As `Warm.run`."""
        run = self._full.run(text, extra, limits, may_prove)
        if run.end != "stopped":
            return run
        front = self._front.run(text, extra, limits, lambda: True)
        resolves = front.end == "done" and front.code == 0
        return Run("stopped", code=run.code, cpu_s=front.cpu_s) if resolves else front

    def isolated(self) -> list[str]:
        """What a process is isolated from."""
        return self._full.isolated()

    def close(self) -> None:
        """Nothing outlives a run."""
