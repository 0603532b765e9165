"""Options of the `verifier` group and of the nodes `sandbox` and `cache`: what verifies candidates, within which
limits, and where verdicts are cached."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem

LEVELS = ("strict", "namespaces", "user", "process")
"""Levels of isolation, strongest first, defined in rlvr_exp/sandbox/isolation/jail.py."""


@dataclass
class Verifier:
    """Options of every verifier's node, a user's own included."""

    max_no_verdict_rate: float = option(0.05, low=0, high=1, rare=True)
    """Share of requests without a verdict past which the run stops with exit 3."""
    validate: int = option(16, low=0)
    """Training tasks whose gold is verified before training; a gold that does not pass stops the run with exit 3."""


@configures("rlvr_exp.verifiers.python_io.PythonIO")
@dataclass
class PythonIO(Verifier):
    """Calls a Python candidate on cases and compares what it returns."""

    case_cpu_s: float = option(0.0, low=0, rare=True)
    """CPU seconds of one case, so that a case that hangs does not affect the others; 0: only the candidate's own
    limit."""
    packages: bool = True
    """Candidates may import the installed packages, never the project; without it, the standard library alone."""


@configures("rlvr_exp.verifiers.python_tests.PythonTests")
@dataclass
class PythonTests(Verifier):
    """Judges tests that are calls: whether a reference passes them, and which programs they catch; and all that python_io and
    pytest judge."""

    case_cpu_s: float = option(0.0, low=0, rare=True)
    """As python_io's."""
    packages: bool = True
    """As python_io's."""


@configures("rlvr_exp.verifiers.suite.verifier.PytestSuite")
@dataclass
class PytestSuite(Verifier):
    """Runs a pytest suite against a solution."""

    process: str = option("bridged", choices=("bridged", "shared"))
    """bridged: the solution in a process of its own, where nothing of the tests is; shared: in the tests' process,
    without any guard, for code that nobody optimises against its tests. Stages that train reject it."""
    cpu_s: float = option(10.0, low=0)
    """CPU seconds of one suite, in place of the sandbox's; 0: the sandbox's."""
    wall_s: float = option(30.0, low=0)
    """Wall-clock seconds of one suite, in place of the sandbox's; 0: the sandbox's."""
    memory_mb: int = option(2048, low=0)
    """Address space of one suite beyond the worker's own, in place of the sandbox's memory; 0: the sandbox's. Large
    packages map much more than they use."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if self.process == "shared" and reads("optimizer"):
            what = "a solution in the tests' own process can pass without solving, which a policy learns"
            yield InputProblem("verifier.process", what, "shared", "bridged in stages that train", "", "drop it")


@dataclass
class Sandbox:
    """Where untrusted code runs."""

    workers: int = option(0, low=0)
    """Worker processes; 0: as many as the machine bears."""
    level: str = option("auto", choices=("auto", *LEVELS))
    """How candidates are held; auto: the strongest below strict that this machine allows."""
    require: str = option("", choices=("", *LEVELS))
    """The weakest level that a run accepts; empty: any, with a clear warning."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of one candidate."""
    wall_s: float = option(10.0, above=0)
    """Wall-clock seconds of one candidate."""
    memory_mb: int = option(512, low=16)
    """Memory of one candidate."""
    output_kb: int = option(1024, low=1, rare=True)
    """Output of one candidate that is kept; more ends it."""


@dataclass
class Cache:
    """Verdicts cached on disk, for this run and others."""

    enabled: bool = True
    """Look verdicts up and write them; without it each run caches its own verdicts alone."""
    path: str = option("", rare=True)
    """Folder; empty: rlvr_exp/verdicts in the user's cache folder."""
    max_mb: int = option(512, low=1, rare=True)
    """Size past which the least recently used verdicts are removed."""
