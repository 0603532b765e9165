"""Options of the `verifier` group and of the nodes `sandbox` and `cache`: what judges candidates, within which limits,
and where verdicts are remembered."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option

LEVELS = ("strict", "namespaces", "user", "process")
"""Levels of isolation, strongest first; rlvr_exp/sandbox/isolate.py says what each holds."""


@dataclass
class Verifier:
    """What every verifier's node has, a user's own included."""

    max_no_verdict_rate: float = option(0.05, low=0, high=1, outside=True)
    """Share of requests without a verdict past which the run stops with exit 3."""


@configures("rlvr_exp.verifiers.python_io.PythonIO")
@dataclass
class PythonIO(Verifier):
    """Calls a Python candidate on cases and compares what it returns."""


@configures("rlvr_exp.verifiers.ast_grep.AstGrep")
@dataclass
class AstGrep(Verifier):
    """Applies an ast-grep action to a text and compares what it makes, or runs tests on it."""

    compare: str = option("text", choices=("text", "text_loose", "syntax"))
    """What must be equal: every character; all but blanks at line ends and empty lines; the syntax tree."""
    max_passes: int = option(1, low=1, high=100)
    """1: apply an action once; more: until nothing changes, at most so often."""


@dataclass
class Sandbox:
    """Where untrusted code runs."""

    workers: int = option(0, low=0)
    """Worker processes; 0: as many as the machine bears."""
    level: str = option("auto", choices=("auto", *LEVELS))
    """How candidates are held; auto: the strongest below strict that this machine allows."""
    require: str = option("", choices=("", *LEVELS))
    """The weakest level that a run accepts; empty: any, said loudly."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of one candidate."""
    wall_s: float = option(10.0, above=0)
    """Wall-clock seconds of one candidate."""
    memory_mb: int = option(512, low=16)
    """Memory of one candidate."""
    output_kb: int = option(64, low=1)
    """Output of one candidate that is kept; more ends it."""


@dataclass
class Cache:
    """Verdicts remembered on disk, for this run and others."""

    enabled: bool = True
    """Look verdicts up and write them; without it each run remembers its own alone."""
    path: str = ""
    """Folder; empty: rlvr_exp/verdicts in the user's cache folder."""
    max_mb: int = option(512, low=1)
    """Size past which what was used longest ago leaves."""
