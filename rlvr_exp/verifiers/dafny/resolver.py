"""Whether a program parses and resolves: Dafny's front end alone, without proofs and guards."""

from typing import Self

from rlvr_exp.config.verifier import DafnyVerifierOptions as Options
from rlvr_exp.tasks.dafny.tokens import has_directive, plain, printed
from rlvr_exp.verifiers.dafny import options
from rlvr_exp.verifiers.dafny.run import Cold, RunLimits, Warm
from rlvr_exp.verifiers.dafny.tool import find


class Resolver:
    """One process of the installed Dafny, kept warm where possible. Raises InputError where none is installed."""

    def __init__(self, path: str = "", image: str = ""):
        tool = find(path, image)
        self._read = options.reader(tool)
        self._limits = RunLimits(Options.cpu_s, Options.wall_s, Options.memory_mb)
        self._warm = bool(tool.library)
        self._runner = Warm(tool, options.words(tool, 0)) if self._warm else Cold(tool, options.front(tool))

    def fault(self, text: str) -> str:
        """The first error that the tool reports on a program; empty where it resolves."""
        if has_directive(plain(text)):
            return "a line begins with #"
        run = self._runner.run(printed(plain(text)), (), self._limits, lambda: not self._warm)
        if run.end == "stopped" or (run.end == "done" and not self._warm and run.code == 0):
            return ""
        if run.end != "done":
            return f"the tool ended with {run.end}"
        faults = self._read(run.output, run.code).faults
        return faults[0].text if faults else run.output[-200:].strip()

    def close(self) -> None:
        """End the process."""
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
