"""Options of the `verifier` group and of the `sandbox` node: what judges candidates, and within which limits."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option


@dataclass
class Verifier:
    """What every verifier's node has, a user's own included."""

    max_no_verdict_rate: float = option(0.05, low=0, high=1, outside=True)
    """Share of requests without a verdict past which the run stops with exit 3."""


@configures("rlvr_exp.verifiers.python_io.PythonIO")
@dataclass
class PythonIO(Verifier):
    """Calls a Python candidate on cases and compares what it returns."""


@dataclass
class Sandbox:
    """Where untrusted code runs."""

    workers: int = option(0, low=0)
    """Worker processes; 0: as many as the machine bears."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of one candidate."""
    wall_s: float = option(10.0, above=0)
    """Wall-clock seconds of one candidate."""
    memory_mb: int = option(512, low=16)
    """Memory of one candidate."""
    output_kb: int = option(64, low=1)
    """Output of one candidate that is kept; more ends it."""
